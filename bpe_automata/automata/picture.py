"""A byte DFA as a drawing: edges merged by target and labelled by ranges of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bpe_automata.kernels.distance import NEVER
from bpe_automata.viz import Drawing, Edge, Node, Picture, edge_label, visible

if TYPE_CHECKING:
    from bpe_automata.automata.dfa import ByteDFA

_MOST_STATES, _MOST_ARROWS, _MOST_SUCCESSORS = 40, 120, 12


def picture(dfa: ByteDFA, path: bytes | str | None = None) -> Picture:
    """See `ByteDFA.picture`."""
    data = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    route = _route(dfa, data or b"")
    states = _reached(dfa)
    arrows = _arrows(dfa, states) if len(states) <= _MOST_STATES else {}
    small = len(states) <= _MOST_STATES and len(arrows) <= _MOST_ARROWS
    if not small:
        states, arrows = _summarised(dfa, route)
    place = {state: i for i, state in enumerate(states)}
    steps, lit = set(pairwise(route)), set(route if data is not None else ())
    nodes = tuple(
        Node(str(state), bool(dfa.accepting[state]), state == dfa.start, state in lit)
        for state in states
    )
    edges = tuple(
        Edge(place[p], place[q], byte_ranges(labels), (p, q) in steps)
        for (p, q), labels in arrows.items()
    )
    parts = [] if small else [*_left_out(dfa, route, edges)]
    if dfa.is_empty:
        parts.append("accepts nothing")
    if data is not None:
        parts.append(_verdict(dfa, data, route))
    return Picture(Drawing(nodes, edges, "; ".join(parts)))


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


def _reached(dfa: ByteDFA) -> list[int]:
    """The start and the live states after it, breadth-first; at most one more than are drawn."""
    found = [dfa.start]
    for state in found:
        found += dict.fromkeys(to for _, to in _row(dfa, state) if to not in found)
        if len(found) > _MOST_STATES:
            break
    return found[: _MOST_STATES + 1]


def _row(dfa: ByteDFA, state: int) -> list[tuple[int, int]]:
    """(byte, next state), bytes ascending, where acceptance stays in reach."""
    after = dfa.trans[state][dfa.byte_class]
    live = np.flatnonzero(dfa.distance()[after] != NEVER)
    return list(zip(live.tolist(), after[live].tolist(), strict=True))


def _arrows(dfa: ByteDFA, sources: Iterable[int]) -> dict[tuple[int, int], list[int]]:
    """(source, target) -> bytes, ascending."""
    found: dict[tuple[int, int], list[int]] = {}
    for state in sources:
        for byte, target in _row(dfa, state):
            found.setdefault((state, target), []).append(byte)
    return found


def _summarised(
    dfa: ByteDFA, route: list[int]
) -> tuple[list[int], dict[tuple[int, int], list[int]]]:
    """The first states on the route, and the first successors of the start; only the arrows of the
    route and those of the start to the latter."""
    successors = dict.fromkeys(target for _, target in _row(dfa, dfa.start))
    first, most = list(dict.fromkeys(route))[:_MOST_STATES], list(successors)[:_MOST_SUCCESSORS]
    steps = [step for step in dict.fromkeys(pairwise(route)) if {*step} <= {*first}]
    wanted = dict.fromkeys((*steps[:_MOST_STATES], *((dfa.start, target) for target in most)))
    arrows = _arrows(dfa, dict.fromkeys(source for source, _ in wanted))
    return list(dict.fromkeys((*first, *most))), {step: arrows[step] for step in wanted}


def _left_out(dfa: ByteDFA, route: list[int], edges: tuple[Edge, ...]) -> Iterator[str]:
    """What the caption of a summary says of what is drawn."""
    whose = "of the start and of the path" if len(route) > 1 else "of the start"
    yield f"{dfa.n_states - 1:,} states, too large to draw: only arrows {whose} are shown"
    states, arrows = len({*route}), len({*pairwise(route)})
    lit = sum(edge.lit for edge in edges)
    if states > _MOST_STATES:
        yield f"the first {_MOST_STATES} of {states:,} states of the path"
    elif lit < arrows:
        yield f"the first {lit} of {arrows:,} arrows of the path"


def _route(dfa: ByteDFA, data: bytes) -> list[int]:
    """The states of a text, as long as acceptance stays in reach."""
    found = [dfa.start]
    for byte in data:
        after = dfa.step(found[-1], byte)
        if dfa.distance()[after] == NEVER:
            break
        found.append(after)
    return found


def _verdict(dfa: ByteDFA, data: bytes, route: list[int]) -> str:
    """What becomes of a text."""
    read = len(route) - 1
    if read < len(data):
        return f"{visible(data)}: no match goes on with {visible(data[read : read + 1])} at {read}"
    return f"{visible(data)}: {'match' if dfa.accepting[route[-1]] else 'ends too early'}"
