"""Table 1: its numbers and sizes are the published ones."""

from __future__ import annotations

import pytest

from experiments.article import table1
from experiments.article.mistral import mistral_table

SIZES = {"states": 1, "transitions": 2, "accepting": 1}
MERGED = table1.merged_row()
MANIFEST = {"config": {"merges": None}}


def test_sizes_are_the_published_ones():
    pytest.importorskip("interegular")
    pytest.importorskip("mistral_common", reason="the Mistral-7B merge table is in it")
    found = table1.sizes_row(mistral_table())["sizes"]
    for name, (states, transitions) in table1.PUBLISHED.items():
        assert (found[name]["states"], found[name]["transitions"]) == (states, transitions)
    assert found["direct_of_given"]["accepting"] == 2
    assert found["direct_of_minimal"] == {"states": 4, "transitions": 4, "accepting": 1}
    assert found["package_lift"]["transitions"] == 48
    assert "does not come out" not in table1.readme({"sizes": found})
    assert "does not come out" in table1.readme({"sizes": found | {"lift": SIZES}})


def test_table_1_comes_out_as_published():
    assert table1.is_published(MERGED)
    assert table1.render([MERGED], MANIFEST).wrong == []
    assert table1.render([MERGED | {"encoded": ["a"]}], MANIFEST).wrong == [table1.DIFFERENT]
