"""Distributions over answers on a small random model, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import BruteForce, tiny_llama

from experiments import lab
from experiments.artefacts import distortion
from experiments.exact import METHODS, Answers
from experiments.statistics import clopper_pearson
from experiments.trie import along_paths, size_of

CASES = {
    "words": ("Answer:", (" yes", " no")),
    "quoted": ('A "', ('low"', 'mid"')),
    "split": ("—", (" да", " é")),
}
LEVEL = 1e-7


@pytest.fixture(scope="module")
def loaded(smollm2_tokenizer):
    return tiny_llama(smollm2_tokenizer)


@pytest.fixture(scope="module", params=CASES)
def case(request, loaded):
    """(answers in their trie, brute force, the paths of each answer by method)."""
    prompt, answers = CASES[request.param]
    brute = BruteForce(loaded, prompt)
    lift = [brute.tokenizations(answer.encode()) for answer in answers]
    canonical = [[brute.canonical(answer)] for answer in answers]
    return Answers(loaded, prompt, answers), brute, {"lift": lift, "canonical": canonical}


def test_masses_and_distributions_equal_brute_force(case):
    tree, brute, paths = case
    mass = [sum(map(brute.free, spelled)) for spelled in paths["lift"]]
    assert np.exp(tree.summed(tree.steps)) == pytest.approx(mass)
    own = [brute.free(path) for (path,) in paths["canonical"]]
    assert np.exp(tree.summed(tree.steps, tree.canonical_leaves())) == pytest.approx(own)
    assert tree.lengths().tolist() == [len(path) for (path,) in paths["canonical"]]
    for method in METHODS:
        steps = tree.masked_steps(method)
        assert np.exp(tree.summed(steps)) == pytest.approx(brute.distribution(paths[method]))
        every = [path for spelled in paths[method] for path in spelled]
        expected = sum(brute.masked(path, every) * len(path) for path in every)
        along = along_paths(tree.trie, steps)
        found = size_of(tree.automata[method], tree.trie, tree.alive(method), along)
        assert found["expected_steps"] == pytest.approx(expected)


def test_the_mass_of_deciding_prefixes_equals_brute_force(case):
    tree, brute, paths = case
    for method in METHODS:
        begin = [{p[:i] for p in of for i in range(len(p) + 1)} for of in paths[method]]
        shared = begin[0] & begin[1]
        for answer, mass in enumerate(tree.deciding(method)):
            deciding = {p for p in begin[answer] - shared if p[:-1] in shared}
            assert mass == pytest.approx(sum(map(brute.free, deciding)))


def agree(counts, law):
    for count, p in zip(counts.tolist(), law, strict=True):
        low, high = clopper_pearson(count, int(counts.sum()), LEVEL)
        assert low <= p <= high


def test_samples_follow_the_distributions(case, rng):
    tree, _, _ = case
    for method in METHODS:
        agree(tree.drawn(method, 400, rng), np.exp(tree.summed(tree.masked_steps(method))))
    mass = np.exp(tree.summed(tree.steps))
    drawn = tree.drawn_freely(3000, rng)
    assert drawn.sum() >= 3000
    agree(drawn, mass / mass.sum())


def test_a_mask_that_differs_from_the_automaton_is_an_error(loaded, rng):
    tree = Answers(loaded, *CASES["words"])
    tree.constraints["canonical"] = tree.constraints["lift"]
    with pytest.raises(RuntimeError, match="not the automaton's"):
        tree.drawn("canonical", 20, rng)


def test_the_article_comes_out_as_published():
    """Table 1, and the sizes of its example's automata."""
    pytest.importorskip("interegular")
    pytest.importorskip("mistral_common", reason="the Mistral-7B merge table is in it")
    assert [row["tokens"] for row in distortion.merged()] == [
        *distortion.STEPS,
        distortion.STEPS[-1],
    ]
    rows = distortion.measure(distortion.Config(), "sizes")
    made = [(row["states"], row["transitions"]) for row in rows]
    published = [pair for pair in distortion.SIZES.values() if pair]
    assert made[: len(published)] == published
    assert made[2:4] == [(4, 4), (17, 48)]
    assert [row["accepting"] for row in rows][1:3] == [2, 1]


def test_all_samples_lie_in_their_intervals():
    module = lab.load("distortion")
    run = lab.Run(results=lab.ROOT / "none")
    _, rows = lab.rows_there("distortion", module, module.Config(), run)
    assert distortion.asked(lab.good(rows))["inside"].all()
