"""Writes values as a block of YAML 1.1, each value in a single way.

    text({k: x, l: y}) = key(k): text(x)        text([x, y]) = - text(x)
                         key(l): text(y)                       - text(y)

Each property and each item begins a line, and every line ends with a line feed. An array or object
that is the value of a key begins on the next line, indented by two more spaces; one that is an item
begins on the line of the dash. Empty ones are `{}` and `[]`, scalars are as in `yaml_scalars`, and
null, true and false are these words. There are no comments, anchors, tags, block scalars or folded
lines.

Every text is one document from which `yaml.safe_load` returns the value. Some names of properties
that the schema does not list are not written, see `yaml_scalars.keys`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from bpe_automata._automata.algebra import intersection
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._budget import Budget
from bpe_automata.errors import ArgumentError
from bpe_automata.schemas import _yaml_scalars as yaml_scalars
from bpe_automata.schemas._numbers import NumberSet
from bpe_automata.schemas._style import Brackets, Context, IdentityMemo, Piece, Style
from bpe_automata.schemas._yaml_scalars import key, keys, spellings

INDENT = 2  # spaces a level
_SHARED = IdentityMemo()


class LineContext(NamedTuple):
    """A context: the level at which the lines of an array or object begin, and whether the value
    follows a key."""

    level: int
    after_key: bool


class YamlStyle(Style):
    """Block YAML. budget: for the spellings of one set of strings or names."""

    quotes, root = False, LineContext(0, after_key=False)

    def __init__(self, budget: Budget = Budget()) -> None:  # noqa: B008 - frozen
        super().__init__(_SHARED)
        self._budget = budget

    def around(self, context: Context) -> tuple[Piece, Piece]:
        """A space after a key, and the line feed that ends the line."""
        return (b" " if _line(context).after_key else b""), b"\n"

    def objects(self, context: Context) -> Brackets:
        """One or more lines for each property."""
        return _block(_line(context), b"", b"{}\n", after_key=True)

    def arrays(self, context: Context) -> Brackets:
        """One or more lines for each item."""
        return _block(_line(context), b"- ", b"[]\n", after_key=False)

    def numbers(self, numbers: NumberSet) -> ByteDFA:
        """The spellings that YAML 1.1 reads in the same way as JSON."""
        return self._once("numbers", numbers, lambda: _numbers(numbers))

    def strings(self, strings: ByteDFA, context: Context) -> ByteDFA:
        """Plain, or else in double quotes."""
        return self._once("strings", strings, lambda: spellings(strings, self._budget))

    def key(self, name: str) -> Piece:
        """The name as a scalar, with a colon. Raises UnsupportedSchemaError if it is too long."""
        return key(name)

    def keys(self, names: ByteDFA) -> ByteDFA:
        """The spellings of names, each with a colon; see `yaml_scalars.keys`."""
        return self._once("keys", names, lambda: keys(names, self._budget))


@lru_cache(maxsize=256)
def _block(line: LineContext, mark: bytes, empty: bytes, after_key: bool) -> Brackets:
    """after_key: of the values inside."""
    margin = b" " * (INDENT * line.level)
    first = b"\n" + margin + mark if line.after_key else mark
    empty = b" " + empty if line.after_key else empty
    return Brackets(first, margin + mark, b"", empty, LineContext(line.level + 1, after_key))


def _line(context: Context) -> LineContext:
    if not isinstance(context, LineContext):
        raise ArgumentError(f"{context!r} is no place in YAML; begin with the root of the style")
    return context


def _numbers(numbers: NumberSet) -> ByteDFA:
    return intersection(numbers.written(), yaml_scalars.number_spellings())
