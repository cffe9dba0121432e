"""The loop that is timed for forced ids writes what `decode` writes."""

from __future__ import annotations

import numpy as np
import pytest

from bpe_automata import constrain
from bpe_automata.sampling import decode
from bpe_automata.testing import byte_spelling, small_tokenizer
from experiments.serving.speedup import certain, nothing, write

PIECES = ['{"', '":', '":"', '","', '"}', "na", "me", "name", "title", " a", "ab", "12"]
MERGES = [("n", "a"), ("m", "e"), ("na", "me"), ("{", '"'), ('"', ":"), ('":', '"'), ("a", "b")]


def spelled(pieces, merges):
    """A tokenizer of all bytes and of these pieces, that does not cut texts beforehand."""
    data = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in pieces]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    added = ["<end>", "<|im_start|>", "<|im_end|>"]
    vocabulary = [byte_spelling(one) for one in data]
    return small_tokenizer(vocabulary, merges, {**byte_level, "use_regex": False}, added)


TOKENIZER = spelled(PIECES, MERGES)
END = 256 + len(PIECES)


class Opinion:
    """A model whose opinion depends on the length; it counts, and keeps what it was asked."""

    def __init__(self, seed=0):
        self.passes, self.asked = 0, []
        self.noise = np.random.default_rng(seed).normal(size=(32, TOKENIZER.n_ids))

    def __call__(self, ids):
        self.passes += 1
        self.asked.append(tuple(ids))
        return self.noise[len(ids) % 32]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("regex", [r'\{"name":"[a-z]{0,5}"\}', r"(ab|a)*12", r"name|12"])
def test_the_loop_is_that_of_decode(regex, method, temperature):
    """With and without forced ids: the ids, the passes, and what the model is asked."""
    for seed, (known, forced) in enumerate([(nothing, False), (certain, True)] * 3):
        constraint = constrain(TOKENIZER, regex, method, eos_ids=(END,), added_tokens=False)
        asked = {"max_new_tokens": 9, "temperature": temperature, "seed": seed}
        theirs, ours = Opinion(), Opinion()
        expected = decode(theirs, constraint, (1, 2), forced=forced, **asked)
        asked["most_ids"] = asked.pop("max_new_tokens")
        found = write(ours, constraint.engine, (1, 2), known, **asked)
        assert tuple(token for token in found.ids if token != END) == expected.ids
        assert found.passes == ours.passes == expected.passes
        assert ours.asked == theirs.asked
        assert sum(found.runs) == expected.forced
        assert found.seconds >= found.model + found.masks > 0
