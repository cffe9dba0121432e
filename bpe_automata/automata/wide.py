"""Regexes with many different characters, such as a choice between thousands of Chinese words.

    L(wide_dfa(r)) = { s.encode() : re.fullmatch(r, s) }

The table of an automaton over atoms has a column for each character that the regex tells apart,
hence size (states x characters), though each state of such a choice goes on with a few of them.
Here literal texts are put together as bytes, of which there are 256, and only what lies between
them goes by atoms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from bpe_automata.automata.assembly import Assembly
from bpe_automata.automata.classes import members
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.program import REPEATS, kept_flags
from bpe_automata.automata.syntax import Parsed
from bpe_automata.budget import Budget, check

_MANY = 64  # different literals; what has more is put together from its parts


def wide_dfa(parsed: Parsed, narrow: Callable[[Parsed], ByteDFA], budget: Budget) -> ByteDFA:
    """The minimal DFA, numbered as that of `narrow`, which makes one by way of atoms.

    Raises BudgetExceededError. `parsed` holds nothing that `Program` refuses.
    """
    parts = _Parts(parsed, narrow)
    start, end = parts.net.state(), parts.net.state()
    parts.sequence(parsed.tree, parsed.flags, start, end)
    parts.net.accept(end)
    return parts.net.dfa(start, budget)


class _Parts:
    """The parts of a regex, put between places of one assembly."""

    def __init__(self, parsed: Parsed, narrow: Callable[[Parsed], ByteDFA]) -> None:
        self.net = Assembly()
        self._parsed, self._narrow = parsed, narrow

    def sequence(self, items: Any, flags: int, one: int, other: int) -> None:
        """Whatever the items read leads from one place to the other."""
        for wide, run in _runs(list(items)):
            check()
            after = self.net.state()
            if (text := self._text(run, flags)) is not None:
                self.net.read(one, text, after)
            elif wide and run[0][0] is not _parser.LITERAL:
                self._item(run[0], flags, one, after)
            else:
                part = Parsed(self._parsed.source, run, flags)
                self.net.put(one, self._narrow(part), after)
            one = after
        self.net.skip(one, other)

    def _item(self, item: Any, flags: int, one: int, other: int) -> None:
        op, av = item
        if op is _parser.SUBPATTERN:
            self.sequence(av[3], kept_flags(av, flags), one, other)
        elif op is _parser.BRANCH:
            for body in av[1]:
                self.sequence(body, flags, one, other)
        else:
            self._repeat(av, flags, one, other)

    def _repeat(self, bounds: Any, flags: int, one: int, other: int) -> None:
        least, most, body = bounds
        for _ in range(least):
            after = self.net.state()
            self.sequence(body, flags, one, after)
            one = after
        if most == _parser.MAXREPEAT:
            loop = self.net.state()
            self.net.skip(one, loop)
            self.sequence(body, flags, loop, loop)
            self.net.skip(loop, other)
            return
        for _ in range(most - least):
            after = self.net.state()
            self.net.skip(one, other)
            self.sequence(body, flags, one, after)
            one = after
        self.net.skip(one, other)

    def _text(self, items: list[Any], flags: int) -> bytes | None:
        """The one text that the items read, None if they may read another."""
        text = []
        for op, av in items:
            if op is not _parser.LITERAL:
                return None
            found = members(op, av, flags, self._parsed.properties)
            if len(found) != 2 or found[1] - found[0] != 1:
                return None
            text.append(chr(found[0]))
        return "".join(text).encode()


def _runs(items: list[Any]) -> Iterator[tuple[bool, list[Any]]]:
    """The items in order, as long runs that are not wide, and what is: one item, or a text."""
    pieces: list[tuple[bool, list[Any]]] = []
    for literal, group in groupby(items, lambda item: item[0] is _parser.LITERAL):
        run = list(group)
        pieces += [(_is_wide(part), part) for part in ([run] if literal else [[i] for i in run])]
    for wide, parts in groupby(pieces, lambda piece: piece[0]):
        if wide:
            yield from parts
        else:
            yield False, [item for _, part in parts for item in part]


def _is_wide(items: list[Any]) -> bool:
    return len(set(_literals(items))) > _MANY


def _literals(items: Any) -> Iterator[int]:
    """The code points of all literals, at any depth."""
    for op, av in items:
        if op is _parser.LITERAL:
            yield av
        elif op is _parser.SUBPATTERN:
            yield from _literals(av[3])
        elif op is _parser.BRANCH:
            for body in av[1]:
                yield from _literals(body)
        elif op in REPEATS:
            yield from _literals(av[2])
