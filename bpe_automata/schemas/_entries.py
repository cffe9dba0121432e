"""The members that objects of a term may have, apart by what they say of the shapes that the term
subtracts.

    p - n - m ... = { v in p : v is not in n, not in m ... }

An object is not in n because one of its members has a value that n does not allow there, or because
its names are not those that n asks for. So there is an entry for all values of a member, and one
for the values of each kind that refute more of n, m ...: a text is read in all ways that its values
allow. (All values may have more spellings than the kinds together, as of some spellings it is not
decided which kind they are of.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_, or_
from typing import Any

from bpe_automata._automata.algebra import less_strings
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.sources import from_strings
from bpe_automata._sharing import cached
from bpe_automata.schemas._boolean import property_of
from bpe_automata.schemas._few_values import apart
from bpe_automata.schemas._scalar_sets import (
    intersect_strings,
    lower_bound,
    subtract_strings,
)
from bpe_automata.schemas._style import Piece, Style
from bpe_automata.schemas._values import ALL, ALL_STRINGS, NOTHING, Child, ObjectShape, Term, Values

UNBOUNDED = 1 << 60
"""A number of names that no object has."""


@dataclass(frozen=True, eq=False)
class KeysBut:
    """The spellings `keys` but those in `taken`, which are not all: only what asks for `language`
    has them removed, and a table of members need not."""

    keys: ByteDFA
    taken: tuple[bytes, ...]

    @cached
    def language(self) -> ByteDFA:
        """As a DFA."""
        return less_strings(self.keys, self.taken)


@dataclass(frozen=True, eq=False)
class Entry:
    """Members with one name, or with one of a set of names, whose values are of one kind.

    spelled: the spellings of the names, with all text between one and the value. place: of the name
    among those that come once at most, or how many these are. refuted: the shapes that an object
    with such a member is not of (bits).
    """

    spelled: Piece | KeysBut
    values: Values
    place: int
    refuted: int

    @property
    def key(self) -> Piece:
        """The spellings, as a text or a language."""
        return self.spelled.language if isinstance(self.spelled, KeysBut) else self.spelled


@dataclass(frozen=True, eq=False)
class Subtracted:
    """What a shape that is subtracted asks of the names of an object. bit: its number, as 1 << i.
    required, implied: as of an `ObjectShape`, in bits; most: `UNBOUNDED` for None."""

    bit: int
    required: int
    implied: tuple[tuple[int, int], ...]
    fewest: int
    most: int

    def is_refuted(self, few: Any, many: Any, seen: int) -> Any:
        """Is an object with so many names, and these ones among those that are implied, not of the
        shape? few, many: the least and the greatest number of distinct names, int or int64 [n]."""
        never = self.fewest > self.most or not holds(self.implied, seen)
        return (many < self.fewest) | (few > self.most) | never


def holds(implied: Iterable[tuple[int, int]], seen: int) -> bool:
    """Does each of some members come with the one that it needs? All in bits."""
    return not any(seen & one and not seen & needed for one, needed in implied)


class Entries:
    """All entries of a term in a style, of names that come once at most (`named`, in the order of
    the schema, `n` names in all) and of those that may come again and again (`others`).

    all: both; numbers: of each place, those of its entries, counted in `all`.

    A name that only a subtracted shape has a place for has one here too. unique: no name comes
    twice.
    """

    def __init__(self, term: Term[ObjectShape], style: Style, unique: bool) -> None:
        self._term, self._style = term, style
        names = [name for shape in (term.shape, *term.minus) for name in shape.named]
        self._bits = {name: 1 << i for i, name in enumerate(dict.fromkeys(names))}
        self.named = [
            entry
            for place, name in enumerate(self._bits)
            for entry in self._of(style.key(name), place, *self._children(name))
        ]
        others = list(self._others())
        self.n = len(self._bits) + (len(others) if unique else 0)
        self.others = list[Entry]()
        for place, one in enumerate(others, len(self._bits)):
            if unique:
                self.named += self._of(one[0], place, *one[1:])
            else:
                self.others += self._of(one[0], self.n, *one[1:])
        self.all = [*self.named, *self.others]
        self.numbers = [list[int]() for _ in range(self.n)]
        for number, entry in enumerate(self.named):
            self.numbers[entry.place].append(number)

    def _bits_of(self, names: Iterable[str]) -> int:
        """Of the places of some names."""
        return reduce(or_, map(self._bits.__getitem__, names), 0)

    def _pairs(self, shape: ObjectShape) -> tuple[tuple[int, int], ...]:
        """Bits: one named member, and one that an object with it has too."""
        return tuple((self._bits[one], self._bits[needed]) for one, needed in shape.implied)

    @cached
    def implied(self) -> tuple[tuple[int, int], ...]:
        """Bits: one member, and one that all objects with it have too."""
        return self._pairs(self._term.shape)

    @cached
    def subtracted(self) -> list[Subtracted]:
        """What the subtracted shapes ask of names."""
        return [
            Subtracted(
                1 << i,
                self._bits_of(one.required),
                self._pairs(one),
                one.fewest,
                UNBOUNDED if one.most is None else one.most,
            )
            for i, one in enumerate(self._term.minus)
        ]

    @cached
    def required(self) -> int:
        """Bits of the members that are required."""
        return self._bits_of(self._term.shape.required)

    @cached
    def fewest(self) -> int:
        """Distinct names that an object has at least, 0 where the required ones are as many."""
        fewest = self._term.shape.fewest
        return 0 if fewest <= len(self._term.shape.required) else fewest

    @cached
    def most(self) -> int:
        """Names that an object has at most, `UNBOUNDED` where it can have no more."""
        most = self._term.shape.most
        bounded = most is not None and (most < self.n or self.others)
        return most if bounded and most is not None else UNBOUNDED

    @cached
    def caps(self) -> tuple[int, int]:
        """From which on greater numbers of names make no difference: least ones, greatest ones."""
        few = (1 + one.most for one in self.subtracted if one.most < UNBOUNDED)
        many = (one.fewest for one in self.subtracted)
        most = 0 if self.most == UNBOUNDED else 1 + self.most
        return max((self.fewest, *few)), max((most, *many))

    @cached
    def matters(self) -> list[bool]:
        """Of each place, may it make a difference to the others whether its member is there?"""
        some = self.told | self.required
        return [
            self.caps != (0, 0)
            or bool(some >> place & 1 or self.asking[place])
            or any(self.all[number].refuted for number in self.numbers[place])
            for place in range(self.n)
        ]

    def ends(self, few: Any, many: Any, seen: int, left: int) -> Any:
        """May an object end, as far as counts and subtracted shapes go? bool, or bool [n] where few
        and many are int64 [n]. left: the shapes that nothing has refuted before."""
        found = (few >= self.fewest) & (many <= self.most)
        for one in self.subtracted:
            if left & one.bit:
                found = found & one.is_refuted(few, many, seen)
        return found

    @cached
    def asking(self) -> list[int]:
        """Of each place, the subtracted shapes that require its member (bits)."""
        return [
            sum(one.bit for one in self.subtracted if one.required >> place & 1)
            for place in range(self.n)
        ]

    @cached
    def told(self) -> int:
        """Bits of the members that need another, or are needed."""
        pairs = [*self.implied, *self._asked]
        return reduce(or_, (one | needed for one, needed in pairs), 0)

    @cached
    def always(self) -> int:
        """Bits of the members that are in `implied` of a subtracted shape."""
        return reduce(or_, (one | needed for one, needed in self._asked), 0)

    @cached
    def _asked(self) -> list[tuple[int, int]]:
        return [pair for shape in self.subtracted for pair in shape.implied]

    @cached
    def mattering(self) -> list[int]:
        """By place: bits of `always`, and of each group of members that needs link, however
        indirectly, if one of them is at that place or later, or is in `always`."""
        groups = [self.always]
        for one, needed in self.implied:
            others = [group for group in groups[1:] if not group & (one | needed)]
            joined = [group for group in groups[1:] if group & (one | needed)]
            groups = [groups[0], *others, reduce(or_, joined, one | needed)]
        with_these = (group for group in groups if group & self.always)
        found = [reduce(or_, with_these, 0)] * (1 + self.n)
        for group in groups:
            for at in range(group.bit_length()):
                found[at] |= group
        return found

    def _children(self, name: str) -> tuple[Child, list[Child]]:
        """Of the term's shape, and of those that are subtracted."""
        shape, *others = (
            property_of(one, name).child for one in (self._term.shape, *self._term.minus)
        )
        return shape, others

    def _of(
        self, spelled: Piece | KeysBut, place: int, have: Child, needs: list[Child]
    ) -> Iterator[Entry]:
        for values, refuted in refuting(have, needs):
            yield Entry(spelled, values, place, refuted)

    def _others(self) -> Iterator[tuple[Piece | KeysBut, Child, list[Child]]]:
        """The names beyond, in sets that all shapes treat alike."""
        if self._term.shape.most == 0:
            return
        for names, have in self._term.shape.rest:
            alike = [(names, list[Child]())]
            for shape in self._term.minus:
                alike = [(s, [*n, need]) for some, n in alike for s, need in _alike(some, shape)]
            for some, needs in alike:
                keys = self._keys_but(lower_bound(some))
                if isinstance(keys, KeysBut) or keys.start:
                    yield keys, have, needs

    def _keys_but(self, names: ByteDFA) -> ByteDFA | KeysBut:
        """The spellings of all names but those that have places. If those have one spelling each,
        they are removed from the spellings of all names, which is quicker."""
        spelled = [self._style.key(name) for name in self._bits]
        single = tuple(piece for piece in spelled if isinstance(piece, bytes))
        if len(single) < len(spelled):
            others = subtract_strings(names, from_strings(self._bits))
            return others if others.is_empty else self._style.keys(others)
        keys = self._style.keys(names)
        if names is ALL_STRINGS:
            return KeysBut(keys, single) if single else keys
        find = partial(less_strings, keys, single)
        return self._style.shared.once(("keys but", single), names, find)


def _alike(names: ByteDFA, shape: ObjectShape) -> Iterator[tuple[ByteDFA, Child]]:
    """Some names beyond the named ones, apart by what a shape allows under them."""
    for some, child in shape.rest:
        both = intersect_strings(names, some)
        if not both.is_empty:
            yield both, child
            names = subtract_strings(names, some)
    if not names.is_empty:
        yield names, NOTHING


def refuting(have: Child, needs: Sequence[Child]) -> list[tuple[Values, int]]:
    """All values of a child, with the bits of the `needs` that have none of them; then each kind of
    them that is in none of further `needs`, with the bits of all these. Raises
    BudgetExceededError."""
    if not needs:
        return [(have.values, 0)]
    asked = {id(need.values): need.values for need in needs if need.values is not ALL}
    kinds = list[tuple[Values, int]]()
    for values, inside in apart(have.values, list(asked.values())):
        out = {key for key, there in zip(asked, inside, strict=True) if not there}
        kinds.append((values, sum(1 << i for i, one in enumerate(needs) if id(one.values) in out)))
    all_refute = reduce(and_, (refuted for _, refuted in kinds), -1)
    more = [kind for kind in kinds if kind[1] != all_refute]
    return [(have.values, all_refute), *more] if kinds else []  # none where there is no value
