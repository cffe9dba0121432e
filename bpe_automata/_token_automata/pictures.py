"""A token automaton as a drawing: one arrow for the symbols between two states, a large automaton
summarised, the path of a sequence highlighted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bpe_automata._arguments import sequence_of_ids
from bpe_automata._token_automata.explain import explained, size, symbol_text
from bpe_automata._token_automata.graph import Groups, grouped
from bpe_automata._token_automata.table import Table
from bpe_automata.errors import ArgumentError
from bpe_automata.viz import Drawing, Edge, Node, Picture, edge_label

_MOST_STATES = 40
_MOST_ARROWS = 120
_MOST_SUCCESSORS = 12

_Step = tuple[int, int]  # source, target


def picture(automaton: Table, path: Sequence[int] | None = None, labels: int | None = 6) -> Picture:
    """A picture that notebooks show, with the states that the ids `path` pass highlighted.

    Transitions with the same source and target are one arrow that shows `labels` of its symbols
    (None: all). Over 40 states or 120 arrows, what is drawn is the first 40 states of the path and
    those 12 to which the start leads by most symbols, with at most 120 arrows between them, those
    of the path first; each state says how many transitions leave it. Its `dot()` is the source for
    Graphviz. Raises ArgumentError.
    """
    if labels is not None and labels < 0:
        raise ArgumentError(f"labels is {labels}: give a number from 0 on, or None for all symbols")
    ids = () if path is None else sequence_of_ids(path)
    states = [] if path is None else _states(automaton, ids)
    read: dict[_Step, list[int]] = {}  # the ids of the path, by where they lead
    for step, symbol in zip(pairwise(states), ids, strict=False):  # a path may break off
        known = read.setdefault(step, [])
        known += [] if symbol in known else [symbol]
    groups = grouped(automaton)
    caption = [size(automaton)]
    small = automaton.n_states <= _MOST_STATES and len(groups.target) <= _MOST_ARROWS
    shown = automaton.states() if small else _near(groups, automaton.start, states)
    if not small:
        whose = "the start and the path" if states else "the start"
        caption.append(f"too large to draw: only states near {whose} are shown")
    if path is not None:
        caption.append(f"the path {explained(automaton, ids).verdict}")
    number = {state: i for i, state in enumerate(shown)}
    arrows = [(s, t) for s in shown for t in groups.target[groups.of_state(s)].tolist()]
    arrows = [step for step in arrows if step[1] in number]
    if len(arrows) > _MOST_ARROWS:
        arrows = sorted(arrows, key=lambda step: step not in read)[:_MOST_ARROWS]
    nodes = tuple(_node(automaton, state, state in states, whole=small) for state in shown)
    edges = tuple(
        Edge(number[step[0]], number[step[1]], label, step in read)
        for step in arrows
        for label in [_label(automaton, groups, step, read.get(step, []), labels)]
    )
    return Picture(Drawing(nodes, edges, "; ".join(caption)))


def _states(automaton: Table, ids: tuple[int, ...]) -> list[int]:
    """Those that the ids lead through, as far as they can be read."""
    states = [automaton.start]
    for symbol in ids:
        after = automaton.step(states[-1], symbol)
        if after is None:
            break
        states.append(after)
    return states


def _near(groups: Groups, start: int, states: list[int]) -> Sequence[int]:
    """The first states of the path, the start, and those that it leads to by most symbols."""
    which = groups.of_state(start)
    order = np.argsort(-groups.size[which], kind="stable")[:_MOST_SUCCESSORS]
    first = list(dict.fromkeys(states))[:_MOST_STATES]
    return list(dict.fromkeys((*first, start, *groups.target[which][order].tolist())))


def _node(automaton: Table, state: int, lit: bool, whole: bool) -> Node:
    """In a summary a node says how much is not drawn."""
    degree = len(automaton.row(state)[0])
    note = "" if whole or not degree else f"{degree:,} out"
    return Node(str(state), bool(automaton.accepting[state]), state == automaton.start, lit, note)


def _label(
    automaton: Table, groups: Groups, step: _Step, first: list[int], labels: int | None
) -> str:
    """`first`, then others; only as many texts are made as can be shown. labels None: all."""
    which = groups.of_state(step[0])
    group = which.start + int(np.searchsorted(groups.target[which], step[1]))
    symbols = groups.symbols_of(group)
    labels = len(symbols) if labels is None else labels
    some = [*first, *np.setdiff1d(symbols, first)[: labels + 1].tolist()]
    texts = [symbol_text(automaton, symbol) for symbol in some[: labels + 1]]
    return edge_label(texts + [""] * (len(symbols) - len(texts)), labels)
