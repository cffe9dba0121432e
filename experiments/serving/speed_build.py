"""Seconds from a tokenizer's file to its canonical automaton, whole and by part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.constructions.canonical import CanonicalAutomaton, build_parts
from bpe_automata.constructions.collapsed import vocabulary_trie
from bpe_automata.constructions.geometry import Geometry
from bpe_automata.constructions.hypothesis_sets import HypothesisSets
from bpe_automata.constructions.stored import Parts, kept
from bpe_automata.constructions.token_actions import classify, find_unmade
from bpe_automata.tokenizer.derivation import derive
from bpe_automata.tokenizer.pipeline import compile_pipeline
from experiments.run.executors import Row
from experiments.serving.speed_inputs import Inputs
from experiments.shared.timing import repeated


def built(inputs: Inputs, n: int) -> Row:
    """The whole, `n` times, and each part, `n` times; out of the disk cache, `n` times. Kernels and
    character classes are warm."""
    CanonicalAutomaton(inputs.tokenizer)
    whole = repeated(lambda: CanonicalAutomaton(inputs.tokenizer), n)
    parts = {name: repeated(part, n) for name, part in parts_of(inputs.tokenizer).items()}
    from_cache(inputs.tokenizer)
    parts["instead, out of the disk cache"] = repeated(lambda: from_cache(inputs.tokenizer), n)
    return {"kind": "build", "whole": whole, "parts": parts}


def from_cache(tokenizer: Tokenizer) -> CanonicalAutomaton:
    """The automaton, from its file in the disk cache if it is there."""
    return CanonicalAutomaton(tokenizer, kept(Parts, tokenizer, lambda: build_parts(tokenizer)))


def parts_of(tokenizer: Tokenizer) -> dict[str, Callable[[], object]]:
    """What `CanonicalAutomaton` does, part by part."""
    made, description = CanonicalAutomaton(tokenizer), tokenizer.description
    usable, whole = np.flatnonzero(made.usable), made.whole
    byte_tokens = np.array(sorted(description.byte_tokens.values()), dtype=np.int64)
    told = whole.told_apart
    return {
        "derive": lambda: derive(description),
        "geometry": lambda: Geometry(made.derivation),
        "pipeline": lambda: compile_pipeline(description, tokenizer.backend.engine),
        "whole pieces": lambda: find_unmade(description, made.derivation),
        "trie": lambda: vocabulary_trie(tokenizer.spellings, usable),
        "classify": lambda: classify(made.trie, made.usable, told, byte_tokens, made.pipeline),
        "hypotheses": lambda: HypothesisSets(made.pipeline, made.actions, whole),
    }


def loaded(inputs: Inputs, n: int) -> Row:
    """Reading the tokenizer from each kind of file."""
    files = {"tokenizer.json": repeated(lambda: load(inputs.json), n)}
    if inputs.gguf is not None:
        files["GGUF"] = repeated(lambda: load(inputs.gguf), max(1, n // 2))
    return {"kind": "load", "files": files}


def load(path: object) -> Tokenizer:
    """Read it, and the bytes of each id, which everything needs."""
    tokenizer = Tokenizer.load(path)
    _ = tokenizer.spellings
    return tokenizer
