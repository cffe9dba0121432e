"""A language of eight tokens, small enough to enumerate all tokenizations of a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.study.token_trie import Automaton

PIECES = ("a", "b", "c", "ab", "bc", "abc", "ca", "aa")
"""The tokens of the tiny language; an id is a place in this tuple."""


def tokenizations(text: str) -> Iterator[list[int]]:
    """Every sequence of ids that spells `text`, by trying every first piece."""
    if not text:
        yield []
    for token, piece in enumerate(PIECES):
        if text.startswith(piece):
            for rest in tokenizations(text[len(piece) :]):
                yield [token, *rest]


def lift_of(answers: Sequence[str]) -> Automaton:
    """The automaton of all tokenizations; a state is a beginning of an answer."""
    states = sorted({answer[:i] for answer in answers for i in range(len(answer) + 1)})
    number = {text: i for i, text in enumerate(states)}
    edges = tuple(
        {t: number[q + piece] for t, piece in enumerate(PIECES) if q + piece in number}
        for q in states
    )
    return Automaton(number[""], edges)


def single_paths(paths: Sequence[Sequence[int]]) -> Automaton:
    """The automaton of exactly these sequences of ids."""
    states = sorted({tuple(path[:i]) for path in paths for i in range(len(path) + 1)})
    number = {path: i for i, path in enumerate(states)}
    edges: tuple[dict[int, int], ...] = tuple({} for _ in states)
    for path in states[1:]:
        edges[number[path[:-1]]][path[-1]] = number[path]
    return Automaton(0, edges)
