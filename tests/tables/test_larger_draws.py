"""Texts drawn on a trie: those of the batched sampler with the same numbers, unbiased with and
without resampling, and each sequence is read once."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import BruteForce, tiny_llama

from bpe_automata import constrain
from bpe_automata.errors import ArgumentError, LogitsError
from experiments.logprobs import PackedReader
from experiments.shared.batched import sample_batch
from experiments.study.sampled import draws
from experiments.study.sampled.draws import ReadTrie, Walk, draw

PATTERN = r" [ab]{1,4}\."


@pytest.fixture(scope="module")
def loaded(smollm2_tokenizer):
    return tiny_llama(smollm2_tokenizer)


@pytest.fixture
def prompt(loaded):
    return loaded.prompt_ids("At")


def walks(loaded, prompt, temperature=1.0, pattern=PATTERN):
    """Of both methods, on one trie."""
    lift, own = (
        constrain(loaded.tokenizer, pattern, method, eos_ids=()) for method in ("lift", "canonical")
    )
    trie = ReadTrie(PackedReader(loaded.model, prompt), lift, prompt, temperature)
    return {"lift": (lift, trie.lift), "canonical": (own, Walk(trie, own))}


@pytest.mark.parametrize("method", ["lift", "canonical"])
@pytest.mark.parametrize(("temperature", "longest"), [(1.0, 9), (0.7, 2)])
def test_the_texts_are_those_of_the_batched_sampler(loaded, prompt, method, temperature, longest):
    """The ids, the weights, and which were cut off."""
    constraint, walk = walks(loaded, prompt, temperature)[method]
    found = [text for (text,) in draw(walk, 60, 1, longest, seed=5)]
    given = {"max_new_tokens": longest, "temperature": temperature, "seed": 5}
    expected = sample_batch(loaded.model, prompt, constraint, 60, **given)
    assert [text.ids for text in found] == [text.ids for text in expected]
    assert [text.log_weight > -np.inf for text in found] == [text.ended for text in expected]
    logs = [text.log_weight for text in found]
    assert logs == pytest.approx([text.log_weight for text in expected], abs=1e-4)
    assert len({text.ids for text in found}) > 10


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_populations_are_unbiased_for_each_text(loaded, prompt, monkeypatch, threshold):
    """E[sum of the weights of those who wrote x] = n p(x), resampled or not. All texts have three
    ids: under a random model longer ones would hardly survive beside shorter ones."""
    monkeypatch.setattr(draws, "THRESHOLD", threshold)
    _, walk = walks(loaded, prompt, pattern=r" [ab][1-3]\.")["canonical"]
    populations = draw(walk, 500, 4, 9, seed=2)
    brute = BruteForce(loaded, "At")
    for body in ("a1", "a2", "a3", "b1", "b2", "b3"):
        ids = brute.canonical(f" {body}.")
        each = [
            sum(np.exp(text.log_weight) for text in some if text.ids == ids) / 4
            for some in populations
        ]
        assert len(ids) == 3
        assert np.mean(each) > 0
        assert abs(np.mean(each) - brute.free(ids)) < 5 * np.std(each) / np.sqrt(500)


def test_each_sequence_is_read_once_for_all_methods(loaded, prompt):
    both = walks(loaded, prompt)
    (_, lift), (_, own) = both.values()
    read = []
    reader = lift.trie._reader
    logits = reader.logits
    reader.logits = lambda tree, nodes: read.extend(nodes.tolist()) or logits(tree, nodes)
    drawn = [draw(walk, 40, 1, 9, seed=k) for k, walk in enumerate((lift, own, lift))]
    assert len(read) == len(set(read)) == len(lift.trie)
    begun = {text.ids[:k] for each in drawn for (text,) in each for k in range(len(text.ids))}
    assert len(begun) == len(read)


def test_a_language_that_is_no_part_of_the_lift_is_refused(loaded, prompt):
    _, lift = walks(loaded, prompt)["lift"]
    other = constrain(loaded.tokenizer, r" [cd]\.", "lift", eos_ids=())
    with pytest.raises(ArgumentError, match="does not allow"):
        draw(Walk(lift.trie, other), 3, 1, 9, seed=0)


def test_a_model_without_a_distribution_is_an_error(loaded, prompt):
    _, lift = walks(loaded, prompt)["lift"]
    reader = lift.trie._reader
    logits = reader.logits
    reader.logits = lambda tree, nodes: logits(tree, nodes) * np.nan
    with pytest.raises(LogitsError):
        draw(lift, 3, 1, 9, seed=0)
