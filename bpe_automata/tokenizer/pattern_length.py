"""Bounds on what a pattern can match, from its tree alone."""

from __future__ import annotations

from collections.abc import Callable

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.pattern import Ahead, Alt, Char, Look, Node, Repeat, Seq, Start


def lightest(node: Node, weigh: Callable[[Char], float]) -> float:
    """A bound from below on the weight of every match, where a character that `c` matches weighs
    at least `weigh(c)`, and never less than 0. Raises UnsupportedTokenizerError."""
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
    """No match has fewer characters. Raises UnsupportedTokenizerError."""
    return int(lightest(node, lambda character: 1))


def longest(node: Node) -> int | None:
    """No match has more characters; None if there is no bound. Raises UnsupportedTokenizerError."""
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
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return sum(known) if isinstance(node, Seq) else max(known)


def _unknown(node: object) -> UnsupportedTokenizerError:
    return UnsupportedTokenizerError(
        "normalizer Replace", type(node).__name__, "this construct is not modelled in a normalizer"
    )
