"""Draws a linked automaton: each part in its context is a box, and arrows lead from one to another.

What is drawn is what the texts near one text lead to, as the whole may have no end.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bpe_automata._automata.dfa import byte_ranges

if TYPE_CHECKING:
    from bpe_automata.viz import Picture

_MOST_BOXES, _MOST_ARROWS, _MOST_BYTES = 40, 120, 100
_SHOWN = 16  # bytes of a text in a box
_Box = tuple[int, ...]


class Boxes(Protocol):
    """What a picture asks of a `LinkedDFA`. box: the first states of the instances that a state is
    of; box_size: how many states the instance with a first state has."""

    start: int
    accepting: np.ndarray
    far: np.ndarray

    def step(self, state: int, byte: int) -> int: ...
    def live_bytes(self, state: int) -> np.ndarray: ...
    def shortest(self) -> bytes: ...
    def box(self, state: int) -> _Box: ...
    def box_size(self, first: int) -> int: ...


def picture(dfa: Boxes, path: bytes | str | None) -> Picture:
    """See `LinkedDFA.picture`."""
    from bpe_automata.viz import Drawing, Edge, Node, Picture, visible

    given = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    data = (dfa.shortest() if given is None else given)[:_MOST_BYTES]
    route = [dfa.start]
    for byte in data:
        after = dfa.step(route[-1], byte)
        if not after:
            break
        route.append(after)
    entered: dict[_Box, int] = {}  # the state by which each box is entered
    for state in route:
        entered.setdefault(dfa.box(state), state)
    arrows: dict[tuple[_Box, _Box], list[int]] = {}
    for state in dict.fromkeys(route):
        here = dfa.box(state)
        for byte in dfa.live_bytes(state).tolist():
            after = dfa.step(state, byte)
            there = dfa.box(after)
            if there != here and (there in entered or len(entered) < _MOST_BOXES):
                entered.setdefault(there, after)
                arrows.setdefault((here, there), []).append(byte)
    boxes = list(entered)
    number = {box: i for i, box in enumerate(boxes)}
    on_way = set(pairwise(map(dfa.box, route)))
    lit = set(map(dfa.box, route)) if given is not None else set()
    nodes = tuple(
        Node(
            visible(_inside(dfa, state), _SHOWN) or "ε",
            any(dfa.accepting[at] for at in route if dfa.box(at) == box)
            or bool(dfa.accepting[state]),
            dfa.box(dfa.start) == box,
            box in lit,
            _size(dfa, box),
        )
        for box, state in entered.items()
    )
    edges = tuple(
        Edge(number[p], number[q], byte_ranges(sorted(set(found))), bool(lit) and (p, q) in on_way)
        for (p, q), found in list(arrows.items())[:_MOST_ARROWS]
    )
    near = f"the parts near {visible(bytes(data), 40)}"
    return Picture(Drawing(nodes, edges, f"{near}; in each box the shortest text out of it"))


def _inside(dfa: Boxes, state: int) -> bytes:
    """What a box reads on the shortest way out of it."""
    here, found = dfa.box(state), bytearray()
    while not dfa.accepting[state] and len(found) < _SHOWN:
        byte = min(
            dfa.live_bytes(state).tolist(), key=lambda byte: int(dfa.far[dfa.step(state, byte)])
        )
        state = dfa.step(state, byte)
        found.append(byte)
        if dfa.box(state) != here:
            break
    return bytes(found)


def _size(dfa: Boxes, box: _Box) -> str:
    if len(box) > 1:
        return f"{len(box)} parts"
    states = dfa.box_size(box[0])
    return f"{states} state{'s' * (states != 1)}"
