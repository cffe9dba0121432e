"""What the table of peers says of its rows, and what it holds against whom."""

from __future__ import annotations

import sys

import pytest
from peers_rows import exam_of, rows_of

from experiments.run.executors import FAILURE
from experiments.serving import peers_report


def test_what_is_wrong_of_ours_is_wrong_and_what_is_of_others_is_a_number():
    rows = [
        *rows_of("canonical", admitted=1),
        *rows_of("lift", admitted=7, other=9, missing=2),
        *rows_of("outlines_core", admitted=5, blocked=[0], completed=[1]),
    ]
    made = peers_report.render(rows, {"peers": {"outlines_core": "0.2"}})
    assert made.wrong == ["canonical, smollm2: admitted 1", "lift, smollm2: missing 2"]
    assert made.facts["exact"] == []
    assert made.tables[1].rows[2][:4] == [
        "outlines_core 0.2, smollm2",
        "1 of 2",
        "1 of 4",
        "5 of 7",
    ]
    assert made.figures[0].headline.startswith("Each of 3 engines admits")


def test_who_keeps_to_the_tokenizers_own_is_named():
    rows = [*rows_of("canonical"), *rows_of("lift", admitted=7), *rows_of("kbnf", blocked=[1])]
    made = peers_report.render(rows, {})
    assert made.facts["exact"] == ["canonical"]
    assert made.figures[0].headline.startswith("1 of 3 engines admitted the tokenizer's own ids")
    assert made.figures[0].headline.endswith("none else:\ncanonical")
    assert "| canonical | 0 of 2 | 0 of 7 |" in peers_report.readme(made.facts)


def test_partial_and_failed_rows_are_rendered():
    start, row = rows_of("lift")
    failed = start | {"key": "lift smollm2 b", "constraint": "b", FAILURE: "over time"}
    failed.pop("ready")
    for rows in ([], [start], [start, failed], [start, row, failed]):
        made = peers_report.render(rows, {})
        assert len(made.figures) == (row in rows)
        assert bool(peers_report.readme(made.facts)) == bool(rows)
    assert made.tables[0].rows[0][4] == "1 of 2"
    assert made.facts["asked"][0]["cold_us"] == pytest.approx(20)


def test_medians_are_over_the_constraints_that_all_engines_answered():
    """The lift's second constraint took a second; kbnf refused that one, so it does not count."""
    slow = {"compile": [1.0], "first": [1.0], "cold": [0.5], "warm": [0.5], "peak_mb": 99.0}
    refused = exam_of("kbnf", "b") | {FAILURE: "PeerError: no"}
    rows = [*rows_of("lift"), exam_of("lift", "b", **slow), *rows_of("kbnf"), refused]
    made = peers_report.render(rows, {})
    lift, kbnf = made.facts["asked"]
    assert lift["to_first_mask_ms"] == kbnf["to_first_mask_ms"] == pytest.approx(3)
    assert lift["cold_99_us"] == pytest.approx(30)
    assert lift["constraints"] == kbnf["constraints"] == 1
    assert lift["offered"] == 14  # what was admitted is of all that it answered
    table = made.tables[0]
    answered, on_top = [[*table.columns].index(name) for name in ("answered", "on top\nMB")]
    assert [line[answered] for line in table.rows] == ["2 of 2", "1 of 2"]
    assert [line[on_top] for line in table.rows] == ["1", "1"]
    assert "over the n = 1 that all engines answered" in table.notes[0]
    both = made.tables[-1]
    assert [line for line in both.rows if line[0] == "b"] == [["b", "2,000", ""]]


def test_languages_that_cannot_be_written_out_are_not_taken_from_the_others():
    refused = exam_of("explicit", "b") | {FAILURE: "BudgetExceededError: no"}
    rows = [*rows_of("explicit"), refused, *rows_of("lift"), exam_of("lift", "b")]
    made = peers_report.render(rows, {})
    assert [one["constraints"] for one in made.facts["asked"]] == [1, 2]
    assert "over the n = 2 that all engines answered" in made.tables[0].notes[0]
    alone = peers_report.render(rows_of("explicit"), {})
    assert "over the n = 1 that all engines answered" in alone.tables[0].notes[0]


def test_engines_that_answered_nothing_take_no_constraint_from_the_others():
    refused = exam_of("kbnf", "a") | {FAILURE: "PeerError: no"}
    made = peers_report.render([*rows_of("lift"), rows_of("kbnf")[0], refused], {})
    assert [one["constraints"] for one in made.facts["asked"]] == [1, 0]


def test_what_was_not_answered_is_a_table_with_reasons():
    long = "PeerError: " + 100 * "x"
    head = {"key": "kbnf smollm2", "engine": "kbnf", "tokenizer": "smollm2", FAILURE: long}
    missing = {"key": "genlm-control", "engine": "genlm-control", FAILURE: "not installed: pip"}
    lost = [exam_of("lift", name) | {FAILURE: "over time: /tmp/x took long"} for name in "bc"]
    made = peers_report.render([*rows_of("lift"), *lost, head, missing], {})
    (table,) = [table for table in made.tables if table.title == "What was not answered"]
    assert table.rows == [
        ["lift, smollm2", "b, c", "over time: ... took long"],
        ["kbnf, smollm2", "all", long],
        ["genlm-control", "all", "not installed: pip"],
    ]


def test_what_this_package_does_not_answer_is_wrong():
    """A written-out automaton may be too large; nothing of ours may crash."""
    rows = rows_of("lift")
    for engine, why in (
        ("canonical", "crashed: exit code 3"),
        ("lift", "BudgetExceededError: no"),
        ("explicit", "BudgetExceededError: no"),
        ("explicit", "crashed: exit code -11"),
        ("kbnf", "crashed: exit code 3"),
    ):
        rows.append(exam_of(engine, why[:3]) | {FAILURE: why})
    head = {"key": "lift gpt2", "engine": "lift", "tokenizer": "gpt2", FAILURE: "PeerError: no"}
    assert peers_report.render([*rows, head], {}).wrong == [
        "canonical smollm2 cra: crashed: exit code 3",
        "lift smollm2 Bud: BudgetExceededError: no",
        "explicit smollm2 cra: crashed: exit code -11",
        "lift gpt2: PeerError: no",
    ]


def test_what_is_on_the_clock_and_what_is_not_is_said():
    (table, *_) = peers_report.render(rows_of("lift"), {}).tables
    assert table.rows[0][2:4] == ["3", "2"]  # of the process, of the engine
    notes = " ".join(table.notes)
    assert "numba and this package with the loaded tokenizer are there before" in notes
    assert "writing these as bits, as the others do themselves, is on their clock" in notes


def test_marks_are_one_for_each_engine_and_tokenizer():
    rows = [*rows_of("lift"), *rows_of("lift", "tekken"), *rows_of("kbnf", "tekken", admitted=3)]
    (figure,) = peers_report.render(rows, {}).figures
    for axes in figure.drawn.axes:
        marks = [points for points in axes.collections if len(points.get_offsets())]
        assert len(marks) == 3
        assert len({tuple(mark.get_offsets()[0]) for mark in marks}) == 3
    assert figure.drawn.axes[0].get_yticklabels()[0].get_text() == "lift"
    assert sys.modules["matplotlib"].get_backend().lower() == "agg"
