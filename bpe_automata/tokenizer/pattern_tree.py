"""The syntax tree of a split pattern, and what follows from it for the matches: their characters,
the neighbours among their case-insensitive letters, bounds on their weight and length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bpe_automata.errors import UnsupportedTokenizerError


@dataclass(frozen=True)
class Char:
    """One character of a class, as in `CharacterEngine.members`: `source` is its pattern."""

    source: str
    kind: str = "regex"


@dataclass(frozen=True)
class Look:
    """Zero-width: the next character is (or, if `negative`, is not) matched by `source`. At the
    end of the text there is no next character, so only a negative one holds."""

    source: str
    negative: bool


@dataclass(frozen=True)
class Ahead:
    """Zero-width: a match of `item` comes next. Nothing follows it in the pattern."""

    item: Node


@dataclass(frozen=True)
class Start:
    """Zero-width: nothing of the text has been read."""


@dataclass(frozen=True)
class Seq:
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Alt:
    """Alternatives, the first preferred."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    item: Node
    least: int
    most: int | None
    greedy: bool


Node = Char | Look | Ahead | Start | Seq | Alt | Repeat


def may_be_empty(node: Node) -> bool:
    """Can the node match the empty string? (Engines differ in how they end a loop of such matches,
    even the two that fancy-regex is made of.)"""
    if isinstance(node, Seq):
        return all(may_be_empty(item) for item in node.items)
    if isinstance(node, Alt):
        return any(may_be_empty(option) for option in node.options)
    if isinstance(node, Repeat):
        return node.least == 0 or may_be_empty(node.item)
    return not isinstance(node, Char)


def sources_of(node: Node) -> list[str]:
    """The patterns of the node's characters."""
    if isinstance(node, Char):
        return [node.source]
    if isinstance(node, Seq | Alt):
        parts = node.items if isinstance(node, Seq) else node.options
        return [source for part in parts for source in sources_of(part)]
    return sources_of(node.item) if isinstance(node, Repeat | Ahead) else []


def folded_letters(node: Node) -> list[str | None]:
    """The case-insensitive letters in order, None between those that can never be neighbours for
    Oniguruma. (Some that cannot be neighbours are not separated.)"""
    if isinstance(node, Char) and node.source.startswith(r"(?i:\x{"):
        return [chr(int(node.source[7:-2], 16))]
    if isinstance(node, Seq):
        return [letter for item in node.items for letter in folded_letters(item)]
    if isinstance(node, Ahead):
        return [None, *folded_letters(node.item)]
    if isinstance(node, Repeat):
        once, most = folded_letters(node.item), 3 if node.most is None else min(node.most, 3)
        if most <= 1 or len(once) < 2:
            return once * max(1, most)
        # Runs of at most three neighbours matter: those inside a repetition, those across the
        # border of two, and the last ones. A longer list would double with each enclosing repeat.
        return [*once, *once[:2], None, *once[-2:]]
    if isinstance(node, Alt):
        return [None, *(letter for o in node.options for letter in (*folded_letters(o), None))]
    return [None]


# ---------------------------------------------------------------- bounds on matches


def lightest(node: Node, weigh: Callable[[Char], float]) -> float:
    """A lower bound on the weight of every match; characters of class `c` weigh at least
    `weigh(c)` >= 0. Raises UnsupportedTokenizerError."""
    if isinstance(node, Char):
        return weigh(node)
    if isinstance(node, Look | Ahead | Start):
        return 0
    if isinstance(node, Seq):
        return sum(lightest(item, weigh) for item in node.items)
    if isinstance(node, Alt):
        return min(lightest(option, weigh) for option in node.options)
    if isinstance(node, Repeat):
        return node.least * lightest(node.item, weigh) if node.least else 0
    raise _unknown(node)


def shortest(node: Node) -> int:
    """A lower bound on the length of every match. Raises UnsupportedTokenizerError."""
    return int(lightest(node, lambda character: 1))


def longest(node: Node) -> int | None:
    """An upper bound on the length of every match, None if there is none. Raises
    UnsupportedTokenizerError."""
    if isinstance(node, Char):
        return 1
    if isinstance(node, Look | Ahead | Start):
        return 0
    if isinstance(node, Repeat):
        inside = longest(node.item)
        if inside == 0 or node.most == 0:
            return 0
        return None if inside is None or node.most is None else node.most * inside
    if not isinstance(node, Seq | Alt):
        raise _unknown(node)
    parts = [longest(part) for part in (node.items if isinstance(node, Seq) else node.options)]
    bounds = [part for part in parts if part is not None]
    if len(bounds) < len(parts):
        return None
    return sum(bounds) if isinstance(node, Seq) else max(bounds)


def _unknown(node: object) -> UnsupportedTokenizerError:
    return UnsupportedTokenizerError(
        "normalizer Replace", type(node).__name__, "this construct is not modelled in a normalizer"
    )
