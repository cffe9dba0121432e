"""What a report says of rows that are failures or missing, and when the README may take from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.run import report
from experiments.run.executors import FAILURE
from experiments.run.tables import Table


@pytest.mark.parametrize(
    ("failed", "whole"),
    [([], True), (["a"], True), (["models"], True), (["a", "b", "models"], False)]
    + [([key], False) for key in ("model", "model gemma-3-270m")],
)
def test_what_is_too_little_for_the_readme(failed, whole):
    """Failures are results, but not where nothing else is there, nor where a model is missing."""
    keys = ["a", "b", "models", *(key for key in failed if key.startswith("model "))]
    keys += ["model"] if "model" in failed else []
    rows = [{"key": key} | ({FAILURE: "no"} if key in failed else {}) for key in keys]
    made = report.Report("T", [Table("T", ["n"], [])])
    assert report.labelled(made, rows, {"complete": True}).complete is whole
    missing = {"complete": False, "rows_expected": 9, "rows": 3}
    assert not report.labelled(made, rows, missing).complete
    said = replace(made, complete=False)
    assert not report.labelled(said, rows, {"complete": True}).complete


def test_a_report_of_nothing_still_says_why():
    rows = [{"key": "model", FAILURE: "pip install it"}]
    made = report.labelled(report.Report("T"), rows, {"complete": True})
    (table,) = made.tables
    assert table.notes == ["1 of 1 rows are failures: model: pip install it"]


def test_failures_are_named_in_the_order_of_their_keys():
    rows = [{"key": key, FAILURE: "no"} for key in ("b", "c", "a")]
    made = report.labelled(report.Report("T"), rows, {"complete": True})
    assert made.tables[0].notes == ["3 of 3 rows are failures: a: no; b: no; c: no"]


def test_pointers_are_no_paths():
    assert report.without_paths("no value (at #/properties/a)") == "no value (at #/properties/a)"
    assert report.without_paths("cannot open /root/a/b") == "cannot open ..."


def test_failures_are_named_once_and_an_incomplete_table_says_so_in_its_title():
    tables = [Table(name, ["n"], []) for name in "ab"]
    rows = [{"key": "a", FAILURE: "no"}, {"key": "b"}]
    manifest = {"complete": False, "rows": 2, "rows_expected": 3}
    made = report.labelled(report.Report("T", tables), rows, manifest)
    assert [table.title for table in made.tables] == ["a (incomplete)", "b (incomplete)"]
    missing, counted = "INCOMPLETE: 1 of 3 rows are missing", "1 of 2 rows are failures"
    assert [list(table.notes) for table in made.tables] == [
        [missing, f"{counted}: a: no"],
        [missing, counted],
    ]
