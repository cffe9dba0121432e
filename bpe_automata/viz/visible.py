"""Text and bytes written so that every character can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import combining, east_asian_width

from bpe_automata.errors import ArgumentError

_SHOWN = {" ": "␣", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}


def visible(data: bytes | str, longest: int = 60) -> str:
    """Spaces as ␣, other invisible characters escaped, bytes that are no UTF-8 as \\xNN.

    More than `longest` characters (at least 3) are shortened in the middle, before escaping.
    """
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
    if len(text) > longest:
        tail = min(19, longest // 3)
        text = f"{text[: longest - tail - 1]}…{text[len(text) - tail :]}"
    return "".join(map(_character, text))


def printable(text: str) -> str:
    """The text with only its unprintable characters escaped: spaces and backslashes stay.

    What it returns can be written as UTF-8 and as XML. For text that a caller already made
    readable; `visible` is for raw text.
    """
    return "".join(c if c.isprintable() else _character(c) for c in text)


def edge_label(labels: Sequence[str], most: int = 6) -> str:
    """One label for several: "a, b, c … +12 more". The empty word is written ε, and a label that
    holds a comma stands in quotes, because commas also separate. Raises ArgumentError if `most` is
    negative."""
    if most < 0:
        raise ArgumentError(f"most is {most}: give how many labels to show, from 0 on")
    if len(labels) > most + 1:  # "+1 more" would take the room of the one
        shown = f"{edge_label(labels[:most], most)} " if most else ""
        return f"{shown}… +{len(labels) - most:,} more"
    if len(labels) == 1:
        return labels[0] or "ε"
    return ", ".join(f"‘{label}’" if "," in label else label or "ε" for label in labels)


def wrapped(label: str, widest: int = 26) -> list[str]:
    """The lines of a label: broken at spaces where it is wider than `widest` columns."""
    lines: list[str] = []
    for word in label.split(" "):
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and columns(joined) > widest:
            lines.append(word)
        else:
            lines[-1:] = [joined]
    return lines


def columns(text: str) -> int:
    """The width in a terminal: East Asian wide characters take two columns, accents none."""
    widths = {"W": 2, "F": 2}
    return sum(0 if combining(c) else widths.get(east_asian_width(c), 1) for c in text)


def _character(character: str) -> str:
    if character in _SHOWN:
        return _SHOWN[character]
    if "\udc80" <= character <= "\udcff":  # a byte that is no UTF-8, by "surrogateescape"
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character if character.isprintable() else ascii(character)[1:-1]
