"""Where a JSON text stands, as far as that says which items of arrays are complete.

The structure of a JSON text does not depend on any schema: brackets, quotes and commas say where
each item begins and ends. So the values of items are known whatever automaton reads them. Texts are
taken to be JSON: of others nothing is said.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from bpe_automata._sharing import cached
from bpe_automata.errors import BudgetExceededError

Name = tuple[str, object]
"""(type, value) of a JSON value: equal where the values are. An array has the names of its items,
in order; an object the set of its members, each (name, name of the value)."""

BETWEEN, STRING, ESCAPE, SCALAR = range(4)
"""Outside of all scalars, in a string, in one right after a backslash, or in any other scalar,
which ends where something else begins."""
SPACE = bytes(range(0x21))
_NEW, _OBJECT = -1, -2  # levels: an array in which no item has begun, an object
_OPEN = -3  # an item that began before what is looked at
_MOST_LEVELS = 200  # of an item that is compared
_MOST_DIGITS = 1_000  # of a number that is compared, written out
_QUOTE, _BACKSLASH = 0x22, 0x5C
_IN_STRING = re.compile(rb'["\\]')
_AROUND = rb"\x00-\x20\",:\[\]{}"
_BEHIND_SCALAR = re.compile(rb"[" + _AROUND + rb"]")
_MANTISSA = re.compile(rb"[-0-9.]+")
_CHARACTERS = rb'"([^"\\]|\\[^u]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*'
_READ_STRING = re.compile(_CHARACTERS)
_WHOLE_STRING = re.compile(_CHARACTERS + rb'"')
_BEHIND_SPACE = re.compile(rb"[^\x00-\x20,:]")


class End(NamedTuple):
    """The end of an item. at: how many bytes of those that were read are in front of it; start:
    where in the text the item began; depth: of its array."""

    at: int
    start: int
    depth: int


@dataclass(frozen=True, eq=False)
class _Read:
    """Bytes of a text, and those before them. end: how many there are with those."""

    before: _Read | None
    data: bytes
    end: int

    def since(self, start: int) -> bytes:
        """All from a place of the text on."""
        found, here = list[bytes](), self
        while True:
            first = here.end - len(here.data)
            found.append(here.data[max(0, start - first) :])
            if first <= start or here.before is None:
                return b"".join(reversed(found))
            here = here.before


@dataclass(frozen=True, eq=False)
class JsonPosition:
    """The end of the beginning of a JSON text. Compared by identity.

    mode: BETWEEN, STRING, ESCAPE or SCALAR; levels: for each bracket that is open, where the item
    that is read began, or that none has, or that it is an object. read: what was read, as far as it
    may be asked for; skipped: so many bytes come before the text; spaced: the first of them is a
    space that may be left out.
    """

    mode: int = BETWEEN
    levels: tuple[int, ...] = ()
    read: _Read = _Read(None, b"", 0)
    skipped: int = 0
    spaced: bool = False

    def after(self, data: bytes) -> JsonPosition:
        """The position after more bytes."""
        levels = list(self.levels)
        mode, _ = self._followed(levels, data)
        end = self.read.end + len(data)
        is_asked_for = any(level != _OBJECT for level in levels)
        read = _Read(self.read, data, end) if is_asked_for else _Read(None, b"", end)
        left = max(0, self._skips(data) - len(data))
        return JsonPosition(mode, tuple(levels), read, left, self.spaced and not data)

    def ends(self, data: bytes) -> list[End]:
        """Of all items of arrays that end in more bytes."""
        found = _ends(self.mode, self._shape, data, min(self._skips(data), len(data)))
        begin, levels = self.read.end, self.levels
        return [
            End(at, levels[depth - 1] if start == _OPEN else begin + start, depth)
            for at, start, depth in found
        ]

    @cached
    def _shape(self) -> tuple[int, ...]:
        """The levels, but for where items began."""
        return tuple(_OPEN if level >= 0 else level for level in self.levels)

    def begun(self, end: End) -> bytes:
        """What was read of an item that ends in more bytes."""
        return _begun(self.read, end.start) if end.start < self.read.end else b""

    def item(self, data: bytes, end: End) -> Name:
        """The value of an item that ends in more bytes. Raises BudgetExceededError for a number of
        very many digits."""
        own = data[max(0, end.start - self.read.end) : end.at]
        return name_of(self.begun(end) + own)

    def _followed(self, levels: list[int], data: bytes) -> tuple[int, list[End]]:
        return _follow(self.mode, levels, data, min(self._skips(data), len(data)), self.read.end)

    def _skips(self, data: bytes) -> int:
        """How many bytes, from the first of these on, come before the text."""
        return self.skipped - (self.spaced and not data.startswith(b" "))


@lru_cache(maxsize=8)  # a mask asks many times for the same; no position keeps it
def _begun(read: _Read, start: int) -> bytes:
    return read.since(start)


@lru_cache(maxsize=1 << 12)  # texts that stand alike end the same ids in item after item
def _ends(mode: int, shape: tuple[int, ...], data: bytes, skipped: int) -> list[End]:
    """`JsonPosition.ends`, with the beginnings of items counted from these bytes on."""
    return _follow(mode, list(shape), data, skipped, 0)[1]


def may_end_an_item(mode: int, data: bytes) -> bool:
    """May an item end in some bytes that are read in a mode, as far as the mode says?"""
    levels = [_NEW] * (1 + data.count(b"]") + data.count(b"}"))
    return bool(_follow(mode, levels, data, 0, len(data))[1])


def _follow(
    mode: int, levels: list[int], data: bytes, at: int, begin: int
) -> tuple[int, list[End]]:
    """(mode at the end, ends of items) of some bytes, read from `at` on; levels become those at the
    end. begin: bytes of the text before these."""
    ends = list[End]()

    def end_value() -> None:
        if levels and levels[-1] != _OBJECT:
            ends.append(End(at, levels[-1], len(levels)))
            levels[-1] = _NEW

    while at < len(data):
        if mode == ESCAPE:
            mode, at = STRING, at + 1
        elif mode == STRING:
            found = _IN_STRING.search(data, at)
            if found is None:
                break
            at = found.end()
            mode = ESCAPE if data[at - 1] == _BACKSLASH else BETWEEN
            if mode == BETWEEN:
                end_value()
        elif mode == SCALAR:
            found = _BEHIND_SCALAR.search(data, at)
            if found is None:
                break
            mode, at = BETWEEN, found.start()
            end_value()
        else:
            found = _BEHIND_SPACE.search(data, at)
            if found is None:
                break
            at = found.start()
            byte = data[at : at + 1]
            if byte in (b"]", b"}"):
                del levels[-1:]
                at += 1
                end_value()
                continue
            if levels and levels[-1] == _NEW:
                levels[-1] = begin + at
            if byte == b'"':
                mode = STRING
            elif byte in (b"[", b"{"):
                levels.append(_NEW if byte == b"[" else _OBJECT)
            else:
                mode = SCALAR
            at += mode != SCALAR
    return mode, ends


_KINDS = {b'"': "string", b"[": "array", b"{": "object", b"n": "null", b"t": "boolean"}


def next_item(behind: bytes) -> bytes:
    """What was read of the next item, in bytes behind one; from "]" on, if none follows."""
    return behind.lstrip(SPACE + b",")


def differs(name: Name, behind: bytes) -> bool:
    """Is it seen by the bytes behind an item of some value that the next one is another value, or
    that there is none?"""
    begun = next_item(behind)
    if not begun:
        return False
    if begun.startswith(b"]"):
        return True
    kind, value = name
    if kind_of(begun) != kind:
        return True
    if isinstance(value, Decimal):
        return not _may_be_number(begun, value)
    return isinstance(value, str) and not _may_be_string(begun, value)


def kind_of(begun: bytes) -> str:
    """The type of an item that has begun."""
    return _KINDS.get(begun[:1], "boolean" if begun[:1] == b"f" else "number")


def first_of(begun: bytes) -> str:
    """Of a string that has begun its first character, of a number its first digit but 0; "" where
    that was not read. Items of one type that differ in it have different values."""
    kind = kind_of(begun)
    if kind == "number":
        return _digits(begun)[:1]
    if kind != "string":
        return ""
    return _characters(begun)[:1] or ("end" if _WHOLE_STRING.match(begun) else "")


def _digits(begun: bytes) -> str:
    """The beginning of a number, from the first digit on that is not 0."""
    mantissa = _MANTISSA.match(begun)
    return mantissa[0].replace(b".", b"").lstrip(b"-0").decode() if mantissa else ""


def _characters(begun: bytes) -> str:
    """The beginning of a string, without a part of a character or of an escape at its end."""
    read = _READ_STRING.match(begun)
    found: str = json.loads(read[0].decode("utf-8", "ignore") + '"') if read else ""
    return found


def _may_be_number(begun: bytes, value: Decimal) -> bool:
    """May the beginning of a number become one of this value? The digits of all its spellings are
    the same, from the first that is not 0."""
    digits = _digits(begun)
    if not digits:
        return True
    negative, own, _ = value.as_tuple()
    same = "".join(map(str, own)).lstrip("0").ljust(len(digits), "0")
    return same.startswith(digits) and begun.startswith(b"-") == bool(negative)


def _may_be_string(begun: bytes, value: str) -> bool:
    """May the beginning of a string, in quotes, become one of this value?"""
    whole = _WHOLE_STRING.match(begun)
    if whole:
        return bool(json.loads(whole[0]) == value)
    return value.startswith(_characters(begun))


def name_of(text: bytes) -> Name:
    """The value of a JSON text. Of members with one name the last one counts. Raises
    BudgetExceededError for a number of very many digits, and for very many levels."""
    if text.startswith(b'"') and b"\\" not in text:  # as most are
        return "string", text[1:-1].decode("utf-8", "surrogatepass")
    try:
        return _named(json.loads(text, parse_int=_number, parse_float=_number), _MOST_LEVELS)
    except RecursionError:
        raise _too_deep() from None


def _number(spelled: str) -> Decimal:
    mantissa, _, exponent = spelled.lower().partition("e")
    if len(mantissa) > _MOST_DIGITS or abs(int(exponent[:6] or 0)) > _MOST_DIGITS:
        advice = f"{spelled[:20]}... would have to be compared with other items"
        raise BudgetExceededError("digits", _MOST_DIGITS, advice)
    return Decimal(spelled)


def _too_deep() -> BudgetExceededError:
    advice = "an item would have to be compared with others"
    return BudgetExceededError("levels of arrays and objects", _MOST_LEVELS, advice)


def _named(value: Any, levels: int) -> Name:
    if value is None:
        return "null", None
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, Decimal):
        return "number", value
    if isinstance(value, str):
        return "string", value
    if not levels:
        raise _too_deep()
    if isinstance(value, list):
        return "array", tuple(_named(one, levels - 1) for one in value)
    return "object", frozenset((name, _named(one, levels - 1)) for name, one in value.items())
