"""Sets of code points, as inversion lists.

    (t0, t1, t2, t3, ...)  means  [t0, t1) + [t2, t3) + ...,   t0 < t1 < t2 < ... <= 0x110000

What a class of a regex engine holds is never described here: the engine itself is asked, by
running the class over a string of all code points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any

import numpy as np

N_CODE_POINTS = 0x110000
Inversion = tuple[int, ...]
EVERYTHING: Inversion = (0, N_CODE_POINTS)
SURROGATES = (0xD800, 0xE000)
_BELOW, _ABOVE = slice(0, SURROGATES[0]), slice(SURROGATES[1], N_CODE_POINTS)


@lru_cache(maxsize=1)
def all_code_points() -> str:
    """The string whose character number c is chr(c), surrogates included (4 MB)."""
    units = np.arange(N_CODE_POINTS, dtype="<u4")
    low, high = (units[part].tobytes().decode("utf-32-le") for part in (_BELOW, _ABOVE))
    return low + "".join(map(chr, range(*SURROGATES))) + high


def runs(engine_pattern: Any) -> Inversion:
    """The code points of the runs that a compiled pattern of `re` or `regex` matches."""
    return tuple(chain.from_iterable(m.span() for m in engine_pattern.finditer(all_code_points())))


def union(sets: Iterable[Inversion]) -> Inversion:
    """The code points that are in one of the sets."""
    ranges = sorted(pair for s in sets for pair in zip(s[::2], s[1::2], strict=True))
    merged: list[int] = []
    for start, end in ranges:
        if merged and start <= merged[-1]:
            merged[-1] = max(merged[-1], end)
        else:
            merged += (start, end)
    return tuple(merged)


def complement(members: Inversion) -> Inversion:
    """The code points that are not in the set."""
    flipped = members[1:] if members and members[0] == 0 else (0, *members)
    if flipped and flipped[-1] == N_CODE_POINTS:
        return flipped[:-1]
    return (*flipped, N_CODE_POINTS)


def without(members: Inversion, removed: Inversion) -> Inversion:
    """The code points of the first set that are not in the second."""
    return complement(union((complement(members), removed)))


# Classes of the parser's tree -> sets of code points, as `re` itself reads them.
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


@lru_cache(maxsize=256)
def property_members(name: str, ignore_case: bool) -> Inversion:
    """What the `regex` package matches by a property, for instance `\\p{Lu}`."""
    import regex

    return runs(regex.compile(f"{name}+", regex.IGNORECASE if ignore_case else 0))
