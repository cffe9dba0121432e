"""Token automata explained: why a sequence is accepted, or where it fails; a picture; and the text
of a symbol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bpe_automata._arguments import sequence_of_ids
from bpe_automata._kernels.distance import NEVER
from bpe_automata.errors import ArgumentError
from bpe_automata.token_automata.graph import distances
from bpe_automata.token_automata.strings import shortest
from bpe_automata.token_automata.table import Table
from bpe_automata.viz import Drawing, Picture, edge_label, visible
from bpe_automata.viz._automata import drawn


@dataclass(frozen=True)
class Acceptance:
    """accepted: is `ids` in the language? position: index of the first id after which acceptance
    is out of reach; None if there is none. readable: the ids that can be read there instead, or
    after all of `ids`, and can lead to acceptance. completion: the shortest sequence that leads to
    acceptance from there; None if there is none."""

    ids: tuple[int, ...]
    accepted: bool
    position: int | None
    readable: tuple[int, ...]
    completion: tuple[int, ...] | None
    _automaton: Table = field(repr=False, compare=False)

    @property
    def verdict(self) -> str:
        """The end of a sentence that begins with "the sequence"."""
        if self.accepted:
            return "is accepted"
        if self.completion is None:
            return "is not accepted, as nothing is"
        if self.position is None:
            return "ends too early"
        here = named(self._automaton, self.ids[self.position])
        return f"cannot go on with {here} at position {self.position}"

    def __str__(self) -> str:
        if self.accepted:
            read = sequence(self._automaton, self.ids) if self.ids else "the empty sequence"
            return f"accepted: {read}"
        if self.completion is None:
            return "not accepted: nothing is"
        said = f"not accepted: the sequence {self.verdict}"
        completion = sequence(self._automaton, self.completion)
        if self.position is None:
            return f"{said}; the shortest completion is {completion}"
        end = f"the shortest end: {completion}" if self.completion else "it could end there"
        return f"{said}; what can be read there: {some(self._automaton, self.readable)}; {end}"


def explained(automaton: Table, ids: Sequence[int]) -> Acceptance:
    """Why `ids` are accepted or not; print the result. The ids are read as long as acceptance is
    within reach. Raises ArgumentError."""
    ids, distance = sequence_of_ids(ids), distances(automaton)
    state, position = automaton.start, None
    for at, symbol in enumerate(ids):
        after = automaton.step(state, symbol)
        if after is None or distance[after] == NEVER:
            position = at
            break
        state = after
    symbols, targets = automaton.row(state)
    readable = tuple(symbols[distance[targets] != NEVER].tolist())
    accepted = position is None and bool(automaton.accepting[state])
    return Acceptance(ids, accepted, position, readable, shortest(automaton, state), automaton)


def picture(automaton: Table, path: Sequence[int] | None = None, labels: int | None = 6) -> Picture:
    """A picture that notebooks display, with the states on the path of the ids `path` highlighted.

    Transitions with the same source and target are one arrow, labelled with `labels` of its symbols
    (None: all). If over 40 states or 120 arrows are within reach of the start, the picture has only
    the states on the first 100 ids of `path` (or the start) and the arrows from them, to at most 40
    states: those that most symbols lead to. Each state then says how many transitions leave it. The
    picture's `dot()` is its source for Graphviz. Raises ArgumentError.
    """
    if labels is not None and labels < 0:
        raise ArgumentError(f"labels is {labels}: give a number from 0 on, or None for all symbols")

    def label(symbols: np.ndarray, read: list[int]) -> str:
        """The symbols that were read, then others; no more texts are made than are drawn."""
        most = len(symbols) if labels is None else labels
        chosen = [*read, *np.setdiff1d(symbols, read)[: most + 1].tolist()][: most + 1]
        texts = [symbol_text(automaton, symbol) for symbol in chosen]
        return edge_label(texts + [""] * (len(symbols) - len(texts)), most)

    ids = () if path is None else sequence_of_ids(path)
    nodes, edges, is_whole, _ = drawn(automaton, ids, label, path is not None)
    caption = [size(automaton)]
    if not is_whole:
        whose = "the start and the path" if path is not None else "the start"
        caption.append(f"too large to draw: only states near {whose} are shown")
        degrees = [len(automaton.row(int(node.label))[0]) for node in nodes]
        notes = [f"{degree:,} out" if degree else "" for degree in degrees]
        nodes = tuple(replace(node, note=note) for node, note in zip(nodes, notes, strict=True))
    if path is not None:
        caption.append(f"the path {explained(automaton, ids).verdict}")
    return Picture(Drawing(nodes, edges, "; ".join(caption)))


# The texts of symbols and sequences.

_LONGEST = 24
_MANY = 8


def symbol_text(automaton: Table, symbol: int) -> str:
    """What the symbol spells, every byte of it visible; its number if it has no spelling."""
    spelled = _spelling(automaton, symbol)
    return str(symbol) if spelled is None else visible(spelled, _LONGEST)


def named(automaton: Table, symbol: int) -> str:
    """A symbol in a sentence: `271 (␣the)`."""
    spelled = _spelling(automaton, symbol)
    return str(symbol) if spelled is None else f"{symbol} ({visible(spelled, _LONGEST)})"


def sequence(automaton: Table, symbols: Iterable[int]) -> str:
    """A sequence in a sentence: `4 (a), 5 (b)`; `nothing` for the empty one."""
    return ", ".join(named(automaton, symbol) for symbol in symbols) or "nothing"


def some(automaton: Table, symbols: Iterable[int]) -> str:
    """`sequence`, of the first few of many."""
    listed = list(symbols)
    more = f" … +{len(listed) - _MANY:,} more" if len(listed) > _MANY else ""
    return sequence(automaton, listed[:_MANY]) + more


def size(automaton: Table) -> str:
    """`4 states, 1 transition`."""
    counts = (automaton.n_states, "state"), (automaton.n_transitions, "transition")
    return ", ".join(f"{number:,} {noun}{'s' * (number != 1)}" for number, noun in counts)


def _spelling(automaton: Table, symbol: int) -> bytes | None:
    """What the symbol spells; None if it has no spelling, or an empty one."""
    spellings = automaton.spellings or ()
    return (spellings[symbol] or None) if 0 <= symbol < len(spellings) else None
