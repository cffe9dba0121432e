"""Compile every kernel once: `python -m experiments warm`, as `make` does when it installs.

The compiled kernels are kept on disk (numba's cache: beside the sources, or `$NUMBA_CACHE_DIR`).
"""

from __future__ import annotations

import random
import sys

import numpy as np

from bpe_automata import Constraint, Tokenizer, compile_regex, constrain, explain, verify
from bpe_automata.automata.sources import from_strings
from bpe_automata.banning import Ban, Spellings
from bpe_automata.constructions import SegmentCache
from bpe_automata.decoding.constraint import Method
from bpe_automata.integrations.bitmask import apply_bitmask
from bpe_automata.schemas.compile import compile_json_schema
from bpe_automata.schemas.escapes import json_string
from bpe_automata.schemas.strings import within_length
from bpe_automata.testing import small_tokenizer
from bpe_automata.tokenizer.sources.splits import all_splits
from experiments.shared.models import default_gguf
from experiments.shared.timing import timed

METHODS: tuple[Method, ...] = ("canonical", "lift")
SMALL = (r"(true|false)", r"(?i)[a-c]{0,9}é?日?", r"(\w| ){0,40}[^\n]*", r"<[\s\S]*")


def run() -> None:
    """Compile or load all kernels, and say how long that took."""
    tokenizer = Tokenizer.load(default_gguf())
    print("kernels: compiling what is not cached yet (about three minutes, once)", file=sys.stderr)
    seconds, _ = timed(lambda: warm_kernels(tokenizer))
    print(f"kernels: ready in {seconds:.1f} s")


def warm_kernels(tokenizer: Tokenizer) -> None:
    """Run small constraints of both methods through every kernel."""
    _small_ones()
    added = tuple(token.id for token in tokenizer.description.added)[-1:]
    eos_ids = tokenizer.eos_ids or added
    for dfa in (from_strings(("yes", "no")), *map(compile_regex, SMALL)):
        dfa.accepts(b"true")
        for method in METHODS:
            _walk(constrain(tokenizer, dfa, method, eos_ids=eos_ids))
    for method in METHODS:
        verify(tokenizer, constrain(tokenizer, SMALL[0], method, eos_ids=eos_ids), n=2)
    explain(tokenizer, [*tokenizer.encode("Hi 1"), *tokenizer.encode(" there")])
    _steered(tokenizer, eos_ids)


def _steered(tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
    """Budgets, forced ids, bans, segments and masks of batches."""
    for method in METHODS:
        _walk(constrain(tokenizer, r'"(\w| ){0,40}"|[a-z]+é', method, eos_ids=eos_ids).within(4))
    ban = Ban(["a b"], whole_word=True, ignore_case=True)
    _walk(ban.constrain(tokenizer, r"[a-z ]{1,20}", eos_ids=eos_ids))
    Spellings(tokenizer, ban, eos_ids).automaton()
    _walk(constrain(tokenizer, SMALL[1], eos_ids=eos_ids, segments=SegmentCache()))
    logits = np.zeros((1, tokenizer.n_ids), dtype=np.float32)
    words = np.zeros((1, (tokenizer.n_ids + 31) // 32), dtype=np.int32)
    apply_bitmask(logits, words)


def _small_ones() -> None:
    """What only other tokenizers need: merges out of order, no pretokenizer, rank files."""
    vocabulary = ("a", "b", "c", "ab", "abc", "cab")
    merges = (("ab", "c"), ("c", "ab"), ("a", "b"))
    constrain(small_tokenizer(vocabulary, merges), r"(ab|c)*bb").automaton()
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abc": 257}
    all_splits(ranks)
    json_string(within_length(compile_regex(SMALL[1]), 1, 3))
    compile_json_schema({"type": "object", "properties": {"a": {"type": "integer"}}})


def _walk(constraint: Constraint, steps: int = 12) -> None:
    """A short random walk with a matcher."""
    matcher, rng = constraint.matcher(), random.Random(0)
    for _ in range(steps):
        if matcher.is_finished:
            return
        matcher.mask()
        matcher.forced_tokens()
        matcher.min_tokens_to_accept()
        matcher.advance(rng.choice(matcher.allowed_ids().tolist()))
