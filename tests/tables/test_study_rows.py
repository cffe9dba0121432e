"""Rows of the study on a small random model, against sums over all tokenizations."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tiny import BruteForce, tiny_llama

from bpe_automata.errors import ArgumentError, BudgetExceededError
from experiments import models
from experiments.answers import asked
from experiments.answers.cases import StudyCase, chosen
from experiments.answers.methods import OutlinesIndex
from experiments.engines.peers import OutlinesCore
from experiments.study.distortion_study import artefact as distortion_study
from experiments.study.distortion_study.artefact import Config
from experiments.trie import Automaton

CASES = (
    StudyCase("a", "yes_no", "q", "plain", "space", "Answer:", (" yes", " no"), truth=(" no",)),
    StudyCase("b", "yes_no", "q", "plain", "no_space", "Answer: ", ("yes", "no"), truth=("no",)),
    StudyCase("c", "names", "c", "chat", "newline", "Who?", ("Ann", "Bob")),
    StudyCase("d", "names", "d", "plain", "space", "At", (" a.", " bb.")),
)
CONFIG = Config(models=("tiny",), temperatures=(0.7, 1.0), slack=1e-9, unread=1e-9, populations=40)


@pytest.fixture(scope="module")
def loaded(smollm2_tokenizer):
    return tiny_llama(smollm2_tokenizer)


@pytest.fixture
def ready(loaded, monkeypatch):
    monkeypatch.setattr(models, "opened", lambda *_: loaded)
    asked.opened.cache_clear()
    yield
    asked.opened.cache_clear()


def free_distribution(loaded, prompt, answers, temperature):
    brute = BruteForce(loaded, prompt, temperature)
    mass = np.array([sum(map(brute.free, brute.tokenizations(a.encode()))) for a in answers])
    return mass / mass.sum()


def test_a_row_of_enumerated_answers_holds_the_distributions_at_each_temperature(ready, loaded):
    row = distortion_study.enumerated_row(CONFIG, "tiny", CASES[0])
    json.dumps(row, allow_nan=False)
    distortion_study.enumerated_row(CONFIG, "tiny", CASES[2])
    assert distortion_study.enumerated_row(CONFIG, "tiny", CASES[0]) == row, "whatever was before"
    for temperature in CONFIG.temperatures:
        free = free_distribution(loaded, "Answer:", CASES[0].answers, temperature)
        assert row["temperatures"][str(temperature)]["free"] == pytest.approx(free)
    assert row["healing"] is None
    assert row["draws_at"] == 1.0
    assert row["canonical_tokens"] == [1, 1]
    assert row["temperatures"]["1.0"]["p_right"] == row["temperatures"]["1.0"]["free"][1]
    for part in row["draws"]["canonical"]["smc"].values():
        assert sum(part["law"]) == pytest.approx(1)


def test_a_prompt_that_ends_inside_a_token_is_judged_without_its_end(ready, loaded):
    row = distortion_study.enumerated_row(CONFIG, "tiny", CASES[1])
    healed = free_distribution(loaded, "Answer:", (" yes", " no"), 0.7)
    assert row["temperatures"]["0.7"]["free"] == pytest.approx(healed)
    assert (row["healing"]["given_back"], row["healing"]["text"]) == (1, " ")


def test_a_budget_that_reaches_no_answer_is_an_error(ready):
    long = replace(CASES[2], answers=("Annabellina", "Bobberino"))
    with pytest.raises(BudgetExceededError, match="raise --most-nodes"):
        distortion_study.enumerated_row(replace(CONFIG, most_nodes=1), "tiny", long)


def test_ids_of_answers_that_the_search_left_open(ready, loaded):
    answers = (*(f" {letter}" for letter in "ABCDEFGH"), " Zarathustra")
    case = replace(CASES[0], answers=answers, truth=())
    row = distortion_study.enumerated_row(replace(CONFIG, slack=0.99, unread=100.0), "tiny", case)
    encode = loaded.tokenizer.encode
    ids = [len(encode("Answer:" + answer)) - len(encode("Answer:")) for answer in case.answers]
    assert row["canonical_tokens"] == ids
    assert max(ids) > 1


def test_an_engine_that_reaches_no_answer_is_absent_alone(ready, loaded, monkeypatch):
    """Of an index whose only path is a dead end."""
    (space,) = loaded.tokenizer.encode(" ")
    nowhere = Automaton(0, ({space: 1}, {})), True
    monkeypatch.setattr(OutlinesIndex, "__init__", lambda self, tokenizer, eos_ids: None)
    monkeypatch.setattr(OutlinesIndex, "automaton", lambda self, answers: nowhere)
    row = distortion_study.enumerated_row(CONFIG, "tiny", CASES[0])
    assert row["absent"] == {"outlines": "can write no answer, it has dead ends alone"}
    for at in row["temperatures"].values():
        assert list(at["methods"]) == ["lift", "canonical", "chop"]


def test_rows_of_another_outlines_core_are_not_gone_on_with(monkeypatch):
    monkeypatch.setattr(OutlinesCore, "version", classmethod(lambda _: "0.2.14"))
    assert distortion_study.inputs(CONFIG) == {"peers": {"outlines_core": "0.2.14"}}


def test_a_model_of_an_unknown_name_is_asked_all_cases(ready, monkeypatch, loaded):
    mine = replace(loaded, name="mine", instruct=True)
    monkeypatch.setattr(models, "opened", lambda *_: mine)
    asked.opened.cache_clear()
    marked = loaded.tokenizer.decode(asked.opened("mine", "cpu", "f").prompt_ids(CASES[2]))
    assert marked == "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n"
    mine = replace(mine, instruct=False)
    asked.opened.cache_clear()
    row = distortion_study.enumerated_row(CONFIG, "mine", CASES[2])
    assert row["prompt_tokens"] == len(loaded.tokenizer.encode("Question: Who?\nAnswer:\n"))
    assert asked.model_row("mine", "cpu", "float32")["chat_format"] == "plain"


def test_cases_by_name_or_family():
    def names(*words):
        return [case.name for case in chosen(CASES, words)]

    assert names() == ["a", "b", "c", "d"]
    assert names("names", "b") == ["b", "c", "d"]
    with pytest.raises(ArgumentError, match="'cake'"):
        names("a", "cake")
