"""Sets of boundary hypotheses: what is known about pretokens after some ids, interned.

A member is (h, boundary, whole): h a hypothesis of the pipeline; inside a character, `boundary`
says whether there is one before that character; `whole` follows pretokens that `ignore_merges`
makes one token although BPE would not (`WholePieces`). A set also knows the UTF-8 row of the
character being read. Set 0 is the beginning of a text.

    after(H, class) = (the set if there is a boundary at the joint, the set if there is none)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata.constructions.token_actions import JOINT, TokenActions, TokenClass
from bpe_automata.constructions.whole_pieces import ILLEGAL, MUST_END, OFF, WholePieces
from bpe_automata.kernels.world import MOST_SETS
from bpe_automata.limits import NUMBERS, check_fits
from bpe_automata.sharing import Lock, locked
from bpe_automata.tokenizer.alphabet import DEAD
from bpe_automata.tokenizer.pipeline import Pipeline

NONE = -1
BEGINNING = 0
Member = tuple[int, int, int]
_INTRICATE = "more than are told apart: the tokenizer's pretokenizer is too intricate"


@dataclass(frozen=True)
class HypothesisSet:
    """row: UTF-8 row of the character being read (0: none); members: sorted."""

    row: int
    members: tuple[Member, ...]


class HypothesisSets:
    """The interned sets and, made when first asked for, how token classes act on them. For any
    number of threads: two may find the same, but sets are numbered by one at a time."""

    def __init__(self, pipeline: Pipeline, actions: TokenActions, whole: WholePieces) -> None:
        self.lock = Lock()
        self.pipeline, self.actions, self.whole = pipeline, actions, whole
        self.sets: list[HypothesisSet] = []
        self._members = 0
        self._numbers: dict[HypothesisSet, int] = {}
        self._rows: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._ends: dict[int, bool] = {}
        self._unions: dict[tuple[int, int], int] = {}
        self._stacked = _Stacked(pipeline, actions)
        self._own = np.array([c.own for c in actions.classes], dtype=np.int32)
        self._begun = whole.after_each(OFF, self._own, True)
        self.number(0, [(0, 0, OFF)])

    def number(self, row: int, members: list[Member]) -> int:
        """The number of a set, NONE if it is empty. Raises BudgetExceededError over MOST_SETS."""
        if not members:
            return NONE
        found = HypothesisSet(row, tuple(sorted(set(members))))
        number = self._numbers.get(found)
        return self._new(found) if number is None else number

    @locked
    def _new(self, found: HypothesisSet) -> int:
        if found not in self._numbers:
            members = self._members + len(found.members)
            check_fits("hypothesis sets", len(self.sets) + 1, MOST_SETS, _INTRICATE)
            check_fits("members of hypothesis sets", members, NUMBERS, _INTRICATE)
            self._members = members
            self.sets.append(found)  # first, so that no number is ever without its set
            self._numbers[found] = len(self.sets) - 1
        return self._numbers[found]

    def union(self, one: int, other: int) -> int:
        """The union of two sets (NONE is empty); both are about the same text."""
        if one == other or other == NONE:
            return one
        if one == NONE:
            return other
        key = (one, other)
        if key not in self._unions:
            first, second = self.sets[one], self.sets[other]
            self._unions[key] = self.number(first.row, [*first.members, *second.members])
        return self._unions[key]

    def ends(self, number: int) -> bool:
        """Can a text, or a piece between added tokens, end after this?"""
        known = self._ends.get(number)
        if known is None:
            found, ends = self.sets[number], self.pipeline.boundaries.ends
            known = self._ends[number] = found.row == 0 and any(
                bool(ends[h]) and self.whole.may_end(w) for h, _, w in found.members
            )
        return known

    def rows(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """(free, bound): int32 [n_classes], the set after a token of each class when there is, or
        is not, a boundary at the joint before it."""
        if number not in self._rows:
            found = self.sets[number]
            build = self._full_rows if found.row == 0 else self._partial_rows
            self._rows[number] = build(found)
        return self._rows[number]

    def _full_rows(self, found: HypothesisSet) -> tuple[np.ndarray, np.ndarray]:
        """At a character's end: classes without a leading fragment can follow."""
        by_whole: dict[int, list[int]] = {}
        for h, _, w in found.members:
            by_whole.setdefault(w, []).append(h)
        return self._side(by_whole, 1), self._side(by_whole, 0)

    def _side(self, by_whole: dict[int, list[int]], boundary: int) -> np.ndarray:
        """int32 [n_classes]: the sets after tokens that come behind a boundary, or without one. The
        members are found once for all classes that act alike."""
        stacked, classes = self._stacked, self.actions.classes
        numbers = np.full(len(classes), NONE, dtype=np.int32)
        ends = {
            w: hs
            for w, hs in by_whole.items()
            if (self.whole.may_end(w) if boundary else w != MUST_END)
        }
        if not ends:
            return numbers
        joints = stacked.joint[:, boundary]
        after: list[np.ndarray] = [np.any(joints[:, hs], axis=1) for hs in ends.values()]
        wholes = [
            self._begun if boundary else self.whole.after_each(w, self._own, False) for w in ends
        ]
        of_joint = [where[stacked.joint_classes] for where in wholes]
        first, which = stacked.alike(after, of_joint)
        made = []
        for k in first.tolist():
            members = [
                (h, 0, int(where[k]))
                for where, row in zip(of_joint, after, strict=True)
                if where[k] != ILLEGAL
                for h in np.flatnonzero(row[k]).tolist()
            ]
            made.append(self.number(classes[stacked.joint_classes[k]].tail, members))
        numbers[stacked.joint_classes] = np.array(made, dtype=np.int32)[which]
        for c in stacked.fragment_classes:
            members = [
                (h, boundary, int(where[c]))
                for where, hs in zip(wholes, ends.values(), strict=True)
                if where[c] != ILLEGAL
                for h in hs
            ]
            numbers[c] = self.number(classes[c].tail, members)
        return numbers

    def _partial_rows(self, found: HypothesisSet) -> tuple[np.ndarray, np.ndarray]:
        """Inside a character: only its continuation can follow, and there is no boundary."""
        n = len(self.actions.classes)
        free, bound = np.full(n, NONE, dtype=np.int32), np.full(n, NONE, dtype=np.int32)
        for c, token_class in enumerate(self.actions.classes):
            if token_class.lead:
                bound[c] = self._continued(found, token_class)
        return free, bound

    def _continued(self, found: HypothesisSet, token_class: TokenClass) -> int:
        row = self._read(found.row, token_class.lead)
        if row == DEAD:
            return NONE
        own = token_class.own
        moved = [(h, b, self.whole.after(w, own, False)) for h, b, w in found.members]
        kept = [(h, b, w) for h, b, w in moved if w is not None]
        relation = self.actions.relations[token_class.element]
        identity = bool(
            relation.shape[0] == relation.shape[1] and relation.trace() == len(relation)
        )
        if row >= 0:  # the character goes on, so the token must be nothing but its fragment
            return self.number(row, kept) if identity and token_class.tail == 0 else NONE
        atom = self.pipeline.coarse[-2 - row]
        follow = self.pipeline.boundaries.follow
        members = [
            (int(h2), 0, w)
            for h, b, w in kept
            for h2 in np.flatnonzero(relation[follow[b, h, atom]].any(axis=0))
        ]
        return self.number(token_class.tail, members)

    def _read(self, row: int, data: bytes) -> int:
        """The UTF-8 entry after the bytes; DEAD also if a character ends before their end."""
        utf8 = self.pipeline.alphabet.utf8
        for byte in data:
            if row < 0:
                return DEAD
            row = int(utf8[row, byte])
        return row


class _Stacked:
    """The relations of all classes without a leading fragment, in one array.

    joint_classes: the classes that hold a whole character; joint: bool [k, 2, n, n], their
    relations by boundary; fragment_classes: those that are only the beginning of a character.
    """

    def __init__(self, pipeline: Pipeline, actions: TokenActions) -> None:
        n = pipeline.boundaries.n
        plain = [c for c, k in enumerate(actions.classes) if c and not k.lead]
        whole = [c for c in plain if actions.classes[c].element != JOINT]
        self.fragment_classes = [c for c in plain if actions.classes[c].element == JOINT]
        self.joint_classes = np.array(whole, dtype=np.int32)
        relations = [actions.relations[actions.classes[c].element] for c in whole]
        self.joint = np.array(relations, dtype=bool).reshape(len(whole), 2, n, n)
        self._tails = np.array([actions.classes[c].tail for c in whole], dtype=np.int32)

    def alike(
        self, after: list[np.ndarray], wholes: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """(first [kinds], which [k]) of the joint classes with one tail, one row in each of
        `after`, bool [k, n], and one number in each of `wholes`, int32 [k]."""
        bits = np.packbits(np.concatenate(after, axis=1), axis=1)
        numbers = np.stack([self._tails, *wholes], axis=1).view(np.uint8)
        told = np.ascontiguousarray(np.concatenate([numbers, bits], axis=1))
        rows = told.view(np.dtype((np.void, told.shape[1]))).reshape(-1)
        _, first, which = np.unique(rows, return_index=True, return_inverse=True)
        return first, which.reshape(-1)
