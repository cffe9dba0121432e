"""Text -> the tree of the standard library's own parser, cleared of redundant anchors.

Under `fullmatch`, `^` and `\\A` are true where nothing was read yet, `$` and `\\Z` where nothing
is left to read. Those are dropped; in any other place an anchor is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from bpe_automata._budget import check
from bpe_automata.automata.codepoints import Substituted, substitute
from bpe_automata.errors import RegexSyntaxError

_BEGIN = frozenset((_parser.AT_BEGINNING, _parser.AT_BEGINNING_STRING))
_END = frozenset((_parser.AT_END, _parser.AT_END_STRING))
_HUGE_COUNT = re.compile(r"\{[0-9]*,?[0-9]{10,}|\{[0-9]{10,}")


class Unsupported(Exception):  # noqa: N818 - a signal inside this package, never seen by callers
    """The tree holds a node that is not modelled. `op` is the parser's name for it."""

    def __init__(self, op: Any) -> None:
        self.op = op
        super().__init__(op)


@dataclass(frozen=True)
class Parsed:
    """A tree of `re._parser`, its flags, and the `\\p{...}` that code points in it stand for."""

    source: Substituted
    tree: Any
    flags: int

    @property
    def properties(self) -> dict[int, str]:
        """Sentinel code point -> property, as the pattern spells it."""
        return self.source.names

    def refuse_property_ranges(self, items: Any) -> None:
        """Raise RegexSyntaxError for a range that ends in a property, as in `[a-\\p{L}]`."""
        for op, av in items:
            if op is _parser.RANGE and av[1] in self.properties:
                name = self.properties[av[1]]
                position = self.source.pattern.find(f"-{name}") + 1
                raise RegexSyntaxError(self.source.pattern, position, f"bad range up to {name}")


class _Timed(str):
    """Text that can only be read in time: the parser takes its characters one by one."""

    __slots__ = ()

    def __getitem__(self, at: Any) -> str:
        if at & 1023 == 0:
            check()
        return str.__getitem__(self, at)


def parse(pattern: str) -> Parsed:
    """Parse a regex. Raises RegexSyntaxError with the position in `pattern`."""
    source = substitute(pattern)
    tree = parse_text(source)
    return Parsed(source, tree, tree.state.flags)


def parse_text(source: Substituted) -> Any:
    """The tree of `source.text`, without redundant anchors."""
    tree = parse_all(source)
    _strip(tree, _BEGIN, 0)
    _strip(tree, _END, -1)
    return tree


def parse_all(source: Substituted) -> Any:
    """The tree of `source.text`, with all of its anchors. Raises RegexSyntaxError."""
    try:
        return _parser.parse(_Timed(source.text))
    except re.error as error:
        position = source.position(error.pos or 0)
        raise RegexSyntaxError(source.pattern, position, error.msg) from None
    except OverflowError as error:
        count = _HUGE_COUNT.search(source.text)
        position = source.position(count.start()) if count else 0
        raise RegexSyntaxError(source.pattern, position, str(error)) from None
    except ValueError as error:  # flags that contradict each other; they have no place
        raise RegexSyntaxError(source.pattern, 0, str(error)) from None


def _strip(sequence: Any, anchors: frozenset[Any], end: int) -> None:
    """Drop anchors at one end (0 or -1) of a sequence, and of the groups that stand there."""
    data = sequence.data
    while data and data[end][0] is _parser.AT and data[end][1] in anchors:
        del data[end]
    if not data:
        return
    op, av = data[end]
    if op is _parser.SUBPATTERN:
        _strip(av[-1], anchors, end)
    elif op is _parser.BRANCH:
        for alternative in av[1]:
            _strip(alternative, anchors, end)
    elif op in (_parser.MAX_REPEAT, _parser.MIN_REPEAT) and av[1] == 1:
        _strip(av[2], anchors, end)
