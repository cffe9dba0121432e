"""Table 1: the masses against brute force, the sizes as published, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import PIECES, lift_of, single_paths, tokenizations

from experiments.answers.methods import Spanned
from experiments.answers.trie import unroll
from experiments.article import table1
from experiments.article.mistral import mistral_table

ANSWERS = ("abc", "aab")
OWN = ([5], [0, 3])  # abc, a ab
PATHS = {"lift": [list(tokenizations(a)) for a in ANSWERS], "canonical": [[p] for p in OWN]}
SIZES = {"states": 1, "transitions": 2, "accepting": 1}
MERGED = table1.merged_row()
MANIFEST = {"config": {"merges": None}}


@pytest.fixture(scope="module")
def item() -> Spanned:
    trie = unroll([lift_of(ANSWERS), single_paths(OWN)])
    spelled = ["".join(PIECES[t] for t in trie.ids(leaf)) for leaf in trie.leaves()]
    answer_of = np.array([ANSWERS.index(text) for text in spelled])
    return Spanned([], {}, {}, trie, trie.leaves(), answer_of)


@pytest.fixture(scope="module")
def steps(item) -> np.ndarray:
    """Made-up logarithms of probabilities."""
    return np.concatenate([[0.0], np.log(np.random.default_rng(1).random(len(item.trie) - 1))])


@pytest.fixture(scope="module")
def probability(item, steps):
    """Of a sequence of ids, by brute force."""
    score = {tuple(item.trie.ids(node)): steps[node] for node in range(len(item.trie))}

    def of(path) -> float:
        return np.exp(sum(score[tuple(path[: i + 1])] for i in range(len(path))))

    return of


def test_the_mass_of_deciding_prefixes_equals_brute_force(item, steps, probability):
    for method, paths in PATHS.items():
        begin = [{tuple(p[:i]) for p in of for i in range(len(p) + 1)} for of in paths]
        shared = begin[0] & begin[1]
        for answer, mass in enumerate(table1.deciding_mass(item, steps, method)):
            deciding = {p for p in begin[answer] - shared if p[:-1] in shared}
            assert mass == pytest.approx(sum(map(probability, deciding)))


def test_a_masked_distribution_is_renormalised_step_by_step(item, steps):
    for method in PATHS:
        assert sum(table1.masked_distribution(item, steps, method)) == pytest.approx(1)
    # The two canonical paths part at their first ids: only that step is a choice.
    first = [
        steps[item.trie.alive(1) & (item.trie.depth == 1) & (item.trie.token == path[0])]
        for path in OWN
    ]
    weights = np.exp(np.concatenate(first))
    assert table1.masked_distribution(item, steps, "canonical") == pytest.approx(
        weights / weights.sum()
    )


def test_sizes_are_the_published_ones():
    pytest.importorskip("interegular")
    pytest.importorskip("mistral_common", reason="the Mistral-7B merge table is in it")
    found = table1.sizes_row(mistral_table())["sizes"]
    for name, (states, transitions) in table1.PUBLISHED.items():
        assert (found[name]["states"], found[name]["transitions"]) == (states, transitions)
    assert found["direct_of_given"]["accepting"] == 2
    assert found["direct_of_minimal"] == {"states": 4, "transitions": 4, "accepting": 1}
    assert found["package_lift"]["transitions"] == 48
    assert "does not come out" not in table1.readme({"sizes": found})
    assert "does not come out" in table1.readme({"sizes": found | {"lift": SIZES}})


def test_table_1_comes_out_as_published():
    assert table1.is_published(MERGED)
    assert table1.render([MERGED], MANIFEST).wrong == []
    assert table1.render([MERGED | {"encoded": ["a"]}], MANIFEST).wrong == [table1.DIFFERENT]
