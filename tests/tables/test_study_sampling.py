"""Weighted populations on a trie: what one, two, and very many particles give."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tiny_language import PIECES, lift_of

from experiments.study.distortion_finite import Populations, _systematic
from experiments.study.study_laws_tree import Explored
from experiments.study.token_trie import along_paths, masked_steps, unroll

ANSWERS = ("abcab", "caa", "bbc")
COUNT = 20000


@pytest.fixture(scope="module")
def found():
    """A trie with random log-probabilities; the children of a node have less than all the mass."""
    trie = unroll([lift_of(ANSWERS)])
    scores = np.log(np.random.default_rng(3).random((1, len(trie))) / len(PIECES))
    scores[0, 0] = 0
    complete = np.zeros(len(trie), dtype=bool)
    complete[trie.leaves()] = True
    texts = ["".join(PIECES[token] for token in trie.ids(node)) for node in range(len(trie))]
    answer = np.full(len(trie), -1)
    for node, text in enumerate(texts):
        (*possible,) = (k for k, one in enumerate(ANSWERS) if one.startswith(text))
        answer[node] = possible[0] if len(possible) == 1 else -1
    return Explored(trie, scores, complete, np.zeros(len(trie), dtype=bool), answer, 0)


@pytest.fixture
def populations(found):
    return Populations(found, found.scores[0], found.trie.alive(0), len(ANSWERS))


def leaf_laws(found):
    """(law under the mask, weight, answer) of each leaf."""
    leaves = found.trie.leaves()
    steps = masked_steps(found.trie, found.scores[0], found.trie.alive(0))
    paths = along_paths(found.trie, steps)[leaves]
    own = along_paths(found.trie, found.scores[0])[leaves]
    return np.exp(paths), np.exp(own - paths), found.answer[leaves]


def close(made, law):
    assert made.law.sum() == pytest.approx(1)
    assert (np.abs(made.law - law) <= 5 * made.error + 1e-12).all()
    assert (made.error > 0).all()
    assert made.error.max() < 0.01


@pytest.mark.parametrize("kind", ["importance", "smc"])
def test_one_particle_is_the_masked_law(kind, populations, found, rng):
    law, _, answers = leaf_laws(found)
    made = getattr(populations, kind)(1, COUNT, rng)
    close(made, np.bincount(answers, law, len(ANSWERS)))


def test_two_weighted_particles_are_enumerated(populations, found, rng):
    law, weight, answers = leaf_laws(found)
    expected = np.zeros(len(ANSWERS))
    for one, other in product(range(len(law)), repeat=2):
        for taken in (one, other):
            share = weight[taken] / (weight[one] + weight[other])
            expected[answers[taken]] += law[one] * law[other] * share
    close(populations.importance(2, COUNT, rng), expected)


@pytest.mark.parametrize("kind", ["importance", "smc"])
def test_many_particles_give_the_free_law(kind, populations, found, rng):
    law, weight, answers = leaf_laws(found)
    mass = np.bincount(answers, law * weight, len(ANSWERS))
    made = getattr(populations, kind)(2000, 200, rng)
    assert made.law == pytest.approx(mass / mass.sum(), abs=0.01)


def test_smc_is_nearer_to_the_free_law_than_one_draw(populations, found, rng):
    law, weight, answers = leaf_laws(found)
    mass = np.bincount(answers, law * weight, len(ANSWERS))
    free = mass / mass.sum()
    distances = [np.abs(populations.smc(n, COUNT, rng).law - free).sum() / 2 for n in (1, 4, 16)]
    assert distances == sorted(distances, reverse=True)


def test_open_nodes_count_for_their_one_answer(found, rng):
    cut = found.trie.depth <= 1
    first = np.flatnonzero(cut)
    trie = type(found.trie)(*(column[first] for column in vars(found.trie).values()))
    part = Explored(
        trie,
        found.scores[:, first],
        found.complete[first],
        ~found.complete[first] & (trie.depth == 1),
        found.answer[first],
        1,
    )
    made = Populations(part, part.scores[0], trie.alive(0), len(ANSWERS)).importance(1, COUNT, rng)
    steps = np.exp(masked_steps(trie, part.scores[0], trie.alive(0)))
    decided = (trie.depth == 1) & (part.answer >= 0)
    expected = np.bincount(part.answer[decided], steps[decided], len(ANSWERS))
    assert made.law == pytest.approx(expected, abs=0.02)


def test_systematic_resampling_copies_as_often_as_weights_say(rng):
    weights = rng.random((500, 6))
    shares = weights / weights.sum(axis=1, keepdims=True)
    chosen = _systematic(np.log(weights), rng)
    copies = np.stack([(chosen == k).sum(axis=1) for k in range(6)], axis=1)
    assert (np.abs(copies - 6 * shares) < 1).all()
    assert (copies - 6 * shares).mean(axis=0) == pytest.approx(0, abs=0.1)
