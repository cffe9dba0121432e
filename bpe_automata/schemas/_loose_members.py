"""Objects in a linked automaton from which single objects are subtracted, where members come in the
order of the schema.

The names of those objects have places, so that their values can be told apart. But the schema names
them no more than others: they come behind the names of the schema, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bpe_automata._sharing import cached
from bpe_automata.schemas._few_values import SingleObject
from bpe_automata.schemas._frames import Linking, State
from bpe_automata.schemas._members import Members
from bpe_automata.schemas._style import Brackets
from bpe_automata.schemas._values import ObjectShape, Term


class LooseMembers(Members):
    """The objects of one term. [0] of a state: the places whose members may come no more (bits),
    seen or not."""

    def __init__(self, term: Term[ObjectShape], brackets: Brackets, linker: Linking) -> None:
        super().__init__(term, brackets, linker)
        self._is_any = True
        self._ordered = (1 << len(_ordered(term))) - 1

    @cached
    def _matters(self) -> int:
        """Bits of the places whose members make a difference to the others."""
        return sum(1 << place for place, matters in enumerate(self.entries.matters) if matters)

    def _following(self, state: State) -> Iterator[tuple[int, State]]:
        """See `Members._following`."""
        at, *counts = state
        needed = self.entries.required | self._needed_by(counts[3])
        for place, numbers in enumerate(self.entries.numbers):
            own = 1 << place
            gone = self._ordered & (own - 1) & ~at
            vain = self._needs.get(own, own) & (at | gone) & ~counts[3] & ~own
            if not at & own and not gone & needed and not vain:
                yield from self._then(numbers, at | gone | own, self._without_all(counts, gone))
        gone = self._ordered & ~at
        if not gone & needed:
            left = self._without_all(counts, gone)
            yield from self._then(self._other_numbers, at | gone, left)

    def _without_all(self, counts: list[int], gone: int) -> list[int]:
        for place in range(gone.bit_length()):
            if gone >> place & 1:
                counts = self._without(counts, place)
        return counts

    def _behind(self, state: State) -> Callable[[int, State], int]:
        """See `Members._behind`, which knows of no member that may come no more."""
        found, entries = super()._behind(state), self.entries

        def behind(number: int, after: State) -> int:
            gone = after[0] & ~state[0] & ~(1 << entries.all[number].place)
            return self._searched(after) if gone & self._matters else found(number, after)

        return behind


def are_loose(term: Term[ObjectShape]) -> bool:
    """Are there names that only single objects have, which are subtracted?"""
    return any(name not in _ordered(term) for one in term.minus for name in one.named)


def _ordered(term: Term[ObjectShape]) -> set[str]:
    """The names that the schema has."""
    shapes = (one for one in term.minus if not isinstance(one, SingleObject))
    return {name for shape in (term.shape, *shapes) for name in shape.named}
