"""JSON values: their texts, the orders of their members, how deep they are nested."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any


def spelled(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def orders(value: Any) -> Iterator[Any]:
    """A value with the members of its objects in every order."""
    if isinstance(value, dict):
        for keys in itertools.permutations(value):
            for inner in itertools.product(*(list(orders(value[key])) for key in keys)):
                yield dict(zip(keys, inner, strict=True))
    elif isinstance(value, list):
        yield from map(list, itertools.product(*map(orders, value)))
    else:
        yield value


def depth(value: Any) -> int:
    """Of arrays and objects that hold something."""
    if not isinstance(value, dict | list) or not value:
        return 0
    return 1 + max(map(depth, value.values() if isinstance(value, dict) else value))
