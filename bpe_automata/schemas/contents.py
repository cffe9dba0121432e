"""What schemas say, as numbers: two have the same number iff they are equal JSON, notes aside.

Copies of one schema are then read and written once. The order of members is part of what is said,
for it is the order in which properties are written.
"""

from __future__ import annotations

from typing import Any

_NOTES = frozenset(("title", "description", "$comment", "markdownDescription"))
_LISTED = frozenset(("enum", "const"))


class Contents:
    """The numbers given so far. A value must live as long as this does: it is known by its id."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, bool], int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}

    def of(self, value: Any, listed: bool = False) -> int:
        """The number of a schema, or of a part of one. listed: inside of `enum` or `const`, where
        a member "title" is no note."""
        if not isinstance(value, dict | list):
            return self._number((type(value), value))
        known = (id(value), listed)
        if known not in self._of:
            self._of[known] = self._number(self._key(value, listed))
        return self._of[known]

    def _key(self, value: dict[str, Any] | list[Any], listed: bool) -> tuple[object, ...]:
        if isinstance(value, list):
            return (list, *(self.of(item, listed) for item in value))
        members = (
            (name, self.of(inner, listed or name in _LISTED))
            for name, inner in value.items()
            if listed or name not in _NOTES or not isinstance(inner, str)
        )
        return (dict, *members)

    def _number(self, key: tuple[object, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))
