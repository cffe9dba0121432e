"""Rows of sampled cases, on a small random model, against sums over all their texts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from brute_force import BruteForce, tiny_llama

from bpe_automata import constrain
from experiments.shared import models
from experiments.study import distortion_finite, distortion_large, study_report_large
from experiments.study.cases import CASES
from experiments.study.distortion_study import chosen_cases
from experiments.study.large_laws import Part, Texts, distances, features, one_hot
from experiments.study.large_walkers import ChopLanguage
from experiments.study.study_case import Config, StudyCase

CASE = StudyCase(
    "d", "names", "d", "plain", "space", "At", pattern=r" [ab]{1,3}\.", truth=(" a.", " bb.")
)
CONFIG = Config(models=("tiny",), samples=96)


@pytest.fixture(scope="module")
def loaded(smollm2_tokenizer):
    return tiny_llama(smollm2_tokenizer)


@pytest.fixture(scope="module")
def measured(loaded):
    """Rows by case."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "opened", lambda *_: loaded)
        distortion_finite.opened.cache_clear()
        healed = replace(CASE, name="h", prompt="At ", pattern=r"[ab]{1,2}\.", truth=("b.",))
        small = replace(CONFIG, samples=16)
        yield {
            "d": distortion_large.large_row(CONFIG, "tiny", CASE),
            "h": distortion_large.large_row(small, "tiny", healed),
        }
        distortion_finite.opened.cache_clear()


@pytest.fixture(scope="module")
def brute(loaded):
    return BruteForce(loaded, "At")


TEXTS = [
    " " + body + "."
    for body in ["a", "b"]
    + [x + y for x in "ab" for y in "ab"]
    + [x + y + z for x in "ab" for y in "ab" for z in "ab"]
]


@pytest.fixture(scope="module")
def spelled(brute):
    """By method, the id sequences of each text."""
    return {
        "lift": [brute.tokenizations(text.encode()) for text in TEXTS],
        "canonical": [[brute.canonical(text)] for text in TEXTS],
    }


@pytest.fixture(scope="module")
def free(brute, spelled):
    """The model's probability of each text, in all its tokenizations."""
    return np.array([sum(map(brute.free, paths)) for paths in spelled["lift"]])


def test_masses_are_estimated(measured, brute, spelled, free):
    row = measured["d"]
    json.dumps(row, allow_nan=False)
    own = sum(brute.free(path) for (path,) in spelled["canonical"])
    for method, mass in {"lift": free.sum(), "canonical": own}.items():
        for found in (row["methods"][method], row["smc"][method]):
            assert abs(found["log_z"] - np.log(mass)) < 5 * found["log_z_error"]
        assert row["methods"][method]["ended"] == CONFIG.samples
    share = row["canonical_share"]
    assert abs(share["value"] - own / free.sum()) < 5 * share["error"]


@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_right_answers_are_counted(measured, brute, spelled, method):
    law = brute.law(spelled[method])
    p = sum(law[TEXTS.index(text)] for text in CASE.truth)
    count = measured["d"]["methods"][method]["right"]
    assert abs(count - 96 * p) < 5 * np.sqrt(96 * p * (1 - p))


def test_laws_of_features_and_their_intervals(measured, brute, spelled, free):
    row = measured["d"]
    of_a = np.array([text[1] == "a" for text in TEXTS])
    exact = {"free": free @ of_a / free.sum()}
    exact |= {m: float(np.array(brute.law(spelled[m])) @ of_a) for m in ("lift", "canonical")}
    first = row["features"]["first"]
    assert first["values"] == ["a", "b", "(rest)"]
    assert first["free"][0] == pytest.approx(exact["free"], abs=0.15)
    for method in ("lift", "canonical"):
        assert first["laws"][method][0] == pytest.approx(exact[method], abs=0.12)
        at = first["tv"][method]
        assert at["value"] == pytest.approx(abs(exact[method] - exact["free"]), abs=0.2)
        assert at["low"] < at["value"] < at["high"]
        assert 0 < at["noise"] < at["high"] - at["value"]
    assert set(first["tv"]) >= {"chop", "canonical weighted", "lift SMC", "canonical SMC"}


def test_text_that_was_given_back_is_no_feature(measured):
    row = measured["h"]
    assert (row["healing"]["given_back"], row["healing"]["text"]) == (1, " ")
    assert set(row["features"]["length"]["values"]) == {"0-3", "(rest)"}
    assert row["methods"]["lift"]["right"] > 0


def test_what_is_in_the_tables(measured):
    tables = study_report_large.tables([*measured.values(), {"failure": "no"}])
    assert len(tables) == 3
    assert all(len(line) == len(table.columns) for table in tables for line in table.rows)
    right = next(table for table in tables if "right" in table.title.lower())
    count = measured["d"]["methods"]["lift"]["right"]
    assert right.rows[0][1].startswith(f"{count / 96:.3f} [")
    assert study_report_large.tables([]) == []


def test_ids_that_a_constraint_does_not_allow(smollm2_tokenizer):
    constraint = constrain(smollm2_tokenizer, r" yes\.", eos_ids=())
    ids = smollm2_tokenizer.encode(" yes.")
    assert distortion_large.follows(constraint, [], ids)
    split = [t for part in (" y", "es", ".") for t in smollm2_tokenizer.encode(part)]
    assert not distortion_large.follows(constraint, [], split)


def test_chop_appends_its_ids_and_leaves_the_rest_to_the_lift(smollm2_tokenizer):
    lift = constrain(smollm2_tokenizer, r" (yes|no), certainly\.", eos_ids=())
    prompt = smollm2_tokenizer.encode("So:")
    matcher, plain = ChopLanguage(lift).matcher(prompt), lift.matcher(prompt)

    def masked():
        bits = np.zeros((1, (lift.n_ids + 31) // 32), dtype=np.int32)
        matcher.copy().mask(bits)
        return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")).tolist()

    assert masked() == plain.allowed_ids().tolist()
    matcher.advance(smollm2_tokenizer.encode(" yes")[0])
    for token in smollm2_tokenizer.encode(", certainly."):
        assert masked() == [token]
        matcher.advance(token)
    assert masked() == []
    assert matcher.is_accepting


def law_of(weights, rng):
    """A sample of 64 values and what each weighs."""
    return rng.choice(len(weights), size=64, p=weights)


ZIPF = 1 / np.arange(1, 7)
ZIPF /= ZIPF.sum()
UNIFORM = np.full(6, 1 / 6)


@pytest.mark.parametrize(("p", "q"), [(UNIFORM, UNIFORM), (ZIPF, ZIPF), (UNIFORM, ZIPF)])
def test_intervals_cover_the_distance_of_two_laws(p, q, rng):
    truth, covered, noise, values = np.abs(p - q).sum() / 2, 0, [], []
    for _ in range(100):
        laws = [
            [Part(name, one_hot(law_of(law, rng), np.ones(64), 6))]
            for name, law in {"one": p, "two": q}.items()
        ]
        found = distances({"m": laws[0]}, laws[1], rng)["m"]
        covered += found["low"] <= truth <= found["high"]
        noise.append(found["noise"])
        values.append(found["value"])
    assert covered >= 88  # at 0.95 a binomial of 100 falls below 88 once in 400
    if truth == 0:
        assert np.mean(noise) == pytest.approx(np.mean(values), rel=0.15)


def test_intervals_cover_where_the_weights_come_of_the_same_samples(rng):
    """As canonical's do: the weights tell nothing of the value, so the truth is 0."""
    covered = 0
    for _ in range(100):
        codes, weights = law_of(ZIPF, rng), rng.lognormal(size=64)
        plain, weighted = (one_hot(codes, mass, 6) for mass in (np.ones(64), weights))
        found = distances({"m": [Part("s", plain)]}, [Part("s", weighted)], rng)["m"]
        covered += found["low"] == 0
    assert covered >= 88


def test_intervals_are_no_wider_than_what_differs(rng):
    """A distance that is there is seen: 0.4 with 400 samples each."""
    codes = [rng.choice(2, size=400, p=p) for p in ([0.5, 0.5], [0.9, 0.1])]
    one, two = ([Part(str(k), one_hot(c, np.ones(400), 2))] for k, c in enumerate(codes))
    found = distances({"m": one}, two, rng)["m"]
    assert 0.25 < found["low"] < 0.4 < found["high"] < 0.55


def test_one_unit_cannot_tell(rng):
    one = [Part("s", np.ones((1, 1)))]
    assert distances({"m": one}, one, rng)["m"] == {
        "value": 0.0,
        "noise": None,
        "low": None,
        "high": None,
    }


def test_values_that_are_hardly_seen_are_the_rest(rng):
    texts = Texts([b"aa"] * 30 + [b"b", b"c", b""], np.zeros(33))
    made = features(dict.fromkeys(("lift", "canonical"), texts), {}, np.ones(33, bool), (), rng)
    assert made["first"]["values"] == ["a", "(rest)"]
    assert made["first"]["free"] == pytest.approx([30 / 33, 3 / 33])
    assert set(made) == {"first", "length"}


def test_of_each_family_the_first_larger_languages_are_asked():
    large = [case for case in CASES if not case.is_finite()]
    families = {case.family for case in large}
    few = chosen_cases(Config(large=1))
    assert [case for case in few if case.is_finite()] == [c for c in CASES if c.is_finite()]
    first = [next(case for case in large if case.family == family) for family in families]
    assert {case.name for case in few if not case.is_finite()} == {case.name for case in first}
    assert {case.name for case in chosen_cases(Config(large=None))} == {c.name for c in CASES}
    named = large[-1]
    assert chosen_cases(Config(large=0, cases=(named.name,))) == [named]
