"""Draws automata over bytes or ids, with one arrow for all symbols that lead from one state to
another. A small automaton is drawn as a whole, a larger one only near a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from bpe_automata.viz._drawing import Edge, Node, edge_label, visible

LONGEST_PATH = 100
_MOST_STATES, _MOST_ARROWS = 40, 120
_Step = tuple[int, int]  # source, target


class Automaton(Protocol):
    """What a picture needs of an automaton."""

    @property
    def start(self) -> int: ...
    @property
    def accepting(self) -> np.ndarray: ...
    def row(self, state: int) -> tuple[np.ndarray, np.ndarray]:
        """(the symbols that a state reads, the state after each)."""
        ...


class Drawn(NamedTuple):
    """nodes and edges of a drawing; is_whole: are they all that the start leads to? route: the
    states of the path, as far as it can be read."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    is_whole: bool
    route: list[int]


def drawn(
    automaton: Automaton,
    path: Sequence[int],
    label: Callable[[np.ndarray, list[int]], str],
    lit: bool,
    has_end: bool = True,
) -> Drawn:
    """What is drawn: all that the start leads to; if that is over 40 states or 120 arrows, only the
    states of the path (its first 100 symbols) and the arrows from them, to at most 40 states.

    label: makes the label of an arrow from its symbols and from those that the path reads there.
    lit: is the path highlighted? has_end: are there finitely many states, so that all may be
    visited?"""
    route = _route(automaton, path[:LONGEST_PATH])
    read: dict[_Step, list[int]] = {}
    for step, symbol in zip(pairwise(route), path, strict=False):
        read[step] = list(dict.fromkeys((*read.get(step, ()), symbol)))
    states = _reached(automaton) if has_end else []
    arrows = _arrows(automaton, states)
    is_whole = 0 < len(states) <= _MOST_STATES and len(arrows) <= _MOST_ARROWS
    if not is_whole:
        arrows = _arrows(automaton, dict.fromkeys(route))
        first = sorted(arrows, key=lambda step: step not in read)[:_MOST_ARROWS]
        arrows = {step: arrows[step] for step in first}
        states = list(dict.fromkeys((*route, *(after for _, after in arrows))))
    number = {state: i for i, state in enumerate(states)}
    nodes = (
        Node(str(q), bool(automaton.accepting[q]), q == automaton.start, lit and q in route)
        for q in states
    )
    edges = (
        Edge(number[p], number[q], label(symbols, read.get((p, q), [])), lit and (p, q) in read)
        for (p, q), symbols in arrows.items()
    )
    return Drawn(tuple(nodes), tuple(edges), is_whole, route)


def _route(automaton: Automaton, path: Iterable[int]) -> list[int]:
    """The states of a path, as far as it can be read."""
    found = [automaton.start]
    for symbol in path:
        symbols, targets = automaton.row(found[-1])
        after = targets[symbols == symbol]
        if not len(after):
            break
        found.append(int(after[0]))
    return found


def _reached(automaton: Automaton) -> list[int]:
    """The start and the states that it leads to; at most one more than are drawn."""
    found = [automaton.start]
    for state in found:
        found += [q for q in np.unique(automaton.row(state)[1]).tolist() if q not in found]
        if len(found) > _MOST_STATES:
            break
    return sorted(found[: _MOST_STATES + 1])


def _arrows(automaton: Automaton, states: Iterable[int]) -> dict[_Step, np.ndarray]:
    """The symbols of the arrows that leave some states. If they lead to too many others, only the
    arrows between the given states and to those others that most symbols lead to."""
    found: dict[_Step, np.ndarray] = {}
    visited = set(states)
    for state in states:
        symbols, targets = automaton.row(state)
        after, sizes = np.unique(targets, return_counts=True)
        for to in after[np.argsort(-sizes, kind="stable")].tolist():
            if to in visited or len(visited) < _MOST_STATES:
                visited.add(to)
                found[state, to] = symbols[targets == to]
    return found


def byte_ranges(values: Iterable[int]) -> str:
    """Ascending bytes as "0-9, _, a-z": visible, \\xc3 for those that are no ASCII."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    labels = []
    for run in runs:
        ends = [visible(bytes((value,))) for value in (run[0], run[-1])]
        labels += ["-".join(ends)] if len(run) > 2 else ends[: len(run)]
    return edge_label(labels)
