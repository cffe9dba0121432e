"""Classes of the parsed tree -> sets of code points, as `re` itself reads them.

    members(item, flags) == { c : re.fullmatch(item, c, flags) }

Literals, ranges and `.` are read off the tree. Categories such as `\\w` are answered by `re` once
per process, over all code points. Ignoring case matters only for code points that have case, so
there `re` is asked about those few thousand, and the rest is read off the tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import chain
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any

from bpe_automata.automata.codepoints import (
    EVERYTHING,
    N_CODE_POINTS,
    Inversion,
    all_code_points,
    complement,
    union,
    without,
)
from bpe_automata.automata.properties import property_members

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
    """The members of `\\w` and the like.

    `[item]+|[^item]+` cuts the code points into runs that are in and out by turns. Searching for
    `[item]+` alone would crawl over what lies between the runs.
    """
    inside, outside = _run((item,), flags), _run(((_parser.NEGATE, None), item), flags)
    both = _compiled([(_parser.BRANCH, (None, [inside, outside]))], flags)
    starts = [m.start() for m in both.finditer(all_code_points())]
    if not _compiled(inside, flags).match("\0"):
        del starts[0]
    return tuple(starts) if len(starts) % 2 == 0 else (*starts, N_CODE_POINTS)


def _run(items: tuple[Item, ...], flags: int) -> Any:
    """The tree of `[items]+`."""
    body = _parser.SubPattern(_state(flags), [(_parser.IN, list(items))])
    repeat = (_parser.MAX_REPEAT, (1, _parser.MAXREPEAT, body))
    return _parser.SubPattern(body.state, [repeat])


def _state(flags: int) -> Any:
    state = _parser.State()
    state.flags = flags if flags & re.ASCII else flags | re.UNICODE
    return state


def _compiled(tree: Any, flags: int) -> re.Pattern[str]:
    state = _state(flags)
    compiled: re.Pattern[str] = _compiler.compile(
        _parser.SubPattern(state, list(tree)), state.flags
    )
    return compiled


def _ask_cased(items: tuple[Item, ...], flags: int) -> Inversion:
    """The code points with case that `re` matches."""
    cased = cased_code_points()
    found = chain.from_iterable(
        m.group() for m in _compiled(_run(items, flags), flags).finditer(cased)
    )
    return union((ord(c), ord(c) + 1) for c in found)


@lru_cache(maxsize=1)
def _cased_set() -> Inversion:
    return union((ord(c), ord(c) + 1) for c in cased_code_points())


@lru_cache(maxsize=1)
def cased_code_points() -> str:
    """All code points that some case mapping changes, or makes."""
    mappings: tuple[Callable[[str], str], ...] = (str.lower, str.upper, str.title)
    text, found = all_code_points(), set[str]()
    for start in range(0, N_CODE_POINTS, 512):
        block = text[start : start + 512]
        if any(change(block) != block for change in mappings[:2]):
            for c in block:
                changed = {c, *chain.from_iterable(change(c) for change in mappings)}
                found |= changed if len(changed) > 1 else set()
    return "".join(sorted(found))
