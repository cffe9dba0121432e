"""Objects of several terms in a linked automaton, whose members are read together.

Which term an object is of may show late. Say that a field may be any of 48 kinds of objects, told
apart by the member "type": until that comes, all are possible. Read apart, each is an instance of
its own, and each set of their states has a row written down for it. So terms share a table, with an
exit for each name: the set is kept in the context, and all sets use the rows of that table. Behind
a name it is known which terms allow it. (A term is here the `Members` that are made of it.)

The table is that of all terms of one set of values, whichever of them are left. Terms whose names
have several spellings, or are given by patterns, are read apart: they would take a product of
automata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.part_tables import Alternative, labelled, table_beside, table_of
from bpe_automata._automata.parts import FAR, Part, Place, Table
from bpe_automata._budget import check
from bpe_automata._sharing import cached
from bpe_automata.schemas._entries import KeysBut
from bpe_automata.schemas._few_values import listed_strings
from bpe_automata.schemas._frames import (
    DONE,
    ROOT,
    Frame,
    Linking,
    State,
    after_value,
    covers,
    rest_outside,
)
from bpe_automata.schemas._members import Members
from bpe_automata.schemas._values import ALL_STRINGS, Values

_FEWEST = 2  # terms that are read together
_FEW_STRINGS = 4  # in a set of values, so that it is read together with others
_FEWEST_SETS = 4  # of a few strings each, behind one name, that are read together


class UnitedMembers:
    """The objects of some terms, at least two of those that `united` puts together.

    A state is a tuple of pairs, in order: the number of a term, and a state of that term. Labels: 0
    for the end, then one for each name that has a place in some term, and one for all others.
    """

    def __init__(
        self, terms: Sequence[Members], between: bytes, last: bytes, linker: Linking
    ) -> None:
        """between, last: of their brackets."""
        self._terms, self._between, self._last, self.linker = terms, between, last, linker
        self.brackets = terms[0].brackets
        self.begin = tuple((i, one.begin) for i, one in enumerate(terms))
        self.may_be_empty = any(one.may_be_empty for one in terms)
        self._first, self._next = _Following(self, True), _Following(self, False)
        self._parts: dict[tuple[State, bool], Part] = {}

    def opening(self) -> int:
        """See `Container.opening`."""
        return min(one.opening() for one in self._terms)

    def closing(self, state: State) -> int:
        """See `Container.closing`."""
        return min(self._terms[i].closing(own) for i, own in state)

    def covers(self, state: State, other: State) -> bool:
        """See `Container.covers`."""
        return set(other) <= set(state)

    def merged(self, states: Iterable[State]) -> list[State]:
        """See `Container.merged`."""
        own: dict[int, list[State]] = {}
        for i, one in (pair for state in states for pair in state):
            own.setdefault(i, []).append(one)
        return [
            tuple((i, one) for i in sorted(own) for one in sorted(self._terms[i].merged(own[i])))
        ]

    def entered(self, frame: Frame) -> Iterable[Place]:
        """What follows the first bracket."""
        begin = tuple(pair for pair in self.begin if self._terms[pair[0]].opening() < FAR)
        return ((self._first, self.linker.frame(self, begin, frame)),)

    def after(self, state: State) -> _Following:
        """What follows a member, whichever of the terms it is of."""
        return self._next

    def resolved(self, frame: Frame, is_first: bool) -> tuple[Part, Frame]:
        """What is read in one context. is_first: of the first member, or of what follows one."""
        (i, own), *others = frame.state
        if others:
            part = self._parts.get((frame.state, is_first))
            if part is None:
                part = self._parts[frame.state, is_first] = self._made(frame.state, is_first)
            return part, frame
        term = self._terms[i]
        inside = self.linker.frame(term, own, frame.parent or ROOT)
        return (term.first if is_first else term.after(own)), inside

    # The parts, which share one table.

    @cached
    def _names(self) -> list[bytes]:
        """The spellings of all that have a place, in the order of their labels."""
        return list(dict.fromkeys(text for term in self._terms for text in _names(term)))

    @cached
    def _labels(self) -> list[_Labels]:
        """Of each term."""
        label = {text: 1 + k for k, text in enumerate(self._names)}
        return [_Labels.of(term, label) for term in self._terms]

    @cached
    def _next_table(self) -> Table:
        texts = {self._between + name: (label,) for label, name in enumerate(self._names, 1)}
        texts[self._last] = (DONE,)
        if not any(term.entries.others for term in self._terms):
            return table_of([((text,), label) for text, (label,) in texts.items()])
        return table_beside(texts, self._between, _all_keys(self.linker), 1 + len(self._names))

    @cached
    def _first_table(self) -> Table:
        return self._next_table.begun_after(self._between)

    def _made(self, state: State, is_first: bool) -> Part:
        table = self._first_table if is_first else self._next_table
        costs = np.full(2 + len(self._names), FAR)
        ways = list[_Way]()
        for i, own in state:
            check()
            term, labels = self._terms[i], self._labels[i]
            way = _Way(term, labels, *term.options(own))
            ways.append(way)
            for number in way.closings:
                if number < len(labels.named):
                    at = labels.named[number]
                    costs[at] = min(costs[at], way.cost(number))
                else:
                    np.minimum(costs, way.cost(number), out=costs, where=labels.reads_others)
            if not is_first and term.may_end(own):
                costs[DONE] = 0

        known = dict[int, list[tuple[Part, State]]]()

        def follow(frame: Frame, label: int) -> Iterator[Place]:
            outside = frame.parent or ROOT
            if label == DONE:
                yield from after_value(outside) if costs[DONE] < FAR else ()
                return
            if label not in known:
                known[label] = self._behind(label, state, ways)
            for part, after in known[label]:
                yield part, self.linker.frame(self, after, outside)

        return Part(table, table.far(costs), follow, rest_outside, family=self, covers=covers)

    def _behind(self, label: int, state: State, ways: list[_Way]) -> list[tuple[Part, State]]:
        """The parts of the values behind a name, with the state after each."""
        behind = list[tuple[Members, int, State]]()
        for way, (i, _) in zip(ways, state, strict=True):
            for number in way.labels.numbers(label):
                if number in way.closings and way.cost(number) < FAR:
                    behind.append(
                        (way.term, number, ((i, way.after(number, way.closings[number])),))
                    )
        texts = [_few_strings(term.entries.all[number].values) for term, number, _ in behind]
        together = [(some, at[2]) for some, at in zip(texts, behind, strict=True) if some]
        if len(together) < _FEWEST_SETS:
            return [(term.part(number), after) for term, number, after in behind]
        # While the value is read its frame stands for all; its label says which state is left.
        (after,) = self.merged([after for _, after in together])
        apart = [at for some, at in zip(texts, behind, strict=True) if not some]
        return [
            (self._of_texts(together), after),
            *((term.part(number), then) for term, number, then in apart),
        ]

    def _of_texts(self, texts: list[tuple[frozenset[str], State]]) -> Part:
        """The part of values that are a few strings each; label k is behind those of the k-th, and
        leads to its state."""
        style = self.linker.style
        first, last = style.around(self.brackets.inside)
        alternatives: list[Alternative] = [
            (tuple(one for one in (first, style.string(text), last) if one != b""), label)
            for label, (some, _) in enumerate(texts)
            for text in sorted(some)
        ]
        costs = {label: self.closing(after) for label, (_, after) in enumerate(texts)}

        def follow(frame: Frame, label: int) -> Iterable[Place]:
            return after_value(self.linker.frame(self, texts[label][1], frame.parent or ROOT))

        return labelled(alternatives, costs, follow, rest_outside, self.linker.joined)


class _Following(NamedTuple):
    """The parts of what follows a bracket, or a member."""

    united: UnitedMembers
    is_first: bool
    rank: int = 0

    def entered(self, contexts: list[Any]) -> Iterable[tuple[Part, Frame]]:
        """See `Together.entered`."""
        one = self.united.linker.joined(contexts)
        return [self.united.resolved(frame, self.is_first) for frame in one.several or (one,)]


class _Labels(NamedTuple):
    """Of the entries of a term. named: the label of each that has a place; by_label: their numbers;
    other_numbers: those of the entries for other names; reads_others: bool [labels], is that of a
    name without a place?"""

    named: list[int]
    by_label: dict[int, list[int]]
    reads_others: np.ndarray
    other_numbers: range

    @classmethod
    def of(cls, term: Members, label: dict[bytes, int]) -> _Labels:
        """label: of each name."""
        entries = term.entries
        named = [label[one.spelled] for one in entries.named if isinstance(one.spelled, bytes)]
        by_label = dict[int, list[int]]()
        for number, at in enumerate(named):
            by_label.setdefault(at, []).append(number)
        others = np.ones(2 + len(label), np.bool_)
        others[[DONE, *map(label.__getitem__, _names(term))]] = False
        return cls(named, by_label, others, range(len(named), len(entries.all)))

    def numbers(self, label: int) -> Iterable[int]:
        """The entries behind an exit."""
        others = self.other_numbers if self.reads_others[label] else ()
        return self.by_label.get(label, ()) or others


class _Way(NamedTuple):
    """What a state of a term allows: see `Members.options`."""

    term: Members
    labels: _Labels
    closings: dict[int, int]
    after: Callable[[int, int], State]

    def cost(self, number: int) -> int:
        """Length of the shortest text from behind a name to the end of the object."""
        return min(self.term.least(number) + self.closings[number], FAR)


def _few_strings(values: Values) -> frozenset[str]:
    """Its strings, if it has a few, and nothing else."""
    strings = listed_strings(values)
    return strings if len(strings) <= _FEW_STRINGS else frozenset()


def _names(term: Members) -> Iterator[bytes]:
    """The spellings of those that have a place."""
    for one in term.entries.all:
        if isinstance(one.spelled, bytes):
            yield one.spelled
        elif isinstance(one.spelled, KeysBut):
            yield from one.spelled.taken


def _all_keys(linker: Linking) -> ByteDFA:
    return linker.style.keys(ALL_STRINGS)


def united(terms: Sequence[Members], linker: Linking) -> list[Members | UnitedMembers]:
    """Some terms, at least two; those that can be read together become one."""
    keys = _all_keys(linker)

    def fits(term: Members) -> bool:
        named, others = term.entries.named, [one.spelled for one in term.entries.others]
        others = [one.keys if isinstance(one, KeysBut) else one for one in others]
        return all(isinstance(one.spelled, bytes) for one in named) and all(
            one is keys for one in others
        )

    between, last = terms[0].brackets.between, terms[0].brackets.last
    together = [term for term in terms if fits(term)]
    if not isinstance(between, bytes) or not isinstance(last, bytes) or len(together) < _FEWEST:
        return list(terms)
    apart = [term for term in terms if not fits(term)]
    return [UnitedMembers(together, between, last, linker), *apart]
