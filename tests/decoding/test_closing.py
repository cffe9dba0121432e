"""A safe end: how many ids it takes, and masks that keep the end within reach, against plain
breadth-first search over the written-out automaton.

Three laws: a mask within a budget holds only ids after which a text can be complete in time; on
every way along such masks an end is reached, none of them empty before; where many ids are left it
is the plain mask. (What is left out of a mask near the end is measured, not tested.)"""

import json
import random

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata import Matcher, constrain
from bpe_automata._kernels.bits import members
from bpe_automata.automata.linked_regex import link_regex
from bpe_automata.constructions.explicit import explored
from bpe_automata.constructions.within import Within, min_tokens
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    BudgetTooSmallError,
    EmptyLanguageError,
    PromptError,
    UnsupportedFeatureError,
)
from bpe_automata.reference import naive_constraint
from bpe_automata.schemas import json_schema
from bpe_automata.testing import (
    bpe_tokenizers,
    byte_level,
    byte_spelling,
    cyclic_regexes,
    finite_regexes,
    merge_tables,
    small_tokenizer,
    texts,
)
from bpe_automata.testing._inputs import own_pieces

MOST_EDGES = 3000
METHODS = ("canonical", "lift")


def distances(automaton):
    """Ids from each state to acceptance."""
    graph = automaton.to_networkx().reverse()
    ends = [state for state in automaton.states() if automaton.accepting[state]]
    return networkx.multi_source_dijkstra_path_length(graph, ends, weight=None)


def check(engine, prefix=(), order=None, whole=None, most=400):
    """The laws, at every state with every number of ids left that a way along the masks comes to,
    or at some of them. Each in a random order, so that what is known already differs. Returns the
    number of states."""
    whole = whole or explored(engine, engine.initial(prefix), MOST_EDGES)
    far = distances(whole.automaton)
    states, eos = whole.states, set(engine.eos_ids)
    number = {state: s for s, state in enumerate(states)}
    rng = random.Random(order)
    for s in rng.sample(range(len(states)), min(40, len(states))):
        assert min_tokens(engine, states[s]) == far[s], states[s]
    start, deepest = number[engine.initial(prefix)], max(far.values())
    for budget in rng.sample(range(deepest + 4), min(4, deepest + 4)):
        within = Within(engine, budget)
        if budget < far[start]:
            with pytest.raises(BudgetTooSmallError) as caught:
                within.initial(prefix)
            assert (caught.value.needed, caught.value.given) == (far[start], budget)
            continue
        waiting = [within.initial(prefix)]
        seen = set(waiting)
        for state, k in waiting:
            s = number[state]
            row = zip(*(part.tolist() for part in whole.automaton.row(s)), strict=True)
            exact = {token for token, after in row if far[after] < k}
            exact |= eos if engine.accepting(state) else set()
            found = set(members(within.mask((state, k))).tolist())
            assert found <= exact, (state, k)
            assert (found & eos == eos) if engine.accepting(state) else found, (state, k)
            ids = sorted(found - eos)
            steps = within.steps((state, k), np.array(ids, np.int64))
            assert steps == [within.step((state, k), token) for token in ids]
            new = [after for after in steps if after not in seen]
            rng.shuffle(new)
            waiting += new[: max(0, most - len(seen))]
            seen.update(waiting[-len(new) :] if new else ())
    plenty = 1_000_000
    for state in states:
        assert np.array_equal(Within(engine, plenty).mask((state, plenty)), engine.mask(state))
    return len(states)


alone = merge_tables().map(lambda table: small_tokenizer(table.vocabulary, table.merges))
"""What is in reach depends on the last id nearly everywhere."""


@examples(30)
@given(st.data(), bpe_tokenizers() | alone, st.booleans(), st.sampled_from(METHODS))
def test_every_state_and_mask_of_random_tokenizers(data, tokenizer, linked, method):
    """Linked: the automaton is entered as it is met."""
    pieces = own_pieces(tokenizer)
    regex = data.draw(st.one_of(finite_regexes(pieces), cyclic_regexes(pieces)))
    added = [token.id for token in tokenizer.description.added]
    eos = tuple(data.draw(st.sets(st.sampled_from(added), max_size=2))) if added else ()
    before = tokenizer.encode(data.draw(texts(tokenizer, 2)))
    prefix = data.draw(st.sampled_from([(), tuple(before)]))
    try:
        language = link_regex(f"(?:{regex}){{1,3}}") if linked else regex
        engine = constrain(
            tokenizer, language, method, eos, added_tokens=data.draw(st.booleans())
        ).engine
        whole = explored(engine, engine.initial(prefix), MOST_EDGES)
    except (BudgetExceededError, EmptyLanguageError, PromptError, UnsupportedFeatureError):
        return
    check(engine, prefix, order=data.draw(st.integers(0, 3)), whole=whole)


# ---------------------------------------------------------------- written tokenizers


def written():
    """GPT-2's pattern makes the canonical sequences not closed under prefixes."""
    bytes_ = sorted({*"éèñ日本".encode(), *b" \n"})
    space, newline = byte_spelling(b" "), byte_spelling(b"\n")
    merges = [("a", "b"), ("ab", "c"), ("b", "c"), ("'", "s"), (space, "a"), (space, space)]
    merges += [(newline, newline)]
    vocabulary = [*"abc<|x>'s", *(byte_spelling(bytes([b])) for b in bytes_)]
    vocabulary += map("".join, merges)
    return small_tokenizer(vocabulary, merges, byte_level(use_regex=True), ["<end>", "<|x|>"])


TOKENIZER = written()
EOS = tuple(t.id for t in TOKENIZER.description.added if t.content == "<end>")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("language", "prompt"),
    [
        (r"\n\n+a[ \n]+|(  )*a", ""),
        ("(é|è|日){1,3}a", ""),
        ("aaa?b|abcabc", ""),  # the shortest text is not the one of the fewest ids
        ("(abc|bc| a)+", "<|x|>"),
        (r"\n?(a|b)", "\n"),
    ],
)
def test_a_budget_of_ids(language, prompt, method):
    prefix = TOKENIZER.encode(prompt)
    assert check(constrain(TOKENIZER, language, method, EOS).engine, prefix)


@pytest.mark.parametrize(
    "regex",
    ["[aqe\u0300\u0323]{1,4}b", "(a\u0300?|q<?|<\u0323?|à)+", "(q|<|<x>){2,4}"],
)
def test_what_normalization_composes(regex):
    """NFC: a text that begins with a mark is read otherwise after `a` than after `<`."""
    vocabulary = ["a", "q", "e", "b", "<", "x", ">", "\u0300", "\u0323", "à", "ạ", "ab", "<x"]
    merges = [("a", "b"), ("<", "x")]
    tokenizer = small_tokenizer(vocabulary, merges, None, ["<x>"], normalizer={"type": "NFC"})
    for order in range(4):
        assert check(constrain(tokenizer, regex).engine, order=order)


# ---------------------------------------------------------------- other engines, bad input


@pytest.mark.parametrize("budget", [-1, 1.5, "3", None, True, float("inf")])
def test_a_budget_is_a_number_of_ids_for_an_engine_of_this_package(budget):
    with pytest.raises(ArgumentError, match="max_tokens"):
        constrain(TOKENIZER, "a").within(budget)
    with pytest.raises(UnsupportedFeatureError, match="Naive"):
        naive_constraint(TOKENIZER, "ab").within(3)


def test_of_two_budgets_the_smaller_one_counts():
    made = constrain(TOKENIZER, "a{1,5}")
    wanted = made.within(2).automaton()
    assert wanted.total() >= 2
    for twice in (made.within(2).within(np.int64(9)), made.within(9).within(2)):
        assert twice.automaton().equivalent(wanted) is None


def test_min_tokens_under_a_budget_and_at_the_end():
    matcher = constrain(TOKENIZER, "abca+", eos_ids=EOS).within(4).matcher()
    needed = []
    for token in TOKENIZER.encode("abcaaa"):
        needed.append(matcher.min_tokens_to_accept())
        matcher.advance(token)
    needed.append(matcher.min_tokens_to_accept())
    assert needed == [2, 1, 0, 0, 0]
    assert matcher.allowed_ids().tolist() == list(EOS)
    matcher.advance(EOS[0])
    assert matcher.min_tokens_to_accept() == 0


def test_what_is_asked_grows_with_the_text_and_not_with_its_square(smollm2_tokenizer, monkeypatch):
    """At each mask of the shortest object of many strings, with not one id to spare."""
    asked = []
    for n in (10, 40):
        names = [f"field_{i}" for i in range(n)]
        schema = {"type": "object", "required": names, "additionalProperties": False}
        schema["properties"] = {name: {"type": "string"} for name in names}
        ids = smollm2_tokenizer.encode(json.dumps(dict.fromkeys(names, ""), separators=(",", ":")))
        engine = constrain(smollm2_tokenizer, json_schema(schema, order="schema")).engine
        count, ask = [0], type(engine.product).ask

        def counted(*given, count=count, ask=ask):
            count[0] += 1
            return ask(*given)

        monkeypatch.setattr(type(engine.product), "ask", counted)
        matcher = Matcher(Within(engine, len(ids)))
        for token in ids:
            matcher.advance(token)
        monkeypatch.undo()
        assert matcher.is_accepting
        asked.append(count[0])
    assert asked[1] < 6 * asked[0]


@pytest.mark.parametrize("method", METHODS)
def test_walks_in_smollm2_end_in_time(smollm2_tokenizer, method):
    """Random ones, which turn for the end only when they have to."""
    made = constrain(smollm2_tokenizer, r"(?s:.{5,20})", method)
    needed = made.matcher().min_tokens_to_accept()
    for budget in (needed, needed + 5, 400):
        matcher, rng = made.within(budget).matcher(), np.random.default_rng(budget)
        while len(ids := np.setdiff1d(matcher.allowed_ids(), made.eos_ids)):
            matcher.advance(int(rng.choice(ids)))
        assert matcher.is_accepting
        assert len(matcher.ids) <= budget
        text = smollm2_tokenizer.decode(matcher.ids)
        assert made.dfa.accepts(text.encode())
        assert method == "lift" or smollm2_tokenizer.encode(text) == list(matcher.ids)
    with pytest.raises(BudgetTooSmallError):
        made.within(needed - 1).matcher()
