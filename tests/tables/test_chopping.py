"""The published heuristic that gives forced ids back, on the examples of its source and where each
of its decisions can be seen."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples, named
from support.drawn import spaced, with_prefix

from bpe_automata import constrain
from bpe_automata._automata.compile import compile_regex
from bpe_automata.errors import ArgumentError, BudgetExceededError, EmptyLanguageError
from bpe_automata.testing import (
    bpe_tokenizers,
    byte_level,
    byte_spelling,
    finite_regexes,
    small_tokenizer,
)
from bpe_automata.testing._inputs import own_pieces
from experiments.chop import chop, chopped, encoded, in_context, spans

STEPS = [("h", "e"), ("b", "c"), ("a", "bc"), ("b", "d"), ("a", "bd"), ("e", "f"), ("ef", "g")]
STEPS += [("e", "b")]
ALPHABET = [*"abcdefghx", "he", "bc", "abc", "bd", "abd", "ef", "efg", "eb"]
SMALL = small_tokenizer(ALPHABET, STEPS)


def spelled(tokenizer, ids):
    return [tokenizer.token_bytes(token).decode() for token in ids]


def runs(regex, *most, before=""):
    """What the heuristic forces at the beginning of a text, or after some of it, by max_tokens."""
    engine = constrain(SMALL, regex).engine
    state, ids = engine.initial(), SMALL.encode(before)
    for token in ids:
        state = engine.step(state, token)
    return [spelled(SMALL, chop(engine, state, ids, k)) for k in most]


def is_canonical(regex, ids):
    """Is this the beginning of what encode gives for a text of the language?"""
    matcher = constrain(SMALL, regex).matcher()
    for token in ids:
        if token not in matcher.allowed_ids():
            return False
        matcher.advance(token)
    return True


def test_what_is_not_canonical_at_0_and_1_and_is_at_2():
    """x a b is certain, but what follows makes abc or abd of it: b is given back at 1, which leaves
    an a that is in no text, and a as well at 2."""
    regex = "xab(c|d)"
    at = runs(regex, 0, 1, 2, 4)
    assert at == [["x", "a", "b"], ["x", "a"], ["x"], ["x"]]
    fit = [is_canonical(regex, map(ALPHABET.index, run)) for run in at]
    assert fit == [False, False, True, True]
    assert spelled(SMALL, constrain(SMALL, regex).matcher().forced_tokens()) == ["x"]


def test_the_grammar_may_forbid_the_token_that_spans():
    """efg is a token, but no g comes: e f is kept; with a g it is given back."""
    assert runs("xef(h|a)", 0, 4) == [["x", "ef"], ["x", "ef"]]
    assert runs("xef(h|g)", 0, 4) == [["x", "ef"], ["x"]]
    dfa = compile_regex("ef(h|a)")
    assert not spans(SMALL, b"ef", dfa, dfa.walk(b"ef"))
    dfa = compile_regex("ef(h|g)")
    assert spans(SMALL, b"ef", dfa, dfa.walk(b"ef"))
    assert spans(SMALL, b"f", dfa, dfa.walk(b"e")) is False


def test_certain_ids_are_given_back_all_the_same():
    """eb goes beyond the edge, but after h there is no such e: he is in all texts."""
    regex = "xhe(b|c)"
    assert runs(regex, 0, 1) == [["x", "he"], ["x"]]
    assert spelled(SMALL, constrain(SMALL, regex).matcher().forced_tokens()) == ["x", "he"]


def test_after_some_text():
    assert runs("ahe(b|c)", 0, 4, before="a") == [["he"], []]
    assert runs("x(aa|bb)h", 0, 4, before="xa") == [["a", "h"], ["a", "h"]]


def test_the_last_id_is_tokenized_along():
    """After a the forced b c would become one token with it: then they are encoded alone."""
    number = ALPHABET.index
    assert in_context(SMALL, [number("x")], b"abc") == (b"abc", (number("abc"),))
    assert in_context(SMALL, [number("a")], b"bc") == (b"bc", (number("bc"),))
    assert in_context(SMALL, [number("e")], b"fg") == (b"fg", (number("f"), number("g")))


def test_what_there_is_before_anything_is_given_back():
    """x,a,b and the state in which c or d comes; after x, the rest of them in the same state."""
    engine = constrain(SMALL, "xab(c|d)").engine
    start, number = engine.initial(), ALPHABET.index
    after = engine.dfa.walk(b"xab")
    assert encoded(engine, start) == (after, (number("x"), number("a"), number("b")))
    later = engine.step(start, number("x"))
    assert encoded(engine, later, [number("x")]) == (after, (number("a"), number("b")))


def test_a_space_is_put_before_a_text_but_not_inside():
    tokenizer = spaced("always")
    assert in_context(tokenizer, (), b"ab") == (b"ab", (7,))  # ▁ab
    assert in_context(tokenizer, (3,), b"ab") == (b"ab", (6,))  # c, then ab


def test_characters_under_way():
    tokenizer = small_tokenizer(sorted(byte_spelling("éèa".encode())), [], byte_level())
    first, second, other = (list("éèa".encode())[k] for k in (0, 1, 3))
    number = {tokenizer.token_bytes(i): i for i in range(tokenizer.n_ids)}
    a, lead = number[b"a"], number[bytes([first])]
    assert in_context(tokenizer, (), b"a" + bytes([first])) == (b"a", (a,))
    assert in_context(tokenizer, (a, lead), bytes([second])) == (
        bytes([second]),
        (number[bytes([second])],),
    )
    assert in_context(tokenizer, (), bytes([other])) == (b"", ())


def test_a_text_that_encode_changes_forces_nothing():
    tokenizer = small_tokenizer(["a", "b"], normalizer={"type": "Lowercase"})
    assert in_context(tokenizer, (), b"A") == (b"", ())


def test_wrong_counts():
    engine = constrain(SMALL, "ab").engine
    for wrong in (-1, True, "2"):
        with pytest.raises(ArgumentError):
            chop(engine, engine.initial(), (), wrong)


def plain(tokenizer, dfa, state, ids, max_tokens):
    """The source's own words, over every token and every byte, without a trie."""
    data = b"".join(map(tokenizer.token_bytes, ids))
    last = sum(len(tokenizer.token_bytes(t)) for t in ids[len(ids) - min(max_tokens, len(ids)) :])
    edge = len(data)
    ordinary = [token for token in tokenizer.description.tokens if token]
    for at in range(len(data) - last, len(data)):
        suffix = data[at:]
        beyond = [t[len(suffix) :] for t in ordinary if t.startswith(suffix) and t != suffix]
        if any(dfa.far[dfa.walk(rest, state)] >= 0 for rest in beyond):
            edge = at
            break
    kept = list(ids)
    while kept and len(b"".join(map(tokenizer.token_bytes, kept))) > edge:
        kept.pop()
    return tuple(kept)


@examples(10)
@given(st.data(), st.integers(0, 4))
def test_the_trie_finds_what_trying_every_token_finds(data, most):
    tokenizer = data.draw(bpe_tokenizers(max_merges=8))
    dfa = compile_regex(data.draw(finite_regexes(own_pieces(tokenizer))))
    text = data.draw(st.sampled_from(own_pieces(tokenizer)))
    ids = tokenizer.encode(text)
    state = data.draw(st.integers(0, dfa.n_states - 1))
    found = chopped(tokenizer, dfa, state, ids, most)
    assert found == plain(tokenizer, dfa, state, ids, most)
    assert len(ids) - len(found) <= most


@examples(10)
@given(st.data(), st.integers(0, 4))
def test_what_is_forced_is_in_every_text(data, most):
    """Whatever it is worth as ids, as bytes it is certain."""
    tokenizer = data.draw(st.one_of(bpe_tokenizers(max_merges=8), with_prefix()))
    regex = data.draw(finite_regexes(own_pieces(tokenizer)))
    try:
        constraint = constrain(tokenizer, regex)
        sequences = list(constraint.automaton().enumerate(limit=1000))
    except (BudgetExceededError, EmptyLanguageError):
        assume(False)
    ids = data.draw(st.sampled_from(sequences))
    k = data.draw(st.integers(0, len(ids)))
    engine = constraint.engine
    state = engine.initial()
    for token in ids[:k]:
        state = engine.step(state, token)
    run = chop(engine, state, ids[:k], most)
    begun = tokenizer.text_bytes(ids[:k])
    whole = tokenizer.text_bytes((*ids[:k], *run))
    assert tokenizer.text_bytes(ids).startswith(whole) or not run
    assert whole.startswith(begun) or not run


@pytest.mark.parametrize("name", ["smollm2", "llama-3", "mistral-v1"])
def test_the_examples_of_the_source(name):
    tokenizer = named(name)
    spaced = r'\{"name_of_the_person"[ ]?:[ ]?"[a-z]+"\}'
    order = r'\{("orderId":"[a-z]*"|"orderName":"[a-z]*")\}'
    engine = constrain(tokenizer, spaced).engine
    by = {k: tokenizer.decode(chop(engine, engine.initial(), (), k)) for k in (0, 1, 4)}
    assert by == {0: '{"name_of_the_person"', 1: '{"name_of_the_person', 4: '{"name_of_the_person'}
    constraint = constrain(tokenizer, order)
    begun = chop(constraint.engine, constraint.engine.initial(), (), 0)
    assert tokenizer.decode(begun) == '{"order'
    healed = chop(constraint.engine, constraint.engine.initial(), (), 1)
    assert tokenizer.decode(healed) == ('{"' if name == "llama-3" else '{"order')
