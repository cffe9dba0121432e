"""An automaton as a drawing: edges merged by target, a large one summarised."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bpe_automata._arguments import sequence_of_ids
from bpe_automata._budget import check
from bpe_automata._kernels.distance import NEVER
from bpe_automata._token_automata.explain import plural, size, symbol_text
from bpe_automata._token_automata.table import Groups, Table, distances, grouped
from bpe_automata.errors import ArgumentError
from bpe_automata.viz import Drawing, Edge, Node, Picture, edge_label, visible

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
    number = {state: i for i, state in enumerate(shown)}
    lit = set(way.states)
    nodes = tuple(_node(table, state, state in lit, whole=small) for state in shown)
    edges = tuple(
        Edge(number[p], number[q], _label(table, symbols, way.read.get((p, q), []), labels), on)
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


# What a picture highlights: the path of a sequence of ids, or all paths that spell a text.


class Route(NamedTuple):
    """states: in the order of the way, each once; read: (source, target) -> the symbols read from
    one to the other; said: for the caption."""

    states: tuple[int, ...]
    read: dict[tuple[int, int], list[int]]
    said: str


def route(table: Table, path: Sequence[int] | bytes | str) -> Route:
    """Of ids as far as they can be read. Raises ArgumentError."""
    if isinstance(path, bytes | bytearray | str):
        return _of_text(table, _encoded(path))
    return _of_ids(table, sequence_of_ids(path))


# ---------------------------------------------------------------- ids


def _of_ids(table: Table, ids: tuple[int, ...]) -> Route:
    states = [table.start]
    for symbol in ids:
        after = table.step(states[-1], symbol)
        if after is None:
            break
        states.append(after)
    read: dict[tuple[int, int], list[int]] = {}
    for step, symbol in zip(pairwise(states), ids, strict=False):  # a path may break off
        known = read.setdefault(step, [])
        known += [] if symbol in known else [symbol]
    return Route(tuple(dict.fromkeys(states)), read, _said(table, ids, states))


def _said(table: Table, ids: tuple[int, ...], states: list[int]) -> str:
    distance = distances(table)
    dead = next((k for k, s in enumerate(states) if distance[s] == NEVER), None)
    if dead == 0:
        return "nothing is accepted at all"
    if dead is not None:
        text = symbol_text(table, ids[dead - 1])
        return f"nothing can be accepted after {text} at position {dead - 1}"
    at = len(states) - 1
    if at < len(ids):
        return f"{symbol_text(table, ids[at])} cannot be read at position {at}"
    return f"the path {'is accepted' if table.accepting[states[-1]] else 'ends too early'}"


# ---------------------------------------------------------------- text


_Point = tuple[int, int]  # how much of the text has been read, state


def _of_text(table: Table, text: bytes) -> Route:
    """All accepted sequences that spell `text`, without ids that spell nothing."""
    steps = _steps(table, text)
    # ways[point]: the number of sequences that read the rest and are accepted.
    ways: dict[_Point, int] = {}
    for point in reversed(list(steps)):  # ascending by what has been read
        at, state = point
        ends = at == len(text) and bool(table.accepting[state])
        ways[point] = ends + sum(ways[after] for _, after in steps[point])
    read: dict[tuple[int, int], list[int]] = {}
    states = dict.fromkeys(point[1] for point in steps if ways[point])
    for (_, source), moves in steps.items():
        for symbol, after in moves:
            if ways[after]:
                known = read.setdefault((source, after[1]), [])
                known += [] if symbol in known else [symbol]
    count = ways[0, table.start]
    number = plural(count, "accepted sequence") if count else "no accepted sequence"
    said = f"{number} {'spell' if count > 1 else 'spells'} {visible(text)}"
    return Route(tuple(states), read, said)


def _steps(table: Table, text: bytes) -> dict[_Point, list[tuple[int, _Point]]]:
    """Every point that can be reached, ascending by what has been read, with (symbol, point after
    it). Raises ArgumentError."""
    spelled = _by_spelling(table)
    longest = max(map(len, spelled), default=0)
    reached: list[dict[int, None]] = [{} for _ in range(len(text) + 1)]
    reached[0][table.start] = None
    steps: dict[_Point, list[tuple[int, _Point]]] = {}
    for at, states in enumerate(reached):
        check()
        ends = range(at + 1, min(at + longest, len(text)) + 1)
        fitting = [(end, symbol) for end in ends for symbol in spelled.get(text[at:end], ())]
        for state in states:
            moves = steps[at, state] = []
            for end, symbol in fitting:
                after = table.step(state, symbol)
                if after is not None:
                    moves.append((symbol, (end, after)))
                    reached[end][after] = None
    return steps


def _by_spelling(table: Table) -> dict[bytes, list[int]]:
    """The symbols that spell something. Raises ArgumentError."""
    if table.spellings is None:
        raise ArgumentError(
            "the path is a text, but this automaton has no spellings: give ids, or make it with "
            "spellings=tokenizer.spellings"
        )
    found: dict[bytes, list[int]] = defaultdict(list)
    for symbol in set(table.symbols.tolist()):
        spelled = table.spellings[symbol] if symbol < len(table.spellings) else b""
        if spelled:
            found[spelled].append(symbol)
    return {spelled: sorted(symbols) for spelled, symbols in found.items()}


def _encoded(text: bytes | bytearray | str) -> bytes:
    try:
        return text.encode() if isinstance(text, str) else bytes(text)
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"the path is not text: it has a lone surrogate at position {error.start}"
        ) from None
