"""The packed and the padded evaluation of a trie equal one forward pass per id."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_language import lift_of, single_paths

from bpe_automata.errors import PromptError
from experiments.study.token_trie import unroll
from experiments.study.tree_logprobs import (
    PackedReader,
    PaddedReader,
    packed_log_probs,
    padded_log_probs,
    pick_evaluator,
    pick_reader,
)

PROMPT = [3, 1, 4, 1, 5]


@pytest.fixture(scope="module")
def trie():
    return unroll([lift_of(["abcabc", "caab", "bb"]), single_paths([[7, 7, 7, 7]])])


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("evaluate", [packed_log_probs, padded_log_probs])
def test_equals_one_pass_per_node(evaluate, size, trie, tiny_model, naive_log_prob):
    done = []
    found = evaluate(tiny_model, PROMPT, trie, done.append, size)
    for node in range(1, len(trie)):
        ids = trie.ids(node)
        expected = naive_log_prob(PROMPT, ids) - naive_log_prob(PROMPT, ids[:-1])
        assert found[node] == pytest.approx(expected, abs=1e-9)
    assert 0 < sum(done) <= len(trie.inner())


@pytest.mark.parametrize("evaluate", [packed_log_probs, padded_log_probs])
def test_each_temperature_divides_the_logits(evaluate, trie, tiny_model):
    import torch

    heats = (0.5, 1.0, 3.0)
    found = evaluate(tiny_model, PROMPT, trie, temperature=heats)
    assert found.shape == (3, len(trie))
    assert found[1] == pytest.approx(evaluate(tiny_model, PROMPT, trie), abs=1e-12)
    with torch.no_grad():
        logits = tiny_model(torch.tensor([PROMPT])).logits[0, -1]
    for heat, row in zip(heats, found, strict=True):
        own = torch.log_softmax(logits / heat, -1)
        for node in np.flatnonzero(trie.parent == 0):
            assert row[node] == pytest.approx(float(own[trie.token[node]]), abs=1e-9)


def test_nodes_are_read_in_any_order_and_again_where_the_cache_is_small(trie, tiny_model):
    every = trie.inner()
    reader = PaddedReader(tiny_model, PROMPT)
    wanted = reader.logits(trie, every)
    for most, order in ((10**6, every[::-1]), (3, every), (3, every[::-1])):
        packed = PackedReader(tiny_model, PROMPT, most_cached=most)
        for place in np.array_split(np.argsort(order), 5):
            nodes = np.sort(order[place])
            rows = np.searchsorted(every, nodes)
            assert packed.logits(trie, nodes).numpy() == pytest.approx(wanted[rows].numpy())


def test_layers_that_see_a_window_only(trie):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.Gemma3TextConfig(
        vocab_size=8,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        sliding_window=4,
        layer_types=["sliding_attention", "full_attention"],
        initializer_range=0.5,
    )
    model = transformers.Gemma3ForCausalLM(config).double().eval()
    found = packed_log_probs(model, PROMPT, trie, chunk=5)
    assert found == pytest.approx(padded_log_probs(model, PROMPT, trie), abs=1e-9)
    assert pick_reader(model, PROMPT, trie) is PackedReader


def test_packed_is_picked_where_it_is_right(trie, tiny_model):
    assert pick_evaluator(tiny_model, PROMPT, trie) is packed_log_probs


def test_padded_is_picked_for_a_model_that_ignores_the_mask(trie, tiny_model):
    class Deaf:
        device, dtype = tiny_model.device, tiny_model.dtype

        def __call__(self, attention_mask=None, **inputs):
            return tiny_model(**inputs)

    assert pick_evaluator(Deaf(), PROMPT, trie) is padded_log_probs


def test_padded_is_picked_for_a_model_that_refuses_the_mask(trie, tiny_model):
    class Refusing:
        device, dtype = tiny_model.device, tiny_model.dtype

        def __call__(self, input_ids, use_cache=False):
            return tiny_model(input_ids=input_ids, use_cache=use_cache)

    assert pick_evaluator(Refusing(), PROMPT, trie) is padded_log_probs


@pytest.mark.parametrize("evaluate", [packed_log_probs, padded_log_probs])
def test_an_empty_prompt_is_refused(evaluate, trie, tiny_model):
    with pytest.raises(PromptError):
        evaluate(tiny_model, [], trie)


def test_preorder(trie):
    assert trie.parent[0] == -1
    assert np.all(trie.parent[1:] < np.arange(1, len(trie)))
    assert [len(trie.ids(node)) for node in range(len(trie))] == trie.depth.tolist()
