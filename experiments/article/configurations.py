"""The eager engine of Table 2: all configurations of a product, with their rows, before any is
visited.

    configurations  contains  { (state, text, hypotheses) : some ids lead there from the start }

and besides only what an id of a configuration's row leads to that may not follow each last id
there.

A state of CartesianMerge is a configuration with the last id, and its mask follows from the row of
the configuration; so the rows of all configurations are the whole automaton, in as many numbers as
the lift has. Written out with its transitions (`explore`) it has one state for each last id.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check
from bpe_automata._constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata._core.sets import BEGINNING, NONE
from bpe_automata._kernels.bits import contained, members


class Configuration(NamedTuple):
    """A state of the byte DFA, one of the text automaton, and the number of a hypothesis set: the
    same for any product of the same automata."""

    state: int
    text: int
    hypotheses: int


def all_configurations(engine: CartesianMerge, state: ProductState) -> list[Configuration]:
    """All configurations that ids lead to from a state, itself first. Their rows are found on the
    way."""
    first = Configuration(*state[:3])
    found, todo = {first: None}, [first]
    while todo:
        check()
        for configuration in successors(engine, todo.pop()):
            if configuration not in found:
                found[configuration] = None
                todo.append(configuration)
    return list(found)


def make_rows(engine: CartesianMerge, configurations: Iterable[Configuration]) -> None:
    """Find the ids that can be read at each configuration."""
    for configuration in configurations:
        check()
        engine.product.row(*configuration)


def successors(engine: CartesianMerge, here: Configuration) -> set[Configuration]:
    """Where the ids of a configuration's row lead, whatever the last id was."""
    sets, tokenizer = engine.canonical.sets, engine.tokenizer
    free, bound = engine.product.sides(*here)
    ids = members(free | bound)
    added = np.isin(ids, list(tokenizer.added_ids))
    leads = {
        Configuration(after.state, after.text, BEGINNING)
        for after in engine.steps(ProductState(*here, -1), ids[added])
    }
    ids = ids[~added]
    reached = engine.product.after_each(*here, ids)
    after_free, after_bound = sets.successors(here.hypotheses)
    classes = engine.canonical.actions.of_token[ids]
    by_free = np.where(contained(free, ids), after_free[classes], NONE)
    by_bound = np.where(contained(bound, ids), after_bound[classes], NONE)
    rows = np.unique(np.column_stack([reached, by_free, by_bound]), axis=0)
    for state, text, one, other in rows.tolist():
        numbers = {one, other, sets.union(one, other)} - {NONE}
        leads |= {Configuration(state, text, number) for number in numbers}
    return leads
