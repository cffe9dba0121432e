"""The filters of the normalizer steps: the texts that each step leaves unchanged.

A replacement finds matches from left to right and writes `content` for each. Let all matches be at
least as long as the content, or none longer. If the text stays the same, its length does; so every
match is as long as the content, everything keeps its position, and every match *is* the content.
Those are the texts that its filter accepts. A pattern with both shorter and longer matches is
refused: `a|bab` -> `ab` makes `abab` of `abab`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.alphabet import engine_class
from bpe_automata.tokenizer.boundaries import BEGINNING, GAP, MATCH, SplitState, Splitter
from bpe_automata.tokenizer.description import Normalization
from bpe_automata.tokenizer.filter_table import (
    N_CODE_POINTS,
    TableFilter,
    label_by,
    mask_of,
    tabulate,
)
from bpe_automata.tokenizer.fixed_points import check_fixed_points, parsed_pattern, refused_pattern
from bpe_automata.tokenizer.pattern_tree import longest, shortest
from bpe_automata.tokenizer.pike import Program
from bpe_automata.tokenizer.probing import Apply, images, stripped
from bpe_automata.tokenizer.source import CharacterEngine
from bpe_automata.tokenizer.unicode_forms import FORMS, form_filters

# ---------------------------------------------------------------- replacements

Hypotheses = frozenset[tuple[SplitState, int]]
"""A state: boundary hypotheses, each with the length of the current match."""


def replace_filter(step: Normalization, engine: CharacterEngine) -> TableFilter:
    """The filter of a replacement. Raises UnsupportedTokenizerError if it is not modelled."""
    kind, source = step.pattern
    if not source:
        raise UnsupportedTokenizerError("Replace.pattern", source, "it is empty")
    return _literal(source, step.content) if kind == "literal" else _regex(step, engine)


def _literal(pattern: str, content: str) -> TableFilter:
    """The filter of texts that do not contain the pattern (Knuth, Morris and Pratt 1977)."""
    letters = sorted(set(pattern))
    labels = np.zeros(N_CODE_POINTS, dtype=np.int32)
    labels[[ord(c) for c in letters]] = np.arange(1, len(letters) + 1)
    if pattern == content:
        return tabulate(labels, 0, lambda state, label: 0, lambda state: True)

    def follow(read: int, label: int) -> int | None:
        text = pattern[:read] + letters[label - 1] if label else ""
        matched = next(size for size in range(len(text), -1, -1) if text.endswith(pattern[:size]))
        return None if matched == len(pattern) else matched

    return tabulate(labels, 0, follow, lambda state: True)


def _regex(step: Normalization, engine: CharacterEngine) -> TableFilter:
    source, content = step.pattern[1], step.content
    tree = parsed_pattern(step, engine)
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
        raise refused_pattern(step, error) from error
    masks = [mask_of(engine_class(engine, *klass)) for klass in program.classes]
    labels = label_by([*masks, _letters(content)])
    sample = np.unique(labels, return_index=True)[1]  # a code point of each label
    try:
        program.bind([frozenset(np.flatnonzero(mask[sample]).tolist()) for mask in masks])
    except UnsupportedTokenizerError as error:
        raise refused_pattern(step, error) from error
    reader = _Matches(program, [int(labels[ord(c)]) for c in content])
    return tabulate(labels, frozenset({(BEGINNING, 0)}), reader.follow, reader.ends)


def _letters(content: str) -> np.ndarray:
    """int32 [0x110000]: a number for each character of the content, 0 for others."""
    letters = sorted(set(content))
    numbers = np.zeros(N_CODE_POINTS, dtype=np.int32)
    numbers[[ord(c) for c in letters]] = np.arange(1, len(letters) + 1)
    return numbers


class _Matches:
    """The boundary automaton of a pattern, restricted to texts whose matches are `content`."""

    def __init__(self, program: Program, content: list[int]) -> None:
        """`content`: the label of each of its characters."""
        self.splitter = Splitter(program, "isolated", False)
        self.content = content

    def follow(self, hypotheses: Hypotheses, label: int) -> Hypotheses | None:
        after = {pair for split, size in hypotheses for pair in self._step(split, size, label)}
        return frozenset(after) or None

    def _step(self, split: SplitState, size: int, label: int) -> list[tuple[SplitState, int]]:
        if split == BEGINNING:
            steps = [(True, begun) for begun in self.splitter.begin(label)]
        else:
            steps = list(self.splitter.step(split, label))
        after = []
        for divided, following in steps:
            if (
                split.inside == MATCH
                and (divided or following.inside == GAP)
                and not self._full(size)
            ):
                continue
            if following.inside == GAP:
                after.append((following, 0))
                continue
            read = 0 if divided else size
            if not self._full(read) and self.content[read] == label:
                after.append((following, read + 1))
        return after

    def _full(self, size: int) -> bool:
        return size == len(self.content)

    def ends(self, hypotheses: Hypotheses) -> bool:
        return any(
            split == BEGINNING
            or (self.splitter.ends(split) and (split.inside != MATCH or self._full(size)))
            for split, size in hypotheses
        )


def filters_of(
    steps: tuple[Normalization, ...], engine: CharacterEngine
) -> tuple[TableFilter, ...]:
    """Filters that together accept the texts that all steps, one after the other, leave unchanged.
    Raises UnsupportedTokenizerError for steps that are not modelled, or could undo one another."""
    check_fixed_points(steps, engine)
    return tuple(made for step in steps for made in _filters(step, engine))


def _filters(step: Normalization, engine: CharacterEngine) -> Iterator[TableFilter]:
    if step.kind in FORMS:
        yield from form_filters(step)
    elif step.kind == "characters":
        yield character_filter(step.apply)
    elif step.kind == "strip":
        yield strip_filter(step)
    elif step.kind == "replace":
        yield replace_filter(step, engine)
    else:
        raise UnsupportedTokenizerError("normalizer", step.kind, "this kind is not known")


def character_filter(apply: Apply) -> TableFilter:
    """The filter of texts without a character that `apply`, a map of single characters, changes."""
    labels = np.zeros(N_CODE_POINTS, dtype=np.int32)
    labels[[ord(c) for c in images(apply)]] = 1
    return tabulate(labels, 0, lambda state, label: None if label else 0, lambda state: True)


_FIRST, _SPACE, _OTHER = range(3)


def strip_filter(step: Normalization) -> TableFilter:
    """The filter of texts without white space at the ends that are stripped."""
    labels = np.zeros(N_CODE_POINTS, dtype=np.int32)
    labels[[ord(c) for c in stripped(step)]] = 1

    def follow(state: int, label: int) -> int | None:
        if label and step.left and state == _FIRST:
            return None
        return _SPACE if label else _OTHER

    return tabulate(labels, _FIRST, follow, lambda state: not step.right or state != _SPACE)
