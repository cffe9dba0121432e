"""Draws byte automata: arrows are merged by where they lead, and labelled by ranges of bytes. A
small explicit automaton is drawn as a whole, of others what is near the way of one text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from bpe_automata.viz import Picture

_MOST_STATES, _MOST_ARROWS, _MOST_BYTES = 40, 120, 100
_Arrows = dict[tuple[int, int], list[int]]
"""The bytes by which one state leads to another, in order."""


class Drawn(Protocol):
    """What a picture asks of an automaton. is_linked: are there more states than those that texts
    led to?"""

    is_linked: ClassVar[bool]

    @property
    def start(self) -> int: ...
    @property
    def accepting(self) -> np.ndarray: ...
    def successors(self, state: int) -> dict[int, int]: ...
    def shortest(self) -> bytes | None: ...


def picture(dfa: Drawn, path: bytes | str | None) -> Picture:
    """See `ByteLanguage.picture`. Who draws nothing does not wait for `viz`."""
    from bpe_automata.viz import Drawing, Edge, Node, Picture, visible

    data = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    text = (data if data is not None else dfa.shortest() if dfa.is_linked else None) or b""
    text = text[:_MOST_BYTES]
    route = _route(dfa, text)
    states = [] if dfa.is_linked else _reached(dfa)
    arrows = _arrows(dfa, states)
    is_whole = 0 < len(states) <= _MOST_STATES and len(arrows) <= _MOST_ARROWS
    if not is_whole:
        arrows = _arrows(dfa, dict.fromkeys(route))
        states = list(dict.fromkeys((*route, *(after for _, after in arrows))))
    number = {state: i for i, state in enumerate(states)}
    steps, lit = set(pairwise(route)), set(route if data is not None else ())
    nodes = tuple(
        Node(str(state), bool(dfa.accepting[state]), state == dfa.start, state in lit)
        for state in states
    )
    edges = tuple(
        Edge(number[p], number[q], byte_ranges(found), bool(lit) and (p, q) in steps)
        for (p, q), found in arrows.items()
    )
    caption = [] if is_whole else [f"the states near {visible(text, 40) or 'the start'}"]
    if dfa.shortest() is None:
        caption.append("accepts nothing")
    if data is not None:
        caption.append(_verdict(dfa, data, route))
    return Picture(Drawing(nodes, edges, "; ".join(caption)))


def _arrows(dfa: Drawn, states: Iterable[int]) -> _Arrows:
    """Those that leave some states: of many, those between them and a few others."""
    found: _Arrows = {}
    met = set(states)
    for state in states:
        for byte, after in dfa.successors(state).items():
            if after in met or len(met) < _MOST_STATES:
                met.add(after)
                found.setdefault((state, after), []).append(byte)
    return found


def _reached(dfa: Drawn) -> list[int]:
    """The start and the live states after it, breadth-first; at most one more than are drawn."""
    found = [dfa.start]
    for state in found:
        found += dict.fromkeys(to for to in dfa.successors(state).values() if to not in found)
        if len(found) > _MOST_STATES:
            break
    return found[: _MOST_STATES + 1]


def _route(dfa: Drawn, data: bytes) -> list[int]:
    """The states of a text, as long as acceptance stays in reach."""
    found = [dfa.start]
    for byte in data:
        after = dfa.successors(found[-1]).get(byte)
        if after is None:
            break
        found.append(after)
    return found


def _verdict(dfa: Drawn, data: bytes, route: list[int]) -> str:
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
