"""What is said of made-up rows of larger languages: cases of few effective samples are marked and
enter no summary, and features that say nothing are left out."""

from __future__ import annotations

import pytest

from experiments.answers.cases import LEFT_OUT, SHORT
from experiments.run.tables import frame
from experiments.study.sampled import report

MANIFEST = {"config": {"cases": [*SHORT], "dtype": "float32"}}
METHODS = (*report.METHODS,)


def feature(values, free, value, low):
    at = {"value": value, "noise": 0.01, "low": low, "high": value + 0.1}
    return {
        "values": values,
        "free": free,
        "laws": dict.fromkeys(METHODS, free),
        "tv": dict.fromkeys(METHODS, at),
    }


def row(name, value, low=0.05, effective=200.0, of_lift=100.0, **other):
    own = {"ended": 64, "right": 16, "log_z": -1.0, "log_z_error": 0.1, "tokens": 3.0}
    methods = {m: own | {"effective": 100.0} for m in ("lift", "canonical", "chop", "outlines")}
    methods["lift"] = own | {"effective": of_lift}
    populations = {"populations": 8, "ended": 64, "log_z": -1.0, "log_z_error": 0.1}
    made = {
        "key": f"smollm2/{name}",
        "kind": "language",
        "model": "smollm2",
        "name": name,
        "truth": [" a."],
        "healing": None,
        "samples": 64,
        "particles": 8,
        "temperature": 1.0,
        "methods": methods,
        "smc": dict.fromkeys(("lift", "canonical"), populations),
        "absent": {},
        "not_canonical": {"count": 3, "of": 64},
        "effective": effective,
        "canonical_share": {"value": 0.9, "error": None},
        "features": {
            "first": feature(["a", "b", "(rest)"], [0.5, 0.5, 0.0], value, low),
            "length": feature(["0-3", "(rest)"], [1.0, 0.0], 0.0, 0.0),
            "right": feature(["right", "wrong", "(rest)"], [0.3, 0.7, 0.0], value, low),
        },
    }
    return made | other


ROWS = [row("one", 0.1), row("two", 0.3, low=0.0)]


def tables_of(rows):
    made = report.tables(frame(rows), MANIFEST)
    return {table.title: table for table in made}


def facts_of(rows):
    return report.facts(frame(rows), MANIFEST)["models"]["smollm2"]


def test_distances_are_summed_up():
    found = facts_of(ROWS)
    lift = found["features"]["first"]["lift"]
    assert lift == {"cases": 2, "above": 1, "value": pytest.approx(0.2), "noise": 0.01}
    assert (found["cases"], found["marked"], found["least"]) == (2, 0, 200)
    told = report.readme(report.facts(frame(ROWS), MANIFEST))
    assert "| SmolLM2 | first character | 2 | 200 | 0.200 (1) |" in told
    assert "left out" not in told


@pytest.mark.parametrize("few", [{"effective": 9.9}, {"of_lift": 9.9}])
def test_a_case_of_few_effective_samples_is_marked_and_enters_no_summary(few):
    rows = [*ROWS, row("three", 0.9, **few)]
    found = facts_of(rows)
    assert (found["cases"], found["marked"]) == (3, 1)
    assert found["features"] == facts_of(ROWS)["features"]
    assert "1 cases rest on fewer than 10" in report.readme(report.facts(frame(rows), MANIFEST))
    made = tables_of(rows)
    summary, single, *others = made.values()
    assert {line[1] for line in summary.rows} == {"2"}
    for table in (single, *others):
        assert [line[0] for line in table.rows if "three" in line[0]]
        assert all(("†" in line[0]) == ("three" in line[0]) for line in table.rows)
    assert all(line[3] == "0.900 [?]" for line in single.rows if "†" in line[0])
    assert report.figures(frame(rows[2:]), MANIFEST) == []


def test_features_of_one_value_are_left_out():
    found = facts_of(ROWS)["features"]
    assert set(found) == {"first", "right"}
    single = tables_of(ROWS)["Distances, case by case"]
    assert [line[1] for line in single.rows] == ["first", "right"] * 2


def test_what_was_left_out_is_said_of_the_default_alone():
    (first, *_) = tables_of(ROWS).values()
    assert any(LEFT_OUT in note for note in first.notes)
    other = {"config": MANIFEST["config"] | {"cases": ["names"]}}
    (first, *_) = report.tables(frame(ROWS), other)
    assert not any(LEFT_OUT in note for note in first.notes)


def test_nothing_is_said_of_no_rows():
    rows = frame([{"key": "model x", "kind": "model"}])
    assert report.tables(rows, MANIFEST) == []
    assert report.facts(rows, MANIFEST) == {}
    assert report.readme({}) == {}
