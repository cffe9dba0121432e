"""The laws of the study on a small random model, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import BruteForce, tiny_llama

from experiments.study.study_laws_tree import Aims, explore, laws, tv_between
from experiments.study.study_methods import Poser
from experiments.study.token_trie import Automaton
from experiments.study.tree_logprobs import PackedReader

EXACT = Aims(1e-300, 1e-300, 10**6)
HEATS = np.array([0.5, 1.0, 1.5])
CASES = (
    ("Answer:", (" yes", " no", " maybe")),
    ('A "', ('low"', 'mid"')),
    ("—", (" да", " é")),
)


@pytest.fixture(scope="module")
def loaded(smollm2_tokenizer):
    return tiny_llama(smollm2_tokenizer)


@pytest.fixture(scope="module")
def poser(smollm2_tokenizer):
    return Poser(smollm2_tokenizer, (2,))


@pytest.fixture(scope="module")
def found_of(loaded, poser):
    def found(prompt, answers, aims=EXACT):
        posed = poser.posed(loaded.tokenizer.encode(prompt), answers)
        reader = PackedReader(loaded.model, posed.prompt_ids)

        def spelled(token, before):
            return loaded.tokenizer.token_bytes(token)

        last = posed.prompt_ids[-1]
        walkers = list(posed.walkers.values())
        return posed, explore(reader, walkers, posed.answers, spelled, last, HEATS, aims)

    return found


@pytest.mark.parametrize(("prompt", "answers"), CASES)
@pytest.mark.parametrize("heat", range(len(HEATS)))
def test_laws_equal_brute_force(prompt, answers, heat, found_of, loaded):
    posed, found = found_of(prompt, answers)
    methods = tuple(posed.walkers)
    row = laws(found, heat, methods, len(answers), [1])
    brute = BruteForce(loaded, prompt, float(HEATS[heat]))
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
        law = np.array(brute.law(spelled))
        assert part["law"] == pytest.approx(law)
        assert part["tv"] == pytest.approx(np.abs(law - free).sum() / 2)
        assert part["kl"] == pytest.approx((free * np.log(free / law)).sum())
        assert (part["slack"], part["unread"]) == (0, 0)
        assert part["lost"] == pytest.approx(0, abs=1e-9)
        assert part["is_right"] == (law.argmax() == 1)
    assert row["methods"]["lift"]["weighted_tv"] == pytest.approx(0, abs=1e-12)
    canonical = row["methods"]["canonical"]
    assert canonical["weighted"] == pytest.approx(limit)
    assert canonical["share"] == pytest.approx(canonical_mass.sum() / mass.sum())


def test_what_is_left_out_is_bounded_by_the_slack(found_of):
    prompt, answers = CASES[0]
    posed, whole = found_of(prompt, answers)
    methods = tuple(posed.walkers)
    asked = []
    for tolerance in (0.3, 0.03, 0.003):
        _, part = found_of(prompt, answers, Aims(tolerance, tolerance, 10**6))
        asked.append(part.asked)
        for heat in range(len(HEATS)):
            exact = laws(whole, heat, methods, len(answers), [])
            rough = laws(part, heat, methods, len(answers), [])
            assert rough["free_slack"] <= tolerance
            assert gap(exact["free"], rough["free"]) <= rough["free_slack"] + 1e-12
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


def with_dead_ends(posed, tokenizer):
    """The lift, but for one id that may also come first and leads nowhere, and the automaton."""
    lift = posed.walkers["lift"]
    states, edges = [lift.start], []
    for state in states:
        out = lift.out(state)
        states += [after for after in out.values() if after not in states]
        edges.append(out)
    number = {state: k for k, state in enumerate(states)}
    numbered = [{token: number[after] for token, after in out.items()} for out in edges]
    (space,) = tokenizer.encode(" ")
    numbered[0][space] = len(numbered)
    return space, Automaton(0, (*numbered, {}))


@pytest.mark.parametrize("heat", range(len(HEATS)))
def test_what_is_lost_in_dead_ends_counts_as_no_answer(heat, loaded, poser):
    prompt, answers = CASES[0]
    posed = poser.posed(loaded.tokenizer.encode(prompt), answers)
    space, cut = with_dead_ends(posed, loaded.tokenizer)
    reader = PackedReader(loaded.model, posed.prompt_ids)

    def spelled(token, before):
        return loaded.tokenizer.token_bytes(token)

    walkers = [posed.walkers["lift"], cut]
    found = explore(reader, walkers, posed.answers, spelled, posed.prompt_ids[-1], HEATS, EXACT)
    row = laws(found, heat, ("lift", "outlines"), len(answers), (), {"outlines"})
    part = row["methods"]["outlines"]
    brute = BruteForce(loaded, prompt, float(HEATS[heat]))
    paths = [p for answer in answers for p in brute.tokenizations(answer.encode())]
    alive = [path for path in paths if path[0] != space] + [(space,)]
    mass = dict.fromkeys(answers, 0.0)
    for path in alive[:-1]:
        mass[loaded.tokenizer.decode(path)] += brute.masked(path, alive)
    lost = brute.masked((space,), alive)
    assert part["lost"] == pytest.approx(lost)
    assert sum(mass.values()) + lost == pytest.approx(1)
    free = np.array([*row["free"], 0.0])
    law = np.array([*mass.values(), lost])
    assert part["tv"] == pytest.approx(np.abs(free - law).sum() / 2)
    assert part["kl"] == pytest.approx((free[:-1] * np.log(free[:-1] / law[:-1])).sum())
    assert sum(part["weighted"]) == pytest.approx(1)


def test_a_method_that_may_lose_an_open_node_has_that_as_slack(found_of):
    posed, found = found_of(*CASES[0], Aims(0.05, 0.5, 10**6))
    methods = tuple(posed.walkers)
    sure = laws(found, 1, methods, 3, ())["methods"]["lift"]
    unsure = laws(found, 1, methods, 3, (), {"lift"})["methods"]["lift"]
    assert unsure["slack"] == pytest.approx(unsure["unread"])
    assert unsure["slack"] > sure["slack"]
    assert unsure["law"] == sure["law"]


def test_distances_by_hand():
    assert tv_between([0.5, 0.5], [0.2, 0.8]) == pytest.approx(0.3)
    assert tv_between([0.5, 0.5], [0.5, 0.1], 0.4) == pytest.approx(0.4)


def test_a_budget_ends_the_search(found_of):
    _, found = found_of(*CASES[0], Aims(1e-300, 1e-300, 5))
    assert found.asked == 5
    assert found.open.any()
    assert not (found.open & found.complete).any()


def test_a_node_knows_the_only_answer_that_can_come_of_it(found_of):
    prompt, answers = CASES[0]
    posed, found = found_of(prompt, answers)
    for node in range(len(found.trie)):
        text = b"".join(map(posed_bytes(posed), found.trie.ids(node)))
        possible = [k for k, answer in enumerate(posed.answers) if answer.startswith(text)]
        assert found.answer[node] == (possible[0] if len(possible) == 1 else -1)
        assert found.complete[node] == (text in posed.answers)


def posed_bytes(posed):
    return posed.walkers["chop"].engine.tokenizer.token_bytes
