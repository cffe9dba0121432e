"""Vegas segments: the parts of a product that do not depend on what surrounds them.

A *cut* is a DFA state where two ids must meet and no pair of ids is broken. That is proved for the
tokenizer at hand, in one of two ways:

    BOUNDARY   all text that leads there and on to acceptance has a pretoken boundary there, and a
               boundary is a joint where every pair is free
    MERGES     no merge joins what is read into the state with what is read out of it (see
               `segments_joints`), so no token is read across it and no pair is broken

and no added token is read across it, nor is it inside a character. So every canonical sequence has
a joint there, and what may follow depends on the boundary hypotheses there, not on the last id.

A *segment* is the DFA from an entry (a place and hypotheses) to the next cuts. Which ids can be
read at a node inside it depends on the segment alone, and on which hypotheses live on at its cuts:

    key = (tokenizer, DFA to the cuts, entry, at each cut: text state, hypotheses, how they go on)

Equal keys, equal rows; in one schema and in any other. Cuts may be missed (`LIMIT`), never claimed
wrongly.

Source: the "Vegas configuration" of Tran-Thien 2024; detection on the product is ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bpe_automata.constructions.hypothesis_sets import HypothesisSet, Member
from bpe_automata.constructions.product_tables import ProductTables
from bpe_automata.constructions.segments_joints import joints
from bpe_automata.constructions.stored import cache_key
from bpe_automata.constructions.whole_pieces import MUST_END
from bpe_automata.kernels.segments import (
    AFTER,
    SHUT,
    WITHIN,
    Texts,
    all_flags,
    completions,
    flags_of,
    form_of,
    part,
)

BOUNDARY, MERGES = "boundary", "merges"
LIMIT = 2_000
"""DFA states after which a segment is given up: it is larger than what is worth looking up."""

Key = bytes


@dataclass(frozen=True)
class Segment:
    """key: see the module's docstring; order: int32, the DFA state of each of its numbers; cuts:
    number -> proof; hypotheses, texts: uint8 [numbers, hypotheses] and [numbers, text states], not
    0 for those that may come up there."""

    key: Key
    order: np.ndarray
    cuts: dict[int, str]
    hypotheses: np.ndarray
    texts: np.ndarray

    @cached_property
    def number(self) -> dict[int, int]:
        """The number of each DFA state."""
        return {state: number for number, state in enumerate(self.order.tolist())}

    def has(self, number: int, text: int, hypothesis: int) -> bool:
        """May it come up?"""
        return bool(self.texts[number, text] and self.hypotheses[number, hypothesis])


class At(NamedTuple):
    """Where in a segment: number of the DFA state, state of the text automaton, UTF-8 row, and the
    members of the hypothesis set that can come true; the others change nothing."""

    number: int
    text: int
    row: int
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Node:
    """A node of a product, as a node of its segment."""

    segment: Segment
    at: At

    @property
    def is_cut(self) -> bool:
        """Does the segment end here?"""
        return self.at.number in self.segment.cuts


class Segments:
    """The segments of one product, found when they are first asked for."""

    def __init__(self, tables: ProductTables, added_from: np.ndarray, context: str) -> None:
        """added_from: see `PrefixedDfa`; context: what else rows depend on."""
        self._tables, self._canonical = tables, tables.canonical
        dfa, text_next = tables._world.dfa, tables._world.added.next
        n, seen = len(dfa.trans), tables._text.same
        self._joints = joints(self._canonical, dfa)
        # Where added tokens are read from elsewhere, the form would not tell where.
        self._odd = (added_from != np.arange(n)) & (len(tables._world.added.ids) > 0)
        plain = bool((seen == np.arange(len(seen))).all())
        self._context = f"{cache_key(self._canonical.tokenizer)}; {context}; {plain}".encode()
        self._texts = self._canonical.tokenizer.derived(
            f"text differences, {plain}", lambda _: _differences(text_next)
        )
        self._homes: dict[int, Segment | None] = {}  # by DFA state
        self._flags: dict[tuple[int, int], int] = {}  # by place and hypothesis
        self._slot, self._local = np.full((2, n), -1, dtype=np.int32)

    def of(self, place: int, hypotheses: int) -> Node | None:
        """The node in a segment; None where none was found. That of a cut is the entry of the
        segment that begins there."""
        state = int(self._tables.memo.state[place])
        if state in self._homes:
            home = self._homes[state]
            if home is None:
                return None
            if (node := self.within(home, place, hypotheses)) is not None:
                return node
        if self._canonical.sets.sets[hypotheses].row:
            return None
        return self._entered(state, place, hypotheses)

    def cuts(self) -> dict[int, str]:
        """The DFA states that are cuts wherever the segments found so far come to them, with the
        proof; every canonical sequence of every text through one has a joint there."""
        found: dict[int, str] = {}
        passed: set[int] = set()
        for segment in self.found():
            for number, state in enumerate(segment.order.tolist()):
                if number in segment.cuts:
                    proofs = segment.cuts[number], found.get(state, BOUNDARY)
                    found[state] = MERGES if MERGES in proofs else BOUNDARY
                elif number:
                    passed.add(state)
        return {state: proof for state, proof in found.items() if state not in passed}

    def found(self) -> list[Segment]:
        """The segments found so far."""
        return list({id(s): s for s in self._homes.values() if s is not None}.values())

    def within(self, segment: Segment, place: int, hypotheses: int) -> Node | None:
        """The node in this segment, its cuts included; None if it is none of its nodes, or text
        gets there by a way that the segment does not have."""
        memo, found = self._tables.memo, self._canonical.sets.sets[hypotheses]
        number, text = segment.number.get(int(memo.state[place])), int(memo.added[place])
        if number is None:
            return None
        if found.row:
            live = self._completed(segment, place, found)
        else:
            live = self._come_true(segment, number, place, found.members)
        return None if live is None else Node(segment, At(number, text, found.row, live))

    def _completed(
        self, segment: Segment, place: int, found: HypothesisSet
    ) -> tuple[Member, ...] | None:
        """The members from which the character can be completed; None if that leads elsewhere."""
        memo, live = self._tables.memo, []
        for h, b, w in found.members:
            pairs, count = self._run(completions, place, found.row, h, b)
            for p, after in pairs[:count].tolist():
                number = segment.number.get(int(memo.state[p]), -1)
                if number < 0 or not segment.has(number, int(memo.added[p]), after):
                    return None
            if count:
                live.append((h, b, w))
        return tuple(live)

    def _come_true(
        self, segment: Segment, number: int, place: int, members: tuple[Member, ...]
    ) -> tuple[Member, ...] | None:
        """The members from which text goes on; None if the segment does not have one of them."""
        whole, text, live = self._canonical.whole, int(self._tables.memo.added[place]), []
        for h, b, w in members:
            flags = self._flags_of(place, h)
            if (flags & AFTER and whole.may_end(w)) or (flags & WITHIN and w != MUST_END):
                if not segment.has(number, text, h):
                    return None
                live.append((h, b, w))
        return tuple(live)

    def _flags_of(self, place: int, hypothesis: int) -> int:
        key = place, hypothesis
        if key not in self._flags:
            self._flags[key] = int(self._run(flags_of, place, hypothesis))
        return self._flags[key]

    def _entered(self, state: int, place: int, number: int) -> Node | None:
        """In a new segment that begins here."""
        members = self._canonical.sets.sets[number].members
        live = {h for h, _, _ in members if self._flags_of(place, h)}
        hypotheses = np.array(sorted(live), dtype=np.int32)
        text = np.array([self._tables.memo.added[place]], dtype=np.int32)
        found = self._part(state, text, hypotheses)
        segment = self._made(state, found, (*text.tolist(), *hypotheses.tolist()))
        self._slot[found.states] = -1
        if segment is None:
            self._homes.update(dict.fromkeys(found.states.tolist()))
            return None
        for k, q in enumerate(segment.order.tolist()):
            if k not in segment.cuts:
                self._homes[q] = segment
        return self.within(segment, place, number)

    def _made(self, begin: int, found: _Part, entry: tuple[int, ...]) -> Segment | None:
        """None if it is too large, or not told by its form."""
        if not found.mode.any():
            return None
        scratch = self._slot, found.mode, self._joints.inside, self._local
        order, form = form_of(begin, *scratch, self._tables._world)
        if self._odd[order].any():
            return None
        met = self._slot[order]
        hypotheses, texts = (np.where(met[:, None] < 0, 0, kind[met]) for kind in found[2:])
        cuts: dict[int, str] = {}
        digest = hashlib.blake2b(self._context, digest_size=20)
        digest.update(repr(entry).encode())
        for k in np.flatnonzero((met >= 0) & (found.mode[met] == SHUT)).tolist():
            at, hs = (np.flatnonzero(kind[k]).astype(np.int32) for kind in (texts, hypotheses))
            flags = self._run(all_flags, int(order[k]), at, hs)
            cuts[k] = MERGES if (flags & WITHIN).any() else BOUNDARY
            digest.update(repr((k, at.tolist(), hs.tolist(), flags.tolist())).encode())
        digest.update(form.tobytes())
        return Segment(digest.digest(), order, cuts, hypotheses, texts)

    # ------------------------------------------------------------ kernels, which may need room

    def _run(self, kernel: Callable[..., Any], *arguments: object) -> Any:
        while True:
            try:
                return kernel(*arguments, self._tables._world)
            except OverflowError:
                self._tables._grow()

    def _part(self, state: int, text: np.ndarray, hypotheses: np.ndarray) -> _Part:
        joint, inside = self._joints.joint, self._joints.inside
        while True:
            begin = state, text, hypotheses, joint, inside, self._slot, self._texts, LIMIT
            try:
                return _Part(*part(*begin, self._tables._world))
            except OverflowError:
                self._tables._grow()
                self._slot.fill(-1)


class _Part(NamedTuple):
    """What `kernels.segments.part` returns."""

    states: np.ndarray
    mode: np.ndarray
    hypotheses: np.ndarray
    texts: np.ndarray


def _differences(text_next: np.ndarray) -> Texts:
    state, atom = np.nonzero(text_next != text_next[0])
    start = np.searchsorted(state, np.arange(len(text_next) + 1)).astype(np.int32)
    ever = np.asarray((text_next >= 0).any(axis=0))
    return Texts(start, atom.astype(np.int32), ever)
