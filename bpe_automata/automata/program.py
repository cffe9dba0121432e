"""Thompson's construction: a parsed regex as a program of characters, splits and jumps.

    L(program) = { w : some path from place 0 to MATCH reads w }

All jumps are relative, so that a repeated body is copied as a block. Copies of the body of a
bounded repeat know how far they are from the first one (rows `near` and `far`), by which
`kernels.determinize` drops the copies that add nothing.
"""

from __future__ import annotations

import re
from array import array
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import numpy as np

from bpe_automata.automata.classes import members
from bpe_automata.automata.codepoints import Inversion
from bpe_automata.automata.syntax import Parsed, Unsupported
from bpe_automata.budget import Budget, check, out_of_places
from bpe_automata.kernels.determinize import JUMP, MATCH, SPLIT

_TYPE_FLAGS = re.ASCII | re.LOCALE | re.UNICODE
_CHARACTERS = frozenset((_parser.LITERAL, _parser.NOT_LITERAL, _parser.ANY, _parser.IN))
REPEATS = frozenset((_parser.MAX_REPEAT, _parser.MIN_REPEAT))


def kept_flags(group: Any, flags: int) -> int:
    """The flags inside a group, such as `(?i:...)`, that stands where `flags` hold."""
    _, add, remove, _ = group
    kept = flags & ~_TYPE_FLAGS if add & _TYPE_FLAGS else flags
    inside: int = (kept | add) & ~remove
    return inside


class Program:
    """A program under construction: rows `code, arg, near, far`, and the classes it reads."""

    def __init__(self, parsed: Parsed, budget: Budget) -> None:
        self.classes: list[Inversion] = []
        self._parsed, self._budget = parsed, budget
        self._code, self._arg = array("i"), array("i")
        self._near, self._far = array("i"), array("i")
        self._literal: dict[tuple[int, int], int] = {}
        self._class: dict[Inversion, int] = {}
        self._sequence(parsed.tree, parsed.flags)
        self._add(MATCH, 0)

    @property
    def n_places(self) -> int:
        return len(self._code)

    def rows(self) -> np.ndarray:
        """int32 [4, n], as `kernels.determinize` takes it."""
        rows = np.empty((4, len(self._code)), np.int32)
        rows[0], rows[1], rows[2], rows[3] = self._code, self._arg, self._near, self._far
        return rows

    def _add(self, code: int, arg: int) -> None:
        self._code.append(code)
        self._arg.append(arg)
        self._near.append(-1)
        self._far.append(-1)

    def _sequence(self, items: Any, flags: int) -> None:
        for op, av in items:
            check()
            if op in _CHARACTERS:
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
            split = len(self._code)
            self._add(SPLIT, 0)
            self._sequence(body, flags)
            jumps.append(len(self._code))
            self._add(JUMP, 0)
            self._arg[split] = len(self._code) - split
        self._sequence(alternatives[-1], flags)
        for jump in jumps:
            self._arg[jump] = len(self._code) - jump

    def _repeat(self, bounds: Any, flags: int) -> None:
        least, most, body = bounds
        if body.getwidth()[0] == 0:
            least = 0  # what can be empty can be there as often as one likes
        start = len(self._code)
        if least == 0:
            self._add(SPLIT, 0)
        first = len(self._code)
        self._sequence(body, flags)
        length = len(self._code) - first
        copies = max(least, 1) if most == _parser.MAXREPEAT else most
        if start + copies * (length + 1) > self._budget.max_places:
            raise out_of_places(self._budget)
        self._copy(first, length, max(least, 1) - 1)
        if most == _parser.MAXREPEAT:
            self._add(SPLIT, -length)
        elif most > max(least, 1):
            self._optional_copies(length, most - max(least, 1))
        if least == 0:
            self._arg[start] = len(self._code) - start
        if most == 0:
            self._truncate(start)

    def _truncate(self, start: int) -> None:
        for row in (self._code, self._arg, self._near, self._far):
            del row[start:]

    def _copy(self, first: int, length: int, times: int) -> None:
        """Append `times` copies of the body at `first`."""
        for row in (self._code, self._arg, self._near, self._far):
            row.extend(row[first : first + length] * times)

    def _optional_copies(self, length: int, times: int) -> None:
        """Append (SPLIT past all, body) `times` times, and tie the copies to the last body."""
        first = len(self._code) - length
        stride = length + 1
        near, far = (np.array(row[first:], np.int32) for row in (self._near, self._far))
        inner, outer = near < 0, (near >= 0) & (far < 0)
        body_code, body_arg = self._code[first:], self._arg[first:]
        self._code.extend((array("i", [SPLIT]) + body_code) * times)
        self._arg.extend((array("i", [0]) + body_arg) * times)
        self._arg[first + length :: stride] = array("i", range(times * stride, 0, -stride))
        for row, values, mine in ((self._near, near, inner), (self._far, far, outer)):
            block = np.full((times + 1, stride), -1, np.int32)
            block[:, 1:] = values
            distance = np.arange(times + 1, dtype=np.int32)[:, None] * stride
            block[:, 1:] = np.where(mine, distance, block[:, 1:])
            del row[first:]
            row.frombytes(block.ravel()[1:].tobytes())
