"""The alphabet of a tokenizer's pipeline: code points that it cannot tell apart are one atom.

    atom(c) = atom(d)  iff  c and d are in the same classes, and neither is a marked character

Bytes are read into atoms by the UTF-8 automaton `utf8`: row u is a partly read character (row 0:
none), and an entry is the next row, or `-2 - atom` where the byte completes a character, or -1
where no readable character goes on so. With byte fallback a second copy, from row `fallback_root`
on, reads only the characters that are spelled by byte tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bpe_automata.sharing import cached
from bpe_automata.tokenizer.ranges import LAST_CODE_POINT, Ranges

DEAD = -1
_LONGEST = 4  # bytes of a character


@dataclass(frozen=True)
class Alphabet:
    """starts: int32 [n], ascending, starts[0] = 0; atoms: int32 [n], the atom of each interval
    (-1: unreadable); n_atoms; inside: bool [n_classes, n_atoms], which atoms are in each class;
    utf8: int32 [rows, 256]; fallback_root: a row, 0 without byte fallback."""

    starts: np.ndarray
    atoms: np.ndarray
    n_atoms: int
    inside: np.ndarray
    utf8: np.ndarray
    fallback_root: int

    def atom(self, character: str) -> int:
        """The atom of one character, -1 if no token sequence can spell it."""
        row = 0
        for byte in character.encode("utf-8", "surrogatepass"):
            entry = int(self.utf8[row, byte])
            if entry < 0:
                return -2 - entry if entry < -1 else DEAD
            row = entry
        return DEAD

    def first_bytes(self, atoms: np.ndarray) -> np.ndarray:
        """bool [256]: the bytes that begin characters of some atoms (bool [n_atoms])."""
        (rows, held), (above, below) = self._edges
        found = np.zeros(len(self.utf8), dtype=bool)
        found[rows[atoms[held]]] = True
        for _ in range(_LONGEST - 1):
            found[above[found[below]]] = True
        first = self.utf8[0]
        leads = found[np.maximum(first, 0)] & (first >= 0)
        return np.where(first < -1, atoms[-2 - np.minimum(first, -2)], leads)

    @cached
    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Each int64 [2, n]: rows, and the atoms that end there; rows, and the rows below them."""
        most = max(self.n_atoms, len(self.utf8))
        pairs = np.arange(len(self.utf8))[:, None] * most + np.where(
            self.utf8 < 0, -2 - self.utf8, self.utf8
        )
        ends, goes_on = np.unique(pairs[self.utf8 < -1]), np.unique(pairs[self.utf8 >= 0])
        return np.stack(np.divmod(ends, most)), np.stack(np.divmod(goes_on, most))


def build(
    classes: list[Ranges],
    marked: Iterable[str],
    readable: Ranges | None = None,
    symbols: Ranges | None = None,
    unreadable: Iterable[str] = (),
    missing_bytes: Iterable[int] = (),
) -> Alphabet:
    """The coarsest alphabet for these classes.

    `marked`: characters that get an atom of their own. `readable`: if given, all other characters
    are dead, as are `unreadable` ones. `symbols`: if given, all other characters are spelled by
    byte tokens. `missing_bytes`: byte values that no token spells.
    """
    sets = [*classes, *(s for s in (readable, symbols) if s is not None)]
    singles = np.array(sorted({ord(c) for c in marked}), dtype=np.int64)
    never = np.array(sorted({ord(c) for c in unreadable}), dtype=np.int64)
    cuts = [singles, singles + 1, never, never + 1, *(s.ravel() for s in sets)]
    starts = np.unique(np.concatenate([[0, 0xD800, 0xE000], *cuts]))
    starts = starts[starts <= LAST_CODE_POINT]
    held = np.stack([inside(ranges, starts) for ranges in sets] or [np.zeros(len(starts), bool)])
    alive = (starts < 0xD800) | (starts >= 0xE000)
    if readable is not None:
        alive &= inside(readable, starts)
    alive &= ~np.isin(starts, never)
    atoms = _numbered(held, starts, singles, alive)
    n_atoms = int(atoms.max()) + 1
    members = np.zeros((len(classes), n_atoms), dtype=bool)
    members[:, atoms[alive]] = held[: len(classes), alive]
    utf8, root = _utf8_rows(starts, atoms), 0
    if symbols is not None:
        root = len(utf8)
        fallback = _utf8_rows(starts, np.where(inside(symbols, starts), DEAD, atoms))
        utf8 = np.concatenate([utf8, np.where(fallback > 0, fallback + root, fallback)])
    utf8[:, sorted(missing_bytes)] = DEAD
    return Alphabet(starts.astype(np.int32), atoms, n_atoms, members, utf8, root)


def _numbered(
    held: np.ndarray, starts: np.ndarray, singles: np.ndarray, alive: np.ndarray
) -> np.ndarray:
    """int32: the atom of each interval, by the classes that it is in; -1 where it is not alive."""
    signature = np.packbits(held, axis=0).astype(np.int64)
    code = np.zeros(len(starts), dtype=np.int64)
    for row in signature:
        code = code * 256 + row
        code = np.unique(code, return_inverse=True)[1]
    code[np.searchsorted(starts, singles)] = len(starts) + np.arange(len(singles))
    code[~alive] = -1
    names, numbers = np.unique(code, return_inverse=True)
    return np.asarray(numbers.astype(np.int32) - int(names[0] == -1))


def inside(ranges: Ranges, points: np.ndarray) -> np.ndarray:
    """bool: which of the code points are in the ranges."""
    if not len(ranges):
        return np.zeros(len(points), dtype=bool)
    index = np.searchsorted(ranges[:, 0], points, side="right") - 1
    return (index >= 0) & (points < ranges[index, 1])


def _utf8_rows(starts: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """The UTF-8 automaton; equal continuations share a row."""
    lengths = np.diff(np.append(starts, LAST_CODE_POINT + 1))
    entries = np.repeat(np.where(atoms < 0, DEAD, -2 - atoms).astype(np.int32), lengths)
    rows = _Rows()
    last = rows.blocks(entries.reshape(-1, 64))  # row of each block of 64 code points
    three = last.reshape(-1, 64)  # by the first twelve bits... of 4,096 code points each
    root = rows.table[0]
    root[:0x80] = entries[:0x80]
    root[0xC2:0xE0] = last[2:32]
    overlong = three[0].copy()
    overlong[:32] = DEAD
    for lead in range(16):
        root[0xE0 + lead] = rows.blocks((overlong if lead == 0 else three[lead])[None])[0]
    planes = rows.blocks(three[16:])  # 16 rows a lead byte of four-byte characters
    for lead in range(5):
        block = np.full(64, DEAD, dtype=np.int32)
        low, high = max(lead * 64, 16), min(lead * 64 + 64, 272)
        block[low - lead * 64 : high - lead * 64] = planes[low - 16 : high - 16]
        root[0xF0 + lead] = rows.blocks(block[None])[0]
    return np.array(rows.table, dtype=np.int32)


class _Rows:
    """Hash-consed rows of 64 entries for the continuation bytes 80 to BF; row 0 is the root."""

    def __init__(self) -> None:
        self.table = [np.full(256, DEAD, dtype=np.int32)]
        self._known: dict[bytes, int] = {}

    def blocks(self, blocks: np.ndarray) -> np.ndarray:
        """The row number of each block, -1 for a block that is dead throughout."""
        low, high = blocks.min(axis=1), blocks.max(axis=1)
        numbers = np.empty(len(blocks), dtype=np.int32)
        uniform = low == high
        for value in np.unique(low[uniform]).tolist():
            numbers[uniform & (low == value)] = self._row(np.full(64, value, dtype=np.int32))
        for index in np.flatnonzero(~uniform):
            numbers[index] = self._row(blocks[index])
        return numbers

    def _row(self, block: np.ndarray) -> int:
        key = block.tobytes()
        if key not in self._known:
            if (block == DEAD).all():
                self._known[key] = DEAD
            else:
                self._known[key] = len(self.table)
                row = np.full(256, DEAD, dtype=np.int32)
                row[0x80:0xC0] = block
                self.table.append(row)
        return self._known[key]
