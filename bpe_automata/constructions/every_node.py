"""The eager engine: all nodes of a product, and what is dead at each, before any is visited.

    nodes  contains  { (place, hypotheses) : some ids lead there from the start }

and besides only what an id of a node's row leads to that may not follow each last id there.

A state of CartesianMerge is a node with the last id, and its mask follows from the node's row; so
the rows of all nodes are the whole automaton, in as many numbers as the lift has. Written out with
its edges (`explicit.explore`) it has one state for each last id.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np

from bpe_automata.budget import check
from bpe_automata.constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata.constructions.hypothesis_sets import BEGINNING
from bpe_automata.constructions.relevance import Node, Row
from bpe_automata.kernels.bits import contained
from bpe_automata.kernels.world import PARTLY


class Where(NamedTuple):
    """A node, for any product of the same automata: the DFA's state, the text automaton's, and the
    number of the hypothesis set."""

    state: int
    text: int
    hypotheses: int


def every_node(engine: CartesianMerge, state: ProductState) -> list[Where]:
    """All nodes that ids lead to from a state, itself first. Their rows are found on the way."""
    first = (state.place, state.hypotheses)
    found: dict[Node, None] = {first: None}
    todo = [first]
    while todo:
        check()
        here = todo.pop()
        for node in beyond(engine, here, engine.rows.row(*here)):
            if node not in found:
                found[node] = None
                todo.append(node)
    memo = engine.tables.memo
    return [Where(int(memo.state[p]), int(memo.added[p]), number) for p, number in found]


def settle(engine: CartesianMerge, nodes: Iterable[Where]) -> int:
    """Find what is dead at each of these nodes; returns at how many anything is."""
    tables, relevance = engine.tables, engine.rows
    states, texts, numbers = np.fromiter(chain.from_iterable(nodes), np.int64).reshape(-1, 3).T
    places = tables.places(states, texts)
    partly = np.flatnonzero(tables.statuses(places, numbers.copy()) == PARTLY)
    relevance.settle(places[partly], numbers[partly])
    found = zip(places[partly].tolist(), numbers[partly].tolist(), strict=True)
    return sum(map(relevance.any_dead, found))


def beyond(engine: CartesianMerge, node: Node, row: Row) -> set[Node]:
    """Where the ids of a node's row lead, whatever the last id was."""
    tables, sets = engine.tables, engine.canonical.sets
    places, kinds, start, ids = tables.edges(node[0], sets.sets[node[1]].row)
    free, bound = sets.rows(node[1])
    is_free, is_bound = (contained(side, ids) for side in row)
    leads: set[Node] = set()
    for side, after in ((is_free, free), (is_bound & ~is_free, bound)):
        groups = np.flatnonzero(_any(side, start))
        leads |= {*zip(places[groups].tolist(), after[kinds[groups]].tolist(), strict=True)}
    for group in np.flatnonzero(_any(is_free & is_bound, start)).tolist():
        number = sets.union(int(free[kinds[group]]), int(bound[kinds[group]]))
        leads.add((int(places[group]), number))
    added, after = tables.added_steps(node[0])
    return leads | {(p, BEGINNING) for p in after[contained(row.free, added)].tolist()}


def _any(flags: np.ndarray, start: np.ndarray) -> np.ndarray:
    """bool [groups]: is any flag of the group set?"""
    total = np.concatenate([[0], np.cumsum(flags)])
    return total[start[1:]] > total[start[:-1]]
