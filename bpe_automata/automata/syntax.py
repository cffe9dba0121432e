"""Text -> the tree of a regex, whose characters are sets of code points.

The standard library's parser reads the text. Its flags, classes and groups end here: the tree is a
tuple of nodes, one after the other, as defined below.

Under `fullmatch`, `^` and `\\A` are true before the first character, `$` and `\\Z` after the last
one. `parse` drops the anchors that come first or last, also in a group or an alternative that does,
and refuses all others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from bpe_automata._budget import check
from bpe_automata.automata.codepoints import Inversion, members
from bpe_automata.errors import RegexSyntaxError, UnsupportedRegexError


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set of code points."""

    members: Inversion


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of some trees, the first preferred."""

    options: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """A tree, from `least` to `most` times (None: without a bound)."""

    body: Tree
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    """The beginning of the text, or its end."""

    begins: bool


@dataclass(frozen=True, slots=True)
class Look:
    """Lookaround: a tree that must match, or if `denied` must not, after a position; if `behind`,
    before it."""

    body: Tree
    behind: bool
    denied: bool


Node = Chars | Alternation | Repetition | Anchor | Look
Tree = tuple[Node, ...]


def may_be_empty(tree: Tree) -> bool:
    """Does the tree match the empty text, assertions aside?"""
    return not any(
        isinstance(node, Chars)
        or (isinstance(node, Alternation) and not any(map(may_be_empty, node.options)))
        or (isinstance(node, Repetition) and node.least > 0 and not may_be_empty(node.body))
        for node in tree
    )


def parse(pattern: str) -> Tree:
    """The tree of a regex of Python's `re`, and of `\\p{...}`, without assertions.

    Raises RegexSyntaxError and UnsupportedRegexError, both with the position in `pattern`.
    """
    source = substitute(pattern)
    parsed = _without_outer_anchors(source)
    return _Reader(source, parsed.state.flags, assertions=False).tree(parsed)


def parse_assertions(source: Substituted) -> Tree:
    """The same of `source.text`, with all anchors and lookaround."""
    parsed = _parsed(source)
    return _Reader(source, parsed.state.flags, assertions=True).tree(parsed)


class _Timed(str):
    """Text that can only be read in time: the parser takes its characters one by one."""

    __slots__ = ()

    def __getitem__(self, at: Any) -> str:
        if at & 1023 == 0:
            check()
        return str.__getitem__(self, at)


def _parsed(source: Substituted) -> Any:
    """The standard library's tree of `source.text`. Raises RegexSyntaxError."""
    try:
        return _parser.parse(_Timed(source.text))
    except re.error as error:
        position = source.position(error.pos or 0)
        message = error.msg
        for sentinel, name in source.names.items():
            message = message.replace(chr(sentinel), name)
        raise RegexSyntaxError(source.pattern, position, message) from None
    except OverflowError as error:
        count = _HUGE_COUNT.search(source.text)
        position = source.position(count.start()) if count else 0
        raise RegexSyntaxError(source.pattern, position, str(error)) from None
    except ValueError as error:  # flags that contradict each other; they have no position
        raise RegexSyntaxError(source.pattern, 0, str(error)) from None


_HUGE_COUNT = re.compile(r"\{[0-9]*,?[0-9]{10,}|\{[0-9]{10,}")
_BEGIN = frozenset((_parser.AT_BEGINNING, _parser.AT_BEGINNING_STRING))
_END = frozenset((_parser.AT_END, _parser.AT_END_STRING))


def _without_outer_anchors(source: Substituted) -> Any:
    parsed = _parsed(source)
    _strip(parsed, _BEGIN, 0)
    _strip(parsed, _END, -1)
    return parsed


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
    elif op in _REPEATS and av[1] == 1:
        _strip(av[2], anchors, end)


_CLASSES = frozenset((_parser.LITERAL, _parser.NOT_LITERAL, _parser.ANY, _parser.IN))
_REPEATS = frozenset((_parser.MAX_REPEAT, _parser.MIN_REPEAT))
_LOOKS = frozenset((_parser.ASSERT, _parser.ASSERT_NOT))
_TYPE_FLAGS = re.ASCII | re.LOCALE | re.UNICODE


class _Reader:
    """Reads the standard library's tree. assertions: may there be anchors and lookaround?"""

    def __init__(self, source: Substituted, flags: int, assertions: bool) -> None:
        self._source, self._flags, self._assertions = source, flags, assertions
        self._literals: dict[tuple[int, int], Chars] = {}

    def tree(self, items: Any, flags: int | None = None) -> Tree:
        """The tree of some items. flags: those that hold there, by default the pattern's."""
        flags = self._flags if flags is None else flags
        found = list[Node]()
        for op, av in items:
            check()
            if op is _parser.SUBPATTERN:
                found += self.tree(av[3], _inside(av, flags))
            else:
                found.append(self._node(op, av, flags))
        return tuple(found)

    def _node(self, op: Any, av: Any, flags: int) -> Node:
        if op in _CLASSES:
            return self._chars(op, av, flags)
        if op is _parser.BRANCH:
            return Alternation(tuple(self.tree(option, flags) for option in av[1]))
        if op in _REPEATS:
            least, most, body = av
            bound = None if most == _parser.MAXREPEAT else most
            return Repetition(self.tree(body, flags), least, bound, op is _parser.MAX_REPEAT)
        if self._assertions and op is _parser.AT and av in _BEGIN | _END:
            return Anchor(av in _BEGIN)
        if self._assertions and op in _LOOKS:
            return Look(self.tree(av[1], flags), av[0] < 0, op is _parser.ASSERT_NOT)
        raise _unsupported(self._source, op, self._flags, self._assertions)

    def _chars(self, op: Any, av: Any, flags: int) -> Chars:
        if op is _parser.LITERAL and (made := self._literals.get((av, flags))):
            return made
        names = self._source.names
        if op is _parser.IN and names:
            _refuse_property_ranges(self._source, av)
        found = Chars(members(op, av, flags, names))
        if op is _parser.LITERAL:
            self._literals[av, flags] = found
        return found


def _inside(group: Any, flags: int) -> int:
    """The flags inside a group, such as `(?i:...)`, that stands where `flags` hold."""
    _, add, remove, _ = group
    kept = flags & ~_TYPE_FLAGS if add & _TYPE_FLAGS else flags
    inside: int = (kept | add) & ~remove
    return inside


def _refuse_property_ranges(source: Substituted, items: Any) -> None:
    """Raise RegexSyntaxError for a range with a property at an end, as in `[a-\\p{L}]`."""
    for op, av in items:
        if op is _parser.RANGE and (av[0] in source.names or av[1] in source.names):
            name = source.names.get(av[1]) or source.names[av[0]]
            position = source.pattern.find(f"-{name}") + 1 or source.pattern.find(f"{name}-")
            raise RegexSyntaxError(source.pattern, position, f"bad range with {name}")


# `\p{...}`, which the standard library's parser does not know. Each property is replaced by one
# surrogate code point, which no well-formed string holds, so that the parser sees a literal. A
# surrogate that the pattern itself spells, raw or in hexadecimal, is not used. Offsets in the
# shorter pattern are mapped back to the original one.

_ESCAPE = re.compile(r"\\(?:[pP]\{[^{}]*\}|.)", re.DOTALL)
_SENTINELS = range(0xDC00, 0xE000)


@dataclass(frozen=True)
class Substituted:
    """`text` is `pattern` with each property of `names` (by its sentinel) made one character."""

    pattern: str
    text: str
    names: dict[int, str] = field(default_factory=dict)
    shifts: tuple[tuple[int, int], ...] = ((0, 0),)  # offset in text past a sentinel, in pattern

    def position(self, offset: int) -> int:
        """The offset in `pattern` of an offset in `text`."""
        in_text, in_pattern = max(pair for pair in self.shifts if pair[0] <= offset)
        return offset - in_text + in_pattern


def substitute(pattern: str) -> Substituted:
    """Replace the properties of a pattern. Raises RegexSyntaxError for one that is unknown."""
    if "\\p{" not in pattern and "\\P{" not in pattern:
        return Substituted(pattern, pattern)
    lowered, names, shifts = pattern.lower(), dict[str, int](), [(0, 0)]
    free = [s for s in _SENTINELS if f"{s:x}" not in lowered and chr(s) not in pattern]

    def sentinel(match: re.Match[str]) -> str:
        name, (in_text, in_pattern) = match.group(), shifts[-1]
        if len(name) == 2:
            return name
        _check_property(pattern, match.start(), name)
        if name not in names:
            if not free:
                raise UnsupportedRegexError(pattern, match.start(), "too many properties")
            names[name] = free.pop()
        shifts.append((in_text + match.start() - in_pattern + 1, match.end()))
        return chr(names[name])

    text = _ESCAPE.sub(sentinel, pattern)
    return Substituted(pattern, text, {s: n for n, s in names.items()}, tuple(shifts))


def _check_property(pattern: str, position: int, name: str) -> None:
    import regex  # when a property asks for it: that takes a tenth of a second

    try:
        regex.compile(name)
    except regex.error as error:
        raise RegexSyntaxError(pattern, position, f"{name}: {error.msg}") from None


# Where in the pattern an unsupported construct stands. The standard library's tree has no
# positions, so the pattern is read once more, after it was refused.

_LINE_COMMENT = r"(?P<line> \#[^\n]* ) |"  # of a verbose pattern
_TOKEN = r"""
      (?P<comment> \(\?\#[^)]*\)? )
    | (?P<lookaround> \(\?<?[=!] )
    | (?P<conditional> \(\?\( )
    | (?P<atomic> \(\?> )
    | (?P<backreference> \(\?P=[^)]*\) | \\(?![0-3]?[0-7]{3}) [1-9][0-9]? )
    | (?P<boundary> \\[bB] )
    | (?P<anchor> \\[AZ] | \^ | \$ )
    | (?P<class> \[\^?\]?(?:[^\]\\]|\\.)*\] )
    | (?P<possessive> (?:[*+?]|\{[0-9]*,?[0-9]*\})\+ )
    | (?P<other> \\. | [*+?] | . )
    """
_REASONS = {
    "lookaround": "lookaround is not supported",
    "conditional": "a conditional group is not supported",
    "atomic": "an atomic group is not supported",
    "backreference": "a backreference is not regular",
    "boundary": "a word boundary is not supported",
    "possessive": "a possessive repeat is not supported",
    "anchor": "an anchor that is not at the start or end of the whole regex is not supported",
}
_ASSERTIONS = frozenset(("lookaround", "anchor"))


def _unsupported(
    source: Substituted, op: Any, flags: int, assertions: bool
) -> UnsupportedRegexError:
    """The error for a pattern whose tree holds the unsupported node `op`."""
    pattern = (_LINE_COMMENT if flags & re.VERBOSE else "") + _TOKEN
    tokens = list(re.finditer(pattern, source.text, re.VERBOSE | re.DOTALL))
    kinds = _REASONS.keys() - (_ASSERTIONS if assertions else ())
    for token in tokens:
        is_refused = token.lastgroup != "anchor" or _alone_is_refused(token, tokens)
        if token.lastgroup in kinds and is_refused:
            at = source.position(token.start())
            return UnsupportedRegexError(source.pattern, at, _REASONS[token.lastgroup])
    first = next((token.start() for token in tokens if token.lastgroup == "anchor"), 0)
    why = f"{str(op).lower()} is not supported"
    return UnsupportedRegexError(source.pattern, source.position(first), why)


def _alone_is_refused(anchor: re.Match[str], tokens: list[re.Match[str]]) -> bool:
    """Whether an anchor is still in the tree when all the others are replaced by `(?:)`."""
    others = {one.start() for one in tokens if one.lastgroup == "anchor"} - {anchor.start()}
    text = "".join("(?:)" if one.start() in others else one[0] for one in tokens)
    tree = repr(_without_outer_anchors(Substituted(text, text)))
    return "(AT, AT_BEGINNING" in tree or "(AT, AT_END" in tree
