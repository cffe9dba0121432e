"""Seconds and memory of masks and of start-up: what is timed is what is said; never how fast."""

from __future__ import annotations

import re

import pytest

from bpe_automata import compile_regex
from bpe_automata.schemas import json_schema
from experiments.run.executors import FAILURE
from experiments.run.tables import frame
from experiments.serving import masks, speed
from experiments.serving.masks import answers_of
from experiments.serving.masks_child import (
    WHITESPACE,
    Worker,
    answered,
    constraints,
)
from experiments.serving.masks_report import shared_texts
from experiments.serving.speed import Inputs

CASES = {case.id: case for case in constraints(())}


@pytest.mark.parametrize("name", CASES)
def test_texts_are_of_their_languages(name):
    source = CASES[name].source
    if "regex" in source:
        dfa = compile_regex(source["regex"])
        assert all(re.fullmatch(source["regex"], text) for text in CASES[name].texts)
    else:
        dfa = json_schema(source["schema"], whitespace=WHITESPACE)
    assert all(dfa.accepts(text.encode()) for text in CASES[name].texts)


@pytest.fixture(scope="module")
def worker(smollm2_tokenizer):
    return Worker("canonical", smollm2_tokenizer)


def asked(worker, tokenizer, regex, texts, **given):
    question = {"source": {"regex": regex}, "ids": [tokenizer.encode(text) for text in texts]}
    return answered(worker, question | {"hold": False} | given)


def test_cold_are_the_prefixes_that_are_new(worker, smollm2_tokenizer):
    texts = ["2024-02-29", "2024-03-01", "2024-02-29"]
    row = asked(worker, smollm2_tokenizer, r"[0-9]{4}-[0-9]{2}-[0-9]{2}", texts)
    ids = [smollm2_tokenizer.encode(text) for text in texts]
    assert [len(text["cold"]) for text in row["texts"]] == [len(ids[0]), 4, 0]  # ... 2 0 2 4 - 0 |
    assert [len(text["warm"]) for text in row["texts"]] == [len(own) + 1 for own in ids]
    assert [len(text["advance"]) for text in row["texts"]] == [*map(len, ids)]
    assert {text["stopped"] for text in row["texts"]} == {None}


def test_what_is_refused_or_stopped_says_so(worker, smollm2_tokenizer):
    row = asked(worker, smollm2_tokenizer, r"(yes|no), (yes|no)", ["yes, maybe", "no,", "no, no"])
    ends = len(smollm2_tokenizer.encode("no,"))
    assert [text["stopped"] for text in row["texts"]] == [2, ends, None]
    assert "RegexSyntaxError" in asked(worker, smollm2_tokenizer, "(", ["a"])[FAILURE]


def test_a_batch_is_where_its_ids_have_led(worker, smollm2_tokenizer):
    ids = smollm2_tokenizer.encode("2024")
    prefix = {"source": {"regex": "[0-9]{4}"}, "ids": ids[:2]}
    assert len(answered(worker, {"batch": [prefix] * 3})["batch"]) == 21
    wrong = answered(worker, {"batch": [prefix | {"ids": smollm2_tokenizer.encode("x")}]})
    assert "is refused" in wrong[FAILURE]


# ---------------------------------------------------------------- what is said of rows


def row_of(engine, name, number=0, **fields):
    return {"tokenizer": "t", "engine": engine, "name": name, "round": number} | fields


def start_row(engine):
    return row_of(engine, "", ready=1.0, process_mb=100.0, engine_mb=10.0)


def answer_row(engine, name, cold, number=0, stopped=None, is_schema=False):
    text = {"cold": cold, "warm": cold, "advance": cold, "stopped": stopped}
    row = {"compile": 1.0, "first": 2.0, "texts": [text], "peak_mb": 1.0, "is_schema": is_schema}
    return row_of(engine, name, number, **row)


ROWS = [
    start_row("canonical"),
    start_row("xgrammar"),
    *(answer_row("canonical", "date", [us, 1.0], k) for k, us in enumerate((30.0, 10.0, 20.0))),
    answer_row("xgrammar", "date", [5.0], stopped=1),
    *(answer_row("canonical", name, [7.0], is_schema=True) for name in "abc"),
    answer_row("xgrammar", "a", [4.0], is_schema=True),
    answer_row("xgrammar", "b", [4.0], stopped=0, is_schema=True),
    row_of("xgrammar", "c", is_schema=True, **{FAILURE: "over time: more than 1 s"}),
    row_of("xgrammar", "batch: wide", is_schema=False, **{FAILURE: "PeerError: no"}),
]
MANIFEST = {
    "peers": {"xgrammar": "1.2"},
    "schemas": 9,
    "no_schemas": None,
    "config": {"rounds": 3, "seconds": 1, "mb": 2, "patience": 3, "n": 3},
}


def test_medians_are_over_rounds_and_refused_texts_do_not_count():
    answers = answers_of(ROWS, {"xgrammar": "1.2"}).set_index(["engine", "name"])
    assert answers.loc[("canonical", "date"), "cold"] == [20.0, 1.0]
    theirs = answers.loc[("xgrammar", "date")]
    assert (theirs["label"], theirs["stopped"], theirs["cold"]) == ("xgrammar 1.2", 1, [])
    assert answers.loc[("xgrammar", "c"), "refused"] == "over time: more than 1 s"


def test_schemas_are_compared_where_every_engine_read_the_text():
    answers = answers_of(ROWS, {})
    assert shared_texts(answers) == 1
    assert answers[answers["shared_cold"].notna()]["name"].unique().tolist() == ["a"]
    alone = answers_of([row for row in ROWS if row["engine"] == "canonical"], {})
    assert shared_texts(alone) == 3


def test_what_was_refused_is_named_and_of_this_package_it_is_wrong():
    report = masks.render(ROWS, MANIFEST)
    refused = report.tables[-1]
    assert ["xgrammar", "t: c", "over time: more than 1 s"] in refused.rows
    assert ["xgrammar", "t: date, t: b", "texts stopped on the way"] in refused.rows
    assert [*report.wrong] == []
    stopped = [row | {"texts": [row["texts"][0] | {"stopped": 0}]} for row in ROWS[2:5]]
    assert masks.render([ROWS[0], *stopped], MANIFEST).wrong


# ---------------------------------------------------------------- the tokenizer's start


@pytest.fixture(scope="module")
def inputs(smollm2_tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("speed") / "tokenizer.json"
    path.write_text(smollm2_tokenizer.to_json(), encoding="utf-8")
    return Inputs("SmolLM2", smollm2_tokenizer, path, None, smollm2_tokenizer.eos_ids)


def test_memory_and_start_of_a_process(inputs):
    row = speed.memory(inputs)
    assert row["torch"] is False
    assert row["peak"] is None or row["peak"] >= max(row["stages"].values())
    started = speed.child("start", inputs)
    assert sum(started["parts"].values()) < started["wall"]


def test_goals_are_met_or_missed_or_not_measured():
    build = {"key": "build", "kind": "build", "whole": [2.0, 3.0, 1.0], "parts": {}}
    said = speed.facts(frame([build]), {})
    assert [goal[-1] for goal in said["goals"]] == ["NO", "-", "-"]
    assert said["goals"][0][2] == "2 s"
