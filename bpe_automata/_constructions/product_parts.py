"""The arrays of the product that depend on the tokenizer alone: parts of `_kernels.product`."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np

from bpe_automata._automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata._budget import check
from bpe_automata._constructions.canonical import CanonicalAutomaton
from bpe_automata._constructions.hypothesis_sets import BEGINNING, NONE
from bpe_automata._constructions.token_actions import INSIDE, MUST_END
from bpe_automata._kernels.distance import distances
from bpe_automata._kernels.fixed_set import FixedSet
from bpe_automata._kernels.geometry import ForbiddenSets, positions_of, weights
from bpe_automata._kernels.hashing import EMPTY
from bpe_automata._kernels.product import Fragments, Reading, Witnesses
from bpe_automata._limits import NUMBERS, check_fits, untouched
from bpe_automata._sharing import BoundedMemo, locked
from bpe_automata._tokenizer.boundaries import Boundaries


def reading_of(canonical: CanonicalAutomaton) -> Reading:
    boundaries = canonical.pipeline.boundaries
    n, n_coarse = boundaries.n, boundaries.follow.shape[2]
    rows = boundaries.follow.reshape(2 * n * n_coarse, n)
    steps = rows.sum(axis=1)
    check_fits("steps of hypotheses", int(steps.sum()), NUMBERS, "more than are numbered")
    return Reading(
        utf8=canonical.pipeline.alphabet.utf8,
        coarse=canonical.pipeline.coarse,
        ends=boundaries.ends,
        step_start=np.append(0, np.cumsum(steps)).astype(np.int32),
        step_to=np.nonzero(rows)[1].astype(np.int32),
        universal=_universal(boundaries),
    )


_MOST_SUBSETS = 1000


def _universal(boundaries: Boundaries) -> np.ndarray:
    """bool [n]: the hypotheses from which every text can be read to its end; False too where the
    subset construction that tells so would be long."""
    n = boundaries.n
    members = [1 << h for h in range(n)]
    follow = boundaries.follow[0] | boundaries.follow[1]
    after = [[sum(members[to] for to in np.flatnonzero(row)) for row in rows] for rows in follow]
    ends = sum(members[h] for h in np.flatnonzero(boundaries.ends))
    universal = 0
    for h in range(n):
        subsets = [members[h]]
        met = set(subsets)
        for subset in subsets:
            check()
            if not subset & ends or len(subsets) > _MOST_SUBSETS:
                break
            steps = zip(*(after[k] for k in range(n) if subset >> k & 1), strict=True)
            for then in {reduce(or_, step) for step in steps} - met:
                if not then & universal:
                    met.add(then)
                    subsets.append(then)
        else:
            universal |= members[h]
    return np.array([universal >> h & 1 for h in range(n)], np.bool_)


def forbidden_sets_of(canonical: CanonicalAutomaton) -> ForbiddenSets:
    before, after = canonical.geometry.before, canonical.geometry.after
    birth = canonical.derivation.birth
    positions = positions_of(before.order, len(birth)), positions_of(after.order, len(birth))
    return ForbiddenSets(before, after, birth, *positions)


def fragments_of(canonical: CanonicalAutomaton) -> Fragments:
    actions, trie = canonical.actions, canonical.trie
    classes = actions.classes
    pure = np.array([c.element == INSIDE and c.lead != b"" and not c.tail for c in classes])
    plain = np.array([c.own < 0 for c in classes])
    inner = np.flatnonzero(pure[actions.of_token]).astype(np.int32)
    tails = np.array([c.tail for c in classes])[actions.of_token]
    row, token = _open_ends(canonical, tails, inner)
    order = np.argsort(row, kind="stable")
    start = np.zeros(len(canonical.pipeline.alphabet.utf8) + 1, dtype=np.int32)
    np.cumsum(np.bincount(row, minlength=len(start) - 1), out=start[1:])
    usable = inner[plain[actions.of_token[inner]]]
    spelled = [trie.data[trie.start[i] : trie.start[i + 1]] for i in usable]
    return Fragments(
        open_start=start,
        open_ids=token[order].astype(np.int32),
        start=np.cumsum([0, *map(len, spelled)]).astype(np.int32),
        data=np.concatenate([*spelled, np.empty(0, dtype=np.uint8)]),
        ids=usable,
        covers=np.empty((0, 0, 0, 0), dtype=np.int32),  # see `Proofs`
    )


def _open_ends(
    canonical: CanonicalAutomaton, tails: np.ndarray, inner: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (UTF-8 row inside a character, token that can end there)."""
    utf8, trie = canonical.pipeline.alphabet.utf8, canonical.trie
    ending = np.flatnonzero(tails > 0)
    rows, tokens = [tails[ending]], [ending]
    for token in inner:
        ends = np.arange(1, len(utf8))
        for byte in trie.data[trie.start[token] : trie.start[token + 1]]:
            ends = utf8[ends, byte]
            ends = ends[ends > 0]
        ends = np.unique(ends)
        rows.append(ends)
        tokens.append(np.full(len(ends), token))
    return np.concatenate(rows), np.concatenate(tokens)


# The fixed set of a tokenizer without a pretokenizer: the one that reading leaves as it is.
#
#     after(S, t) = (none, S)      for every ordinary token t of whole characters
#
# Then a configuration of S is a DFA state, and its texts are spelled without a look at hypotheses:
# see `_kernels.fixed_set`. Most tokenizers with a pretokenizer have no such set, and need none, as
# a boundary can come at most configurations.

_LEADING = 4


def fixed_set_for(canonical: CanonicalAutomaton, dfa: ByteAutomaton) -> FixedSet:
    """What the kernels need, for one DFA; where there is no fixed set, as good as nothing."""
    fixed_set = canonical.tokenizer.derived("fixed set", lambda _: _fixed_set(canonical))
    distance = dfa.far if isinstance(dfa, LinkedDFA) else distances(dfa.trans, dfa.accepting)
    n = dfa.n_states if fixed_set.number != NONE else 0
    first, step, leading = untouched((n, np.int32), (n, np.int32), ((n, _LEADING), np.int32))
    return fixed_set._replace(distance=distance, first=first, step=step, leading=leading)


def _fixed_set(canonical: CanonicalAutomaton) -> FixedSet:
    """The part that does not depend on a DFA."""
    trie, derivation = canonical.trie, canonical.derivation
    number = _fixed_set_number(canonical)
    token = np.full(len(trie.token) if number != NONE else 0, NONE, dtype=np.int32)
    if number != NONE:
        keeps = _keeps(canonical, number)[canonical.nodes.token_class] & (canonical.nodes.text == 0)
        keeps &= (trie.token >= 0) & derivation.reachable[trie.token]
        token[keeps] = trie.token[keeps]
    root = np.full(256, NONE, dtype=np.int32)
    first = np.flatnonzero(trie.depth == 1)
    root[trie.label[first]] = first
    nothing, loose = np.empty(0, dtype=np.int32), _loose(canonical)
    return FixedSet(
        number,
        trie,
        token,
        root,
        _order(canonical),
        loose,
        _apart(canonical, loose),
        nothing,
        nothing,
        nothing,
        nothing[:, None],
    )


def _fixed_set_number(canonical: CanonicalAutomaton) -> int:
    """Its number, NONE if there is none."""
    sets, token_classes = canonical.sets, _whole_classes(canonical)
    if canonical.whole.tokens or not canonical.pipeline.text.ends[0] or not len(token_classes):
        return NONE
    free, bound = sets.successors(BEGINNING)
    for number in {int(free[token_classes[0]]), int(bound[token_classes[0]])} - {NONE, BEGINNING}:
        if _keeps(canonical, number)[token_classes].all() and sets.ends(number):
            return number
    return NONE


def _keeps(canonical: CanonicalAutomaton, number: int) -> np.ndarray:
    """bool [n_classes]: the classes that leave the set as it is, and never have a boundary."""
    free, bound = canonical.sets.successors(number)
    return (free == NONE) & (bound == number)


def _whole_classes(canonical: CanonicalAutomaton) -> np.ndarray:
    """The classes of whole characters."""
    classes = canonical.actions.classes
    whole = [k > 0 and not c.lead and not c.tail for k, c in enumerate(classes)]
    return np.flatnonzero(whole)


def _loose(canonical: CanonicalAutomaton) -> np.ndarray:
    """bool [n_ids]: every id may follow. None with `ignore_merges`, where more is forbidden."""
    n = canonical.tokenizer.n_ids
    if canonical.whole.tokens:
        return np.zeros(n, dtype=bool)
    weight = weights(np.arange(n), canonical.derivation.birth, canonical.geometry.after)
    return (weight == 0) & canonical.derivation.reachable


def _apart(canonical: CanonicalAutomaton, loose: np.ndarray) -> bool:
    """Has every byte inside a character an id of its own that may stand beside every id?"""
    trie, classes = canonical.trie, canonical.actions.classes
    single = np.flatnonzero((trie.depth == 1) & (trie.token >= 0) & (trie.label >= 0x80))
    tokens = trie.token[single].astype(np.int64)
    token_classes = [classes[k] for k in canonical.actions.of_token[tokens]]
    plain = np.array(
        [token_class.lead != b"" and token_class.own < 0 for token_class in token_classes],
        dtype=bool,
    )
    weight = weights(tokens, canonical.derivation.birth, canonical.geometry.before)
    found = trie.label[single[plain & loose[tokens] & (weight == 0)]]
    return {*found.tolist()} >= {*range(0x80, 0xC0)}


def _order(canonical: CanonicalAutomaton) -> np.ndarray:
    """uint8 [256]: the bytes, by how many ids may not come before the token of that byte alone."""
    trie, derivation = canonical.trie, canonical.derivation
    single = np.flatnonzero((trie.depth == 1) & (trie.token >= 0))
    tokens = trie.token[single].astype(np.int64)
    weight = np.full(256, np.iinfo(np.int64).max)
    weight[trie.label[single]] = weights(tokens, derivation.birth, canonical.geometry.before)
    weight[0x80:] = np.iinfo(np.int64).max  # no character ends there
    return np.argsort(weight, kind="stable").astype(np.uint8)


# The interned hypothesis sets as arrays, extended as sets are added, and what has been proved about
# them.

SHOWN = 8, 3  # of each set: texts, and what is said of them
_COVERS = 4, 8, 4  # of each UTF-8 row, ways in each of them, and fragments in a way
_WITNESSES = 1 << 14


class _Growing:
    """An array that grows. What was handed out of it keeps its length."""

    def __init__(self, dtype: type, shape: tuple[int, ...] = ()) -> None:
        self._array: np.ndarray = np.zeros((256, *shape), dtype=dtype)

    def filled(self, count: int, values: list[int] | np.ndarray) -> np.ndarray:
        """The first `count` positions, then `values`."""
        needed = count + len(values)
        if needed > len(self._array):
            self._array = resized(self._array[:count], 2 * needed)
        self._array[count:needed] = values
        return self._array[:needed]


class Columns(NamedTuple):
    """Those of `_kernels.product.Sets` that never change."""

    start: np.ndarray
    hypothesis: np.ndarray
    boundary: np.ndarray
    may_break: np.ndarray
    may_bind: np.ndarray
    utf8_row: np.ndarray
    ends: np.ndarray


class SetArrays:
    """Keeps up with `canonical.sets`, for any number of threads."""

    def __init__(self, canonical: CanonicalAutomaton) -> None:
        self.lock = canonical.tokenizer.lock
        self._sets, self._whole = canonical.sets.sets, canonical.whole
        self._ends, self._text_ends = canonical.sets.ends, bool(canonical.pipeline.text.ends[0])
        self._rows, n_classes = canonical.sets.successors, len(canonical.actions.classes)
        self._bound = _Growing(np.int32, (n_classes,))
        self._known = np.empty(0, dtype=np.int32), self._bound.filled(0, np.empty((0, n_classes)))
        self._columns = [_Growing(t) for t in (*[np.int32] * 3, bool, bool, np.int32, bool)]
        nothing = [column.filled(0, []) for column in self._columns]
        self._arrays = Columns(self._columns[0].filled(0, [0]), *nothing[1:])

    def current(self) -> Columns:
        """The arrays of all sets interned so far."""
        if len(self._arrays.utf8_row) < len(self._sets):
            self._extend()
        return self._arrays

    def know(self, number: int) -> bool:
        """Find where token classes lead from a set without a boundary: `known_rows` has it then.
        Was that known before?"""
        row_of, _ = self._known
        known = number < len(row_of) and row_of[number] != NONE
        if not known:
            self._know(number, self._rows(number)[1])
        return bool(known)

    @locked
    def _know(self, number: int, bound: np.ndarray) -> None:
        row_of, rows = self._known
        if len(row_of) <= number or row_of[number] == NONE:
            # A copy: whoever has the old one has no such row either.
            size = len(row_of) if number < len(row_of) else 2 * len(self._sets)
            longer = resized(row_of, size, NONE)
            longer[number] = len(rows)
            self._known = longer, self._bound.filled(len(rows), bound[None])

    def known_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """(int32 [n_sets or more] into the rows, NONE where it is not known; int32 [rows,
        n_classes]); the same tuple as long as nothing is new."""
        known = self._known  # once: another thread's may name sets that it has no room for
        return self._with_room() if len(known[0]) < len(self._sets) else known

    @locked
    def _with_room(self) -> tuple[np.ndarray, np.ndarray]:
        row_of, rows = self._known
        self._known = resized(row_of, max(len(row_of), 2 * len(self._sets)), NONE), rows
        return self._known

    @locked
    def _extend(self) -> None:
        """Interrupted, it has done nothing: what was written so far is written again."""
        done, before = len(self._arrays.utf8_row), len(self._arrays.hypothesis)
        fresh = self._sets[done:]
        members = [member for found in fresh for member in found.members]
        sizes = np.cumsum([len(found.members) for found in fresh], dtype=np.int64)
        start, hypothesis, boundary, may_break, may_bind, utf8_row, ends = self._columns
        self._arrays = Columns(
            start.filled(done + 1, (before + sizes).tolist()),
            hypothesis.filled(before, [h for h, _, _ in members]),
            boundary.filled(before, [b for _, b, _ in members]),
            may_break.filled(before, [self._whole.may_end(w) for _, _, w in members]),
            may_bind.filled(before, [w != MUST_END for _, _, w in members]),
            utf8_row.filled(done, [found.utf8_row for found in fresh]),
            ends.filled(
                done, [self._text_ends and self._ends(done + k) for k in range(len(fresh))]
            ),
        )


class Proofs(NamedTuple):
    """What was proved of a tokenizer by the products that met it first, for those that come after:
    see `_kernels.product`, `Sets` (given_up, shown), `Fragments` (covers) and `Witnesses`."""

    given_up: np.ndarray
    shown: np.ndarray
    covers: np.ndarray
    witnesses: Witnesses


class Proven:
    """The proofs of one tokenizer. Kernels read and write them in one call, so each call has some
    to itself: one after another, the same; at the same time, each its own, which know what was
    found in the calls that had them.

    A new product begins with nothing given up, as a set that is given up wrongly can cost seconds.
    But sets that were given up in a loop (see `Regions.loop`) are given up again for each call that
    begins in a loop with this key."""

    def __init__(self, n_rows: int) -> None:
        """n_rows: of UTF-8, see `_tokenizer.alphabet`."""
        self._n_rows = n_rows
        self._idle: list[Proofs] = []
        self._in_loops: BoundedMemo[bytes, GivenUp] = BoundedMemo(1 << 14)

    def taken(self) -> Proofs:
        """Those that were given back last, else empty ones; to be given back. (What is not, is
        forgotten with all that it knows.)"""
        try:
            return self._idle.pop()
        except IndexError:
            return _nothing_proved(self._n_rows)

    def begun(self) -> Proofs:
        """What a new product takes: as `taken`, with nothing given up."""
        proofs = self.taken()
        forget(proofs, np.flatnonzero(proofs.given_up))
        return proofs

    def give_back(self, proofs: Proofs) -> None:
        """Those that were used last are the next that are taken."""
        self._idle.append(proofs)

    def given_up_in(self, loop: bytes) -> GivenUp:
        """Nothing for b""."""
        return self._in_loops.get(loop) or NOTHING_GIVEN_UP

    def remember(self, loop: bytes, found: np.ndarray, proofs: Proofs) -> None:
        """Add sets, int64, that a call which began in a loop gave up to those given up there."""
        if loop and len(found):
            numbers, shown = self.given_up_in(loop)
            new = np.setdiff1d(found, numbers)
            both = np.append(numbers, new), np.append(shown, proofs.shown[new], axis=0)
            self._in_loops.put(loop, both)


GivenUp = tuple[np.ndarray, np.ndarray]
"""Sets, int64 [n], and what of `Proofs.shown` is theirs."""
NOTHING_GIVEN_UP = np.empty(0, dtype=np.int64), np.empty((0, *SHOWN), dtype=np.int32)


def give_up(proofs: Proofs, some: GivenUp) -> np.ndarray:
    """Give up some sets. Returns int64, those that were not given up."""
    numbers, shown = some
    fresh = ~proofs.given_up[numbers]
    given_up = numbers[fresh]
    proofs.given_up[given_up], proofs.shown[given_up] = True, shown[fresh]
    return given_up


def forget(proofs: Proofs, numbers: np.ndarray) -> None:
    """Forget that sets, int64, were given up."""
    proofs.given_up[numbers], proofs.shown[numbers] = False, 0


def _nothing_proved(n_rows: int) -> Proofs:
    id_, after = np.zeros((2, _WITNESSES), dtype=np.int32)
    return Proofs(
        given_up=np.zeros(256, dtype=bool),
        shown=np.zeros((256, *SHOWN), dtype=np.int32),
        covers=np.full((n_rows, *_COVERS), -1, dtype=np.int32),
        witnesses=Witnesses(np.full(_WITNESSES, EMPTY, dtype=np.int64), id_, after),
    )


def with_room_for(proofs: Proofs, n_sets: int) -> Proofs:
    """The same, of so many sets at least."""
    if n_sets <= len(proofs.given_up):
        return proofs
    given_up, shown = (resized(array, 2 * n_sets) for array in proofs[:2])
    return proofs._replace(given_up=given_up, shown=shown)


def resized(array: np.ndarray, size: int, fill: int = 0) -> np.ndarray:
    """A larger one that begins with it; what is new is `fill`."""
    shape = size, *array.shape[1:]
    # Pages of zeros that nobody writes to take no time, and no memory.
    bigger = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    check()
    bigger[: len(array)] = array
    return bigger
