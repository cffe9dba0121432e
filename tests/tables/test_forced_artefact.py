"""Forced tokens: counts against those by hand, and the loop that is timed."""

from __future__ import annotations

import numpy as np
import pytest

from bpe_automata import compile_regex, constrain
from bpe_automata.sampling import decode
from bpe_automata.testing import small_tokenizer
from experiments.artefacts import forced
from experiments.artefacts.forced import METHODS, certain, nothing, walked, write
from experiments.inputs import Case

MERGES = [("b", "c"), ("a", "bc"), ("b", "d"), ("a", "bd")]
TOKENIZER = small_tokenizer([*"abcdefghx", "bc", "abc", "bd", "abd"], MERGES, added=["<end>"])
END = 13


def counts(regex, *texts):
    found = {row.pop("method"): row for row in walked(TOKENIZER, compile_regex(regex), texts)}
    assert tuple(found) == METHODS
    return {m: {k: n for k, n in row.items() if n} for m, row in found.items()}


def test_counts_by_hand():
    """x,abc and x,abd: x is certain; the heuristic adds a b, of which neither is in any text that
    matches. At 1 it keeps a, at 2 none. No id after x is certain, and the lift has x a b."""
    found = counts("xab(c|d)", "xabc", "xabd")
    right = {"ids": 4, "known": 2, "runs": 2}
    for method in ("canonical", "lift", "chop 2", "chop 4"):
        assert found[method] == right
    for method in ("chop 0", "chop 1"):
        assert found[method] == right | {"departing": 2, "no_match": 2}
    assert set(map(str, counts("e(f|g)+h", "efgh").values())) == {
        "{'ids': 4, 'known': 1, 'runs': 1}"
    }


class Opinion:
    """A model whose opinion depends on the length; it counts, and keeps what it was asked."""

    def __init__(self):
        self.passes, self.asked = 0, []
        self.noise = np.random.default_rng(0).normal(size=(32, TOKENIZER.n_ids))

    def __call__(self, ids):
        self.passes += 1
        self.asked.append(tuple(ids))
        return self.noise[len(ids) % 32]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("regex", ["xab(c|d){1,4}", "(ab|c)*he", "abd|hh"])
def test_the_loop_is_that_of_decode(regex, method, temperature):
    """With and without forced ids: the ids, the passes, and what the model is asked."""
    for seed, (known, is_forced) in enumerate([(nothing, False), (certain, True)] * 3):
        constraint = constrain(TOKENIZER, regex, method, eos_ids=(END,), added_tokens=False)
        theirs, ours = Opinion(), Opinion()
        asked = {"max_new_tokens": 9, "temperature": temperature, "seed": seed}
        expected = decode(theirs, constraint, (4, 5), forced=is_forced, **asked)
        config = forced.Config(way_ids=9, temperature=temperature, seed=seed)
        ids, row = write(ours, constraint.engine, (4, 5), known, config)
        assert tuple(token for token in ids if token != END) == expected.ids
        assert row["passes"] == ours.passes == expected.passes
        assert ours.asked == theirs.asked
        assert sum(row["runs"]) == expected.forced
