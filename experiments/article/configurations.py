"""The eager engine of Table 2: all configurations of a product and their dead sets, before any is
visited.

    configurations  contains  { (state pair, hypotheses) : some ids lead there from the start }

and besides only what an id of a configuration's row leads to that may not follow each last id
there.

A state of CartesianMerge is a configuration with the last id, and its mask follows from the row of
the configuration; so the rows of all configurations are the whole automaton, in as many numbers as
the lift has. Written out with its transitions (`explore`) it has one state for each last id.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check
from bpe_automata._constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata._constructions.hypothesis_sets import BEGINNING
from bpe_automata._constructions.relevance import Configuration, Readable
from bpe_automata._kernels.bits import contained
from bpe_automata._kernels.product import PARTLY


class Where(NamedTuple):
    """A configuration, for any product of the same automata: the DFA's state, the text automaton's,
    and the number of the hypothesis set."""

    state: int
    text: int
    hypotheses: int


def all_configurations(engine: CartesianMerge, state: ProductState) -> list[Where]:
    """All configurations that ids lead to from a state, itself first. Their rows are found on the
    way."""
    first = (state.state_pair, state.hypotheses)
    found: dict[Configuration, None] = {first: None}
    todo = [first]
    while todo:
        check()
        here = todo.pop()
        for configuration in successors(engine, here, engine.relevance.readable(*here)):
            if configuration not in found:
                found[configuration] = None
                todo.append(configuration)
    memo = engine.tables.memo
    return [Where(int(memo.state[p]), int(memo.text_state[p]), number) for p, number in found]


def settle(engine: CartesianMerge, configurations: Iterable[Where]) -> int:
    """Find what is dead at each of these configurations; returns at how many anything is."""
    tables, relevance = engine.tables, engine.relevance
    states, texts, numbers = (
        np.fromiter(chain.from_iterable(configurations), np.int64).reshape(-1, 3).T
    )
    state_pairs = tables.state_pairs(states, texts)
    partly = np.flatnonzero(tables.statuses(state_pairs, numbers.copy()) == PARTLY)
    relevance.settle(state_pairs[partly], numbers[partly])
    found = zip(state_pairs[partly].tolist(), numbers[partly].tolist(), strict=True)
    return sum(map(relevance.any_dead, found))


def successors(
    engine: CartesianMerge, configuration: Configuration, row: Readable
) -> set[Configuration]:
    """Where the ids of a configuration's row lead, whatever the last id was."""
    tables, sets = engine.tables, engine.canonical.sets
    state_pairs, token_classes, start, ids = tables.edges(
        configuration[0], sets.sets[configuration[1]].utf8_row
    )
    free, bound = sets.successors(configuration[1])
    is_free, is_bound = (contained(side, ids) for side in row)
    leads: set[Configuration] = set()
    for side, after in ((is_free, free), (is_bound & ~is_free, bound)):
        groups = np.flatnonzero(_any(side, start))
        leads |= {
            *zip(state_pairs[groups].tolist(), after[token_classes[groups]].tolist(), strict=True)
        }
    for group in np.flatnonzero(_any(is_free & is_bound, start)).tolist():
        number = sets.union(int(free[token_classes[group]]), int(bound[token_classes[group]]))
        leads.add((int(state_pairs[group]), number))
    added, after = tables.added_steps(configuration[0])
    return leads | {(p, BEGINNING) for p in after[contained(row.free, added)].tolist()}


def _any(flags: np.ndarray, start: np.ndarray) -> np.ndarray:
    """bool [groups]: is any flag of the group set?"""
    total = np.concatenate([[0], np.cumsum(flags)])
    return total[start[1:]] > total[start[:-1]]
