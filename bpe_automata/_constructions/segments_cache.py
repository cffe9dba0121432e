"""What is known of segments, kept: in memory, bounded, and on disk.

The key of a segment holds the tokenizer, its language and its delimiters (see `segments`), so one
cache serves any number of schemas and tokenizers. On disk each segment is one file, written by
`save`, with the stamp of the sources that made it; a damaged one is made again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._arguments import integer
from bpe_automata._constructions import stored
from bpe_automata._constructions.relevance import Readable
from bpe_automata._constructions.segments import At
from bpe_automata._kernels.bits import members, set_bits
from bpe_automata._sharing import Lock, locked
from bpe_automata._storage import checked_load, store_arrays
from bpe_automata.errors import ArgumentError

_OVERHEAD = 400
"""Bytes of Python around one entry, about."""
_FOLDER = "segments"


class Closure(NamedTuple):
    """The configurations that ids lead to from one configuration of a segment. n_inner: how many
    there are before its cuts, whose rows are made; exits: those at its cuts."""

    n_inner: int
    exits: tuple[At, ...]


class Piece(NamedTuple):
    """The token automaton from one configuration of a segment to its cuts.

    accepting: bool [n]; offsets: int64 [n + 1]; symbols, targets: int32 [m], as in
    `token_automata.Table`; the start is 0, and target n + k is exits[k]."""

    accepting: np.ndarray
    offsets: np.ndarray
    symbols: np.ndarray
    targets: np.ndarray
    exits: tuple[At, ...]


@dataclass
class Known:
    """What is known of one segment. rows: of its configurations; closures, pieces: by the
    configuration where they begin; changed: is there something that the disk does not have?
    n_bytes: in memory, about."""

    rows: dict[At, Readable] = field(default_factory=dict)
    closures: dict[At, Closure] = field(default_factory=dict)
    pieces: dict[At, Piece] = field(default_factory=dict)
    changed: bool = False
    n_bytes: int = 0

    def add(self, at: At, found: Readable | Closure | Piece) -> int:
        """Keep it, if it is new; returns how many more bytes that takes."""
        kinds: dict[type, dict[At, Any]] = {
            Readable: self.rows,
            Closure: self.closures,
            Piece: self.pieces,
        }
        kept = kinds[type(found)]
        if at in kept:
            return 0
        kept[at], self.changed = found, True
        more = _size(found)
        self.n_bytes += more
        return more


def _size(entry: Readable | Closure | Piece) -> int:
    exits = () if isinstance(entry, Readable) else entry.exits
    arrays = (part.nbytes for part in entry if isinstance(part, np.ndarray))
    return sum(arrays) + _OVERHEAD * (1 + len(exits))


@dataclass
class Counts:
    """Of rows. made: put into the cache; apart: made of configurations that are in no segment;
    loaded: read from disk."""

    made: int = 0
    apart: int = 0
    loaded: int = 0


class SegmentCache:
    """Give one to several calls of `Constraint.automaton`: what one learns serves the others.

    on_disk: read what `save` wrote, in this or another process. max_bytes: of memory, about; the
    segments that came first go first, to disk if `on_disk`. `counts` says how well it does. Any
    number of threads may use it, over any tokenizers. A copy, also one in another process, begins
    with nothing in memory.
    """

    def __init__(self, on_disk: bool = False, max_bytes: int = 256_000_000) -> None:
        """Raises ArgumentError."""
        self.on_disk, self.max_bytes = on_disk, integer(max_bytes, "max_bytes")
        if self.max_bytes < 0:
            raise ArgumentError(f"max_bytes is {max_bytes}: give 0 or more")
        self.counts = Counts()
        self.lock = Lock()
        self._known: dict[bytes, Known] = {}
        self._n_bytes = 0

    @property
    def n_segments(self) -> int:
        """The number of segments in memory."""
        return len(self._known)

    @property
    def n_bytes(self) -> int:
        """What is in memory, about."""
        return self._n_bytes

    def __reduce__(self) -> tuple[type[SegmentCache], tuple[bool, int]]:
        return SegmentCache, (self.on_disk, self.max_bytes)

    @locked
    def of(self, key: bytes) -> Known:
        """What is known of a segment. To be added to by `add` only."""
        known = self._known.get(key)
        if known is None:
            known = (_read(key) if self.on_disk else None) or Known()
            self._known[key] = known
            self.counts.loaded += len(known.rows)
            self._grown(key, known.n_bytes)
        return known

    @locked
    def count_apart(self) -> None:
        """A row was made that is in no segment."""
        self.counts.apart += 1

    @locked
    def add(self, key: bytes, at: At, found: Readable | Closure | Piece) -> None:
        """Keep what was made of a segment, from this configuration on."""
        self.counts.made += isinstance(found, Readable)
        self._grown(key, self.of(key).add(at, found))

    @locked
    def save(self) -> int:
        """Write what the disk does not have; returns how many segments were written. What another
        process wrote of the same segment meanwhile is replaced. Where the cache cannot be written
        nothing is kept."""
        changed = {key: known for key, known in self._known.items() if known.changed}
        for key, known in changed.items():
            _write(key, known)
            known.changed = False
        return len(changed)

    def _grown(self, key: bytes, more: int) -> None:
        self._n_bytes += more
        while self._n_bytes > self.max_bytes and len(self._known) > 1:
            oldest = next(k for k in self._known if k != key)
            known = self._known.pop(oldest)
            self._n_bytes -= known.n_bytes
            if self.on_disk and known.changed:
                _write(oldest, known)


# ---------------------------------------------------------------- on disk


class _Stored(NamedTuple):
    """One segment, as its file has it. ids: of each side of each row, one after the other, from
    `start` on: the packed set, or the list of its members where that is shorter. arrays: those of
    the pieces, one piece after the other."""

    n_words: int
    rows: tuple[At, ...]
    start: np.ndarray
    ids: np.ndarray
    closures: tuple[tuple[At, Closure], ...]
    pieces: tuple[tuple[At, tuple[At, ...]], ...]
    arrays: tuple[np.ndarray, ...]


def _write(key: bytes, known: Known) -> None:
    sides = [_shorter(side) for row in known.rows.values() for side in row]
    kept = _Stored(
        max((len(row.free) for row in known.rows.values()), default=0),
        tuple(known.rows),
        np.cumsum([0, *map(len, sides)], dtype=np.int64),
        np.concatenate([np.empty(0, dtype=np.int32), *sides]),
        tuple(known.closures.items()),
        tuple((at, piece.exits) for at, piece in known.pieces.items()),
        tuple(array for piece in known.pieces.values() for array in piece[:-1]),
    )
    store_arrays(_FOLDER, key.hex(), stored.stamp(), stored.flattened(kept))


def _read(key: bytes) -> Known | None:
    """None if there is nothing, or other sources made it. Warns of a damaged file with a
    CorruptCacheWarning."""
    return checked_load(_FOLDER, key.hex(), stored.stamp(), _restored)


def _restored(arrays: dict[str, np.ndarray]) -> Known:
    """All of it copied: else the file would stay open as long as the segment."""
    kept, known = stored.restored(_Stored, arrays), Known()
    ranges = zip(kept.start[:-1].tolist(), kept.start[1:].tolist(), strict=True)
    sides = [_whole(kept.ids[low:high], kept.n_words) for low, high in ranges]
    for at, free, bound in zip(kept.rows, sides[::2], sides[1::2], strict=True):
        known.add(at, Readable(free, bound))
    for at, closure in kept.closures:
        known.add(at, closure)
    for k, (at, exits) in enumerate(kept.pieces):
        accepting, offsets, symbols, targets = (a.copy() for a in kept.arrays[4 * k : 4 * k + 4])
        known.add(at, Piece(accepting, offsets, symbols, targets, exits))
    known.changed = False
    return known


def _shorter(side: np.ndarray) -> np.ndarray:
    ids = members(side).astype(np.int32)
    return ids if len(ids) < len(side) else side


def _whole(kept: np.ndarray, n_words: int) -> np.ndarray:
    if len(kept) == n_words:
        return kept.copy()
    side = np.zeros(n_words, dtype=np.int32)
    set_bits(side, kept.astype(np.int64))
    return side
