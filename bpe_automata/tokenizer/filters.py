"""Normalizer steps to text filters: texts that `encode` leaves as they are until it splits them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.asking import Apply, images
from bpe_automata.tokenizer.backend import CharacterEngine
from bpe_automata.tokenizer.description import Normalization
from bpe_automata.tokenizer.filter_table import N_CODE_POINTS, TableFilter, tabulate
from bpe_automata.tokenizer.fixed_points import check_fixed_points
from bpe_automata.tokenizer.replace_filter import replace_filter
from bpe_automata.tokenizer.unicode_forms import FORMS, form_filters
from bpe_automata.tokenizer.white_space import stripped


def filters_of(
    steps: tuple[Normalization, ...], engine: CharacterEngine
) -> tuple[TableFilter, ...]:
    """Filters that together accept the texts that all steps, one after the other, leave as they
    are. Raises UnsupportedTokenizerError for steps that are not modelled, or that could undo one
    another."""
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
    """Only characters that `apply`, which acts on each character by itself, leaves alone."""
    labels = np.zeros(N_CODE_POINTS, dtype=np.int32)
    labels[[ord(c) for c in images(apply)]] = 1
    return tabulate(labels, 0, lambda state, label: None if label else 0, lambda state: True)


_FIRST, _SPACE, _OTHER = range(3)


def strip_filter(step: Normalization) -> TableFilter:
    """No white space at the ends that are stripped."""
    labels = np.zeros(N_CODE_POINTS, dtype=np.int32)
    labels[[ord(c) for c in stripped(step)]] = 1

    def follow(state: int, label: int) -> int | None:
        if label and step.left and state == _FIRST:
            return None
        return _SPACE if label else _OTHER

    return tabulate(labels, _FIRST, follow, lambda state: not step.right or state != _SPACE)
