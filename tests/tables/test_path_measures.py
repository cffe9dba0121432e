"""The sums over the trie equal the sums over all tokenizations, enumerated one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tiny_language import PIECES, lift_of, single_paths, tokenizations

from bpe_automata.errors import BudgetExceededError
from experiments.study.token_trie import (
    along_paths,
    kl_divergence,
    masked_steps,
    normalised,
    per_answer,
    size_of,
    total_variation,
    unroll,
)
from experiments.study.tree_logprobs import packed_log_probs

PROMPT = [0, 5, 2]
ANSWERS = ("abcab", "caa", "bbc")
LIFT = lift_of(ANSWERS)


@pytest.fixture(scope="module")
def trie():
    return unroll([LIFT])


@pytest.fixture(scope="module")
def scores(tiny_model, trie):
    return packed_log_probs(tiny_model, PROMPT, trie)


def answer_numbers(trie):
    texts = ["".join(PIECES[t] for t in trie.ids(leaf)) for leaf in trie.leaves()]
    return np.array([ANSWERS.index(text) for text in texts])


def test_leaves_are_all_tokenizations(trie):
    found = sorted(trie.ids(leaf) for leaf in trie.leaves())
    assert found == sorted(ids for answer in ANSWERS for ids in tokenizations(answer))


def test_free_law_sums_over_all_tokenizations(trie, scores, naive_log_prob):
    paths = along_paths(trie, scores)
    mass = np.exp(per_answer(trie.leaves(), answer_numbers(trie), paths, len(ANSWERS)))
    for i, answer in enumerate(ANSWERS):
        expected = sum(math.exp(naive_log_prob(PROMPT, ids)) for ids in tokenizations(answer))
        assert mass[i] == pytest.approx(expected, rel=1e-9)
    assert normalised(np.log(mass)) == pytest.approx(mass / mass.sum())


def masked_by_hand(ids, naive_log_prob):
    """P(ids) if each step is renormalised over all ids that lead to some answer."""
    result, text, prompt = 1.0, "", list(PROMPT)
    for token in ids:
        options = [
            t for t, piece in enumerate(PIECES) if any(a.startswith(text + piece) for a in ANSWERS)
        ]
        weights = {t: math.exp(naive_log_prob(prompt, [t])) for t in options}
        result *= weights[token] / sum(weights.values())
        text += PIECES[token]
        prompt.append(token)
    return result


def test_masked_law_renormalises_each_step(trie, scores, naive_log_prob):
    paths = along_paths(trie, masked_steps(trie, scores, trie.alive(0)))
    law = np.exp(per_answer(trie.leaves(), answer_numbers(trie), paths, len(ANSWERS)))
    for i, answer in enumerate(ANSWERS):
        expected = sum(masked_by_hand(ids, naive_log_prob) for ids in tokenizations(answer))
        assert law[i] == pytest.approx(expected, rel=1e-9)
    assert law.sum() == pytest.approx(1)


def test_masked_steps_of_a_part_leave_the_rest_out(trie, scores):
    alive = np.ones(len(trie), dtype=bool)
    dropped = int(np.flatnonzero(trie.parent == 0)[0])
    alive[dropped] = False
    steps = masked_steps(trie, scores, alive)
    siblings = np.flatnonzero((trie.parent == trie.parent[dropped]) & alive)
    assert steps[dropped] == -np.inf
    assert np.exp(steps[siblings]).sum() == pytest.approx(1)


def test_size_counts_states_steps_and_forced_steps():
    automaton = single_paths([[0, 1], [0, 2], [3]])
    trie = unroll([automaton])
    steps = np.log([1, 0.25, 1, 1, 1])
    alive = trie.alive(0)
    size = size_of(automaton, trie, alive, along_paths(trie, masked_steps(trie, steps, alive)))
    assert (size.states, size.transitions, size.steps, size.forced) == (5, 4, 2, 0)
    forced = single_paths([[0, 1], [3]])
    trie = unroll([forced])
    steps = np.log([1, 0.25, 0.5, 0.75])
    alive = trie.alive(0)
    size = size_of(forced, trie, alive, along_paths(trie, masked_steps(trie, steps, alive)))
    assert (size.steps, size.forced) == (2, 1)
    assert size.expected_steps == pytest.approx(1.25)
    assert size.expected_forced == pytest.approx(0.25)


def test_distances():
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.25, 0.5])
    assert total_variation(p, q) == pytest.approx(0.5)
    assert kl_divergence(p, np.log(q)) == pytest.approx(math.log(2))


def test_a_trie_over_its_budget_is_refused():
    with pytest.raises(BudgetExceededError, match="trie nodes"):
        unroll([lift_of(["abc" * 8])], max_nodes=100)
