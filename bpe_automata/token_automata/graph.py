"""Reachability in a token automaton: relevant states, distances to acceptance, cycles; and groups
of transitions with the same source and target."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check
from bpe_automata._kernels.distance import NEVER, distances_by_head
from bpe_automata.token_automata.table import AnyTable, Table, offsets_of


def by_head(automaton: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The transitions sorted by target: (ptr int64 [n + 1], tail int32 [m], edge int64 [m])."""
    edge = np.argsort(automaton.targets, kind="stable")
    return offsets_of(automaton.targets, automaton.n_states), automaton.sources()[edge], edge


def distances(automaton: Table) -> np.ndarray:
    """int32 [n_states]: how many symbols lead to the nearest accepting state, -1 if none does."""
    ptr, tail, _ = by_head(automaton)
    return distances_by_head(ptr, tail, automaton.accepting)


def relevant(automaton: Table) -> np.ndarray:
    """bool [n_states]: reachable, and an accepting state is reachable from it."""
    found = np.zeros(automaton.n_states, dtype=np.bool_)
    found[reached(automaton)] = True
    return found & (distances(automaton) != NEVER)


def reached(automaton: Table) -> np.ndarray:
    """int64: the states within reach of the start, breadth-first by symbol."""
    seen, levels = np.zeros(automaton.n_states, dtype=np.bool_), [np.array([automaton.start])]
    while len(levels[-1]):
        check()
        seen[levels[-1]] = True
        targets = automaton.targets[edges_of(automaton.offsets, levels[-1])]
        new, first = np.unique(targets[~seen[targets]], return_index=True)
        levels.append(new[np.argsort(first)])
    return np.concatenate(levels)


def topological(automaton: Table) -> np.ndarray | None:
    """int64: the states, each before those that it leads to; None if there is a cycle (Kahn,
    "Topological sorting of large networks", CACM 5, 1962)."""
    waiting = np.bincount(automaton.targets, minlength=automaton.n_states)
    levels = [np.flatnonzero(waiting == 0)]
    while len(levels[-1]):
        check()
        after = automaton.targets[edges_of(automaton.offsets, levels[-1])]
        np.subtract.at(waiting, after, 1)
        levels.append(np.unique(after[waiting[after] == 0]))
    order = np.concatenate(levels)
    return order if len(order) == automaton.n_states else None


# Other numbers for the states.


def trimmed(automaton: AnyTable) -> AnyTable:
    """The same language with only the relevant states, in their old order. For the empty language
    one state remains."""
    keep = relevant(automaton)
    if keep.all():
        return automaton
    if not keep[automaton.start]:
        empty = np.empty(0, dtype=np.int32)
        accepting, offsets = np.zeros(1, dtype=np.bool_), np.zeros(2, dtype=np.int64)
        parts = 0, accepting, offsets, empty, empty
        return type(automaton)(*parts, automaton.alphabet, automaton.spellings)
    return with_only(automaton, np.flatnonzero(keep))


def with_only(automaton: AnyTable, order: np.ndarray) -> AnyTable:
    """The automaton with only the states of `order`, in that order; the start must be one."""
    number = np.full(automaton.n_states, -1, dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return renumbered(automaton, order, number)


def renumbered(automaton: AnyTable, order: np.ndarray, number: np.ndarray) -> AnyTable:
    """State i of the result has the transitions of order[i], each target q replaced by number[q].

    number: int [n_states], -1 for states that are dropped with all transitions to them; it must
    give the start and every state of `order` a number below len(order).
    """
    sizes = np.diff(automaton.offsets)[order]
    edges = edges_of(automaton.offsets, order)
    targets = number[automaton.targets[edges]]
    stays = targets >= 0
    return replace(
        automaton,
        start=int(number[automaton.start]),
        accepting=automaton.accepting[order],
        offsets=offsets_of(np.repeat(np.arange(len(order)), sizes)[stays], len(order)),
        symbols=automaton.symbols[edges[stays]],
        targets=targets[stays],
    )


def edges_of(offsets: np.ndarray, states: np.ndarray) -> np.ndarray:
    """int64: the numbers of the transitions of each state, one state after the other."""
    sizes = offsets[states + 1] - offsets[states]
    begins = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(offsets[states] - begins, sizes)


# Groups of transitions with the same source and target.


class Groups(NamedTuple):
    """offsets: int64 [n_states + 1], the groups of a state, by target; target: int32 and
    size: int64, of each group; first: int64, where its symbols begin in `symbols` (int32 [m],
    ascending within a group)."""

    offsets: np.ndarray
    target: np.ndarray
    size: np.ndarray
    first: np.ndarray
    symbols: np.ndarray

    def of_state(self, state: int) -> slice:
        """The groups that leave a state."""
        return slice(int(self.offsets[state]), int(self.offsets[state + 1]))

    def symbols_of(self, group: int) -> np.ndarray:
        """int32, ascending."""
        return self.symbols[self.first[group] : self.first[group] + self.size[group]]


def grouped(automaton: Table) -> Groups:
    """The groups of all transitions."""
    source = automaton.sources()
    order = np.lexsort((automaton.targets, source))  # stable: by symbol where these are equal
    target = automaton.targets[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (np.diff(source) != 0) | (np.diff(target) != 0)
    first = np.flatnonzero(begins)
    size = np.diff(np.append(first, len(order)))
    offsets = offsets_of(source[first], automaton.n_states)
    return Groups(offsets, target[first], size, first, automaton.symbols[order])
