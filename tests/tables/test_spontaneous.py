"""What counts as canonical in a text that a model wrote freely, and how such texts are drawn."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tiny import tiny_llama

from bpe_automata.testing import byte_level, small_tokenizer
from experiments import models
from experiments.canonical_texts import Judge
from experiments.sampling import sample

MERGES = ["a b", "Ġ a", "Ġ Ġ", "b a"]
SPACED = small_tokenizer(
    [*"abĠ", *(merge.replace(" ", "") for merge in MERGES)],
    [tuple(merge.split()) for merge in MERGES],
    byte_level(use_regex=True),
)


@pytest.mark.parametrize("prompt", ["", "a "])
def test_whole_and_cut_texts_against_all_texts_there_are(prompt):
    """D and its beginnings, by encoding every text of at most 7 characters."""
    prompt_ids = SPACED.encode(prompt)
    texts = ["".join(some) for n in range(8) for some in product("ab ", repeat=n)]
    whole = set()
    for ids in SPACED.encode_batch([prompt + text for text in texts]):
        if ids[: len(prompt_ids)] == prompt_ids:
            whole.add(tuple(ids[len(prompt_ids) :]))
    begun = {ids[:k] for ids in whole for k in range(len(ids) + 1)}
    judge = Judge(SPACED, prompt_ids)
    for size in range(4):
        for ids in product(range(SPACED.n_ids), repeat=size):
            for ended, right in ((True, whole), (False, begun)):
                verdict = judge.verdict(ids, ended)
                assert verdict.canonical == (ids in right), (ids, ended)
                assert bool(verdict.faults) == (not verdict.canonical)


@pytest.fixture
def tiny(monkeypatch):
    """A random model over a small tokenizer."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    tokenizer = small_tokenizer(
        [*(chr(c) for c in range(33, 127)), "Ġ", "Ċ", "ĉ", "ab"],
        [("a", "b")],
        byte_level(),
        added=[{"content": "<end>", "special": True} | flags],
    )
    loaded = tiny_llama(tokenizer, seed=3, eos_ids=(tokenizer.n_ids - 1,))
    monkeypatch.setattr(models, "opened", lambda *_: loaded)
    return loaded


def test_texts_follow_the_distribution_of_one_pass_for_each_id(tiny):
    """Two prompts of different length, padded; against the inverse of the cumulated masses."""
    torch = pytest.importorskip("torch")
    prompts, temperatures = [[1, 2, 3, 4, 5], [7, 8]], [0.8, 1.4, 1.0]
    which, drawn = [0, 1, 1], np.random.default_rng(0).random((3, 6))
    found = sample(tiny.model, prompts, which, temperatures, drawn, ends={20})
    for k, text in enumerate(found):
        ids = list(prompts[which[k]])
        for number in drawn[k][: len(text.ids) + text.ended]:
            with torch.no_grad():
                logits = tiny.model(torch.tensor([ids])).logits[0, -1].double()
            until = (logits / temperatures[k]).softmax(-1).cumsum(0)
            ids.append(int((until <= number).sum()))
        assert ids[len(prompts[which[k]]) :] == [*text.ids, *[20] * text.ended]


def text(*faults, n=10, ended=False):
    made = {"temperature": 1.0, "ids": [0] * n, "ended": ended, "canonical": not faults}
    return made | ({"faults": [*faults]} if faults else {})
