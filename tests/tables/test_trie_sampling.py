"""Weighted populations on a trie, of one and of many, follow the exact distributions; and the
parts of a distance sum up to it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from experiments import lab
from experiments.artefacts import distortion_study
from experiments.artefacts.distortion_study import _systematic, smc

PIECES = ("a", "b", "c", "ab", "bc", "abc", "ca", "aa")
ANSWERS = ("abcab", "caa", "bbc")


@pytest.fixture(scope="module")
def tree():
    """Of all tokenizations, with random log-probabilities: the children of a node have less than
    all the mass."""
    nodes = [(-1, "")]
    for node, (_, text) in enumerate(nodes):
        longer = (text + piece for piece in PIECES)
        nodes += [(node, t) for t in longer if any(a.startswith(t) for a in ANSWERS)]
    parent, texts = (np.array(column) for column in zip(*nodes, strict=True))
    steps = np.log(np.random.default_rng(3).random(len(nodes)) / len(PIECES))
    steps[0], free, masked = 0.0, np.zeros(len(nodes)), np.zeros((len(nodes), 1))
    for node in range(1, len(nodes)):
        mass = np.logaddexp.reduce(steps[parent == parent[node]])
        free[node] = free[parent[node]] + steps[node]
        masked[node] = masked[parent[node]] + steps[node] - mass
    possible = [[k for k, a in enumerate(ANSWERS) if a.startswith(t)] for t in texts.tolist()]

    class Tree(SimpleNamespace):
        def __len__(self):
            return len(self.parent)

    return Tree(
        parent=parent,
        steps=steps,
        free=free,
        masked=masked,
        alive=np.ones((len(nodes), 1), dtype=bool),
        complete=np.isin(texts, ANSWERS),
        answer=np.array([of[0] if len(of) == 1 else -1 for of in possible]),
        n=len(ANSWERS),
    )


def law(tree, paths):
    """float64 [answers]."""
    own = np.exp(paths) * tree.complete
    return np.bincount(np.maximum(tree.answer, 0), own, tree.n) / own.sum()


def test_one_particle_is_the_masked_distribution(tree, rng):
    assert smc(tree, 0, 1, 20_000, rng) == pytest.approx(law(tree, tree.masked[:, 0]), abs=0.015)


def test_many_particles_give_the_free_distribution(tree, rng):
    free = law(tree, tree.free)
    assert np.abs(free - law(tree, tree.masked[:, 0])).max() > 0.03
    assert smc(tree, 0, 2000, 100, rng) == pytest.approx(free, abs=0.01)


def test_systematic_resampling_copies_as_often_as_weights_say(rng):
    weights = rng.random((500, 6))
    shares = weights / weights.sum(axis=1, keepdims=True)
    chosen = _systematic(np.log(weights), rng)
    copies = np.stack([(chosen == k).sum(axis=1) for k in range(6)], axis=1)
    assert (np.abs(copies - 6 * shares) < 1).all()
    assert (copies - 6 * shares).mean(axis=0) == pytest.approx(0, abs=0.1)


def test_distances_are_the_sums_of_their_parts():
    module, run = lab.load("distortion-study"), lab.Run(results=lab.ROOT / "none")
    _, rows = lab.rows_there("distortion-study", module, module.Config(), run)
    found = distortion_study.points(lab.good(rows))
    assert len(found) == 1300
    for parts in (["tokenization", "myopia", "rest"], ["own share", "step share", "rest"]):
        assert np.allclose(found[parts].sum(axis=1), found["TV lift"])
    # With weights the lift is at 0, and canonical at the rest.
    lift, own, rest = (found[f"TV {name}"] for name in ("lift", "canonical", "weighted"))
    assert np.allclose(found["own share"], ((lift - own) + (0 - rest)) / 2)
