"""The core: its masks are those of the trie of `encode`, and those of a plain search through the
automaton of canonical sequences; statuses are so by brute force; slices change nothing, nor do
interruptions, nor whether an automaton is linked."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, named
from support.laws import begun

from bpe_automata import _sharing, compile_regex, constrain, link_regex
from bpe_automata._kernels.bits import members
from bpe_automata.canonical import product, reader, slices, tables
from bpe_automata.canonical.arrays import ALIVE, DEAD, NO_TOKEN, PARTLY
from bpe_automata.canonical.canonical import CanonicalState
from bpe_automata.constructions.cartesian_merge import CartesianMerge
from bpe_automata.errors import BudgetExceededError
from bpe_automata.testing import (
    bpe_tokenizers,
    byte_level,
    byte_spelling,
    cyclic_regexes,
    small_tokenizer,
)
from bpe_automata.testing._inputs import own_pieces
from bpe_automata.tokenizer.description import Prefix

STRINGS, IDS = 300, 12
LANGUAGES = (
    r'"([^"\\\x00-\x1f]|\\["\\/bfnrt]){0,200}",',
    r".{0,300}\n",
    r"[a-z]{9}(ing)?",
    r"\w+( \w+)*[.!]",
    r"<[a-z|_]+>( <x>)?",
    r"[一-龥。，]{3,40}",
    r"\d{4}-\d{2}-\d{2}",
    r"\s*(def|class) [a-z_]+\(\):\n( {4}[a-z ]+\n)+",
)


def same_walk(one, other, seed, prefix=(), steps=IDS):
    """Compare masks along one walk that they choose; returns how many. Every third id is one of the
    64 lowest, among which those of single bytes are."""
    rng, state, twin = random.Random(seed), begun(one, prefix), begun(other, prefix)
    if isinstance(state, type) or isinstance(twin, type):
        assert state is twin
        return 0
    for n in range(steps):
        mask = one.mask(state)
        np.testing.assert_array_equal(mask, other.mask(twin))
        assert one.accepting(state) == other.accepting(twin)
        ids = np.setdiff1d(members(mask), one.eos_ids)
        if not len(ids):
            return n + 1
        token = int(rng.choice(ids[:64] if n % 3 == 0 else ids))
        (state,), twin = one.steps(state, np.array([token])), other.step(twin, token)
    return steps


# ---------------------------------------------------------------- a plain search


class Plain:
    """All that single steps of the automaton of canonical sequences and of a DFA lead to, and from
    where acceptance can be reached."""

    def __init__(self, engine, starts, most=3000):
        canonical, dfa = engine.canonical, engine.dfa
        self.after, ends, todo = {}, set(), list(starts)
        while todo:
            here = q, state = todo.pop()
            if here in self.after:
                continue
            if dfa.accepting[q] and canonical.ends(state):
                ends.add(here)
            self.after[here] = {}
            for token, spelled in enumerate(engine.tokenizer.spellings):
                then = canonical.step(state, token) if spelled else None
                to = dfa.walk(spelled, q)
                if then is not None and to:
                    self.after[here][token] = (to, then)
                    todo.append((to, then))
            if len(self.after) > most:
                raise BudgetExceededError("states", most, "for a plain search")
        self.live, grown = ends, True
        while grown:
            more = {
                here
                for here, after in self.after.items()
                if here not in self.live and not self.live.isdisjoint(after.values())
            }
            self.live, grown = self.live | more, bool(more)

    def ids(self, here):
        """Those after which acceptance can be reached."""
        return [token for token, then in self.after[here].items() if then in self.live]


def test_masks_and_statuses_are_those_of_a_plain_search():
    compared, asked, statuses = [0], [0], {ALIVE: 0, DEAD: 0, PARTLY: 0}

    @examples(40)
    @given(st.data(), bpe_tokenizers(), st.integers(0, 100))
    def law(data, tokenizer, seed):
        if tokenizer.added_ids or tokenizer.description.prefix is not Prefix.NONE:
            return
        try:
            dfa = compile_regex(data.draw(cyclic_regexes(own_pieces(tokenizer))))
            engine = CartesianMerge(tokenizer, dfa)
            here = (engine.prefixed.start_after(tokenizer, ()), engine.canonical.start)
            plain = Plain(engine, [here])
            state, rng = begun(engine), random.Random(seed)
            if isinstance(state, type):
                assert here not in plain.live
            for _ in range(0 if isinstance(state, type) else IDS):
                ids = members(engine.mask(state)).tolist()
                assert ids == plain.ids(here)
                compared[0] += 1
                if not ids:
                    break
                token = rng.choice(ids)
                state, here = engine.step(state, token), plain.after[here][token]
            known = engine.product.statuses()
            numbers = np.flatnonzero(engine.product._work.configs_array["status"])
            own = np.flatnonzero(engine.product.tables.reachable)
            lasts = [NO_TOKEN, *own.tolist()]
            starts = {c: [(c[0], CanonicalState(*c[1:], last)) for last in lasts] for c in known}
            plain = Plain(engine, [start for some in starts.values() for start in some])
        except BudgetExceededError:
            return
        for configuration, status in known.items():
            live = [start in plain.live for start in starts[configuration]]
            assert all(live) or status != ALIVE
            assert not any(live) or status != DEAD
            statuses[status] += 1
        partly = [k for k, status in enumerate(known.values()) if status == PARTLY]
        for c, configuration in zip(numbers[partly], np.array(list(known))[partly], strict=True):
            found = engine.product.settled(own, np.full(len(own), c), 1000)
            live = [start in plain.live for start in starts[tuple(configuration.tolist())][1:]]
            assert found.tolist() == [1 if one else -1 for one in live]
            asked[0] += len(own)

    law()
    assert compared[0] > 40
    assert asked[0] > 100
    assert min(statuses[ALIVE], statuses[PARTLY]) > 5


@pytest.fixture(params=["smollm2", "qwen"], scope="module")
def tokenizer(request):
    return named(request.param)


@pytest.mark.parametrize(
    "regex", [*LANGUAGES, pytest.param("[a-z]{30}(ing)?", marks=pytest.mark.long)]
)
def test_slices_change_nothing_on_deployed_tokenizers(tokenizer, regex):
    sliced, whole = (CartesianMerge(tokenizer, compile_regex(regex)) for _ in range(2))
    whole.product._sliced = False
    assert same_walk(sliced, whole, 1, steps=8) > 0


def test_interruptions_change_nothing(smollm2_tokenizer, monkeypatch):
    dfa = compile_regex(LANGUAGES[0])
    whole = CartesianMerge(smollm2_tokenizer, dfa)
    whole.product._sliced = False
    monkeypatch.setattr(product, "_QUOTA", 1)
    interrupted = CartesianMerge(smollm2_tokenizer, dfa)
    assert interrupted.product.slice_of(interrupted.dfa.walk(b'"')) is not None
    for seed in range(2):
        assert same_walk(interrupted, whole, seed) > 2


def test_slices_that_are_dropped_change_nothing(smollm2_tokenizer, monkeypatch):
    """A tokenizer that keeps one slice, asked for several in turn, and one that keeps them all."""
    dfas = [compile_regex(f"[{letters}]{{0,40}}") for letters in ("a-z ", "a-y ", "b-z ")]
    engines = [[CartesianMerge(smollm2_tokenizer, dfa) for dfa in dfas]]
    monkeypatch.setattr(slices, "_WORTH", 0)
    monkeypatch.setattr(_sharing, "BYTES", 1)
    monkeypatch.setattr(tables, "_MANY_SLICES", 1)
    other = named("smollm2")
    engines.append([CartesianMerge(other, dfa) for dfa in dfas])
    states = [[engine.initial() for engine in every] for every in engines]
    for token in smollm2_tokenizer.encode("bee seen some moon"):
        for k in range(len(dfas)):
            pairs = [(every[k], at[k]) for every, at in zip(engines, states, strict=True)]
            all_, one = (engine.mask(state) for engine, state in pairs)
            assert (all_ == one).all()
            for at, (engine, state) in zip(states, pairs, strict=True):
                at[k] = engine.step(state, token)
    kept, few = (every[0].product.tables.slices for every in engines)
    assert len(few._entries) == 1 < len(dfas) <= len(kept._entries)
    assert engines[0][0].product.detour >= engines[1][0].product.detour > 0


def test_an_id_that_is_dead_in_a_loop_is_in_no_slice(monkeypatch):
    """`a` merges with whatever comes next, so it stands at the end alone."""
    letters = "abcdefgh"
    merges = [("a", letter) for letter in letters]
    every = [byte_spelling(bytes([byte])) for byte in range(256)]
    tokenizer = small_tokenizer([*every, *map("".join, merges)], merges, byte_level())
    monkeypatch.setattr(reader, "_FEWEST", 1)
    monkeypatch.setattr(slices, "_WORTH", 0)
    dfa = compile_regex("[a-h]{30}")
    sliced, whole = CartesianMerge(tokenizer, dfa), CartesianMerge(tokenizer, dfa)
    whole.product._sliced = False
    assert sliced.product.slice_of(dfa.start) is not None
    allowed = members(sliced.mask(sliced.initial())).tolist()
    assert [tokenizer.decode([token]) for token in allowed] == [*"bcdefgh", *map("".join, merges)]
    assert same_walk(sliced, whole, 0, steps=30) > 2


def test_slices_end_where_only_a_special_token_goes_on(monkeypatch):
    """Beyond 40 characters the text needs `<x>`, which cannot be read as text."""
    every = [byte_spelling(bytes([byte])) for byte in range(256)]
    merges = [("a", "b"), ("ab", "c"), ("abc", "d"), ("abcd", "e")]
    vocabulary = [*every, *map("".join, merges)]
    tokenizer = small_tokenizer(vocabulary, merges, byte_level(use_regex=True), added=["<x>"])
    monkeypatch.setattr(reader, "_FEWEST", 1)
    monkeypatch.setattr(slices, "_WORTH", 0)
    dfa = compile_regex("[a-l.;]{1,40}|[a-l.;]{41,99}<x>")
    engines = [CartesianMerge(tokenizer, dfa, added_tokens=False) for _ in range(2)]
    engines[1].product._sliced = False
    assert engines[0].product.slice_of(dfa.walk(b"l" * 20)) is not None
    states = [engine.initial() for engine in engines]
    for left in range(40, 0, -1):
        sliced, whole = (e.mask(s) for e, s in zip(engines, states, strict=True))
        np.testing.assert_array_equal(sliced, whole)
        assert len(members(sliced)) == 14 + min(4, left - 1)
        states = [e.step(s, ord("l")) for e, s in zip(engines, states, strict=True)]


def test_a_character_may_begin_an_added_token():
    """Behind the bytes of é a bar could come with a boundary before it, were it not `é|`."""
    every = [byte_spelling(bytes([byte])) for byte in range(256)]
    tokenizer = small_tokenizer(every, (), byte_level(use_regex=True), added=["é|"])
    matcher = constrain(tokenizer, r"aé\||aé;b|b", eos_ids=()).matcher()
    assert matcher.allowed_ids().tolist() == [97, 98]
    matcher = constrain(tokenizer, r"aé\||b", eos_ids=()).matcher()
    assert matcher.allowed_ids().tolist() == [98]


def test_a_last_character_behind_what_may_begin_an_added_token_needs_a_boundary():
    """There is none between < and the bar, which merge."""
    every = [byte_spelling(bytes([byte])) for byte in range(256)]
    pretokenizer, added = byte_level(use_regex=True), ["<x>"]
    tokenizer = small_tokenizer([*every, "<|"], [("<", "|")], pretokenizer, added)
    assert constrain(tokenizer, r"<\|", eos_ids=()).matcher().allowed_ids().tolist() == [256]


@pytest.mark.parametrize("regex", ["[a-z]{66}", '"[^"\\x00-\\x1f]{0,66}"'])
def test_slices_of_a_linked_automaton_are_those_of_the_written_one(smollm2_tokenizer, regex):
    """Its steps are entered as far as that takes, the very first of them too."""
    linked = CartesianMerge(smollm2_tokenizer, link_regex(regex))
    written = CartesianMerge(smollm2_tokenizer, compile_regex(regex))
    begin = b'"' if regex.startswith('"') else b""
    for n in range(66):
        slices_ = [e.product.slice_of(e.dfa.walk(begin + b"a" * n)) for e in (linked, written)]
        assert slices_[0] == slices_[1], n


def test_an_id_of_which_nothing_is_known_is_not_dead():
    """After a letter only z may come, which a and b would merge with: so these are dead. Whether
    the others are live depends on what may come after z, which no search from a or b asks."""
    letters = "abcdefghijkl"
    vocabulary, merges = [*letters, "y", "z", "az", "bz"], [("a", "z"), ("b", "z")]
    tokenizer = small_tokenizer(vocabulary, merges)
    found = constrain(tokenizer, f"[{letters}]zy", eos_ids=()).matcher().allowed_ids()
    first = {tokenizer.encode(f"{letter}zy")[0] for letter in letters}
    assert set(found.tolist()) == first == {vocabulary.index(t) for t in [*letters[2:], "az", "bz"]}
