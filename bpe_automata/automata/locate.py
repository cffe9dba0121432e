"""Where in the pattern an unsupported construct stands; the standard library's tree has no places.

Only run once a pattern is known to be refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from bpe_automata.automata.properties import Substituted
from bpe_automata.automata.syntax import parse_text
from bpe_automata.errors import UnsupportedRegexError

_TOKEN = re.compile(
    r"""
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
    """,
    re.VERBOSE | re.DOTALL,
)
_VERBOSE_COMMENT = re.compile(r"#[^\n]*")
_REASONS = {
    "lookaround": "lookaround is not supported",
    "conditional": "a conditional group is not supported",
    "atomic": "an atomic group is not supported",
    "backreference": "a backreference is not regular",
    "boundary": "a word boundary is not supported",
    "possessive": "a possessive repeat is not supported",
    "anchor": "an anchor that is not at the start or end of the whole regex is not supported",
}


def unsupported(source: Substituted, op: Any, flags: int) -> UnsupportedRegexError:
    """The error for a pattern whose tree holds the unsupported node `op`."""
    tokens = list(_tokens(source.text, bool(flags & re.VERBOSE)))
    anchors = [start for kind, start, _ in tokens if kind == "anchor"]
    for kind, start, text in tokens:
        refused = _alone_is_refused(source, start, text, tokens) if kind == "anchor" else True
        if kind in _REASONS and refused:
            return UnsupportedRegexError(source.pattern, source.position(start), _REASONS[kind])
    first = source.position(anchors[0]) if anchors else 0
    return UnsupportedRegexError(source.pattern, first, f"{str(op).lower()} is not supported")


def _tokens(text: str, verbose: bool) -> Iterator[tuple[str, int, str]]:
    """(kind, start, text) of each construct, comments left out."""
    at = 0
    while at < len(text):
        comment = _VERBOSE_COMMENT.match(text, at) if verbose else None
        match = comment or _TOKEN.match(text, at)
        if match is None:
            return
        if comment is None and match.lastgroup not in (None, "comment"):
            yield str(match.lastgroup), at, match.group()
        at = match.end()


def _alone_is_refused(
    source: Substituted, start: int, anchor: str, tokens: list[tuple[str, int, str]]
) -> bool:
    """Whether an anchor is still in the tree when all the others are replaced by `(?:)`."""
    text, end = "", 0
    for kind, at, token in tokens:
        if kind == "anchor" and at != start:
            text += source.text[end:at] + "(?:)"
            end = at + len(token)
    text += source.text[end:]
    return _has_anchor(parse_text(Substituted(text, text)))


def _has_anchor(node: Any) -> bool:
    if isinstance(node, _parser.SubPattern):
        return any(op is _parser.AT or _has_anchor(av) for op, av in node)
    return isinstance(node, (tuple, list)) and any(_has_anchor(part) for part in node)
