"""A trie is that of all tokenizations, enumerated one by one, and its log-probabilities, packed or
padded, equal one forward pass per id."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import lift_of, single_paths, tokenizations

from bpe_automata.errors import BudgetExceededError, PromptError
from experiments.logprobs import (
    PackedReader,
    PaddedReader,
    packed_log_probs,
    padded_log_probs,
    pick_evaluator,
    pick_reader,
    scores,
)
from experiments.trie import along_paths, masked_steps, size_of, unroll

PROMPT = [3, 1, 4, 1, 5]
ANSWERS = ("abcab", "caa", "bbc")


def test_leaves_are_all_tokenizations():
    trie = unroll([lift_of(ANSWERS)])
    found = sorted(trie.ids(leaf) for leaf in trie.leaves())
    assert found == sorted(ids for answer in ANSWERS for ids in tokenizations(answer))


def test_size_counts_states_steps_and_forced_steps():
    def size(paths, steps):
        automaton = single_paths(paths)
        trie = unroll([automaton])
        alive = trie.alive(0)
        masked = masked_steps(trie, np.log(steps), alive)
        return size_of(automaton, trie, alive, along_paths(trie, masked))

    found = size([[0, 1], [0, 2], [3]], [1, 0.25, 1, 1, 1])
    names = ("states", "transitions", "steps", "forced")
    assert [found[name] for name in names] == [5, 4, 2, 0]
    found = size([[0, 1], [3]], [1, 0.25, 0.5, 0.75])
    assert [found[name] for name in names] == [4, 3, 2, 1]
    assert found["expected_steps"] == pytest.approx(1.25)
    assert found["expected_forced"] == pytest.approx(0.25)


def test_a_trie_over_its_budget_is_refused():
    with pytest.raises(BudgetExceededError, match="trie nodes"):
        unroll([lift_of(["abc" * 8])], max_nodes=100)


@pytest.fixture(scope="module")
def two_tries():
    return unroll([lift_of(["abcabc", "caab", "bb"]), single_paths([[7, 7, 7, 7]])])


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("evaluate", [packed_log_probs, padded_log_probs])
def test_equals_one_pass_per_node(evaluate, size, two_tries, tiny_model, naive_log_prob):
    found = evaluate(tiny_model, PROMPT, two_tries, size)
    for node in range(1, len(two_tries)):
        ids = two_tries.ids(node)
        expected = naive_log_prob(PROMPT, ids) - naive_log_prob(PROMPT, ids[:-1])
        assert found[node] == pytest.approx(expected, abs=1e-9)


def test_each_temperature_divides_the_logits():
    torch = pytest.importorskip("torch")
    logits, temperatures = (
        torch.randn(3, 8, generator=torch.Generator().manual_seed(1)).double(),
        (0.5, 3),
    )
    found = scores(logits, np.array([0, 2]), np.array([5, 6]), temperatures)
    for temperature, row in zip(temperatures, found, strict=True):
        own = torch.log_softmax(logits / temperature, -1)
        assert row == pytest.approx([float(own[0, 5]), float(own[2, 6])], abs=1e-12)


def test_nodes_are_read_in_any_order_and_again_where_the_cache_is_small(two_tries, tiny_model):
    every = two_tries.inner()
    reader = PaddedReader(tiny_model, PROMPT)
    wanted = reader.logits(two_tries, every)
    for most, order in ((10**6, every[::-1]), (3, every), (3, every[::-1])):
        packed = PackedReader(tiny_model, PROMPT, most_cached=most)
        for place in np.array_split(np.argsort(order), 5):
            nodes = np.sort(order[place])
            rows = np.searchsorted(every, nodes)
            assert packed.logits(two_tries, nodes).numpy() == pytest.approx(wanted[rows].numpy())


def test_layers_that_see_a_window_only(two_tries):
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
    found = packed_log_probs(model, PROMPT, two_tries, chunk=5)
    assert found == pytest.approx(padded_log_probs(model, PROMPT, two_tries), abs=1e-9)
    assert pick_reader(model, PROMPT, two_tries) is PackedReader


def test_packed_is_picked_where_it_is_right(two_tries, tiny_model):
    """Not for a model that ignores the mask, nor for one that refuses it."""

    class Other:
        device, dtype = tiny_model.device, tiny_model.dtype

    class Deaf(Other):
        def __call__(self, attention_mask=None, **inputs):
            return tiny_model(**inputs)

    class Refusing(Other):
        def __call__(self, input_ids, use_cache=False):
            return tiny_model(input_ids=input_ids, use_cache=use_cache)

    assert pick_evaluator(tiny_model, PROMPT, two_tries) is packed_log_probs
    for model in (Deaf(), Refusing()):
        assert pick_evaluator(model, PROMPT, two_tries) is padded_log_probs
    for evaluate in (packed_log_probs, padded_log_probs):
        with pytest.raises(PromptError):
            evaluate(tiny_model, [], two_tries)
