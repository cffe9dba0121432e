"""Whole rows of the study, on a small random model, and what is made of them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from brute_force import BruteForce, tiny_llama

from bpe_automata.errors import ArgumentError, BudgetExceededError, MissingFileError
from experiments.run.measuring import Run, Settings
from experiments.shared import models
from experiments.shared.engines import OutlinesCore
from experiments.study import distortion_finite, distortion_study
from experiments.study.study_case import Config, StudyCase
from experiments.study.study_methods import OutlinesIndex
from experiments.study.token_trie import Automaton

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
    monkeypatch.setattr(models, "opened", lambda *_: loaded)
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


def test_a_run_becomes_a_report(run):
    distortion_study.measure(run)
    keys = [row["key"] for row in run.rows]
    assert keys == ["model tiny", *(f"tiny/{case.name}" for case in CASES)]
    assert not any(row.get("failure") for row in run.rows)
    made = distortion_study.render(run.rows, run.manifest())
    titles = [table.title for table in made.tables]
    assert "Larger languages, case by case" in titles
    assert "Prompts that end inside a token" in titles
    assert made.facts["finite"] == 3
    assert [figure.name for figure in made.figures] == [
        "distortion_study_cases",
        "distortion_study_families",
        "distortion_study_ways",
    ]
    assert "3 cases" in distortion_study.readme(made.facts)["distortion-study"]
    json.dumps(made.facts, allow_nan=False)


def test_a_model_that_is_not_there_is_one_failure(run, monkeypatch):
    def missing(*_):
        raise MissingFileError("pip install it")

    monkeypatch.setattr(models, "opened", missing)
    distortion_study.measure(run)
    (row,) = run.rows
    assert "pip install it" in row["failure"]
    run.finish()
    assert run.manifest()["complete"]
    made = distortion_study.render(run.rows, run.manifest())
    assert (list(made.tables), list(made.figures)) == ([], [])
    assert distortion_study.readme(made.facts)


def test_ids_of_answers_that_the_search_left_open(ready, loaded):
    case = replace(CASES[2], answers=(*"ABCDEFGH", "Zarathustra"))
    rough = replace(CONFIG, slack=0.99, unread=100.0)
    row = distortion_finite.finite_row(rough, "tiny", case)
    text = distortion_finite.prompt_text(case, loaded.name)
    first = len(loaded.tokenizer.encode(text))
    ids = [len(loaded.tokenizer.encode(text + answer)) - first for answer in case.answers]
    assert row["canonical_tokens"] == ids
    assert max(ids) > 1


def nowhere(first):
    """An index whose only path is a dead end."""
    return lambda self, answers: (Automaton(0, ({first: 1}, {})), True)


def test_an_engine_that_reaches_no_answer_is_absent_alone(ready, loaded, monkeypatch):
    (space,) = loaded.tokenizer.encode(" ")
    monkeypatch.setattr(OutlinesIndex, "__init__", lambda self, tokenizer, eos_ids: None)
    monkeypatch.setattr(OutlinesIndex, "automaton", nowhere(space))
    row = distortion_finite.finite_row(CONFIG, "tiny", CASES[0])
    assert row["absent"] == {"outlines": "can write no answer, it has dead ends alone"}
    for at in row["temperatures"].values():
        assert list(at["methods"]) == ["lift", "canonical", "chop"]
    monkeypatch.undo()


def test_rows_of_another_outlines_core_are_not_gone_on_with(monkeypatch):
    monkeypatch.setattr(OutlinesCore, "version", classmethod(lambda _: None))
    none = distortion_study.inputs(CONFIG)
    monkeypatch.setattr(OutlinesCore, "version", classmethod(lambda _: "0.2.14"))
    assert distortion_study.inputs(CONFIG) == {"peers": {"outlines_core": "0.2.14"}}
    assert none != distortion_study.inputs(CONFIG)


def test_a_model_of_an_unknown_name_is_asked_all_cases(run, monkeypatch, loaded):
    monkeypatch.setattr(models, "opened", lambda *_: replace(loaded, name="mine"))
    distortion_finite.opened.cache_clear()
    ready = distortion_finite.opened("mine", "cpu", "float32")
    marked = loaded.tokenizer.decode(ready.prompt_ids(CASES[2]))
    assert marked == "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n"
    monkeypatch.setattr(distortion_finite.Opened, "added", lambda _: frozenset())
    row = distortion_finite.finite_row(CONFIG, "mine", CASES[2])
    assert row["prompt_tokens"] == len(loaded.tokenizer.encode("Question: Who?\nAnswer:\n"))
    assert distortion_finite.model_row(CONFIG, "mine")["chat_format"] == "plain"


def test_cases_by_name_or_family(monkeypatch):
    monkeypatch.setattr(distortion_study, "CASES", CASES)

    def names(*words):
        return [c.name for c in distortion_study.chosen_cases(replace(CONFIG, cases=words))]

    assert names() == ["a", "b", "c", "d"]
    assert names("names", "b") == ["b", "c", "d"]
    with pytest.raises(ArgumentError, match="'cake'"):
        names("a", "cake")
