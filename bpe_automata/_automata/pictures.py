"""Draws byte automata: arrows are merged by where they lead, and labelled by ranges of bytes.

A state of an explicit automaton is a box of its own; of a linked one, each part in its context is
a box. A small explicit automaton is drawn as a whole, of others what is near the way of one text.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from bpe_automata.viz import Picture

_MOST_BOXES, _MOST_ARROWS, _MOST_BYTES = 40, 120, 100
Box = tuple[int, ...]


class Boxes(Protocol):
    """What a picture asks of an automaton. box: the same for all states that are drawn as one;
    box_text: its label, and a note, by the state by which it is entered; is_linked: are there more
    states than those that texts led to?"""

    is_linked: ClassVar[bool]

    @property
    def start(self) -> int: ...
    @property
    def accepting(self) -> np.ndarray: ...
    def successors(self, state: int) -> dict[int, int]: ...
    def box(self, state: int) -> Box: ...
    def box_text(self, state: int) -> tuple[str, str]: ...
    def shortest(self) -> bytes | None: ...


def picture(dfa: Boxes, path: bytes | str | None) -> Picture:
    """See `ByteLanguage.picture`. Who draws nothing does not wait for `viz`."""
    from bpe_automata.viz import Drawing, Edge, Node, Picture, visible

    data = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    text = (data if data is not None else dfa.shortest() if dfa.is_linked else None) or b""
    text = text[:_MOST_BYTES]
    route = _route(dfa, text)
    states = [] if dfa.is_linked else _reached(dfa)
    entered, arrows = _drawn(dfa, states or route)
    is_whole = 0 < len(states) <= _MOST_BOXES and len(arrows) <= _MOST_ARROWS
    if not is_whole:
        entered, arrows = _drawn(dfa, dict.fromkeys(route))
    number = {box: i for i, box in enumerate(entered)}
    boxes = [dfa.box(state) for state in route]
    steps, lit = set(pairwise(boxes)), set(boxes if data is not None else ())
    ends = {dfa.box(state) for state in (*route, *entered.values()) if dfa.accepting[state]}
    nodes = []
    for box, state in entered.items():
        label, note = dfa.box_text(state)
        nodes.append(Node(label, box in ends, box == dfa.box(dfa.start), box in lit, note))
    edges = tuple(
        Edge(number[p], number[q], byte_ranges(sorted(found)), bool(lit) and (p, q) in steps)
        for (p, q), found in list(arrows.items())[:_MOST_ARROWS]
    )
    drawn = "parts" if dfa.is_linked else "states"
    caption = [] if is_whole else [f"the {drawn} near {visible(text, 40) or 'the start'}"]
    if dfa.shortest() is None:
        caption.append("accepts nothing")
    if data is not None:
        caption.append(_verdict(dfa, data, route))
    return Picture(Drawing(tuple(nodes), edges, "; ".join(caption)))


def _drawn(
    dfa: Boxes, states: Iterable[int]
) -> tuple[dict[Box, int], dict[tuple[Box, Box], set[int]]]:
    """(the boxes of some states and of those that they lead to, each with the state by which it is
    entered; the bytes of each arrow)."""
    entered: dict[Box, int] = {}
    arrows: dict[tuple[Box, Box], set[int]] = {}
    for state in states:
        entered.setdefault(dfa.box(state), state)
    for state in states:
        here = dfa.box(state)
        for byte, after in dfa.successors(state).items():
            there = dfa.box(after)
            is_inside = dfa.is_linked and there == here
            if not is_inside and (there in entered or len(entered) < _MOST_BOXES):
                entered.setdefault(there, after)
                arrows.setdefault((here, there), set()).add(byte)
    return entered, arrows


def _reached(dfa: Boxes) -> list[int]:
    """The start and the live states after it, breadth-first; at most one more than are drawn."""
    found = [dfa.start]
    for state in found:
        found += dict.fromkeys(to for to in dfa.successors(state).values() if to not in found)
        if len(found) > _MOST_BOXES:
            break
    return found[: _MOST_BOXES + 1]


def _route(dfa: Boxes, data: bytes) -> list[int]:
    """The states of a text, as long as acceptance stays in reach."""
    found = [dfa.start]
    for byte in data:
        after = dfa.successors(found[-1]).get(byte)
        if after is None:
            break
        found.append(after)
    return found


def _verdict(dfa: Boxes, data: bytes, route: list[int]) -> str:
    """What becomes of a text, of which the first bytes were followed."""
    from bpe_automata.viz import visible

    read = len(route) - 1
    if read == _MOST_BYTES < len(data):
        return f"the first {_MOST_BYTES} bytes of {len(data):,}"
    if read < len(data):
        return f"{visible(data)}: no match goes on with {visible(data[read : read + 1])} at {read}"
    return f"{visible(data)}: {'match' if dfa.accepting[route[-1]] else 'ends too early'}"


def byte_ranges(values: Iterable[int]) -> str:
    """Ascending bytes as "0-9, _, a-z": visible, \\xc3 for those that are no ASCII."""
    from bpe_automata.viz import edge_label, visible

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
