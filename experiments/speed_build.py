"""Seconds from a tokenizer's file to its canonical automaton, whole and by part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.constructions.canonical import CanonicalAutomaton
from bpe_automata.constructions.geometry import Geometry
from bpe_automata.constructions.hypothesis_sets import HypothesisSets
from bpe_automata.constructions.token_actions import classify
from bpe_automata.constructions.vocabulary_trie import vocabulary_trie
from bpe_automata.constructions.whole_pieces import WholePieces
from bpe_automata.tokenizer.derivation import derive
from bpe_automata.tokenizer.pipeline import compile_pipeline
from experiments.speed_inputs import Inputs
from experiments.speed_timing import repeated

Row = dict[str, Any]


def built(inputs: Inputs, n: int) -> Row:
    """The whole, `n` times, and each part, `n` times. Kernels and character classes are warm."""
    CanonicalAutomaton(inputs.tokenizer)
    whole = repeated(lambda: CanonicalAutomaton(inputs.tokenizer), n)
    parts = {name: repeated(part, n) for name, part in parts_of(inputs.tokenizer).items()}
    return {"kind": "build", "whole": whole, "parts": parts}


def parts_of(tokenizer: Tokenizer) -> dict[str, Callable[[], object]]:
    """What `CanonicalAutomaton` does, part by part."""
    made, description = CanonicalAutomaton(tokenizer), tokenizer.description
    usable, whole = np.flatnonzero(made.usable), made.whole
    return {
        "derive": lambda: derive(description),
        "geometry": lambda: Geometry(made.derivation, description.merges),
        "pipeline": lambda: compile_pipeline(description),
        "whole pieces": lambda: WholePieces(description, made.derivation),
        "trie": lambda: vocabulary_trie(tokenizer.spellings, usable),
        "classify": lambda: classify(made.trie, made.usable, whole.told_apart, made.pipeline),
        "hypotheses": lambda: HypothesisSets(made.pipeline, made.actions, whole),
    }


def loaded(inputs: Inputs, n: int) -> Row:
    """Reading the tokenizer from each kind of file."""
    row: Row = {"kind": "load", "tokenizer.json": repeated(lambda: load(inputs.json), n)}
    if inputs.gguf is not None:
        row["GGUF"] = repeated(lambda: load(inputs.gguf), max(1, n // 2))
    return row


def load(path: object) -> Tokenizer:
    """Read it, and the bytes of each id, which everything needs."""
    tokenizer = Tokenizer.load(path)
    _ = tokenizer.spellings
    return tokenizer
