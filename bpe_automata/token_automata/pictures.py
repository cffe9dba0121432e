"""An automaton as a drawing: edges merged by target, a large one summarised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bpe_automata.errors import ArgumentError
from bpe_automata.token_automata.groups import Groups, grouped
from bpe_automata.token_automata.names import size, symbol_text
from bpe_automata.token_automata.routes import Route, route
from bpe_automata.token_automata.table import Table
from bpe_automata.viz import Drawing, Edge, Node, Picture, edge_label

_MOST_STATES = 40
_MOST_ARROWS = 120
_MOST_SUCCESSORS = 12


def picture(
    table: Table,
    path: Sequence[int] | bytes | str | None,
    labels: int | None,
    most_states: int = _MOST_STATES,
    most_arrows: int = _MOST_ARROWS,
) -> Picture:
    """See `TokenAutomaton.picture`."""
    if labels is not None and labels < 0:
        raise ArgumentError(f"labels is {labels}: give a number from 0 on, or None for all symbols")
    way = Route((), {}, "") if path is None else route(table, path)
    groups = grouped(table)
    small = table.n_states <= most_states and len(groups.target) <= most_arrows
    shown, arrows = _whole(table, groups) if small else _summarised(groups, table.start, way)
    place = {state: i for i, state in enumerate(shown)}
    lit = set(way.states)
    nodes = tuple(_node(table, state, state in lit, whole=small) for state in shown)
    edges = tuple(
        Edge(place[p], place[q], _label(table, symbols, way.read.get((p, q), []), labels), on)
        for p, q, symbols in arrows
        for on in [(p, q) in way.read]
    )
    parts = [size(table)] if small else [size(table), *_left_out(way, edges)]
    return Picture(Drawing(nodes, edges, "; ".join([*parts, way.said] if way.said else parts)))


def dot(table: Table, labels: int | None) -> str:
    """All of it, whatever its size."""
    return picture(table, None, labels, table.n_states, table.n_transitions).dot()


_Arrow = tuple[int, int, np.ndarray]  # source, target, symbols


def _whole(table: Table, groups: Groups) -> tuple[list[int], list[_Arrow]]:
    """All states and all arrows."""
    states = list(table.states())
    arrows = [
        (source, target, groups.symbols_of(group))
        for source in states
        for which in [groups.of_state(source)]
        for group, target in enumerate(groups.target[which].tolist(), start=which.start)
    ]
    return states, arrows


def _summarised(groups: Groups, start: int, way: Route) -> tuple[list[int], list[_Arrow]]:
    """The first states of the way, and those that the start leads to by most symbols; only the
    arrows of the way and those of the start to the latter."""
    which = groups.of_state(start)
    order = np.argsort(-groups.size[which], kind="stable")[:_MOST_SUCCESSORS]
    most = groups.target[which][order].tolist()
    first = dict.fromkeys((*way.states[:_MOST_STATES], start))
    steps = [step for step in way.read if first.keys() >= {*step}][:_MOST_STATES]
    wanted = dict.fromkeys((*steps, *((start, target) for target in most)))
    arrows = [(p, q, groups.symbols_of(_group(groups, p, q))) for p, q in wanted]
    return list(dict.fromkeys((*first, *most))), arrows


def _group(groups: Groups, source: int, target: int) -> int:
    """The group of the transitions from one state to another, of which there are some."""
    which = groups.of_state(source)
    return which.start + int(np.searchsorted(groups.target[which], target))


def _node(table: Table, state: int, lit: bool, whole: bool) -> Node:
    """In a summary a node says how much is not drawn."""
    degree = int(table.offsets[state + 1] - table.offsets[state])
    note = "" if whole or not degree else f"{degree:,} out"
    return Node(str(state), bool(table.accepting[state]), state == table.start, lit, note)


def _label(table: Table, symbols: np.ndarray, first: list[int], labels: int | None) -> str:
    """`first`, then others; only as many texts are made as can be shown. labels None: all."""
    labels = len(symbols) if labels is None else labels
    some = [*first, *np.setdiff1d(symbols, first)[: labels + 1].tolist()]
    texts = [symbol_text(table, symbol) for symbol in some[: labels + 1]]
    return edge_label(texts + [""] * (len(symbols) - len(texts)), labels)


def _left_out(way: Route, edges: tuple[Edge, ...]) -> list[str]:
    """What the caption of a summary says of what is drawn."""
    whose = "of the start and of the path" if way.said else "of the start"
    parts = [f"too large to draw: only arrows {whose} are shown"]
    lit = sum(edge.lit for edge in edges)
    if len(way.states) > _MOST_STATES:
        parts.append(f"the first {_MOST_STATES} of {len(way.states):,} states of the path")
    elif lit < len(way.read):
        parts.append(f"the first {lit} of {len(way.read):,} arrows of the path")
    return parts
