"""The packed and the padded evaluation of a trie equal one forward pass per id."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_language import lift_of, single_paths

from bpe_automata.errors import PromptError
from experiments.token_trie import unroll
from experiments.tree_logprobs import packed_log_probs, padded_log_probs, pick_evaluator

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
