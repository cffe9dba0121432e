"""Sets of boundary hypotheses: what is known about pretokens after some ids, interned.

A member is (h, boundary, whole): h a hypothesis of the pipeline; inside a character, `boundary`
says whether there is one before that character; `whole` follows pretokens that `ignore_merges`
makes one token although BPE would not (`WholePretokens`). A set also knows the UTF-8 row of the
character being read. Set 0 is the beginning of a text.

    after(H, class) = (the set if there is a boundary at the joint, the set if there is none)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpe_automata._constructions.token_actions import (
    JOINT,
    MUST_END,
    OFF,
    TokenActions,
    TokenClass,
    WholePretokens,
)
from bpe_automata._kernels.product import MOST_SETS
from bpe_automata._limits import NUMBERS, check_fits
from bpe_automata._sharing import BoundedMemo, Lock, locked
from bpe_automata._storage import CorruptFileError
from bpe_automata._tokenizer.alphabet import DEAD
from bpe_automata._tokenizer.pipeline import Pipeline

NONE = -1
BEGINNING = 0
_FEW = 200
_MORE = 16  # rows that are worth being kept
_UNKNOWN = -2
_LONGEST = 4  # bytes of a character
Member = tuple[int, int, int]
_INTRICATE = "more than are told apart: the tokenizer's pretokenizer is too intricate"


@dataclass(frozen=True)
class HypothesisSet:
    """utf8_row: UTF-8 row of the character being read (0: none); members: sorted."""

    utf8_row: int
    members: tuple[Member, ...]

    def by_whole(self) -> dict[int, list[int]]:
        """The hypotheses, by where they are in `WholePretokens`."""
        found: dict[int, list[int]] = {}
        for h, _, w in self.members:
            found.setdefault(w, []).append(h)
        return found


_FIRST = HypothesisSet(0, ((0, 0, OFF),))


class KnownSets(NamedTuple):
    """What is known of hypothesis sets, to be kept on the disk. The sets by number: utf8_row int32
    [n], start int32 [n + 1] into members, int32 [m, 3]. Those with known rows: numbers int32 [k],
    free and bound int32 [k, n_classes]."""

    utf8_row: np.ndarray
    start: np.ndarray
    members: np.ndarray
    numbers: np.ndarray
    free: np.ndarray
    bound: np.ndarray


class HypothesisSets:
    """The interned sets and, made when first asked for, how token classes act on them. For any
    number of threads: two may find the same, but sets are numbered by one at a time."""

    def __init__(
        self,
        pipeline: Pipeline,
        actions: TokenActions,
        whole: WholePretokens,
        known: KnownSets | None = None,
        keep: Callable[[KnownSets], object] | None = None,
    ) -> None:
        """known: of these, by an earlier process; keep: is told now and then what is known."""
        self.lock = Lock()
        self._keep = keep
        self.pipeline, self.actions, self.whole = pipeline, actions, whole
        self.sets: list[HypothesisSet] = []
        self._members = 0
        self._numbers: dict[HypothesisSet, int] = {}
        self._rows: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        # Like `_rows`, with gaps; an eighth of what is usually kept.
        self._some: BoundedMemo[int, tuple[np.ndarray, np.ndarray]] = BoundedMemo(
            8 * 8 * len(actions.classes)
        )
        self._ends: dict[int, bool] = {}
        self._entries: dict[int, dict[int, int]] = {}  # by UTF-8 row
        self._alike: dict[bytes, int] = {}  # by what `_Stacked.alike` says of classes
        self._unions: dict[tuple[int, int], int] = {}
        self._stacked = _Stacked(pipeline, actions)
        self._own = np.array([c.own for c in actions.classes], dtype=np.int32)
        self._begun = whole.after_each(OFF, self._own, True)
        self._completed = _completed(pipeline)
        self.number(_FIRST.utf8_row, [*_FIRST.members])
        if known is not None:
            self._learn(known)
        self._n_kept = len(self._rows)

    def _learn(self, known: KnownSets) -> None:
        for found in _listed(known)[1:]:
            self._new(found)
        rows = zip(known.numbers.tolist(), known.free, known.bound, strict=True)
        self._rows.update((number, (free, bound)) for number, free, bound in rows)

    @locked
    def keep_rows(self, fewest: int = 1) -> None:
        """On the disk, where there are so many new ones: they cost up to some milliseconds each."""
        numbers = list(self._rows)  # before the sets, which have all that is after these
        if self._keep is None or len(numbers) < self._n_kept + fewest:
            return
        sets = self.sets[:]
        members = [member for found in sets for member in found.members]
        sizes = [len(found.members) for found in sets]
        free, bound = zip(*(self._rows[number] for number in numbers), strict=True)
        known = KnownSets(
            utf8_row=np.array([found.utf8_row for found in sets], dtype=np.int32),
            start=np.append(0, np.cumsum(sizes)).astype(np.int32),
            members=np.array(members, dtype=np.int32),
            numbers=np.array(numbers, dtype=np.int32),
            free=np.stack(free),
            bound=np.stack(bound),
        )
        self._n_kept = len(numbers)
        self._keep(known)

    def number(self, utf8_row: int, members: list[Member]) -> int:
        """The number of a set, NONE if it is empty. Members that no character from its UTF-8 row
        can follow are left out. Raises BudgetExceededError over MOST_SETS."""
        if utf8_row != 0:
            members = [(h, b, w) for h, b, w in members if self._completed[utf8_row, b, h]]
        if not members:
            return NONE
        found = HypothesisSet(utf8_row, tuple(sorted(set(members))))
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
            self._unions[key] = self.number(first.utf8_row, [*first.members, *second.members])
        return self._unions[key]

    def ends(self, number: int) -> bool:
        """Can a text, or a piece between added tokens, end after this?"""
        known = self._ends.get(number)
        if known is None:
            found, ends = self.sets[number], self.pipeline.boundaries.ends
            known = self._ends[number] = found.utf8_row == 0 and any(
                bool(ends[h]) and self.whole.may_end(w) for h, _, w in found.members
            )
        return known

    def successors(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """(free, bound): int32 [n_classes], the set after a token of each class when there is, or
        is not, a boundary at the joint before it."""
        if number not in self._rows:
            found = self.sets[number]
            build = self._full_rows if found.utf8_row == 0 else self._partial_rows
            self._rows[number] = build(found)
            self.keep_rows(max(_MORE, self._n_kept // 4))
        return self._rows[number]

    def after(self, number: int, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(free, bound) of `successors` for these classes, int32; quick where they are few."""
        known = self._rows.get(number) or self._some.get(number)
        if known is None:
            n = len(self.actions.classes)
            unknown = np.full(n, _UNKNOWN, dtype=np.int32)
            known = unknown, unknown.copy()
            self._some.put(number, known)
        free, bound = known
        more = classes[free[classes] == _UNKNOWN]
        if len(more):
            few = np.unique(more).tolist()
            if len(few) > _FEW:
                free, bound = self.successors(number)
            else:
                for c in few:  # free[c] last: where it is known both are
                    after_boundary, bound[c] = self._after(self.sets[number], c)
                    free[c] = after_boundary
        return free[classes], bound[classes]

    def _after(self, found: HypothesisSet, c: int) -> tuple[int, int]:
        """(free, bound) of `successors` for one class."""
        if found.utf8_row == 0:
            by_whole = found.by_whole()
            return self._one(by_whole, 1, c), self._one(by_whole, 0, c)
        entry = self._continuing(found.utf8_row).get(c)
        if entry is None:
            return NONE, NONE
        return NONE, self._continued(found, entry, self.actions.classes[c])

    def _full_rows(self, found: HypothesisSet) -> tuple[np.ndarray, np.ndarray]:
        """At a character's end: classes without a leading fragment can follow."""
        by_whole = found.by_whole()
        return self._side(by_whole, 1), self._side(by_whole, 0)

    def _side(self, by_whole: dict[int, list[int]], boundary: int) -> np.ndarray:
        """int32 [n_classes]: `_joined` of each class, found once for all classes, of any set, after
        which the hypotheses are the same."""
        stacked = self._stacked
        numbers = np.full(len(self.actions.classes), NONE, dtype=np.int32)
        may = {w: hs for w, hs in by_whole.items() if self._may(w, boundary)}
        wholes = [
            self._begun if boundary else self.whole.after_each(w, self._own, False) for w in may
        ]
        after = stacked.each_after(boundary, may.values())
        alike, first, which = stacked.alike(after, wholes)
        for key, k in zip(alike, first.tolist(), strict=True):
            if key not in self._alike:
                listed = (np.flatnonzero(row[k]).tolist() for row in after)
                joined = zip(may, listed, strict=True)
                self._alike[key] = self._joined(joined, boundary, int(stacked.classes[k]))
        found = np.array([self._alike[key] for key in alike], dtype=np.int32)
        numbers[stacked.classes] = found[which]
        for c in stacked.fragments:
            numbers[c] = self._joined(by_whole.items(), boundary, c)
        return numbers

    def _may(self, w: int, boundary: int) -> bool:
        """May there be a boundary, or none, behind a node of `WholePretokens`?"""
        return self.whole.may_end(w) if boundary else w != MUST_END

    def _one(self, by_whole: dict[int, list[int]], boundary: int, c: int) -> int:
        """The same for one class."""
        if c in self._stacked.fragments:
            return self._joined(by_whole.items(), boundary, c)
        after = ((w, self._stacked.after(c, boundary, hs)) for w, hs in by_whole.items())
        return self._joined(after, boundary, c)

    def _joined(self, after: Iterable[tuple[int, list[int]]], boundary: int, c: int) -> int:
        """The set after a token of a class, at a character's end, with or without a boundary, by
        the hypotheses after it for each node of `WholePretokens` before it."""
        token_class, members = self.actions.classes[c], []
        kept = boundary if c in self._stacked.fragments else 0
        for w, hs in after:
            if self._may(w, boundary):
                w2 = self.whole.after(w, token_class.own, bool(boundary))
                members += [(h, kept, w2) for h in hs] if w2 is not None else []
        return self.number(token_class.tail, members)

    def _partial_rows(self, found: HypothesisSet) -> tuple[np.ndarray, np.ndarray]:
        """Inside a character: only its continuation can follow, and there is no boundary."""
        n = len(self.actions.classes)
        free, bound = np.full(n, NONE, dtype=np.int32), np.full(n, NONE, dtype=np.int32)
        alike: dict[tuple[int, int, int, int], int] = {}
        for c, entry in self._continuing(found.utf8_row).items():
            token_class = self.actions.classes[c]
            key = entry, token_class.element, token_class.tail, token_class.own
            if key not in alike:
                alike[key] = self._continued(found, entry, token_class)
            bound[c] = alike[key]
        return free, bound

    def _continuing(self, utf8_row: int) -> dict[int, int]:
        """For each class whose leading fragment can be read from a UTF-8 row what is there then: a
        UTF-8 row, or -1 - the coarse atom that is complete."""
        known = self._entries.get(utf8_row)
        if known is None:
            utf8, known = self.pipeline.alphabet.utf8, {}
            for c, token_class in enumerate(self.actions.classes):
                entry = utf8_row if token_class.lead else DEAD
                for byte in token_class.lead:
                    entry = int(utf8[entry, byte]) if entry >= 0 else DEAD
                if entry >= 0:
                    known[c] = entry
                elif entry != DEAD:
                    known[c] = -1 - int(self.pipeline.coarse[-2 - entry])
            self._entries[utf8_row] = known
        return known

    def _continued(self, found: HypothesisSet, entry: int, token_class: TokenClass) -> int:
        """The set after a token of a class that leads to such an entry."""
        moved = [(h, b, self.whole.after(w, token_class.own, False)) for h, b, w in found.members]
        kept = [(h, b, w) for h, b, w in moved if w is not None]
        relation = self.actions.relations[token_class.element]
        if entry >= 0:  # the character goes on, so the token must be nothing but its fragment
            same = relation.shape[0] == relation.shape[1] and relation.trace() == len(relation)
            return self.number(entry, kept) if same and token_class.tail == 0 else NONE
        follow = self.pipeline.boundaries.follow
        members = [
            (int(h2), 0, w)
            for h, b, w in kept
            for h2 in np.flatnonzero(relation[follow[b, h, -1 - entry]].any(axis=0))
        ]
        return self.number(token_class.tail, members)


def _listed(known: KnownSets) -> list[HypothesisSet]:
    members = [(h, b, w) for h, b, w in known.members.tolist()]
    rows, start = known.utf8_row.tolist(), known.start.tolist()
    parts = zip(rows, start[:-1], start[1:], strict=True)
    return [HypothesisSet(utf8_row, tuple(members[low:high])) for utf8_row, low, high in parts]


def check_known(known: KnownSets, pipeline: Pipeline, n_classes: int, n_whole: int) -> None:
    """Are these numbers that kernels can be given, who check nothing? n_whole: nodes of the trie of
    `WholePretokens`. Raises CorruptFileError."""
    n, shape, members = len(known.utf8_row), (len(known.numbers), n_classes), known.members
    between = (  # array, its least value and the one that is too large
        (known.utf8_row, 0, len(pipeline.alphabet.utf8)),
        (known.numbers, 0, n),
        (known.free, NONE, n),
        (known.bound, NONE, n),
        (known.start, 0, len(members) + 1),
        *zip(members.T, (0, 0, MUST_END), (pipeline.boundaries.n, 2, n_whole), strict=False),
    )
    fits = (
        all(array.dtype == np.int32 for array in known)
        and [array.ndim for array in known] == [1, 1, 2, 1, 2, 2]
        and members.shape[1] == 3
        and len(known.start) == n + 1
        and (np.diff(known.start, prepend=0, append=len(members)) >= 0).all()
        and all(((low <= array) & (array < high)).all() for array, low, high in between)
        and known.free.shape == known.bound.shape == shape
    )
    if not fits or len(set(sets := _listed(known))) < n or sets[:1] != [_FIRST]:
        raise CorruptFileError("hypothesis sets that do not fit together")


def _completed(pipeline: Pipeline) -> np.ndarray:
    """bool [rows, 2, n]: can a character that is read as far as a UTF-8 row follow a hypothesis,
    with or without a boundary before it?"""
    utf8, follows = pipeline.alphabet.utf8, pipeline.boundaries.follow.any(axis=3)
    atoms = np.zeros((len(utf8), follows.shape[2]), dtype=bool)
    for utf8_row, entries in enumerate(utf8):
        atoms[utf8_row, pipeline.coarse[-2 - entries[entries < DEAD]]] = True
    for _ in range(_LONGEST):
        for utf8_row, entries in enumerate(utf8):
            atoms[utf8_row] |= atoms[entries[entries > 0]].any(axis=0)
    found: np.ndarray = np.einsum("rk,bhk->rbh", atoms.astype(int), follows.astype(int)) > 0
    return found


class _Stacked:
    """The relations of all classes without a leading fragment, in one array.

    classes: int32 [k], those that hold a whole character, and their relations by boundary, bool
    [k, 2, n, n]; fragments: those that are only the beginning of a character.
    """

    def __init__(self, pipeline: Pipeline, actions: TokenActions) -> None:
        n = pipeline.boundaries.n
        plain = [c for c, k in enumerate(actions.classes) if c and not k.lead]
        whole = [c for c in plain if actions.classes[c].element != JOINT]
        self.fragments = frozenset(c for c in plain if actions.classes[c].element == JOINT)
        self.classes = np.array(whole, dtype=np.int32)
        relations = [actions.relations[actions.classes[c].element] for c in whole]
        self._joint = np.array(relations, dtype=bool).reshape(len(whole), 2, n, n)
        self._at = dict(zip(whole, range(len(whole)), strict=True))
        self._tails = np.array([actions.classes[c].tail for c in whole], dtype=np.int32)

    def after(self, c: int, boundary: int, hs: list[int]) -> list[int]:
        """The hypotheses after a token of a class, from any of these; none, of a class with a
        leading fragment."""
        at = self._at.get(c)
        if at is None:
            return []
        found: list[int] = np.flatnonzero(self._joint[at, boundary][hs].any(axis=0)).tolist()
        return found

    def each_after(self, boundary: int, from_: Iterable[list[int]]) -> list[np.ndarray]:
        """For each list of hypotheses bool [k, n]: those after a token of each class."""
        joint = self._joint[:, boundary]
        return [np.any(joint[:, hs], axis=1) for hs in from_]

    def alike(
        self, after: list[np.ndarray], wholes: list[np.ndarray]
    ) -> tuple[list[bytes], np.ndarray, np.ndarray]:
        """(what tells them apart [distinct], first [distinct], which [k]) of the classes with one
        tail, one row in each of `after`, bool [k, n], and one number in each of `wholes`, int32
        [n_classes]."""
        bits = [np.packbits(rows, axis=1) for rows in after]
        numbers = np.stack([self._tails, *(where[self.classes] for where in wholes)], axis=1)
        told = np.ascontiguousarray(np.concatenate([numbers.view(np.uint8), *bits], axis=1))
        rows = told.view(np.dtype((np.void, told.shape[1]))).reshape(-1)
        distinct, first, which = np.unique(rows, return_index=True, return_inverse=True)
        return [row.tobytes() for row in distinct], first, which.reshape(-1)
