"""Texts that a model wrote freely: what counts as canonical in them, how they are drawn, alone and
beside canonical ones from the same random numbers, and their losses."""

from itertools import product

import numpy as np
import pytest
from tiny import loaded_model, next_logits

from bpe_automata import constrain
from bpe_automata.testing import byte_level, small_tokenizer
from experiments.artefacts.free_text import drawn_pairs
from experiments.sampling import fault, losses

MERGES = [("a", "b"), ("Ġ", "a"), ("Ġ", "Ġ"), ("b", "a"), ("Ã", "©")]
TOKENIZER = small_tokenizer(
    [*"ab.ĠÃ©", *map("".join, MERGES)],
    MERGES,
    byte_level(use_regex=True),
    added=["<end>"],
)
ALL_TEXTS = constrain(TOKENIZER, r"(?s:.*)", eos_ids=(), added_tokens=True)
PROMPTS = [TOKENIZER.encode(text) for text in ("ab a", "b", "a.é")]


@pytest.fixture(scope="module")
def tiny():
    """A random model, so that many of its texts are not canonical."""
    return loaded_model(TOKENIZER, seed=3, eos_ids=(TOKENIZER.n_ids - 1,))


@pytest.fixture(scope="module")
def pairs(tiny):
    """(prompt, pair) of 90 texts of at most 5 ids."""
    which = [k % 3 for k in range(90)]
    heats = [(0.7, 1.3)[k % 2] for k in range(90)]
    numbers = np.random.default_rng(1).random((90, 5, 2))
    prompts = [PROMPTS[k] for k in which]
    return list(zip(which, drawn_pairs(tiny, prompts, heats, numbers), strict=True))


@pytest.mark.parametrize("prompt", ["", "a "])
def test_whole_and_cut_texts_against_all_texts_there_are(prompt):
    """D and its beginnings, by encoding every text of at most 7 characters."""
    prompt_ids = TOKENIZER.encode(prompt)
    texts = ["".join(some) for n in range(8) for some in product("ab ", repeat=n)]
    whole = set()
    for ids in TOKENIZER.encode_batch([prompt + text for text in texts]):
        if ids[: len(prompt_ids)] == prompt_ids:
            whole.add(tuple(ids[len(prompt_ids) :]))
    begun = {ids[:k] for ids in whole for k in range(len(ids) + 1)}
    start = ALL_TEXTS.matcher(prompt_ids)
    known = [i for i in range(TOKENIZER.n_ids - 1) if {*TOKENIZER.token_bytes(i)} <= {*b"ab "}]
    for size in range(4):
        for ids in product(known, repeat=size):
            for ended, right in ((True, whole), (False, begun)):
                assert (fault(start, ids, ended) is None) == (ids in right), (ids, ended)


def test_the_mask_changes_a_text_iff_it_is_not_canonical(pairs):
    starts = [ALL_TEXTS.matcher(prompt) for prompt in PROMPTS]
    changed = 0
    for which, (free, canonical, fork) in pairs:
        assert fork == fault(starts[which], free.ids, free.ended)
        assert (free == canonical) == (fork is None)
        assert fault(starts[which], canonical.ids, canonical.ended) is None
        if fork is not None:
            changed += 1
            assert free.ids[:fork] == canonical.ids[:fork]
            assert (*free.ids, None)[fork] != (*canonical.ids, None)[fork]
    assert 20 < changed < 80


def test_the_loss_is_that_of_one_pass_for_each_id(tiny):
    """Texts that merge with the end of their prompt too, and one that is empty."""

    def log_prob(text):
        ids, total = tiny.prompt_ids(text), 0.0
        for k in range(1, len(ids)):
            total += float(next_logits(tiny.model, ids[:k]).log_softmax(-1)[ids[k]])
        return total

    asked = [("ab a", "b."), ("a", "b a"), ("a.", "é" * 7), ("b", ""), (". a", "b ab"), ("b", ".")]
    asked += [("ab" * k, "a.b" * k) for k in range(1, 9)]
    assert TOKENIZER.encode("a" + "b a")[:1] != TOKENIZER.encode("a")
    right = [log_prob(prompt) - log_prob(prompt + text) for prompt, text in asked]
    assert losses(tiny, asked) == pytest.approx(right, rel=1e-5, abs=1e-5)
