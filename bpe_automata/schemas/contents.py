"""What schemas say, as numbers: two have the same number iff they are equal JSON, notes aside.

Copies of one schema are then read and written once. The order of members is part of what is said,
for it is the order in which properties are written.
"""

from __future__ import annotations

from typing import Any, Literal

from bpe_automata.budget import check

_NOTES = frozenset(("title", "description", "$comment", "markdownDescription"))
# What a value is: a schema (or a list of them), an object whose names are not keywords and whose
# values are schemas, or a value that is compared with.
Kind = Literal["schema", "map", "listed"]
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("enum", "const"), "listed"),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions"), "map"),
    **dict.fromkeys(("dependencies", "dependentRequired", "dependentSchemas"), "map"),
}


_Member = tuple[str | int, Any, Kind]


class Contents:
    """The numbers given so far. A value must live as long as this does: it is known by its id."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, Kind], int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}

    def of(self, value: Any, kind: Kind = "schema") -> int:
        """The number of a schema, or of a part of one. Only in a schema itself is "title" a note;
        elsewhere it is a name."""
        waiting = [(value, kind)]
        while waiting:  # from the inside out, without recursion: schemas may be nested deeply
            check()
            here, its = waiting[-1]
            later = [(v, k) for _, v, k in _members(here, its) if self._known(v, k) is None]
            waiting += later
            if not later:
                self._add(*waiting.pop())
        return self._known(value, kind) or 0

    def _known(self, value: Any, kind: Kind) -> int | None:
        """The number of a value, None if it is an object or a list that has none yet."""
        if isinstance(value, dict | list):
            return self._of.get((id(value), kind))
        return self._number((type(value), value))

    def _add(self, value: Any, kind: Kind) -> None:
        """Number a value, all of whose members have their numbers."""
        if isinstance(value, dict | list):
            members = ((name, self._known(v, k)) for name, v, k in _members(value, kind))
            self._of[id(value), kind] = self._number((type(value), *members))

    def _number(self, key: tuple[object, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers) + 1)


def _members(value: Any, kind: Kind) -> list[_Member]:
    """What a value consists of, notes aside."""
    if isinstance(value, list):
        return [(at, inner, kind) for at, inner in enumerate(value)]
    if not isinstance(value, dict):
        return []
    if kind == "schema":
        return [
            (name, inner, _KINDS.get(name, "schema"))
            for name, inner in value.items()
            if name not in _NOTES or not isinstance(inner, str)
        ]
    return [(name, inner, "schema" if kind == "map" else "listed") for name, inner in value.items()]
