"""Values as one block of YAML 1.1, in the one way that this package writes it.

    text({k: x, l: y}) = key(k): text(x)        text([x, y]) = - text(x)
                         key(l): text(y)                       - text(y)

Each member and each item begins a line, and every line ends with a line feed. What stands in an
object under a key begins on the next line, two spaces further in, lists too; what stands in a list
begins on the line of its dash. `{}` and `[]` are written so; scalars as in `yaml_scalars`; null,
true, false are those words. No comments, anchors, tags, block scalars or folded lines.

Every text is one document for `yaml.safe_load`, which gives the value back. What is left out: some
names beside `properties`, see `yaml_keys`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from bpe_automata.automata.algebra import intersection, union
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import Budget
from bpe_automata.errors import ArgumentError
from bpe_automata.schemas import yaml_scalars
from bpe_automata.schemas.numbers import NumberSet
from bpe_automata.schemas.style import Brackets, Context, IdentityMemo, Piece
from bpe_automata.schemas.yaml_scalars import key, keys, spelled, spellings

INDENT = 2  # spaces a level
_SHARED = IdentityMemo()


class LineContext(NamedTuple):
    """A context: `level` is how deep the lines of an array or object there begin."""

    level: int
    after_key: bool


class YamlStyle:
    """Block YAML, see above. budget: of the set of spellings of one set of strings or names."""

    def __init__(self, budget: Budget = Budget()) -> None:  # noqa: B008 - frozen
        self._budget = budget
        self._memo: dict[tuple[object, ...], tuple[object, ByteDFA]] = {}
        self._brackets: dict[tuple[Context, bool], Brackets] = {}

    @property
    def shared(self) -> IdentityMemo:
        """There is one way of writing."""
        return _SHARED

    @property
    def root(self) -> Context:
        """The whole text."""
        return LineContext(0, after_key=False)

    def around(self, context: Context) -> tuple[Piece, Piece]:
        """A scalar ends its line."""
        return (b" " if _line(context).after_key else b""), b"\n"

    def objects(self, context: Context) -> Brackets:
        """One line or more for each member."""
        return self._block(_line(context), b"", b"{}\n", after_key=True)

    def arrays(self, context: Context) -> Brackets:
        """One line or more for each item."""
        return self._block(_line(context), b"- ", b"[]\n", after_key=False)

    def _block(self, line: LineContext, mark: bytes, empty: bytes, after_key: bool) -> Brackets:
        key = (line, after_key)
        if key not in self._brackets:
            margin = b" " * (INDENT * line.level)
            first = b"\n" + margin + mark if line.after_key else mark
            empty = b" " + empty if line.after_key else empty
            inside = LineContext(line.level + 1, after_key)
            self._brackets[key] = Brackets(first, margin + mark, b"", empty, inside)
        return self._brackets[key]

    def null(self) -> Piece:
        """One of the four spellings."""
        return b"null"

    def boolean(self, value: bool) -> Piece:
        """One of the twelve."""
        return b"true" if value else b"false"

    def numbers(self, numbers: NumberSet, upper: bool) -> ByteDFA:
        """Those texts of numbers that YAML 1.1 reads as JSON does."""
        return self._once(("numbers", upper), numbers, lambda: _numbers(numbers, upper))

    def strings(self, strings: ByteDFA, context: Context) -> ByteDFA:
        """Plain, or else in double quotes."""
        return self._once(("strings",), strings, lambda: spellings(strings, self._budget))

    def key(self, name: str) -> Piece:
        """The name as a scalar, with a colon. Raises UnsupportedSchemaError if it is too long."""
        return key(name)

    def keys(self, names: ByteDFA) -> ByteDFA:
        """The names, as far as they are written, each with a colon."""
        return self._once(("keys",), names, lambda: keys(names, self._budget))

    def _once(self, kind: tuple[object, ...], of: object, find: Callable[[], ByteDFA]) -> ByteDFA:
        """What was found before for this very object. It is kept, so that its id stays its own."""
        key = (*kind, id(of))
        if key not in self._memo:
            self._memo[key] = (of, find())
        return self._memo[key][1]


def _line(context: Context) -> LineContext:
    if not isinstance(context, LineContext):
        raise ArgumentError(f"{context!r} is no context in YAML; begin with the root of the style")
    return context


def _numbers(numbers: NumberSet, upper: bool) -> ByteDFA:
    """The texts; generous: with those that may be among them."""
    if not upper:
        return intersection(numbers.written(), yaml_scalars.number_spellings())
    if numbers.scientific == "none":
        return numbers.possible()
    return union(numbers.possible(), yaml_scalars.scientific_spellings())


# One value as block YAML, in the style of `yaml_style`: what its automata accept, in the given
# order of keys.


def yaml_text(value: Any) -> str:
    """yaml.safe_load(yaml_text(value)) == value, for any JSON value; integers have no fraction, and
    only floats of 1e16 and more an exponent, as `yaml.safe_dump` writes them. Raises ArgumentError
    for what JSON has not: other types, keys that are no strings, NaN and infinities."""
    return "".join(_lines(value, 0, after_key=False))


def _lines(value: Any, level: int, after_key: bool) -> list[str]:
    """Pieces of the text of a value, the margin before its first line left out."""
    if not isinstance(value, dict | list) or not value:
        return [" " * after_key, _scalar(value), "\n"]
    margin = " " * (INDENT * level)
    found = ["\n", margin] if after_key else []
    for number, member in enumerate(value.items() if isinstance(value, dict) else value):
        found += [margin] if number else []
        if isinstance(value, dict):
            found += [f"{_key(member[0])}:", *_lines(member[1], level + 1, after_key=True)]
        else:
            found += ["- ", *_lines(member, level + 1, after_key=False)]
    return found


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ArgumentError(f"{key!r} is a key of JSON only if it is a string")
    return spelled(key)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return spelled(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and value - value == 0:
        mantissa, _, exponent = repr(value).partition("e+")
        if exponent:
            return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}e+{exponent}"
        text = f"{Decimal(repr(value)):f}"
        return text if "." in text else f"{text}.0"
    raise ArgumentError(f"{value!r} is no value of JSON")
