"""What each method of the study allows, step by step, and its distributions on a small random
model, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import BruteForce, tiny_llama

from experiments.answers.distributions import Aims, distributions, explore
from experiments.answers.methods import Poser
from experiments.answers.targets import Vocabulary
from experiments.logprobs import PackedReader
from experiments.trie import unroll

ANSWERS = (' "low"', ' "medium"', ' "high"')


@pytest.fixture(scope="module")
def tokenizer(smollm2_tokenizer):
    return smollm2_tokenizer


@pytest.fixture(scope="module")
def poser(tokenizer):
    return Poser(tokenizer, (2,))


def sequences(walker):
    """All sequences that a walker reads to their end."""
    trie = unroll([walker])
    return {tuple(trie.ids(leaf)) for leaf in trie.leaves()}


def test_lift_is_all_tokenizations_and_canonical_is_one_of_each(poser, tokenizer):
    prompt = '{"severity":'
    posed = poser.posed(tokenizer.encode(prompt), ANSWERS)
    lift, canonical = sequences(posed.walkers["lift"]), sequences(posed.walkers["canonical"])
    assert {tokenizer.decode(ids) for ids in lift} == set(ANSWERS)
    assert canonical < lift
    encoded = [tokenizer.encode(prompt + answer) for answer in ANSWERS]
    assert canonical == {tuple(ids[len(posed.prompt_ids) :]) for ids in encoded}
    assert posed.healing is None


def test_outlines_has_the_lift_of_ordinary_tokens(poser, tokenizer):
    pytest.importorskip("outlines_core")
    posed = poser.posed(tokenizer.encode("Is it? (a.b)"), (" yes.", " n|o", " да"))
    added = set(tokenizer.added_ids)
    lift = {ids for ids in sequences(posed.walkers["lift"]) if not added & set(ids)}
    assert sequences(posed.walkers["outlines"]) == lift
    assert posed.absent == {}


EXACT = Aims(1e-300, 1e-300, 10**6)
TEMPERATURES = np.array([0.5, 1.0, 1.5])
CASES = (("Answer:", (" yes", " no", " maybe")), ('A "', ('low"', 'mid"')), ("—", (" да", " é")))


@pytest.fixture(scope="module")
def loaded(smollm2_tokenizer):
    return tiny_llama(smollm2_tokenizer)


def explored(loaded, posed, walkers, aims=EXACT):
    def spelled(token, before):
        return loaded.tokenizer.token_bytes(token)

    reader, last = PackedReader(loaded.model, posed.prompt_ids), posed.prompt_ids[-1]
    vocabulary = Vocabulary(loaded.tokenizer.spellings, loaded.eos_ids)
    return explore(reader, walkers, posed.answers, spelled, last, TEMPERATURES, aims, vocabulary)


@pytest.fixture(scope="module")
def found_of(loaded, poser):
    def found(prompt, answers, aims=EXACT):
        posed = poser.posed(loaded.tokenizer.encode(prompt), answers)
        return posed, explored(loaded, posed, list(posed.walkers.values()), aims)

    return found


@pytest.mark.parametrize(("prompt", "answers"), CASES)
@pytest.mark.parametrize("number", range(len(TEMPERATURES)))
def test_distributions_equal_brute_force(prompt, answers, number, found_of, loaded):
    posed, found = found_of(prompt, answers)
    methods = tuple(posed.walkers)
    row = distributions(found, number, methods, len(answers), [1])
    brute = BruteForce(loaded, prompt, float(TEMPERATURES[number]))
    lift = [brute.tokenizations(answer.encode()) for answer in answers]
    own = [[brute.canonical(answer)] for answer in answers]
    mass = np.array([sum(map(brute.free, paths)) for paths in lift])
    canonical_mass = np.array([brute.free(path) for (path,) in own])
    free, limit = mass / mass.sum(), canonical_mass / canonical_mass.sum()
    assert row["free"] == pytest.approx(free)
    assert row["log10_mass"] == pytest.approx(np.log10(mass.sum()))
    assert row["free_slack"] == 0
    assert row["p_right"] == pytest.approx(free[1])
    for method, spelled in {"lift": lift, "canonical": own}.items():
        part = row["methods"][method]
        distribution = np.array(brute.distribution(spelled))
        assert part["law"] == pytest.approx(distribution)
        assert part["tv"] == pytest.approx(np.abs(distribution - free).sum() / 2)
        assert part["kl"] == pytest.approx((free * np.log(free / distribution)).sum())
        assert (part["slack"], part["unread"]) == (0, 0)
        assert part["lost"] == pytest.approx(0, abs=1e-9)
        assert part["is_right"] == (distribution.argmax() == 1)
    assert row["methods"]["lift"]["weighted_tv"] == pytest.approx(0, abs=1e-12)
    canonical = row["methods"]["canonical"]
    assert canonical["weighted"] == pytest.approx(limit)
    assert canonical["share"] == pytest.approx(canonical_mass.sum() / mass.sum())


@pytest.mark.parametrize(("prompt", "answers"), CASES)
@pytest.mark.parametrize("number", range(len(TEMPERATURES)))
def test_targets_equal_brute_force(prompt, answers, number, found_of, loaded):
    """Ids that go past an answer, and the end behind it, tried one by one."""
    posed, found = found_of(prompt, answers)
    row = distributions(found, number, tuple(posed.walkers), len(answers), [])
    brute = BruteForce(loaded, prompt, float(TEMPERATURES[number]))
    spelled = [loaded.tokenizer.token_bytes(token) for token in range(loaded.tokenizer.n_ids)]
    masses = {"prefix": [], "complete": []}
    for answer in map(str.encode, answers):
        paths = brute.tokenizations(answer)
        began = {path[:k] for path in paths for k in range(len(path))}
        past = sum(
            brute.free((*begun, token))
            for begun in began
            for text in [b"".join(spelled[i] for i in begun)]
            for token, more in enumerate(spelled)
            if token not in loaded.eos_ids
            and (text + more).startswith(answer)
            and text + more != answer
        )
        masses["prefix"].append(sum(map(brute.free, paths)) + past)
        ended = [brute.free((*path, end)) for path in paths for end in loaded.eos_ids]
        masses["complete"].append(sum(ended))
        assert past > 0
    for target, mass in masses.items():
        part = row["targets"][target]
        assert part["free"] == pytest.approx(np.array(mass) / sum(mass))
        assert part["log10_mass"] == pytest.approx(np.log10(sum(mass)))
        assert part["slack"] == 0


def test_what_is_left_out_is_bounded_by_the_slack(found_of):
    prompt, answers = CASES[0]
    posed, whole = found_of(prompt, answers)
    methods = tuple(posed.walkers)
    asked = []
    for tolerance in (0.3, 0.03, 0.003):
        _, part = found_of(prompt, answers, Aims(tolerance, tolerance, 10**6))
        asked.append(part.asked)
        for number in range(len(TEMPERATURES)):
            exact = distributions(whole, number, methods, len(answers), [])
            rough = distributions(part, number, methods, len(answers), [])
            assert rough["free_slack"] <= tolerance
            assert gap(exact["free"], rough["free"]) <= rough["free_slack"] + 1e-12
            for target, rough_target in rough["targets"].items():
                exact_target = exact["targets"][target]
                assert (
                    gap(exact_target["free"], rough_target["free"]) <= rough_target["slack"] + 1e-12
                )
                assert rough_target["log10_mass"] <= exact_target["log10_mass"] + 1e-12
            for method in methods:
                one, other = exact["methods"][method], rough["methods"][method]
                assert other["slack"] <= tolerance
                assert 2 * gap(one["law"], other["law"]) <= 2 * other["slack"] + 1e-12
                assert sum(other["law"]) + other["slack"] == pytest.approx(1)
                assert gap(one["weighted"], other["weighted"]) <= other["weighted_slack"] + 1e-12
    assert asked == sorted(asked)
    assert asked[0] < whole.asked


def gap(p, q):
    return np.abs(np.array(p) - np.array(q)).sum() / 2


def test_a_node_knows_the_only_answer_that_can_come_of_it(found_of, loaded):
    prompt, answers = CASES[0]
    posed, found = found_of(prompt, answers)
    for node in range(len(found.trie)):
        text = b"".join(map(loaded.tokenizer.token_bytes, found.trie.ids(node)))
        possible = [k for k, answer in enumerate(posed.answers) if answer.startswith(text)]
        assert found.answer[node] == (possible[0] if len(possible) == 1 else -1)
        assert found.complete[node] == (text in posed.answers)
