"""Whole rows of the study, on a small random model, and what is made of them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from brute_force import BruteForce, tiny_llama

from bpe_automata import constrain
from bpe_automata.errors import ArgumentError, BudgetExceededError, MissingFileError
from experiments.run.measuring import Run, Settings
from experiments.shared import models
from experiments.study import distortion_finite, distortion_large, distortion_study
from experiments.study.distortion_config import Config
from experiments.study.study_case import StudyCase

CASES = (
    StudyCase("a", "yes_no", "q", "plain", "space", "Answer:", (" yes", " no"), truth=(" no",)),
    StudyCase("b", "yes_no", "q", "plain", "no_space", "Answer: ", ("yes", "no"), truth=("no",)),
    StudyCase("c", "names", "c", "chat", "newline", "Who?", ("Ann", "Bob")),
    StudyCase("d", "names", "d", "plain", "space", "At", pattern=r" [ab]{1,3}\."),
)
CONFIG = Config(
    models=("tiny",), temperatures=(0.7, 1.0), slack=1e-9, unread=1e-9, populations=40, samples=30
)


@pytest.fixture(scope="module")
def loaded(smollm2_tokenizer):
    return tiny_llama(smollm2_tokenizer)


@pytest.fixture
def ready(loaded, monkeypatch):
    monkeypatch.setattr(models, "load_model", lambda *_: loaded)
    distortion_finite.opened.cache_clear()
    yield
    distortion_finite.opened.cache_clear()


@pytest.fixture
def run(ready, monkeypatch, tmp_path):
    monkeypatch.setattr(distortion_study, "CASES", CASES)
    return Run("distortion-study", 1, CONFIG, tmp_path, Settings(executor="inline"))


def free_law(loaded, prompt, answers, temperature):
    brute = BruteForce(loaded, prompt, temperature)
    mass = np.array([sum(map(brute.free, brute.tokenizations(a.encode()))) for a in answers])
    return mass / mass.sum()


def test_a_finite_row_holds_the_laws_at_each_temperature(ready, loaded):
    row = distortion_finite.finite_row(CONFIG, "tiny", CASES[0])
    json.dumps(row, allow_nan=False)
    for temperature in CONFIG.temperatures:
        free = free_law(loaded, "Answer:", CASES[0].answers, temperature)
        assert row["temperatures"][str(temperature)]["free"] == pytest.approx(free)
    assert row["healing"] is None
    assert row["draws_at"] == 1.0
    assert row["canonical_tokens"] == [1, 1]
    assert row["temperatures"]["1.0"]["p_right"] == row["temperatures"]["1.0"]["free"][1]
    for part in row["draws"]["canonical"]["smc"].values():
        assert sum(part["law"]) == pytest.approx(1)


def test_a_prompt_that_ends_inside_a_token_is_judged_with_and_without_its_end(ready, loaded):
    row = distortion_finite.finite_row(CONFIG, "tiny", CASES[1])
    healed = free_law(loaded, "Answer:", (" yes", " no"), 0.7)
    assert row["temperatures"]["0.7"]["free"] == pytest.approx(healed)
    kept = row["healing"]["temperatures"]["0.7"]
    free = free_law(loaded, "Answer: ", ("yes", "no"), 0.7)
    assert kept["free"] == pytest.approx(free)
    assert kept["tv_free"] == pytest.approx(np.abs(free - healed).sum() / 2)
    assert (row["healing"]["given_back"], row["healing"]["text"]) == (1, " ")


def test_rows_do_not_depend_on_what_was_measured_before(ready):
    first = distortion_finite.finite_row(CONFIG, "tiny", CASES[0])
    distortion_finite.finite_row(CONFIG, "tiny", CASES[2])
    assert distortion_finite.finite_row(CONFIG, "tiny", CASES[0]) == first
    assert distortion_finite.finite_row(replace(CONFIG, seed=1), "tiny", CASES[0]) != first


def test_a_budget_that_reaches_no_answer_is_an_error(ready):
    long = replace(CASES[2], answers=("Annabellina", "Bobberino"))
    with pytest.raises(BudgetExceededError, match="raise --most-nodes"):
        distortion_finite.finite_row(replace(CONFIG, most_nodes=1), "tiny", long)


def test_a_large_row_estimates_what_can_be_summed_up(ready, loaded):
    config = replace(CONFIG, samples=600)
    row = distortion_large.large_row(config, "tiny", CASES[3])
    json.dumps(row, allow_nan=False)
    brute = BruteForce(loaded, "At")
    texts = [t + "." for n in (1, 2, 3) for t in words(n)]
    lift = sum(sum(map(brute.free, brute.tokenizations(t.encode()))) for t in texts)
    own = sum(brute.free(brute.canonical(text)) for text in texts)
    for method, mass in {"lift": lift, "canonical": own}.items():
        found = row["methods"][method]
        assert abs(found["log_z"] - np.log(mass)) < 5 * found["log_z_error"]
        assert found["ended"] == 600
    share = row["canonical_share"]
    assert abs(share["value"] - own / lift) < 5 * share["error"]
    assert set(row["features"]["first"]["values"]) == {"a", "b"}
    for at in row["features"]["length"]["tv"].values():
        assert at["low"] <= at["high"]


def words(n):
    return [" "] if n == 0 else [text + letter for text in words(n - 1) for letter in "ab"]


def test_ids_that_a_constraint_does_not_allow(smollm2_tokenizer):
    constraint = constrain(smollm2_tokenizer, r" yes\.", eos_ids=())
    ids = smollm2_tokenizer.encode(" yes.")
    assert distortion_large.follows(constraint, [], ids)
    split = [t for part in (" y", "es", ".") for t in smollm2_tokenizer.encode(part)]
    assert not distortion_large.follows(constraint, [], split)


def test_a_run_becomes_a_report(run):
    distortion_study.measure(run)
    keys = [row["key"] for row in run.rows]
    assert keys == ["model tiny", *(f"tiny/{case.name}" for case in CASES)]
    assert not any(row.get("failure") for row in run.rows)
    made = distortion_study.render(run.rows, run.manifest())
    titles = [table.title for table in made.tables]
    assert "Large languages, by sampling" in titles
    assert "Prompts that end inside a token" in titles
    assert made.facts["finite"] == 3
    assert [figure.name for figure in made.figures] == [
        "distortion_study_cases",
        "distortion_study_families",
        "distortion_study_ways",
    ]
    assert "3 cases" in distortion_study.readme(made.facts)
    json.dumps(made.facts, allow_nan=False)


def test_a_model_that_is_not_there_is_one_failure(run, monkeypatch):
    def missing(*_):
        raise MissingFileError("pip install it")

    monkeypatch.setattr(models, "load_model", missing)
    distortion_study.measure(run)
    (row,) = run.rows
    assert "pip install it" in row["failure"]
    assert run.manifest()["complete"]
    made = distortion_study.render(run.rows, run.manifest())
    assert (list(made.tables), list(made.figures)) == ([], [])
    assert distortion_study.readme(made.facts)


def test_cases_by_name_or_family(monkeypatch):
    monkeypatch.setattr(distortion_study, "CASES", CASES)

    def names(*words):
        return [c.name for c in distortion_study.chosen_cases(replace(CONFIG, cases=words))]

    assert names() == ["a", "b", "c", "d"]
    assert names("names", "b") == ["b", "c", "d"]
    with pytest.raises(ArgumentError, match="'cake'"):
        names("a", "cake")
