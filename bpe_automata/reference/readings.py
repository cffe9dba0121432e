"""The readings of one text by the boundary hypotheses (design 3): exactly one survives."""

from __future__ import annotations

import numpy as np

from bpe_automata.tokenizer.pipeline import Pipeline


def readings(pipeline: Pipeline, text: str) -> list[tuple[int, ...]]:
    """For each reading of `text` that survives to its end: the places (character indexes) where it
    puts a boundary, 0 included. Added tokens are not looked at. Text with a character that no
    token spells has no reading."""
    boundaries = pipeline.boundaries
    alive: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for place, character in enumerate(text):
        atom = pipeline.alphabet.atom(character)
        if atom < 0:
            return []
        steps = boundaries.follow[:, :, pipeline.coarse[atom], :]
        alive = [
            (int(after), (*cuts, place) if boundary else cuts)
            for hypothesis, cuts in alive
            for boundary in (0, 1)
            for after in np.flatnonzero(steps[boundary, hypothesis])
        ]
    return [cuts for hypothesis, cuts in alive if boundaries.ends[hypothesis]]
