"""Free texts and canonical ones from the same random numbers, and their losses."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import tiny_llama

from bpe_automata.testing import byte_level, small_tokenizer
from experiments.canonical_texts import Judge
from experiments.paired_texts import drawn_pairs
from experiments.sampling import losses

MERGES = [("a", "b"), ("Ġ", "a"), ("Ġ", "Ġ"), ("b", "a"), ("ab", "a"), ("Ã", "©")]
FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
TOKENIZER = small_tokenizer(
    [*"ab.ĠÃ©", *map("".join, MERGES)],
    MERGES,
    byte_level(use_regex=True),
    added=[{"content": "<end>", "special": True} | FLAGS],
)
PROMPTS = [TOKENIZER.encode(text) for text in ("ab a", "b", "a.é")]


@pytest.fixture(scope="module")
def tiny():
    """A random model, so that many of its texts are not canonical."""
    return tiny_llama(TOKENIZER, seed=3, eos_ids=(TOKENIZER.n_ids - 1,))


@pytest.fixture(scope="module")
def pairs(tiny):
    """(prompt, pair) of 90 texts of at most 5 ids."""
    which = [k % 3 for k in range(90)]
    heats = [(0.7, 1.3)[k % 2] for k in range(90)]
    numbers = np.random.default_rng(1).random((90, 5, 2))
    return list(zip(which, drawn_pairs(tiny, PROMPTS, which, heats, numbers), strict=True))


def test_the_mask_changes_a_text_iff_it_is_not_canonical(pairs):
    judges = [Judge(TOKENIZER, prompt) for prompt in PROMPTS]
    changed = 0
    for which, (free, canonical, fork) in pairs:
        is_canonical = judges[which].verdict(*free).canonical
        assert (free == canonical) == is_canonical == (fork is None)
        assert judges[which].verdict(*canonical).canonical
        if fork is not None:
            changed += 1
            assert free.ids[:fork] == canonical.ids[:fork]
            assert (*free.ids, None)[fork] != (*canonical.ids, None)[fork]
            assert judges[which].verdict(free.ids[:fork], ended=False).canonical
    assert 20 < changed < 80


def test_the_loss_is_that_of_one_pass_for_each_id(tiny):
    """Texts that merge with the end of their prompt too, and one that is empty."""
    torch = pytest.importorskip("torch")

    def log_prob(text):
        ids, total = tiny.prompt_ids(text), 0.0
        for k in range(1, len(ids)):
            with torch.no_grad():
                logits = tiny.model(torch.tensor([ids[:k]])).logits[0, -1]
            total += float(logits.log_softmax(-1)[ids[k]])
        return total

    asked = [("ab a", "b."), ("a", "b a"), ("a.", "é" * 7), ("b", ""), (". a", "b ab"), ("b", ".")]
    asked += [("ab" * k, "a.b" * k) for k in range(1, 9)]
    assert TOKENIZER.encode("a" + "b a")[:1] != TOKENIZER.encode("a")
    right = [log_prob(prompt) - log_prob(prompt + text) for prompt, text in asked]
    assert losses(tiny, asked) == pytest.approx(right, rel=1e-5, abs=1e-5)
