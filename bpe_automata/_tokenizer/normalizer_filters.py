"""The filters of the normalizer steps: the texts that each step leaves unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bpe_automata._tokenizer.alphabet import Ranges, engine_class
from bpe_automata._tokenizer.description import Normalization
from bpe_automata._tokenizer.filter_table import N_CODE_POINTS, TableFilter, tabulate
from bpe_automata._tokenizer.probing import images
from bpe_automata._tokenizer.source import CharacterEngine
from bpe_automata._tokenizer.unicode_forms import FORMS, form_filters
from bpe_automata.errors import UnsupportedTokenizerError


def filters_of(
    steps: tuple[Normalization, ...], engine: CharacterEngine
) -> tuple[TableFilter, ...]:
    """Filters that together accept the texts that every step leaves unchanged. Raises
    UnsupportedTokenizerError for a step that is not modelled."""
    return tuple(made for step in steps for made in _filters(step, engine))


def _filters(step: Normalization, engine: CharacterEngine) -> Iterator[TableFilter]:
    if step.kind in FORMS:
        yield from form_filters(step)
    elif step.kind == "characters":
        yield _character_filter(step)
    elif step.kind == "strip":
        yield _strip_filter(step, engine_class(engine, "whitespace", ""))
    elif step.kind == "replace":
        yield _replace_filter(step.pattern)
    else:
        raise UnsupportedTokenizerError("normalizer", step.kind, "this kind is not known")


def _character_filter(step: Normalization) -> TableFilter:
    """No character that the step, a map of single characters, changes."""
    labels = np.zeros(N_CODE_POINTS, dtype=np.int32)
    labels[[ord(c) for c in images(step.apply)]] = 1
    return tabulate(labels, 0, lambda state, label: None if label else 0, lambda state: True)


def _replace_filter(pattern: str) -> TableFilter:
    """The text does not contain the pattern (Knuth, Morris and Pratt 1977)."""
    letters = sorted(set(pattern))
    labels = np.zeros(N_CODE_POINTS, dtype=np.int32)
    labels[[ord(c) for c in letters]] = np.arange(1, len(letters) + 1)

    def follow(read: int, label: int) -> int | None:
        text = pattern[:read] + letters[label - 1] if label else ""
        matched = next(size for size in range(len(text), -1, -1) if text.endswith(pattern[:size]))
        return None if matched == len(pattern) else matched

    return tabulate(labels, 0, follow, lambda state: True)


_FIRST, _SPACE, _OTHER = range(3)


def _strip_filter(step: Normalization, spaces: Ranges) -> TableFilter:
    """No white space at the ends that are stripped."""
    labels = np.zeros(N_CODE_POINTS, dtype=np.int32)
    for low, high in spaces.tolist():
        labels[low:high] = 1

    def follow(state: int, label: int) -> int | None:
        if label and step.left and state == _FIRST:
            return None
        return _SPACE if label else _OTHER

    return tabulate(labels, _FIRST, follow, lambda state: not step.right or state != _SPACE)
