"""Texts that a replacement leaves as they are.

A replacement finds matches from left to right and writes `content` for each. Let all matches be at
least as long as the content, or none longer. If the text stays the same, its length does; so every
match is as long as the content, everything keeps its place, and every match *is* the content. Those
are the texts that the filter accepts. A pattern with both shorter and longer matches is refused:
`a|bab` -> `ab` makes `abab` of `abab`.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.backend import CharacterEngine
from bpe_automata.tokenizer.charclass import engine_class
from bpe_automata.tokenizer.description import Normalization
from bpe_automata.tokenizer.filter_table import (
    N_CODE_POINTS,
    TableFilter,
    label_by,
    mask_of,
    tabulate,
)
from bpe_automata.tokenizer.pattern import Node, parse
from bpe_automata.tokenizer.pattern_length import longest, shortest
from bpe_automata.tokenizer.pike import Program
from bpe_automata.tokenizer.splitter import BEGINNING, GAP, MATCH, Piece, Splitter

Reading = frozenset[tuple[Piece, int]]
"""Hypotheses about the matches, each with the length of the match under way."""


def replace_filter(step: Normalization, engine: CharacterEngine) -> TableFilter:
    """Raises UnsupportedTokenizerError for a pattern that is not modelled."""
    kind, source = step.pattern
    if not source:
        raise UnsupportedTokenizerError("Replace.pattern", source, "it is empty")
    return _literal(source, step.content) if kind == "literal" else _regex(step, engine)


def _literal(pattern: str, content: str) -> TableFilter:
    """The text does not hold the pattern (Knuth, Morris and Pratt 1977)."""
    letters = sorted(set(pattern))
    labels = np.zeros(N_CODE_POINTS, dtype=np.int32)
    labels[[ord(c) for c in letters]] = np.arange(1, len(letters) + 1)
    if pattern == content:
        return tabulate(labels, 0, lambda state, label: 0, lambda state: True)

    def follow(read: int, label: int) -> int | None:
        text = pattern[:read] + letters[label - 1] if label else ""
        kept = next(size for size in range(len(text), -1, -1) if text.endswith(pattern[:size]))
        return None if kept == len(pattern) else kept

    return tabulate(labels, 0, follow, lambda state: True)


def _regex(step: Normalization, engine: CharacterEngine) -> TableFilter:
    source, content = step.pattern[1], step.content
    tree = pattern_tree(step, engine)
    least, most = shortest(tree), longest(tree)
    if least < len(content) and (most is None or most > len(content)):
        raise UnsupportedTokenizerError(
            "normalizer Replace",
            [source, content],
            "some matches are shorter than what is written for them and others longer, so several "
            "replacements together may leave a text as it is",
        )
    try:
        program = Program(tree, source)
    except UnsupportedTokenizerError as error:
        raise _refused(step, error) from error
    masks = [mask_of(engine_class(engine, *klass)) for klass in program.classes]
    labels = label_by([*masks, _letters(content)])
    sample = np.unique(labels, return_index=True)[1]  # a code point of each label
    try:
        program.bind([frozenset(np.flatnonzero(mask[sample]).tolist()) for mask in masks])
    except UnsupportedTokenizerError as error:
        raise _refused(step, error) from error
    reader = _Matches(program, [int(labels[ord(c)]) for c in content])
    return tabulate(labels, frozenset({(BEGINNING, 0)}), reader.follow, reader.ends)


def pattern_tree(step: Normalization, engine: CharacterEngine) -> Node:
    """The pattern of a regex replacement. Raises UnsupportedTokenizerError."""
    try:
        return parse(step.pattern[1], engine.dialect)
    except UnsupportedTokenizerError as error:
        raise _refused(step, error) from error


def _refused(step: Normalization, error: UnsupportedTokenizerError) -> UnsupportedTokenizerError:
    return UnsupportedTokenizerError("normalizer Replace", step.pattern[1], error.why)


def _letters(content: str) -> np.ndarray:
    """int32 [0x110000]: a number for each letter of the content, 0 for other characters."""
    letters = sorted(set(content))
    numbers = np.zeros(N_CODE_POINTS, dtype=np.int32)
    numbers[[ord(c) for c in letters]] = np.arange(1, len(letters) + 1)
    return numbers


class _Matches:
    """Runs the boundary hypotheses of a pattern; each of its matches must spell `content`."""

    def __init__(self, program: Program, content: list[int]) -> None:
        """`content`: the label of each of its characters."""
        self.splitter = Splitter(program, "isolated", False)
        self.content = content

    def follow(self, reading: Reading, label: int) -> Reading | None:
        after = {pair for piece, size in reading for pair in self._step(piece, size, label)}
        return frozenset(after) or None

    def _step(self, piece: Piece, size: int, label: int) -> list[tuple[Piece, int]]:
        if piece == BEGINNING:
            steps = [(True, begun) for begun in self.splitter.begin(label)]
        else:
            steps = list(self.splitter.step(piece, label))
        after = []
        for divided, following in steps:
            if piece.kind == MATCH and (divided or following.kind == GAP) and not self._full(size):
                continue
            if following.kind == GAP:
                after.append((following, 0))
                continue
            read = 0 if divided else size
            if not self._full(read) and self.content[read] == label:
                after.append((following, read + 1))
        return after

    def _full(self, size: int) -> bool:
        return size == len(self.content)

    def ends(self, reading: Reading) -> bool:
        return any(
            piece == BEGINNING
            or (self.splitter.ends(piece) and (piece.kind != MATCH or self._full(size)))
            for piece, size in reading
        )
