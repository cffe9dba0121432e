"""Hypothesis sets as bits are sets of hypotheses: a plain twin, and threads that ask at once."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, named

from bpe_automata import Tokenizer
from bpe_automata._core import sets as core
from bpe_automata._core.canonical import CanonicalAutomaton, canonical_automaton
from bpe_automata._core.sets import HypothesisSets
from bpe_automata._core.token_actions import INSIDE, JOINT, MUST_END, OFF
from bpe_automata.testing import REFUSALS, bpe_tokenizers, tokenizer_files

ROWS = 40


class Twin:
    """A set is (UTF-8 row, members (h, boundary, whole)), or None."""

    def __init__(self, automaton: CanonicalAutomaton) -> None:
        self.pipeline, self.whole = automaton.pipeline, automaton.whole
        self.classes, self.relations = automaton.actions.classes, automaton.actions.relations
        self.utf8, self.follow = self.pipeline.alphabet.utf8, self.pipeline.boundaries.follow
        self.goes_on = {}

    def moved(self, w, own, boundary):
        """Where a node of `WholePretokens` leads, None where the token is illegal there."""
        if (w == MUST_END and not boundary) or (w in self.whole.complete and boundary):
            return None
        if own in self.whole.tokens:
            return MUST_END if boundary else None
        node = 0 if boundary else w
        return self.whole.children[node].get(own, OFF) if node >= 0 else OFF

    def atoms(self, row):
        """The coarse atoms of the characters that go on from a UTF-8 row."""
        if row not in self.goes_on:
            found = {int(self.pipeline.coarse[-2 - e]) for e in self.utf8[row] if e < -1}
            self.goes_on[row] = found.union(*(self.atoms(e) for e in {*self.utf8[row]} if e > 0))
        return self.goes_on[row]

    def set(self, row, members):
        if row:
            atoms = list(self.atoms(row))
            members = {m for m in members if self.follow[m[1], m[0], atoms].any()}
        return (row, frozenset(members)) if members else None

    def after(self, found, c, boundary):
        (row, members), kind = found, self.classes[c]
        if bool(row) != bool(kind.lead) or (row and boundary):
            return None
        entry = row
        for byte in kind.lead:
            entry = int(self.utf8[entry, byte]) if entry >= 0 else -1
        if entry == -1 or (entry > 0 and (kind.element != INSIDE or kind.tail)):
            return None
        relation, n, after = self.relations[kind.element], self.pipeline.boundaries.n, set()
        for h, b, w in members:
            w = self.moved(w, kind.own, boundary)
            if w is None:
                continue
            if entry > 0:
                after.add((h, b, w))
            elif kind.element == JOINT:
                after.add((h, boundary, w))
            else:
                where, low = [h], boundary * n
                if row:
                    atom = self.pipeline.coarse[-2 - entry]
                    where, low = np.flatnonzero(self.follow[b, h, atom]), 0
                after |= {(int(to), 0, w) for k in where for to in relation[low + k].nonzero()[0]}
        return self.set(max(entry, 0) or kind.tail, after)

    def told(self, found):
        """The hypotheses after which a boundary may come, or none, and these by the boundary before
        them; may a text end here?"""
        breaks = {h for h, _, w in found[1] if w not in self.whole.complete}
        binding = {(h, b) for h, b, w in found[1] if w != MUST_END}
        inside = [{h for h, b in binding if b == boundary} for boundary in (0, 1)]
        ends = found[0] == 0 and self.pipeline.boundaries.ends[list(breaks)].any()
        return [breaks, {h for h, _ in binding}, *inside, ends]


def members_of(sets, number):
    utf8_row, start, code, bits = sets._described
    found = set()
    for layer in range(start[number], start[number + 1]):
        whole, boundary = divmod(int(code[layer]), 2)
        hypotheses = np.unpackbits(bits[layer].view(np.uint8), bitorder="little").nonzero()[0]
        found |= {(int(h), boundary, whole - 2) for h in hypotheses}
    return int(utf8_row[number]), frozenset(found)


def of_bits(words):
    return set(np.unpackbits(words.view(np.uint8), bitorder="little").nonzero()[0].tolist())


def told(sets, number):
    """What kernels are told of a set."""
    return [*map(of_bits, sets.current()[0][number]), sets.ends(number)]


def as_the_twin(automaton, seed):
    """Compare the rows of some sets that are reached, and of unions of them."""
    sets = HypothesisSets(automaton.pipeline, automaton.actions, automaton.whole)
    twin, rng, numbers = Twin(automaton), random.Random(seed), {}
    known = [0]
    for _ in range(ROWS):
        number = rng.choice(known)
        found = members_of(sets, number)
        assert numbers.setdefault(found, number) == number
        assert told(sets, number) == twin.told(found)
        sides = sets.successors(number)
        for c in range(1, len(twin.classes)):
            for boundary, after in zip((1, 0), (int(side[c]) for side in sides), strict=True):
                expected = twin.after(found, c, boundary)
                assert (members_of(sets, after) if after >= 0 else None) == expected
        known += {int(n) for side in sides for n in side if n >= 0} - {*known}
        one, other = rng.choice(known), rng.choice(known)
        if sets.utf8_row(one) == sets.utf8_row(other):
            union, both = sets.union(one, other), [members_of(sets, n)[1] for n in (one, other)]
            assert members_of(sets, union)[1] == both[0] | both[1]
            known.append(union)


@examples(25)
@given(bpe_tokenizers(), st.integers(0, 99))
def test_rows_are_those_of_the_twin(tokenizer, seed):
    try:
        automaton = canonical_automaton(tokenizer)
    except REFUSALS:
        return
    as_the_twin(automaton, seed)


@examples(4)
@given(tokenizer_files(), st.integers(0, 99))
def test_so_they_are_of_trained_tokenizers(content, seed):
    try:
        automaton = canonical_automaton(Tokenizer.from_json(content))
    except REFUSALS:
        return
    as_the_twin(automaton, seed)


@pytest.fixture
def automaton():
    return canonical_automaton(named("smollm2"))


def rows_of(sets, numbers):
    """By the sets themselves, for numbers depend on who asked first."""

    def named_sets(side):
        return [members_of(sets, n) if n >= 0 else None for n in side]

    return {members_of(sets, n): [*map(named_sets, sets.successors(n))] for n in numbers}


def test_many_threads_find_what_one_finds_while_arrays_grow(automaton, monkeypatch):
    given = automaton.pipeline, automaton.actions, automaton.whole
    alone = HypothesisSets(*given)
    monkeypatch.setattr(core, "_ROOM", 2)
    monkeypatch.setattr(core, "_ROWS", 1)
    shared = HypothesisSets(*given)

    def walk(seed):
        rng, number = random.Random(seed), 0
        for _ in range(30):
            after = np.concatenate(shared.successors(number))
            number = int(rng.choice(after[after >= 0]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(walk, range(4)))
    n = int(shared._found[2][0])
    assert len({members_of(shared, number) for number in range(n)}) == n > 64
    for number in range(64):
        alone.successors(number)
    one, other = rows_of(alone, range(64)), rows_of(shared, range(64))
    assert len(one.keys() & other.keys()) > 10
    for found in one.keys() & other.keys():
        assert one[found] == other[found]
