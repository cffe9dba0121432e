"""An automaton as a drawing: edges merged by target, a large one summarised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from bpe_automata.token_automata.groups import Groups, grouped
from bpe_automata.token_automata.names import symbol_text
from bpe_automata.token_automata.table import Table
from bpe_automata.viz import Drawing, Edge, Node, Picture, edge_label

_MOST_STATES = 40
_MOST_ARROWS = 200
_MOST_SUCCESSORS = 12


def picture(
    table: Table,
    path: Sequence[int] | None,
    labels: int,
    most_states: int = _MOST_STATES,
    most_arrows: int = _MOST_ARROWS,
) -> Picture:
    """See `TokenAutomaton.picture`."""
    route = _route(table, () if path is None else path)
    lit = set(route) if path is not None else set()
    read = _read(route, () if path is None else path)
    groups = grouped(table)
    small = table.n_states <= most_states and len(groups.first) <= most_arrows
    shown = list(table.states()) if small else _summarised(groups, table.start, route)
    place = {state: i for i, state in enumerate(shown)}
    nodes = tuple(_node(table, state, state in lit, whole=small) for state in shown)
    edges = tuple(
        Edge(
            place[p], place[q], _label(table, symbols, read.get((p, q), []), labels), (p, q) in read
        )
        for p, q, symbols in _arrows(groups, shown)
        if q in place
    )
    return Picture(Drawing(nodes, edges, _caption(table, len(shown), path, route)))


def dot(table: Table, labels: int) -> str:
    """All of it, whatever its size."""
    return picture(table, None, labels, table.n_states, table.n_transitions).dot()


def _route(table: Table, path: Sequence[int]) -> list[int]:
    """The states of a sequence, as far as it can be read."""
    found = [table.start]
    for symbol in path:
        after = table.step(found[-1], symbol)
        if after is None:
            break
        found.append(after)
    return found


def _read(route: list[int], path: Sequence[int]) -> dict[tuple[int, int], list[int]]:
    """(source, target) -> the symbols of the path between them, each once."""
    found: dict[tuple[int, int], list[int]] = {}
    for step, symbol in zip(pairwise(route), path, strict=False):  # a path may break off
        known = found.setdefault(step, [])
        known += [] if symbol in known else [symbol]
    return found


def _arrows(groups: Groups, sources: list[int]) -> Iterator[tuple[int, int, np.ndarray]]:
    """(source, target, symbols) of all that leaves these states."""
    for source in sources:
        which = groups.of_state(source)
        for group, target in enumerate(groups.target[which].tolist(), start=which.start):
            yield source, target, groups.symbols_of(group)


def _summarised(groups: Groups, start: int, route: list[int]) -> list[int]:
    """The states on the route, and those that the start leads to by most symbols."""
    which = groups.of_state(start)
    order = np.argsort(-groups.size[which], kind="stable")[:_MOST_SUCCESSORS]
    most = groups.target[which][order].tolist()
    return list(dict.fromkeys((*route[:_MOST_STATES], *most)))


def _node(table: Table, state: int, lit: bool, whole: bool) -> Node:
    """In a summary a node says how much is not drawn."""
    degree = int(table.offsets[state + 1] - table.offsets[state])
    note = "" if whole or not degree else f"{degree:,} out"
    return Node(str(state), bool(table.accepting[state]), state == table.start, lit, note)


def _label(table: Table, symbols: np.ndarray, first: list[int], labels: int) -> str:
    """`first`, then others; only as many texts are made as can be shown."""
    some = [*first, *np.setdiff1d(symbols, first)[: labels + 1].tolist()]
    texts = [symbol_text(table, symbol) for symbol in some[: labels + 1]]
    return edge_label(texts + [""] * (len(symbols) - len(texts)), labels)


def _caption(table: Table, shown: int, path: Sequence[int] | None, route: list[int]) -> str:
    parts = [f"{table.n_states:,} states, {table.n_transitions:,} transitions"]
    if shown < table.n_states:
        parts.append(f"too large to draw: {shown:,} states around the start are shown")
    if path is not None and len(route) <= len(path):
        at = len(route) - 1
        parts.append(f"{symbol_text(table, path[at])} cannot be read at position {at}")
    elif path is not None:
        parts.append(
            f"the path {'is accepted' if table.accepting[route[-1]] else 'ends too early'}"
        )
    return "; ".join(parts)
