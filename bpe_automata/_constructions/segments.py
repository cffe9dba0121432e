"""Vegas segments: the parts of a product that do not depend on what surrounds them.

A *cut* is a DFA state where two ids must meet and no pair of ids is broken. That is proved for the
tokenizer at hand, in one of two ways:

    boundary   all text that leads there and on to acceptance has a pretoken boundary there, and a
               boundary is a joint where every pair is free
    merges     no merge joins what is read into the state with what is read out of it (see
               `segments_joints`), so no token is read across it and no pair is broken

and no added token is read across it, nor is it inside a character. So every canonical sequence has
a joint there, and what may follow depends on the boundary hypotheses there, not on the last id.

A *segment* is the DFA from an entry (a state pair and hypotheses) to the next cuts. Which ids can
be read at a configuration inside it depends on the segment alone, and on which hypotheses live on
at its cuts:

    key = (tokenizer, DFA to the cuts, entry, at each cut: text states, hypotheses, how they go on)

Equal keys, equal readable ids; in one schema and in any other. So what is built whole
(`segments_eager`) is built segment by segment, each once for all schemas. Cuts may be missed
(`LIMIT`), never claimed wrongly.

Source: the "Vegas configuration" of Tran-Thien 2024; detection on the product is ours.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check
from bpe_automata._constructions.hypothesis_sets import HypothesisSet, Member
from bpe_automata._constructions.product_tables import ProductTables
from bpe_automata._constructions.segments_joints import joints
from bpe_automata._constructions.stored import cache_key
from bpe_automata._constructions.token_actions import MUST_END
from bpe_automata._kernels.segments import (
    AFTER,
    WITHIN,
    Texts,
    all_flags,
    completions,
    form_of,
    part,
)
from bpe_automata._sharing import cached

LIMIT = 2_000
"""DFA states after which a segment is given up: it is larger than what is worth looking up."""

Key = bytes
Entry = tuple[int, ...]
"""Where a segment begins: a text state, then the hypotheses that live on there."""


@dataclass(frozen=True)
class Segment:
    """key: see the module's docstring; order: int32, the DFA state of each of its numbers; cuts:
    the numbers where it ends; met: int32, of each number, -1 inside characters, else its row of
    hypotheses and texts: uint8 [rows, hypotheses] and [rows, text states], not 0 for those that may
    come up there."""

    key: Key
    order: np.ndarray
    cuts: frozenset[int]
    met: np.ndarray
    hypotheses: np.ndarray
    texts: np.ndarray

    @cached
    def number(self) -> dict[int, int]:
        """The number of each DFA state."""
        return {state: number for number, state in enumerate(self.order.tolist())}

    def has(self, number: int, text: int, hypothesis: int) -> bool:
        """May it come up?"""
        row = self.met[number]
        return bool(row >= 0 and self.texts[row, text] and self.hypotheses[row, hypothesis])


class At(NamedTuple):
    """Where in a segment: number of the DFA state, state of the text automaton, UTF-8 row, and the
    members of the hypothesis set that can come true; the others change nothing."""

    number: int
    text: int
    utf8_row: int
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Located:
    """Where a configuration of a product is in its segment."""

    segment: Segment
    at: At

    @property
    def is_cut(self) -> bool:
        """Does the segment end here?"""
        return self.at.number in self.segment.cuts


class Segments:
    """The segments of one product, found when they are first asked for. For one thread, and not to
    be asked again once a call was interrupted."""

    def __init__(self, tables: ProductTables) -> None:
        self._tables, self._canonical = tables, tables.canonical
        dfa, added = tables._product.dfa, tables._product.added
        n = len(dfa.accepting)
        self._joints = joints(self._canonical, dfa)
        # Where added tokens are read from elsewhere, the form would not tell where.
        self._odd = (dfa.added_from != np.arange(n)) & (len(added.ids) > 0)
        readable = added.ids[added.ids >= 0].tolist()
        tokenizer = cache_key(self._canonical.tokenizer)
        self._context = f"{tokenizer}; added {readable}; {tables.text_quotient_key}".encode()
        self._texts = _differences(added.next)
        self._homes: dict[int, Segment] = {}  # by DFA state, for those before the cuts
        self._begun: dict[tuple[int, Entry], Segment | None] = {}  # by DFA state, too
        self._too_large: set[int] = set()  # DFA states of what has over `LIMIT` of them
        self._flags: dict[int, dict[int, int]] = {}  # by state pair and hypothesis
        self._ends: dict[tuple[int, int, int, int], list[tuple[int, int, int]]] = {}
        self._slot, self._local = np.full((2, n), -1, dtype=np.int32)  # scratch

    def of(self, state_pair: int, hypotheses: int) -> Located | None:
        """The configuration in a segment; None where none was found. That of a cut is the entry of
        the segment that begins there."""
        state = int(self._tables.memo.state[state_pair])
        found = self._canonical.sets.sets[hypotheses]
        home = self._homes.get(state)
        if (
            home is not None
            and (configuration := self.within(home, state_pair, hypotheses)) is not None
        ):
            return configuration
        if found.utf8_row or state in self._too_large:
            return None
        flags = self._flags_at(state_pair, found.members)
        live = sorted({h for h, _, _ in found.members if flags[h]})
        entry = int(self._tables.memo.text_state[state_pair]), *live
        if (state, entry) not in self._begun:
            self._begun[state, entry] = self._entered(state, entry)
        segment = self._begun[state, entry]
        return None if segment is None else self.within(segment, state_pair, hypotheses)

    def configuration(self, segment: Segment, at: At) -> tuple[int, int]:
        """(state pair, hypothesis set) of a configuration of a segment, with only the members that
        can come true."""
        state_pair = self._tables.state_pair(int(segment.order[at.number]), at.text)
        return state_pair, self._canonical.sets.number(at.utf8_row, list(at.members))

    def within(self, segment: Segment, state_pair: int, hypotheses: int) -> Located | None:
        """Where a configuration is in this segment, its cuts included; None if it lies outside, or
        text gets there by a way that the segment does not have."""
        memo, found = self._tables.memo, self._canonical.sets.sets[hypotheses]
        number, text = (
            segment.number.get(int(memo.state[state_pair])),
            int(memo.text_state[state_pair]),
        )
        if number is None:
            return None
        if found.utf8_row:
            live = self._completed(segment, state_pair, found)
        else:
            live = self._come_true(segment, number, state_pair, found.members)
        return None if live is None else Located(segment, At(number, text, found.utf8_row, live))

    def _completed(
        self, segment: Segment, state_pair: int, found: HypothesisSet
    ) -> tuple[Member, ...] | None:
        """The members from which the character can be completed; None if that leads elsewhere."""
        live = []
        for h, b, w in found.members:
            ends = self._ends_of(state_pair, found.utf8_row, h, b)
            for state, text, after in ends:
                check()
                number = segment.number.get(state, -1)
                if number < 0 or not segment.has(number, text, after):
                    return None
            if ends:
                live.append((h, b, w))
        return tuple(live)

    def _ends_of(
        self, state_pair: int, utf8_row: int, h: int, b: int
    ) -> list[tuple[int, int, int]]:
        """(DFA state, text state, hypothesis) where the character can be completed."""
        key = state_pair, utf8_row, h, b
        if key not in self._ends:
            pairs, count = self._tables.ask(completions, *key)
            # Only now: the memo may have grown.
            memo, (state_pairs, after) = self._tables.memo, pairs[:count].T
            columns = (
                memo.state[state_pairs].tolist(),
                memo.text_state[state_pairs].tolist(),
                after.tolist(),
            )
            self._ends[key] = list(zip(*columns, strict=True))
        return self._ends[key]

    def _come_true(
        self, segment: Segment, number: int, state_pair: int, members: tuple[Member, ...]
    ) -> tuple[Member, ...] | None:
        """The members from which text goes on; None if the segment does not have one of them."""
        whole, text, live = self._canonical.whole, int(self._tables.memo.text_state[state_pair]), []
        flags = self._flags_at(state_pair, members)
        for h, b, w in members:
            after, within = flags[h] & AFTER, flags[h] & WITHIN
            if (after and whole.may_end(w)) or (within and w != MUST_END):
                if not segment.has(number, text, h):
                    return None
                live.append((h, b, w))
        return tuple(live)

    def _flags_at(self, state_pair: int, members: tuple[Member, ...]) -> dict[int, int]:
        """By hypothesis: how text goes on."""
        known = self._flags.setdefault(state_pair, {})
        fresh = [h for h, _, _ in members if h not in known]
        if fresh:
            memo, hypotheses = self._tables.memo, np.array(fresh, dtype=np.int64)
            text = memo.text_state[state_pair : state_pair + 1].astype(np.int64)
            state = int(memo.state[state_pair])
            flags = self._tables.ask(all_flags, state, text, hypotheses)[0].tolist()
            known.update(zip(fresh, flags, strict=True))
        return known

    def _entered(self, state: int, entry: Entry) -> Segment | None:
        """The segment that begins at a DFA state; None if it is too large, or not told by its
        form."""
        found = self._part(state, entry)
        segment = None
        if not found.mode.any():
            self._too_large.update(found.states.tolist())
        elif not self._odd[found.states].any():
            segment = self._made(state, entry, found)
            inner = (q for k, q in enumerate(segment.order.tolist()) if k not in segment.cuts)
            self._homes.update(dict.fromkeys(inner, segment))
        self._slot[found.states] = -1
        return segment

    def _made(self, state: int, entry: Entry, found: _Part) -> Segment:
        scratch = self._slot, self._joints.inside, self._local
        order, is_cut, form = self._tables.ask(form_of, state, *found[1:], *scratch)
        digest = hashlib.blake2b(self._context, digest_size=20)
        digest.update(repr(entry).encode())
        digest.update(form.tobytes())
        cuts = frozenset(np.flatnonzero(is_cut).tolist())
        met = self._slot[order]
        return Segment(digest.digest(), order, cuts, met, found.hypotheses, found.texts)

    def _part(self, state: int, entry: Entry) -> _Part:
        text, hypotheses = (np.array(numbers, dtype=np.int64) for numbers in (entry[:1], entry[1:]))
        joint, inside = self._joints.joint, self._joints.inside
        begin = state, text, hypotheses, joint, inside, self._slot, self._texts, LIMIT
        return _Part(*self._tables.ask(part, *begin))


class _Part(NamedTuple):
    """What `_kernels.segments.part` returns."""

    states: np.ndarray
    mode: np.ndarray
    hypotheses: np.ndarray
    texts: np.ndarray


def _differences(text_next: np.ndarray) -> Texts:
    state, atom = np.nonzero(text_next != text_next[0])
    start = np.searchsorted(state, np.arange(len(text_next) + 1)).astype(np.int32)
    ever = np.asarray((text_next >= 0).any(axis=0))
    return Texts(start, atom.astype(np.int32), ever)
