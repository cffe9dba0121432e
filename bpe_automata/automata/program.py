"""Thompson's construction: a parsed regex as a program of characters, splits and jumps.

    L(program) = { w : some path from instruction 0 to MATCH reads w }

All jumps are relative, so that a repeated body is copied as a block. Copies of the body of a
bounded repeat know how far they are from the first one (rows `near` and `far`), by which
`_kernels.determinize` drops the copies that add nothing.

A program is four parallel arrays `code, arg, near, far`: instruction i reads a character of class
code[i] >= 0 and goes to i + 1; SPLIT goes to i + 1 and i + arg[i]; JUMP to i + arg[i]; MATCH ends.
near[i] is the distance back to the same instruction in the first copy of the innermost bounded
repeat, far[i] the same for the next repeat around it, -1 where there is none.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any

import numpy as np

from bpe_automata._budget import Budget, check, out_of_instructions
from bpe_automata.automata.codepoints import (
    EVERYTHING,
    N_CODE_POINTS,
    Inversion,
    all_code_points,
    complement,
    property_members,
    runs,
    union,
    without,
)
from bpe_automata.automata.syntax import Parsed, Unsupported

SPLIT, JUMP, MATCH = -1, -2, -3
_TYPE_FLAGS = re.ASCII | re.LOCALE | re.UNICODE
CHARACTERS = frozenset((_parser.LITERAL, _parser.NOT_LITERAL, _parser.ANY, _parser.IN))
REPEATS = frozenset((_parser.MAX_REPEAT, _parser.MIN_REPEAT))


def kept_flags(group: Any, flags: int) -> int:
    """The flags inside a group, such as `(?i:...)`, that stands where `flags` hold."""
    _, add, remove, _ = group
    kept = flags & ~_TYPE_FLAGS if add & _TYPE_FLAGS else flags
    inside: int = (kept | add) & ~remove
    return inside


class Program:
    """A program under construction, and the classes that it reads."""

    def __init__(self, parsed: Parsed, budget: Budget) -> None:
        self.classes: list[Inversion] = []
        self._parsed, self._budget = parsed, budget
        self._rows = array("i")  # four numbers for each instruction
        self._literal: dict[tuple[int, int], int] = {}
        self._class: dict[Inversion, int] = {}
        self._sequence(parsed.tree, parsed.flags)
        self._add(MATCH, 0)

    @property
    def n_instructions(self) -> int:
        return len(self._rows) // 4

    def rows(self) -> np.ndarray:
        """int32 [4, n], as the module says."""
        return np.ascontiguousarray(self._from(0).T)

    def _from(self, first: int) -> np.ndarray:
        """int32 [n, 4]: the instructions from one on."""
        return np.array(self._rows[4 * first :], np.int32).reshape(-1, 4)

    def _add(self, code: int, arg: int) -> None:
        self._rows.extend((code, arg, -1, -1))

    def _lead(self, at: int) -> None:
        """Let a jump or a split lead to the next instruction that is added."""
        self._rows[4 * at + 1] = self.n_instructions - at

    def _sequence(self, items: Any, flags: int) -> None:
        for op, av in items:
            check()
            if op in CHARACTERS:
                self._add(self._class_of(op, av, flags), 0)
            elif op is _parser.SUBPATTERN:
                self._sequence(av[3], kept_flags(av, flags))
            elif op is _parser.BRANCH:
                self._branch(av[1], flags)
            elif op in REPEATS:
                self._repeat(av, flags)
            else:
                raise Unsupported(op)

    def _class_of(self, op: Any, av: Any, flags: int) -> int:
        """The number of a class; equal sets of code points get equal numbers."""
        plain = op is _parser.LITERAL
        if plain and (number := self._literal.get((av, flags))) is not None:
            return number
        if op is _parser.IN and self._parsed.properties:
            self._parsed.refuse_property_ranges(av)
        found = members(op, av, flags, self._parsed.properties)
        number = self._class.setdefault(found, len(self.classes))
        if number == len(self.classes):
            self.classes.append(found)
        if plain:
            self._literal[av, flags] = number
        return number

    def _branch(self, alternatives: list[Any], flags: int) -> None:
        jumps = []
        for body in alternatives[:-1]:
            split = self.n_instructions
            self._add(SPLIT, 0)
            self._sequence(body, flags)
            jumps.append(self.n_instructions)
            self._add(JUMP, 0)
            self._lead(split)
        self._sequence(alternatives[-1], flags)
        for jump in jumps:
            self._lead(jump)

    def _repeat(self, bounds: Any, flags: int) -> None:
        least, most, body = bounds
        if body.getwidth()[0] == 0:
            least = 0  # what can be empty can be there as often as one likes
        start = self.n_instructions
        if least == 0:
            self._add(SPLIT, 0)
        first = self.n_instructions
        self._sequence(body, flags)
        length = self.n_instructions - first
        copies = max(least, 1) if most == _parser.MAXREPEAT else most
        if start + copies * (length + 1) > self._budget.max_instructions:
            raise out_of_instructions(self._budget)
        self._rows.extend(self._rows[4 * first :] * (max(least, 1) - 1))
        if most == _parser.MAXREPEAT:
            self._add(SPLIT, -length)
        elif most > max(least, 1):
            self._optional_copies(length, most - max(least, 1))
        if least == 0:
            self._lead(start)
        if most == 0:
            del self._rows[4 * start :]

    def _optional_copies(self, length: int, times: int) -> None:
        """Append (SPLIT past all, body) `times` times, and tie the copies to the last body."""
        first, stride = self.n_instructions - length, length + 1
        body, distance = self._from(first), np.arange(times + 1)[:, None] * stride
        copies = np.full((times + 1, stride, 4), -1, np.int32)
        copies[:, 0, 0], copies[:, :1, 1] = SPLIT, (times + 1) * stride - distance
        copies[:, 1:] = body
        near, far = body[:, 2], body[:, 3]
        copies[:, 1:, 2] = np.where(near < 0, distance, near)
        copies[:, 1:, 3] = np.where((near >= 0) & (far < 0), distance, far)
        del self._rows[4 * first :]
        self._rows.frombytes(copies.ravel()[4:].tobytes())  # no split before the first


# Classes of the parsed tree -> sets of code points, as `re` itself reads them.
#
#     members(item, flags) == { c : re.fullmatch(item, c, flags) }
#
# Literals, ranges and `.` are read off the tree. Categories such as `\w` are answered by `re` once
# per process, over all code points. Ignoring case matters only for code points that have case, so
# there `re` is asked about those few thousand, and the rest is read off the tree.

Item = tuple[Any, Any]
_MEANING = re.IGNORECASE | re.ASCII | re.DOTALL  # the flags that change what a class holds
_NOT_NEWLINE: Inversion = (0, 10, 11, N_CODE_POINTS)


def members(op: Any, av: Any, flags: int, properties: Mapping[int, str]) -> Inversion:
    """The code points of a LITERAL, NOT_LITERAL, ANY or IN node.

    `properties` maps the code points that stand for `\\p{...}` to its text.
    """
    if op is _parser.ANY:
        return EVERYTHING if flags & re.DOTALL else _NOT_NEWLINE
    items = av if op is _parser.IN else [(_parser.LITERAL, av)]
    negated = op is _parser.NOT_LITERAL or items[0][0] is _parser.NEGATE
    items = tuple(item for item in items if item[0] is not _parser.NEGATE)
    names = tuple(properties[x] for o, x in items if o is _parser.LITERAL and x in properties)
    if names:
        items = tuple(i for i in items if i[0] is not _parser.LITERAL or i[1] not in properties)
    return _members(items, names, negated, flags & _MEANING)


@lru_cache(maxsize=4096)
def _members(
    items: tuple[Item, ...], names: tuple[str, ...], negated: bool, flags: int
) -> Inversion:
    sets = [property_members(name, bool(flags & re.IGNORECASE)) for name in names]
    plain = union(_item_members(item, flags) for item in items)
    if flags & re.IGNORECASE and items:
        plain = union((without(plain, _cased_set()), _ask_cased(items, flags)))
    found = union((plain, *sets)) if sets else plain
    return complement(found) if negated else found


def _item_members(item: Item, flags: int) -> Inversion:
    """One part of a class, case respected."""
    op, av = item
    if op is _parser.LITERAL:
        return (av, av + 1)
    if op is _parser.RANGE:
        return (av[0], av[1] + 1)
    return _category(item, flags & re.ASCII)


@lru_cache(maxsize=32)
def _category(item: Item, flags: int) -> Inversion:
    """The members of `\\w` and the like."""
    return runs(_compiled((item,), flags))


def _compiled(items: tuple[Item, ...], flags: int) -> re.Pattern[str]:
    """`[items]+`, as `re` has it."""
    state = _parser.State()
    state.flags = flags if flags & re.ASCII else flags | re.UNICODE
    body = _parser.SubPattern(state, [(_parser.IN, list(items))])
    repeat = (_parser.MAX_REPEAT, (1, _parser.MAXREPEAT, body))
    found: re.Pattern[str] = _compiler.compile(_parser.SubPattern(state, [repeat]), state.flags)
    return found


def _ask_cased(items: tuple[Item, ...], flags: int) -> Inversion:
    """The code points with case that `re` matches."""
    found = "".join(_compiled(items, flags).findall(cased_code_points()))
    return union((ord(c), ord(c) + 1) for c in found)


@lru_cache(maxsize=1)
def _cased_set() -> Inversion:
    return union((ord(c), ord(c) + 1) for c in cased_code_points())


@lru_cache(maxsize=1)
def cased_code_points() -> str:
    """All code points that some case mapping changes, or makes."""
    text, found = all_code_points(), set[str]()
    blocks = (text[start : start + 512] for start in range(0, N_CODE_POINTS, 512))
    for c in chain.from_iterable(b for b in blocks if b != b.lower() or b != b.upper()):
        changed = {c, *c.lower(), *c.upper(), *c.title()}
        if len(changed) > 1:
            found |= changed
    return "".join(sorted(found))
