"""The lift is right: { ids : bytes(ids) in L }, every mask against all ids; and the naive engine
has the same masks."""

import re
from contextlib import contextmanager

import networkx
import numpy as np
import pytest
import regex
from hypothesis import assume, event, given
from hypothesis import strategies as st
from support import examples
from support.steps import PREPEND, SPACED, in_turn

from bpe_automata import ByteDFA, compile_regex, constrain
from bpe_automata._kernels.bits import members
from bpe_automata.canonical import reader, slices
from bpe_automata.constructions.lift import Lift
from bpe_automata.decoding.constraint import rebuilt
from bpe_automata.errors import (
    ArgumentError,
    EmptyLanguageError,
    TokenOutOfRangeError,
    UnsupportedFeatureError,
    UnsupportedRegexError,
    UnsupportedTokenizerError,
)
from bpe_automata.models import character_tokenizer
from bpe_automata.reference import Naive, naive_constraint
from bpe_automata.testing import (
    bpe_tokenizers,
    byte_level,
    byte_spelling,
    cyclic_regexes,
    finite_regexes,
    small_tokenizer,
)
from bpe_automata.testing._inputs import own_pieces


@examples(25)
@given(st.data())
def test_random_tokenizers(data):
    """Every state of the DFA; a state is alive iff ids lead on, also where bytes are missing."""
    tokenizer = data.draw(bpe_tokenizers())
    dfa = compile_regex(data.draw(cyclic_regexes(own_pieces(tokenizer))))
    eos = tuple(data.draw(st.sets(st.integers(0, tokenizer.n_ids - 1), max_size=2)))
    added = {token.id for token in tokenizer.description.added}
    with_added = data.draw(st.booleans())
    banned = {*eos} if with_added else {*eos, *added}
    edges = {
        (state, token): dfa.walk(spelled, state)
        for state in range(1, dfa.n_states)
        for token, spelled in enumerate(tokenizer.spellings)
        if spelled and token not in banned
    }
    alive = _alive(dfa, edges)
    if dfa.start not in alive:
        with pytest.raises(EmptyLanguageError):
            Lift(tokenizer, dfa, eos, with_added)
        return
    engine = Lift(tokenizer, dfa, eos, with_added)
    for state in range(1, dfa.n_states):
        wanted = {token for (s, token), to in edges.items() if s == state and to in alive}
        wanted |= set(eos) if dfa.accepting[state] else set()
        assert set(members(engine.mask(state)).tolist()) == wanted


WIDE = (r".{0,9}b", r'([^"\\]|\\["\\n]){0,20}', "[a-zé ]{3,30}\n?", r"(\w+[^\w]?)+", "[^a]*a[^b]*b")


@contextmanager
def sliced_at_once(lengths=(3, 1)):
    """From the first mask on, however few tokens a slice has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_FEWEST", 1)
        patch.setattr(reader, "_MARGIN", 0)
        patch.setattr(reader, "_LENGTHS", lengths)
        patch.setattr(slices, "_WORTH", 0)
        yield


APART = 'bcx"1 '
"""Characters that states of `wide_dfas` may treat otherwise than letters."""


@st.composite
def wide_dfas(draw):
    """Most bytes lead from a state to one and the same, some elsewhere: states that have slices,
    and states beside them. Bytes beyond ASCII may be read as letters, in any order."""
    n, chain, columns = draw(st.integers(3, 12)), draw(st.booleans()), 3 + len(APART)
    byte_class = np.zeros(256, np.uint8)  # nothing else, letters, half of them, APART
    byte_class[32:127] = 1
    byte_class[0x80:] = draw(st.booleans())
    byte_class[[ord(c) for c in "ghijkl"]] = 2
    byte_class[[ord(c) for c in APART]] = np.arange(3, columns)
    trans = np.zeros((n + 1, columns), np.int32)
    target = st.integers(0, n)
    odd = st.dictionaries(st.integers(2, columns - 1), target, max_size=5)
    for state in range(1, n + 1):
        trans[state, 1:] = state + 1 if chain and state < n else draw(target)
        for column, to in draw(odd).items():
            trans[state, column] = to
    return ByteDFA(trans, byte_class, np.array([False, *draw(st.tuples(*[st.booleans()] * n))]), 1)


LANGUAGES = st.one_of(wide_dfas(), st.sampled_from(WIDE).map(compile_regex))
WORDS = st.one_of(
    st.text('abcgx"1 éèδ日', min_size=1, max_size=4).map(str.encode),
    st.binary(min_size=1, max_size=4),
)


@examples(50)
@given(st.lists(WORDS, max_size=30, unique=True), LANGUAGES, st.sampled_from([(3, 1), (2,), (1,)]))
def test_slices_change_nothing(words, dfa, lengths):
    """Also where tokens begin and end inside a character, and automata read bytes in any order."""
    letters = [bytes([b]) for b in b'abcdefghijklmnop"1 \xa9\xc3']
    spelled = sorted({*words, *letters})
    tokenizer = small_tokenizer([byte_spelling(word) for word in spelled], [], byte_level())
    edges = {
        (state, token): dfa.walk(word, state)
        for state in range(1, dfa.n_states)
        for token, word in enumerate(tokenizer.spellings)
    }
    alive = _alive(dfa, edges)
    assume(dfa.start in alive)
    n_sliced = 0
    with sliced_at_once(lengths):
        engine = Lift(tokenizer, dfa)
        for state in range(1, dfa.n_states):
            wanted = {token for (s, token), to in edges.items() if s == state and to in alive}
            assert set(members(engine.mask(state)).tolist()) == wanted
            n_sliced += engine.reader.slice_of(state) is not None
    event(f"sliced: {n_sliced > 0}")


def test_a_long_counted_repeat_ends():
    """Each state is looked at a bounded number of times; it was once for each repetition."""
    tokenizer = small_tokenizer(["ab"])
    assert Lift(tokenizer, compile_regex("(ab){5000}")).reader.good.sum() == 5001


def _alive(dfa, edges):
    """The states from which acceptance is in reach."""
    back = networkx.DiGraph((to, state) for (state, _), to in edges.items())
    ends = {state for state in range(dfa.n_states) if dfa.accepting[state]}
    return ends.union(*(networkx.descendants(back, end) for end in ends if end in back))


# ---------------------------------------------------------------- the naive engine
# Every token is tried with a partial match of `regex`, which is wrong about some of them.

PIECES = ("a", "b", "ab", "é", "1", "日")
# Classes too, but all of them hold characters that the vocabulary below spells.
CLASSES = (".", "[^a]", r"\d", "[ab]", "(?i:B)", "[^日é]", r"\S")
FRAGMENTS = [b"ab", b"ba", b"a\xc3", b"\xa9b", b"\xe6\x97", b"\x97\xa5", b"\xa5a", b"\xc3\xa9\xe6"]


def byte_tokenizer(texts=PIECES, fragments=FRAGMENTS):
    """Every byte of the texts, and pieces that end or begin inside a character."""
    single = sorted({bytes([byte]) for text in texts for byte in text.encode()})
    spelled = [byte_spelling(token) for token in [*single, *fragments]]
    return small_tokenizer(spelled, [], byte_level(), ["<end>", "1a"])


TOKENIZER = byte_tokenizer()
SMALLER = byte_tokenizer(PIECES[:-1], FRAGMENTS[:4])  # a lone byte of `日` takes 4,096 matches


def different(naive, lift, depth, limit=150):
    """The first text after which the masks, or acceptance, differ; None if there is none."""
    stack, seen = [(naive.initial(), lift.initial(), 0)], set()
    while stack and len(seen) < limit:
        text, state, length = stack.pop(0)
        allowed = members(naive.mask(text)).tolist()
        if allowed != members(lift.mask(state)).tolist():
            return text
        if naive.accepting(text) != lift.accepting(state):
            return text
        assert allowed == [i for i in range(lift.n_ids) if naive.allows(text, i)]
        assert naive.dfa_state(text) == lift.dfa_state(state)
        for token in allowed:
            after = naive.step(text, token)
            if token not in naive.eos_ids and after not in seen and length < depth:
                seen.add(after)
                stack.append((after, lift.step(state, token), length + 1))
    return None


def patterns(pieces, classes):
    plain = st.one_of(cyclic_regexes(pieces), finite_regexes(pieces))
    classed = st.tuples(plain, st.sampled_from(classes), plain)
    return st.one_of(plain, classed.map(lambda three: "({}){}({})".format(*three)))


@examples(25)
@given(patterns(PIECES[:-1], CLASSES[:-2]))
def test_the_masks_are_those_of_the_lift(pattern):
    end = SMALLER.n_ids - 2
    lift = Lift(SMALLER, compile_regex(pattern), (end,))
    assert different(Naive(SMALLER, pattern, (end,)), lift, depth=4) is None


def test_it_is_not_rebuilt_as_another_engine():
    """Healing and bans would answer for the lift where the naive engine was asked for."""
    tokenizer = character_tokenizer("ab")
    naive = naive_constraint(tokenizer, "a(b|c)|bc")
    with pytest.raises(UnsupportedFeatureError, match="engine Naive"):
        rebuilt(naive, compile_regex("ab"))


@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_a_budget_is_rebuilt(method):
    constraint = constrain(character_tokenizer("ab"), "a+", method)
    longest = {}
    for name, old in (("plain", constraint), ("within", constraint.within(4).within(2))):
        matcher = rebuilt(old, compile_regex("b+")).matcher()
        while matcher.allows(1) and len(matcher.ids) < 9:
            matcher.advance(1)
        longest[name] = len(matcher.ids)
    assert longest == {"plain": 9, "within": 2}


# ---------------------------------------------------------------- where it may not be trusted


def goes_on(pattern, text):
    return regex.fullmatch(pattern, text, partial=True) is not None


@pytest.mark.parametrize(
    ("lazy", "text"), [("a+?b", "ac"), ("[bc]a??c", "bb"), ("a{1,2}?c", "aaa")]
)
def test_regex_is_wrong_after_a_lazy_repetition(lazy, text):
    """It says that some text beginning so matches; none does, and without the `?` it knows."""
    assert goes_on(lazy, text), "regex has been repaired: laziness need not be refused any more"
    assert not goes_on(re.sub(r"(?<=[*+?}])\?", "", lazy), text)
    dfa = compile_regex(lazy)
    assert dfa.walk(text.encode(), dfa.start) == 0
    for hidden in (lazy, f"(?i:({lazy})|b)*"):
        with pytest.raises(UnsupportedRegexError, match="lazy"):
            Naive(TOKENIZER, hidden)


def test_what_is_refused():
    with pytest.raises(EmptyLanguageError):
        Naive(TOKENIZER, r"[^\s\S]")
    with pytest.raises(UnsupportedRegexError):
        Naive(TOKENIZER, "a(?=b)b")
    with pytest.raises(TokenOutOfRangeError):
        Naive(TOKENIZER, "a").initial([99])
    with pytest.raises(ArgumentError, match="prompt id"):
        Naive(TOKENIZER, "a").initial("a")
    for wrong in (999, -1):
        with pytest.raises(TokenOutOfRangeError, match="end-of-sequence id"):
            naive_constraint(TOKENIZER, "a", (wrong,))
    with pytest.raises(ArgumentError, match="end-of-sequence id"):
        naive_constraint(TOKENIZER, "a", (0.5,))
    spaced = small_tokenizer(["▁", "a"], normalizer=in_turn(PREPEND, SPACED))
    with pytest.raises(UnsupportedTokenizerError, match="prefix"):
        Naive(spaced, "a")
