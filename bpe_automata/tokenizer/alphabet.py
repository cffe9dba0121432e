"""Sets of characters, and the alphabet of a tokenizer: the coarsest partition that respects them.

    atom(c) = atom(d)  iff  c and d are in the same classes, and neither is a marked character

Bytes are read into atoms by the UTF-8 automaton `utf8`: row u is a partly read character (row 0:
none), and an entry is the next row, or `-2 - atom` where the byte completes a character, or -1
where no readable character continues so. With byte fallback a second copy, from row `fallback_root`
on, reads only the characters that are spelled by byte tokens.

A character class is { c : the engine's one-character pattern matches c }. The engine itself matches
every code point but the surrogates (which are not text) once, so `\\s`, `\\p{L}`, the Unicode
version and case folding agree with `encode` by construction. The result is stored on disk under the
engine's version, because it takes 0.03 to 0.1 s a class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from bpe_automata._budget import check, check_bytes
from bpe_automata._storage import checked_load, store_arrays
from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.source import CharacterEngine

LAST_CODE_POINT = 0x10FFFF
DEAD = -1

Ranges = np.ndarray
"""int32 [n, 2]: half-open ranges of code points, sorted, disjoint, not touching."""


def from_pairs(pairs: list[tuple[int, int]]) -> Ranges:
    """Ranges from half-open pairs that may overlap or touch."""
    merged: list[list[int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return np.array(merged, dtype=np.int32).reshape(-1, 2)


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


def build_alphabet(
    classes: list[Ranges],
    marked: Iterable[str],
    readable: Ranges | None = None,
    symbols: Ranges | None = None,
    unreadable: Iterable[str] = (),
    missing_bytes: Iterable[int] = (),
) -> Alphabet:
    """The coarsest alphabet for these classes.

    `marked`: characters that get an atom of their own. `readable`: if given, all other characters
    are dead; `unreadable` ones always are. `symbols`: if given, all other characters are spelled by
    byte tokens. `missing_bytes`: byte values that no token spells.
    """
    sets = [*classes, *(s for s in (readable, symbols) if s is not None)]
    singles = np.array(sorted({ord(c) for c in marked}), dtype=np.int64)
    never = np.array(sorted({ord(c) for c in unreadable}), dtype=np.int64)
    cuts = [singles, singles + 1, never, never + 1, *(s.ravel() for s in sets)]
    starts = np.unique(np.concatenate([[0, 0xD800, 0xE000], *cuts]))
    starts = starts[starts <= LAST_CODE_POINT]
    check_bytes(2 * len(sets) * len(starts), "the table of character classes")
    member = np.stack([inside(ranges, starts) for ranges in sets] or [np.zeros(len(starts), bool)])
    alive = (starts < 0xD800) | (starts >= 0xE000)
    if readable is not None:
        alive &= inside(readable, starts)
    alive &= ~np.isin(starts, never)
    atoms = _numbered(member, starts, singles, alive)
    n_atoms = int(atoms.max()) + 1
    in_class = np.zeros((len(classes), n_atoms), dtype=bool)
    in_class[:, atoms[alive]] = member[: len(classes), alive]
    utf8, root = _utf8_rows(starts, atoms), 0
    if symbols is not None:
        root = len(utf8)
        fallback = _utf8_rows(starts, np.where(inside(symbols, starts), DEAD, atoms))
        utf8 = np.concatenate([utf8, np.where(fallback > 0, fallback + root, fallback)])
    utf8[:, sorted(missing_bytes)] = DEAD
    return Alphabet(starts.astype(np.int32), atoms, n_atoms, in_class, utf8, root)


def _numbered(
    member: np.ndarray, starts: np.ndarray, singles: np.ndarray, alive: np.ndarray
) -> np.ndarray:
    """int32: the atom of each interval, by the classes that it is in; -1 where it is not alive."""
    signature = np.packbits(member, axis=0).astype(np.int64)
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
    three = last.reshape(-1, 64)  # row i: code points 4,096 i to 4,096 i + 4,095
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
        self._numbers: dict[bytes, int] = {}

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
        if key not in self._numbers:
            if (block == DEAD).all():
                self._numbers[key] = DEAD
            else:
                self._numbers[key] = len(self.table)
                row = np.full(256, DEAD, dtype=np.int32)
                row[0x80:0xC0] = block
                self.table.append(row)
        return self._numbers[key]


def is_utf8(data: bytes) -> bool:
    """Are the bytes whole characters? Pretokens are; a token may be a part of a character."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


# ---------------------------------------------------------------- case folding


@cache
def multi_character_foldings() -> frozenset[str]:
    """The texts of several characters that one character folds to: `ß` folds to `ss`, so in
    Oniguruma `(?i:ß)` matches `ss` and `(?i:ss)` matches `ß`."""
    foldings = (chr(c).casefold() for c in range(0x80, 0x20000))
    return frozenset(folded for folded in foldings if len(folded) > 1)


def multi_character_folding(letters: list[str | None]) -> str | None:
    """A run of `letters` that a case-insensitive engine does not match letter by letter, None if
    there is none. A None among the letters separates letters that cannot be neighbours."""
    for index, letter in enumerate(letters):
        check()
        if letter and len(letter.casefold()) > 1:
            return letter
        for size in (2, 3):
            run = [c for c in letters[index : index + size] if c]
            if len(run) == size and "".join(run).casefold() in multi_character_foldings():
                return "".join(run)
    return None


# ---------------------------------------------------------------- character classes

_LITERAL = re.compile(r"\\x\{([0-9A-F]+)\}")
_SURROGATES = (0xD800, 0xE000)
_FORM = "ranges"  # of the stored arrays
_BLOCK = 1 << 14  # both engines are slower on a few long texts than on many short ones

class_cache: dict[tuple[str, str, str], Ranges] = {}
"""(name of the engine, kind, pattern) -> its characters, for the classes used so far."""


def engine_class(engine: CharacterEngine, kind: str, pattern: str) -> Ranges:
    """{ c : c is in the class `kind`, `pattern` of `engine` }; see `CharacterEngine.members`.

    Raises BrokenTokenizerError for a pattern that the engine rejects, UnsupportedTokenizerError
    for a class that also matches two characters (by case folding, as `(?i:ß)` matches `ss`).
    """
    if kind == "regex" and (literal := _LITERAL.fullmatch(pattern)):
        code_point = int(literal[1], 16)
        return from_pairs([(code_point, code_point + 1)])
    key = (engine.name, kind, pattern)
    if key not in class_cache:
        class_cache[key] = _stored(engine, kind, pattern)
    return class_cache[key]


def _stored(engine: CharacterEngine, kind: str, pattern: str) -> Ranges:
    if kind == "regex" and pattern.startswith("(?i"):
        _refuse_joined(engine, pattern)
    key = f"{engine.name} {kind} {pattern}"
    loaded = checked_load("charclass", key, _FORM, lambda arrays: arrays["ranges"].copy())
    if loaded is not None:
        return loaded
    ranges = _matched(engine, kind, pattern)
    store_arrays("charclass", key, _FORM, {"ranges": ranges})
    return ranges


def _refuse_joined(engine: CharacterEngine, pattern: str) -> None:
    """Refuse a class that matches two characters. Only Oniguruma folds several characters to one;
    the `regex` crate under fancy-regex folds one character to one."""
    if engine.dialect != "oniguruma":
        return
    for folded in sorted(multi_character_foldings()):
        if any(engine.members("regex", rf"\A{pattern}\z", folded)):
            raise UnsupportedTokenizerError(
                "split pattern", pattern, f"by case folding this class also matches {folded!r}"
            )


def _matched(engine: CharacterEngine, kind: str, pattern: str) -> Ranges:
    """The characters that the engine matches, a block of code points at a time."""
    pairs: list[tuple[int, int]] = []
    for low, high in ((0, _SURROGATES[0]), (_SURROGATES[1], LAST_CODE_POINT + 1)):
        for first in range(low, high, _BLOCK):
            points = np.arange(first, min(first + _BLOCK, high), dtype="<u4")
            text = points.tobytes().decode("utf-32-le")
            spans = engine.members(kind, pattern, text)
            pairs.extend((first + start, first + end) for start, end in spans)
    return from_pairs(pairs)
