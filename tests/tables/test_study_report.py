"""What is said of made-up rows: the parts of an error, groups, pairs, and the worst cases."""

from __future__ import annotations

import math

import pytest

from experiments.study import study_report, study_report_cases, study_report_tables
from experiments.study.study_report_points import at_draws, number_cell, points, summary


def part(law, free, weighted=None):
    weighted = weighted or law
    return {
        "law": law,
        "tv": abs(law[0] - free[0]),
        "kl": 0.0,
        "slack": 0.0,
        "unread": 0.0,
        "lost": 0.0,
        "share": 0.9,
        "weighted": weighted,
        "weighted_tv": abs(weighted[0] - free[0]),
        "weighted_kl": 0.0,
        "weighted_slack": 0.0,
        **judged("", law),
        **judged("weighted_", weighted),
    }


def judged(prefix, law):
    return {
        f"{prefix}p_right": law[0],
        f"{prefix}is_right": law[0] > 0.5,
        f"{prefix}same_answer": True,
    }


def row(name, free, lift, canonical, weighted, **other):
    pair = [[p, 1 - p] for p in (free, lift, canonical, weighted)]
    at = {
        "free": pair[0],
        "free_slack": 0.0,
        **judged("", pair[0]),
        "methods": {
            "lift": part(pair[1], pair[0], pair[0]),
            "canonical": part(pair[2], pair[0], pair[3]),
        },
    }
    drawn = {"law": [free + 0.05, 0.95 - free], "error": 0.0}
    own = {
        "key": f"smollm2/{name}",
        "kind": "finite",
        "model": "smollm2",
        "name": name,
        "family": "names",
        "base": name,
        "style": "plain",
        "boundary": "space",
        "prompt": f"prompt of {name}",
        "answers": [" a", " b"],
        "truth": [" a"],
        "canonical_tokens": [1, 2],
        "as_lift": [],
        "absent": {},
        "asked": 10,
        "healing": None,
        "draws_at": 1.0,
        "draws": {"lift": {kind: dict.fromkeys(("8", "32"), drawn) for kind in KINDS}},
        "temperatures": {"0.5": at, "1.0": at},
    }
    return own | other


KINDS = ("importance", "smc")
ROWS = [
    row("lift bad", 0.9, 0.1, 0.85, 0.88),
    row("canonical bad", 0.5, 0.45, 0.1, 0.5),
    row("both right", 0.3, 0.3, 0.3, 0.3),
]


def test_an_error_is_the_sum_of_its_parts():
    for point in points(ROWS):
        whole = point.tokenization + point.myopia + point.rest
        assert whole == pytest.approx(point.lift)
    bad = points(ROWS)[0]
    parts = (bad.tokenization, bad.myopia, bad.rest)
    assert parts == pytest.approx((0.75, 0.03, 0.02))


def test_the_worst_cases_are_shown_both_ways():
    found = points(ROWS)
    lift = study_report_cases.lift_worse(found)
    canonical = study_report_cases.canonical_worse(found)
    assert [line[0] for line in lift.rows if line[0]] == ["1. SmolLM2: lift bad"]
    (name,) = [line[0] for line in canonical.rows if line[0]]
    assert name == "1. SmolLM2: canonical bad"
    assert [line[1] for line in canonical.rows] == ["' a' *", "' b'"]
    assert "prompt of canonical bad" in canonical.notes[1]
    assert study_report_tables.farther(at_draws(found)) == (1, 1)


def test_variants_are_compared_with_the_same_question():
    rows = [
        row("q plain", 0.5, 0.4, 0.5, 0.5, base="q"),
        row("q chat", 0.5, 0.1, 0.5, 0.5, base="q", style="chat"),
        row("other", 0.5, 0.0, 0.5, 0.5, style="chat"),
    ]
    pairs = study_report_tables.pairs_of(at_draws(points(rows)), "style", "plain")
    ((key, ((point, reference),)),) = pairs.items()
    assert key == ("smollm2", "chat")
    assert (point.row["name"], reference.row["name"]) == ("q chat", "q plain")
    table = study_report_tables.variants(points(rows), "style", "plain", "Styles")
    (line,) = table.rows
    assert line[1:4] == ["1", "0.400", "0.300 [0.300, 0.300]"]


def test_what_is_not_settled_enters_no_summary():
    rough = row("rough", 0.9, 0.1, 0.9, 0.9)
    rough["temperatures"]["1.0"] = dict(rough["temperatures"]["1.0"], free_slack=0.2)
    made = study_report.render([*ROWS, rough], {})
    assert made.facts["points"] - made.facts["settled"] == 1
    assert made.facts["models"]["smollm2"]["cases"] == 3
    (line,) = made.tables[-1].rows
    assert line[0] == "SmolLM2: rough, 1"


def test_a_draw_is_measured_against_the_free_law_where_it_was_simulated():
    half, one = points(ROWS)[:2]
    assert half.drawn_tv("lift", "smc", 8) is None
    assert one.drawn_tv("lift", "smc", 8) == pytest.approx(0.05)
    assert one.drawn_tv("chop", "smc", 8) is None


def test_nothing_and_failures_alone_can_be_rendered():
    for rows in ([], [{"key": "model x", "failure": "not there"}]):
        made = study_report.render(rows, {})
        assert (list(made.tables), list(made.figures)) == ([], [])
        assert made.facts["models"] == {}


def test_summaries_and_numbers():
    made = summary(points(ROWS), lambda point: point.lift)
    assert made.mean == pytest.approx((0.8 + 0.05) / 3)
    assert made.median == pytest.approx(0.05)
    assert made.n == 6
    assert math.isnan(summary([], lambda point: 0.0).mean)
    assert [number_cell(v) for v in (None, 0.0, 0.25, 1e-7)] == ["-", "0.0000", "0.2500", "1e-07"]
