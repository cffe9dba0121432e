"""What a picture highlights: the way of a sequence of ids, or all ways of a text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bpe_automata.arguments import sequence_of_ids
from bpe_automata.budget import check
from bpe_automata.errors import ArgumentError
from bpe_automata.kernels.distance import NEVER
from bpe_automata.token_automata.names import plural, symbol_text
from bpe_automata.token_automata.reach import distances
from bpe_automata.token_automata.table import Table
from bpe_automata.viz import visible


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


_Place = tuple[int, int]  # how much of the text has been read, state


def _of_text(table: Table, text: bytes) -> Route:
    """All accepted sequences that spell `text`, without ids that spell nothing."""
    steps = _steps(table, text)
    # ways[place]: the number of sequences that read the rest and are accepted.
    ways: dict[_Place, int] = {}
    for place in reversed(list(steps)):  # ascending by what has been read
        at, state = place
        ends = at == len(text) and bool(table.accepting[state])
        ways[place] = ends + sum(ways[after] for _, after in steps[place])
    read: dict[tuple[int, int], list[int]] = {}
    states = dict.fromkeys(place[1] for place in steps if ways[place])
    for (_, source), moves in steps.items():
        for symbol, after in moves:
            if ways[after]:
                known = read.setdefault((source, after[1]), [])
                known += [] if symbol in known else [symbol]
    count = ways[0, table.start]
    number = plural(count, "accepted sequence") if count else "no accepted sequence"
    said = f"{number} {'spell' if count > 1 else 'spells'} {visible(text)}"
    return Route(tuple(states), read, said)


def _steps(table: Table, text: bytes) -> dict[_Place, list[tuple[int, _Place]]]:
    """Every place that can be reached, ascending by what has been read, with (symbol, place after
    it). Raises ArgumentError."""
    spelled = _by_spelling(table)
    longest = max(map(len, spelled), default=0)
    reached: list[dict[int, None]] = [{} for _ in range(len(text) + 1)]
    reached[0][table.start] = None
    steps: dict[_Place, list[tuple[int, _Place]]] = {}
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
