"""Writes an object as the arguments of a call in Python, `(city="Paris", days=3)`, and the values
in it as literals, with the white space of `repr`.

A JSON text with minimal escapes is a Python literal of the same value, except for null, true and
false. Names of arguments have no quotes, so they must be ASCII identifiers; each comes once, as
Python requires.
"""

from __future__ import annotations

import keyword
import re

from bpe_automata._budget import Budget
from bpe_automata._sharing import cached
from bpe_automata.automata.algebra import concatenation, difference, intersection
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.errors import UnsupportedSchemaError
from bpe_automata.schemas._json_style import JsonStyle
from bpe_automata.schemas._style import Context, Layout, Piece
from bpe_automata.schemas._values import Values, is_empty

_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_NO_NAMES = (*keyword.kwlist, "__debug__")
_CALL = Layout(b"(", b", ", b")", b"()", JsonStyle.root, unique=True)


def is_name(text: str) -> bool:
    """Can a function or an argument have this name?"""
    return re.fullmatch(_IDENTIFIER, text) is not None and text not in _NO_NAMES


def arguments(values: Values) -> Values:
    """The objects of a set. Raises UnsupportedSchemaError where Python cannot name an argument."""
    for shape in values.objects:
        for name, member in shape.named.items():
            if not is_name(name) and not is_empty(member.child.values):
                why = f"no argument of a call in Python can be called {name!r}: rename it"
                raise UnsupportedSchemaError("properties", shape.pointer, why)
    return Values(objects=values.objects)


class CallStyle(JsonStyle):
    """The context of the whole text differs from that of all values in it. (Lengths are computed as
    if each value was the whole text; a nested object is a little longer.)"""

    root = -1

    def __init__(self, budget: Budget = Budget()) -> None:  # noqa: B008 - frozen
        super().__init__("spaced", "minimal", budget)

    def objects(self, context: Context) -> Layout:
        """The whole object in parentheses, others in braces."""
        return _CALL if context == self.root else super().objects(context)

    def null(self) -> Piece:
        """None."""
        return b"None"

    def boolean(self, value: bool) -> Piece:
        """True or False."""
        return b"True" if value else b"False"

    def key(self, name: str, layout: Layout) -> Piece:
        """The name of an argument with `=`; other names as in JSON."""
        return f"{name}=".encode() if layout is _CALL else super().key(name, layout)

    def keys(self, names: ByteDFA, layout: Layout) -> ByteDFA:
        """The same for a set of names."""
        if layout is not _CALL:
            return super().keys(names, layout)

        def find() -> ByteDFA:
            return concatenation(intersection(names, self._names, self._budget), b"=")

        return self._once("arguments", names, find)

    @cached
    def _names(self) -> ByteDFA:
        return difference(compile_regex(_IDENTIFIER), from_strings(_NO_NAMES))
