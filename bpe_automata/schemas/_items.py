"""Arrays in a linked automaton: after each item, a comma or the end.

There is one part for each count of items that matters; or, where items must differ and are out of a
few values, for each set of them: see `_linking`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from bpe_automata._automata.part_tables import Alternative, table_of
from bpe_automata._automata.parts import FAR, Part, Table
from bpe_automata._sharing import cached
from bpe_automata.schemas._apart import single_values
from bpe_automata.schemas._containers import Separated, Tabled
from bpe_automata.schemas._frames import DONE, Choice, Linking, State, Text
from bpe_automata.schemas._style import Brackets, Piece
from bpe_automata.schemas._values import ArrayShape, Term, Values


class Items(Separated):
    """The arrays of one term."""

    def __init__(self, term: Term[ArrayShape], brackets: Brackets, linker: Linking) -> None:
        super().__init__(term.shape, (0,), brackets, linker)
        self._shape = term.shape
        # From that many items on, one more makes no difference.
        least = max(len(term.shape.prefix), term.shape.fewest)
        self._cap = None if term.shape.most is not None else least

    def _after(self, count: int) -> State:
        return (count if self._cap is None else min(count, self._cap),)

    def _following(self, state: State) -> Iterator[tuple[Values, State]]:
        """See `Separated._following`."""
        count = state[0]
        if self._most is None or count < self._most:
            values = self._shape.item(count).values
            if self._linker.least(values) < FAR:
                yield values, self._after(count + 1)

    def _closing(self, state: State, known: dict[int, int] | None) -> int:
        prefix, count = self._shape.prefix, state[0]
        some = prefix[count : self._fewest]
        length = self._last + sum(self._length_of(child.values, known) for child in some)
        others = self._fewest - max(count, len(prefix))
        if others > 0:
            length += others * self._length_of(self._shape.rest.values, known)
        return min(length, FAR)

    def needed(self) -> list[Values]:
        """See `Container.needed`."""
        some = [child.values for child in self._shape.prefix[: self._fewest]]
        return [*some, self._shape.rest.values] if self._fewest > len(some) else some

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        return state[0] >= self._fewest


class DistinctItems(Tabled):
    """The arrays of one term in which no value comes twice, out of a few. Their states are sets of
    the values that were seen, as bits."""

    def __init__(self, term: Term[ArrayShape], brackets: Brackets, linker: Linking) -> None:
        super().__init__(term.shape, (0,), brackets, linker)
        self._rest = term.shape.rest.values

    @cached
    def _values(self) -> list[Values]:
        """A set for each value."""
        return list(single_values(self._rest).values())

    @cached
    def _texts(self) -> list[list[Text]]:
        """Of each value; none of an array or an object, which is a part of its own."""
        return [self._linker.scalars(one, self.brackets.inside) for one in self._values]

    @cached
    def _lengths(self) -> list[int]:
        return [self._linker.least(one) for one in self._values]

    @cached
    def _most_values(self) -> int:
        n = sum(length < FAR for length in self._lengths)
        return n if self._most is None else min(n, self._most)

    def _following(self, seen: int) -> Iterator[int]:
        """The numbers of the values that may come next."""
        for i, length in enumerate(self._lengths if seen.bit_count() < self._most_values else ()):
            if not seen >> i & 1 and length < FAR:
                yield i

    def options(self, state: State) -> tuple[dict[int, int], Callable[[int], State]]:
        """See `Tabled.options`."""
        seen = state[0]
        closings = {i: self._closing((seen | 1 << i,), None) for i in self._following(seen)}
        return closings, lambda i: (seen | 1 << i,)

    def choices(self, state: State) -> Iterable[Choice]:
        """See `Container.choices`."""
        seen = state[0]
        return ((b"", self._values[i], (seen | 1 << i,)) for i in self._following(seen))

    def may_end(self, state: State) -> bool:
        """See `Container.may_end`."""
        return state[0].bit_count() >= self._fewest

    def _may_begin(self) -> bool:
        return self._most_values > 0

    def _closing(self, state: State, known: dict[int, int] | None) -> int:
        seen = state[0]
        missing = self._fewest - seen.bit_count()
        if missing <= 0:
            return self._last
        if self._fewest > self._most_values:
            return FAR
        left = sorted(length for i, length in enumerate(self._lengths) if not seen >> i & 1)
        return min(self._last + sum(left[:missing]) + missing * self._between, FAR)

    def needed(self) -> list[Values]:
        """See `Container.needed`: the lengths of single values depend on no other set."""
        return []

    def _table_behind(self, before: tuple[Piece, ...]) -> Table:
        alternatives: list[Alternative] = [((self.brackets.last,), DONE)] if before else []
        for label, texts in enumerate(self._texts, 1):
            alternatives += [((*before, *text), label) for text in texts] or [(before, label)]
        return table_of(alternatives)

    def least(self, number: int) -> int:
        return 0 if self._texts[number] else self._lengths[number]

    def part(self, number: int, after: State) -> Part:
        return self.after(after) if self._texts[number] else super().part(number, after)
