"""What schemas say, as numbers: two have the same number iff they are equal JSON, notes aside.

Copies of one schema are then read and written once. The order of members is part of what is said,
for it is the order in which properties are written.
"""

from __future__ import annotations

from typing import Any, Literal

_NOTES = frozenset(("title", "description", "$comment", "markdownDescription"))
# What a value is: a schema (or a list of them), an object whose names are not keywords and whose
# values are schemas, or a value that is compared with.
Kind = Literal["schema", "map", "listed"]
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("enum", "const"), "listed"),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions"), "map"),
    **dict.fromkeys(("dependencies", "dependentRequired", "dependentSchemas"), "map"),
}


class Contents:
    """The numbers given so far. A value must live as long as this does: it is known by its id."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, Kind], int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}

    def of(self, value: Any, kind: Kind = "schema") -> int:
        """The number of a schema, or of a part of one. Only in a schema itself is "title" a note;
        elsewhere it is a name."""
        if not isinstance(value, dict | list):
            return self._number((type(value), value))
        known = (id(value), kind)
        if known not in self._of:
            self._of[known] = self._number(self._key(value, kind))
        return self._of[known]

    def _key(self, value: dict[str, Any] | list[Any], kind: Kind) -> tuple[object, ...]:
        if isinstance(value, list):
            return (list, *(self.of(item, kind) for item in value))
        if kind == "schema":
            members = (
                (name, self.of(inner, _KINDS.get(name, "schema")))
                for name, inner in value.items()
                if name not in _NOTES or not isinstance(inner, str)
            )
            return (dict, *members)
        inside: Kind = "schema" if kind == "map" else "listed"
        return (dict, *((name, self.of(inner, inside)) for name, inner in value.items()))

    def _number(self, key: tuple[object, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))
