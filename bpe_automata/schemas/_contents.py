"""Finds the schemas of a document with equal content: large schemas repeat themselves.

Each content is read and written only once. The order of properties counts, since it is the order in
which they are written.
"""

from __future__ import annotations

from typing import Any, Literal

from bpe_automata._budget import check

_NOTES = frozenset(("title", "description", "$comment", "markdownDescription"))
# The role of a value inside a schema: a schema or a list of them, an object from names (not
# keywords) to schemas, or a constant that instances are compared with.
Role = Literal["schema", "map", "constant"]
_ROLES: dict[str, Role] = {
    **dict.fromkeys(("enum", "const"), "constant"),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions"), "map"),
    **dict.fromkeys(("dependencies", "dependentRequired", "dependentSchemas"), "map"),
}


class Contents:
    """Tells which schemas have one content: they are equal JSON, apart from notes such as "title".
    A schema is known by its id, so it must outlive this object."""

    def __init__(self) -> None:
        self._outlined: dict[tuple[object, ...], tuple[Any, str]] = {}
        self._first: dict[tuple[object, ...], str] = {}
        self._of: dict[tuple[int, Role], int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}

    def first(self, schema: Any, pointer: str, context: tuple[object, ...]) -> str:
        """The pointer with which a schema of this content came first in this context. Contents are
        compared in full only where two schemas look alike from outside."""
        outline, is_all = _outline(schema)
        before = self._outlined.setdefault((outline, context), (schema, pointer))
        if is_all or before[0] is schema:
            return before[1]
        self._first.setdefault((self.number(before[0]), context), before[1])
        return self._first.setdefault((self.number(schema), context), pointer)

    def number(self, value: Any, role: Role = "schema") -> int:
        """The number of an object or a list, a schema or inside one in the given role: the same iff
        the contents are."""
        number = self._of.get((id(value), role), -1)
        stack = [] if number >= 0 else [(value, role)]
        while stack:  # from the inside out, without recursion: schemas may be nested deeply
            check()
            here, role = stack[-1]
            size, content = len(stack), list[object]([type(here)])
            for name, inner, inside in _members(here, role):
                if not isinstance(inner, dict | list):
                    content.append((name, type(inner), inner))
                elif isinstance(inner, list) and all(type(item) is str for item in inner):
                    content.append((name, list, *inner))
                elif (found := self._of.get((id(inner), inside))) is not None:
                    content.append((name, found))
                else:
                    stack.append((inner, inside))
            if len(stack) == size:
                stack.pop()
                number = self._numbers.setdefault(tuple(content), len(self._numbers))
                self._of[id(here), role] = number
        return number


def _members(value: dict[str, Any] | list[Any], role: Role) -> list[tuple[str | int, Any, Role]]:
    """(name or index, value, role) of each member, without notes."""
    if isinstance(value, list):
        return [(index, inner, role) for index, inner in enumerate(value)]
    if role == "schema":
        return [
            (name, inner, _ROLES.get(name, "schema"))
            for name, inner in value.items()
            if name not in _NOTES or not isinstance(inner, str)
        ]
    inside: Role = "schema" if role == "map" else "constant"
    return [(name, inner, inside) for name, inner in value.items()]


def _outline(schema: Any) -> tuple[tuple[object, ...], bool]:
    """What schemas of one content have in common, found without looking inside; and whether it is
    all of the content."""
    if not isinstance(schema, dict):
        return (type(schema), schema), True
    found: list[object] = []
    is_all = True
    for name, value in schema.items():
        kind = type(value)
        if kind is str:
            if name not in _NOTES:
                found += (name, value)
        elif not isinstance(value, dict | list):
            found.append((name, kind, value))
        elif isinstance(value, list) and all(type(item) is str for item in value):
            found.append((name, kind, *value))
        else:
            found.append((name, kind, len(value), *(value if isinstance(value, dict) else ())))
            is_all = False
    return tuple(found), is_all
