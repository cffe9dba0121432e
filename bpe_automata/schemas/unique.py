"""The texts of arrays in which no value comes twice, for items out of few scalars.

a place for each set of values that may have been written; its size is the number of items
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import lru_cache

from bpe_automata.automata.algebra import intersection
from bpe_automata.automata.assembly import Assembly
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas.constants import NONE
from bpe_automata.schemas.emptiness import shape_is_empty
from bpe_automata.schemas.numbers import NumberSet, of_value
from bpe_automata.schemas.shapes import ArrayShape, Child, Values
from bpe_automata.schemas.spelling import Inside, OrderTree
from bpe_automata.schemas.style import Brackets

MAX_VALUES = 8  # at one place
MAX_SETS = 50_000
Name = tuple[str, object]  # of a value; the same only for the same value
_ADVICE = "no two items may be equal, which takes a state for each set of items: allow fewer values"


def unique_texts(
    shape: ArrayShape, brackets: Brackets, inside: Inside, order: OrderTree | None
) -> tuple[Assembly, int] | None:
    """Parts that read the arrays from the place returned, or None if there are none. Raises
    BudgetExceededError for items that are too many or not scalars."""
    writing = _Unique(shape, brackets, inside, order)
    return (writing.parts, writing.start) if writing.ends else None


class _Unique:
    """The way through the sets."""

    def __init__(
        self, shape: ArrayShape, brackets: Brackets, inside: Inside, order: OrderTree | None
    ) -> None:
        self.parts, self._shape, self._inside, self._order = Assembly(), shape, inside, order
        self._between = brackets.between
        self._single: dict[Name, Child] = {}
        self._at: list[list[Name]] = []
        self._before: dict[frozenset[Name], int] = {}
        self._pending: list[frozenset[Name]] = []
        end, self.start = self.parts.state(), self.parts.state()
        self.parts.accept(end)
        self.ends = shape.fewest == 0
        if self.ends:
            self.parts.put(self.start, brackets.empty, end)
        self._closing = self.parts.state()
        self.parts.put(self._closing, brackets.last, end)
        self.parts.put(self.start, brackets.first, self._set(frozenset()))
        while self._pending:
            self._choose(self._pending.pop())

    def _set(self, used: frozenset[Name]) -> int:
        """The place before the next item, where these have been written."""
        if used not in self._before:
            if len(self._before) == MAX_SETS:
                raise BudgetExceededError("sets of items", MAX_SETS, _ADVICE)
            self._before[used] = self.parts.state()
            self._pending.append(used)
        return self._before[used]

    def _choose(self, used: frozenset[Name]) -> None:
        """All items that may follow."""
        if len(used) == self._shape.most:
            return
        for name in self._names(len(used)):
            if name in used:
                continue
            after = self.parts.state()
            texts = self._inside(self._single[name], self._order and self._order.item)
            texts.put(self.parts, self._before[used], after)
            self.parts.put(after, self._between, self._set(used | {name}))
            if len(used) + 1 >= self._shape.fewest:
                self.parts.skip(after, self._closing)
                self.ends = True

    def _names(self, at: int) -> list[Name]:
        """What item `at` may be."""
        at = min(at, len(self._shape.prefix))
        while len(self._at) <= at:
            found = single_values(self._shape.item(len(self._at)).values)
            for name, values in found.items():
                self._single.setdefault(name, Child.of(values))
            self._at.append(list(found))
        return self._at[at]


def single_values(values: Values) -> dict[Name, Values]:
    """The set cut into sets of one value each. Raises BudgetExceededError if it has more than
    MAX_VALUES values, or any but scalars."""
    found: dict[Name, Values] = {}
    if values.null:
        found["null", None] = replace(NONE, null=True, memo={})
    for value in sorted(values.booleans):
        found["boolean", value] = replace(NONE, booleans=frozenset((value,)), memo={})
    for text in values.strings.strings(MAX_VALUES):
        found["string", text] = replace(NONE, strings=from_strings((text.decode(),)), memo={})
    for number, texts in _single_numbers(values.numbers).items():
        found["number", number] = replace(NONE, numbers=texts, memo={})
    arrays = any(not shape_is_empty(term.shape) for term in values.arrays)
    objects = any(not shape_is_empty(term.shape) for term in values.objects)
    if len(found) > MAX_VALUES or arrays or objects:
        raise BudgetExceededError("values", MAX_VALUES, _ADVICE)
    return found


def _single_numbers(numbers: NumberSet) -> dict[Decimal, NumberSet]:
    """A set of numbers cut into sets of one value each. Raises BudgetExceededError if it has more
    than MAX_VALUES values, or one of which the shortest decimal is not in it."""
    short = intersection(numbers.decimals, _shortest())
    found = {}
    left = numbers
    for text in short.strings(MAX_VALUES):
        number = Decimal(text.decode())
        found[number] = numbers & of_value(number)
        left = left - of_value(number)
    if not left.is_empty:
        raise BudgetExceededError("values", MAX_VALUES, _ADVICE)
    return found


@lru_cache(maxsize=1)
def _shortest() -> ByteDFA:
    """Decimals of which no digit is needless: one for each value."""
    return compile_regex(r"0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9]")
