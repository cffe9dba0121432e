"""The lift is right: { ids : bytes(ids) in L }, every mask against all ids, and matching against
`re.fullmatch`."""

from __future__ import annotations

import random
import re
import subprocess
import sys

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata import ByteDFA, compile_regex, constrain
from bpe_automata.constructions import Lift
from bpe_automata.constructions.collapsed import vocabulary_trie
from bpe_automata.errors import EmptyLanguageError, TokenOutOfRangeError
from bpe_automata.kernels.bits import members
from bpe_automata.kernels.trie import Spelled, settle_alive
from bpe_automata.kernels.watch import watched
from bpe_automata.reference import lift_mask
from bpe_automata.testing import bpe_tokenizers, cyclic_regexes, resegmentations
from bpe_automata.testing.inputs import own_pieces
from experiments.shared.regexes import VARIED

EOS = (0, 2)
TWELVE = [
    *("boolean", "numbers", "string", "object", "email", "url", "date", "ip", "python"),
    *("white space", "chat", "cjk"),
]
HARD = [
    (r"(ab)*", ["", "ab", "abab", "aba", "b"]),
    (r"-?[0-9]+(\.[0-9]+)?", ["0", "0.5", "-12.75", "1.", ".5", "--1", "12345678901"]),
    (r"\w+", ["日本", "日本語 ", "é", "a_1", "٣", "-", ""]),
    (r"(foo|foobar)", ["foo", "foobar", "foob", "foofoobar"]),
    (r".", ["a", "\n", "日", "🎉", "\r", "", "ab"]),
    (r"(a|bc){129}", ["a" * 129, "a" * 128, "bc" * 129, "a" * 128 + "bc", "a" * 130]),
]


def reads(constraint, ids):
    """Can a matcher read these ids and end there?"""
    matcher = constraint.matcher()
    for token in ids:
        if token not in matcher.allowed_ids():
            return False
        matcher.advance(token)
    return matcher.is_accepting


@pytest.mark.parametrize(("regex", "texts"), HARD)
def test_matching_is_re_fullmatch(smollm2_tokenizer, regex, texts):
    for method in ("lift", "canonical"):
        constraint = constrain(smollm2_tokenizer, regex, method=method)
        for text in texts:
            expected = re.fullmatch(regex, text) is not None
            assert reads(constraint, smollm2_tokenizer.encode(text)) == expected


@pytest.mark.parametrize("name", TWELVE)
def test_every_mask_is_the_brute_force_over_all_ids(smollm2_tokenizer, name):
    """At every state that a few random walks visit; --long: at every state."""
    dfa = compile_regex(VARIED[name])
    engine = Lift(smollm2_tokenizer, dfa, EOS, added_tokens=True)
    rng = random.Random(1)
    state = engine.initial()
    for _ in range(5):
        allowed = lift_mask(smollm2_tokenizer, dfa, state, EOS)
        assert set(members(engine.mask(state)).tolist()) == allowed
        going_on = sorted(allowed - set(EOS))
        if not going_on:
            break
        state = engine.step(state, rng.choice(going_on))


@examples(35)
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


@examples(60)
@given(st.data())
def test_states_that_need_tokens_of_many_bytes(data):
    """Random automata and vocabularies that lack most bytes: a state is alive iff ids lead on."""
    n, letters = data.draw(st.integers(2, 12)), "abc"
    trans = np.zeros((n, 4), dtype=np.int32)
    for state in range(1, n):
        trans[state, 1:] = data.draw(st.lists(st.integers(0, n - 1), min_size=3, max_size=3))
    byte_class = np.zeros(256, dtype=np.uint8)
    byte_class[[ord(c) for c in letters]] = 1, 2, 3
    accepting = np.array(
        [False, *data.draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))]
    )
    words = data.draw(st.lists(st.text(letters, min_size=1, max_size=4), max_size=5, unique=True))
    spellings = [word.encode() for word in words]
    read = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    own = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    swapped = np.array([0, *data.draw(st.permutations(range(1, n)))], dtype=np.int32)
    after = np.array(data.draw(st.lists(st.integers(1, n - 1), min_size=n, max_size=n)), np.int32)
    after[0] = 0
    trie = vocabulary_trie(spellings, [i for i in range(len(words)) if own[i]])
    kinds = np.array([t >= 0 and read[t] for t in trie.token], dtype=np.int32)
    added = np.array([i for i in range(len(words)) if not own[i]], dtype=np.int64)
    dfa = ByteDFA(trans, byte_class, accepting, 1)
    edges = {}
    for state in range(1, n):
        for i, spelled in enumerate(spellings):
            if own[i] and read[i]:
                edges[state, i] = dfa.walk(spelled, state)
            elif not own[i]:
                edges[state, i] = int(after[dfa.walk(spelled, int(swapped[state]))])
    alive = accepting.copy()
    open_ = np.flatnonzero(~alive)[1:].astype(np.int32)
    spelled = Spelled(trie, kinds, added, swapped, after)
    watched(settle_alive, trans, byte_class, alive, open_, spelled)
    assert set(np.flatnonzero(alive).tolist()) == _alive(dfa, edges)


LONG = {
    "a chain of states that single bytes settle": (r"\w{1000}", "all_bytes"),
    "a chain of states that longer tokens settle": (r"(ab){5000}", "['ab']"),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_counted_repeat_ends(name):
    """Each state is looked at a bounded number of times; it was once for each repetition."""
    regex, vocabulary = LONG[name]
    code = f"""
from bpe_automata import compile_regex
from bpe_automata.constructions import Lift
from bpe_automata.testing import byte_level, byte_spelling, small_tokenizer
all_bytes = [byte_spelling(bytes([byte])) for byte in range(256)]
tokenizer = small_tokenizer({vocabulary}, pretokenizer=byte_level(), decoder=byte_level())
print(Lift(tokenizer, compile_regex({regex!r})).alive.sum())
"""
    subprocess.run([sys.executable, "-c", code], timeout=100, check=True)


def _alive(dfa, edges):
    alive = {state for state in range(dfa.n_states) if dfa.accepting[state]}
    grown = True
    while grown:
        more = {state for (state, _), to in edges.items() if to in alive} - alive
        alive |= more
        grown = bool(more)
    return alive


@examples(40)
@given(st.data())
def test_any_tokenization_is_read(smollm2_tokenizer, data):
    text = data.draw(st.from_regex(r"[a-z ]{0,3}('s|日本|\n)?[0-9]{0,4}", fullmatch=True))
    constraint = constrain(smollm2_tokenizer, r"[a-z ]{0,3}('s|日本|\n)?[0-9]{0,4}", method="lift")
    if smollm2_tokenizer.decode(smollm2_tokenizer.encode(text)) == text:
        assert reads(constraint, data.draw(resegmentations(smollm2_tokenizer, text)))


def test_the_canonical_masks_are_inside_the_lift(smollm2_tokenizer):
    for name in TWELVE:
        lift = constrain(smollm2_tokenizer, VARIED[name], "lift", added_tokens=True).matcher()
        own = constrain(smollm2_tokenizer, VARIED[name], added_tokens=True).matcher()
        assert set(own.allowed_ids()) <= set(lift.allowed_ids())


def test_a_prompt_does_not_matter_but_its_ids_must_exist(smollm2_tokenizer):
    constraint = constrain(smollm2_tokenizer, "ab", method="lift")
    plain, prompted = constraint.matcher(), constraint.matcher(prefix=[1, 5, 5])
    assert plain.allowed_ids().tolist() == prompted.allowed_ids().tolist()
    with pytest.raises(TokenOutOfRangeError):
        constraint.matcher(prefix=[smollm2_tokenizer.n_ids])
