"""What is known of segments, kept: in memory, bounded, and on disk.

The key of a segment holds the tokenizer, its language and its delimiters (see `segments`), so one
cache serves any number of schemas and tokenizers. On disk each segment is one file, written by
`save`, with the stamp of the sources that made it; a damaged one is made again.
"""

from __future__ import annotations

from dataclasses import dataclass

from bpe_automata.arguments import integer
from bpe_automata.constructions.relevance import Row
from bpe_automata.constructions.segments import At
from bpe_automata.constructions.segments_files import read, write
from bpe_automata.constructions.segments_pieces import OVERHEAD, Closure, Known, Piece
from bpe_automata.errors import ArgumentError
from bpe_automata.sharing import Lock, locked


@dataclass
class Counts:
    """Rows that were asked for. found: in the cache; made: not there; apart: of nodes that are in
    no segment. loaded: rows that were read from disk."""

    found: int = 0
    made: int = 0
    apart: int = 0
    loaded: int = 0

    @property
    def hit_share(self) -> float:
        """Share of rows that were found; 0 if none was asked for."""
        asked = self.found + self.made + self.apart
        return self.found / asked if asked else 0.0


class SegmentCache:
    """Give one to `constrain`, or to several calls of it: what one learns serves the others.

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
        """What is known of a segment. To be added to by the methods below only."""
        known = self._known.get(key)
        if known is None:
            known = (read(key) if self.on_disk else None) or Known()
            self._known[key] = known
            self.counts.loaded += len(known.rows)
            self._grown(key, known.n_bytes)
        return known

    @locked
    def row(self, key: bytes, at: At) -> Row | None:
        """A row, counted."""
        row = self.of(key).rows.get(at)
        if row is not None:
            self.counts.found += 1
        return row

    @locked
    def count_apart(self) -> None:
        """A row was asked for that is in no segment."""
        self.counts.apart += 1

    @locked
    def add_row(self, key: bytes, at: At, row: Row) -> None:
        """Keep a row."""
        self.counts.made += 1
        known = self.of(key)
        known.rows[at] = row
        self._changed(key, known, row.free.nbytes + row.bound.nbytes)

    @locked
    def add_closure(self, key: bytes, at: At, common: bool, found: Closure) -> None:
        """Keep what `segments_nodes` made."""
        known = self.of(key)
        known.closures[at, common] = found
        self._changed(key, known, found.n_bytes)

    @locked
    def add_piece(self, key: bytes, at: At, found: Piece) -> None:
        """Keep what `segments_eager` made."""
        known = self.of(key)
        known.pieces[at] = found
        self._changed(key, known, found.n_bytes)

    @locked
    def save(self) -> int:
        """Write what the disk does not have; returns how many segments were written. What another
        process wrote of the same segment meanwhile is replaced. Where the cache cannot be written
        nothing is kept."""
        changed = {key: known for key, known in self._known.items() if known.changed}
        for key, known in changed.items():
            write(key, known)
            known.changed = False
        return len(changed)

    def _changed(self, key: bytes, known: Known, more: int) -> None:
        known.changed = True
        known.n_bytes += more + OVERHEAD
        self._grown(key, more + OVERHEAD)

    def _grown(self, key: bytes, more: int) -> None:
        self._n_bytes += more
        while self._n_bytes > self.max_bytes and len(self._known) > 1:
            oldest = next(k for k in self._known if k != key)
            known = self._known.pop(oldest)
            self._n_bytes -= known.n_bytes
            if self.on_disk and known.changed:
                write(oldest, known)
