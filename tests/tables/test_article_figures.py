"""The article's figures: that each shows what the library computes, and that failures are kept."""

from __future__ import annotations

import gzip
import json

import pytest
from test_growth import TABLE

from bpe_automata import Tokenizer
from bpe_automata.errors import ArgumentError, MissingFileError
from bpe_automata.reference import replay
from experiments.article import cdf, costs, growth_methods, growth_redrawn, idea, redrawn
from experiments.article import product as article_product
from experiments.article import steps as article_steps
from experiments.article.costs import engines_of, regexes_of_file, regexes_of_schemas, some
from experiments.article.growth_families import ANYTHING
from experiments.article.panels import drawn, page_of, row_of
from experiments.article.steps import CASES, MADE, A, B
from experiments.run import report
from experiments.run.measuring import Run, Settings

pytest.importorskip("matplotlib")

GROWN = {"limit_seconds": 60, "limit_mb": 4000, "merges": None}
MANIFEST = {"config": {"regexes": None}}


def cell(method: str, n: int, status: str = "done") -> dict:
    row = {"kind": "cell", "family": ANYTHING.name, "n": n, "method": method}
    row["key"] = f"{method} {n}"
    return row | {"status": status, "seconds": n, "integers": n**3}


CELLS = [cell(growth_methods.DIRECT, 1), cell(growth_methods.DIRECT, 2, "over time")]
CELLS += [cell(growth_methods.LAZY, n) for n in (1, 2)]
GROWTH = {"key": "growth", "kind": "growth", "cells": CELLS, "config": GROWN, "complete": True}


def test_figure_1_masks_are_those_of_the_regex():
    tokenizer = idea.small_tokenizer(idea.TOKENS, idea.MERGES)
    lift = idea.Lift(tokenizer, idea.compile_regex(idea.REGEX))
    steps = idea.steps_along(tokenizer, lift, idea.DECODED)
    every = set(idea.TOKENS)
    assert [{*step.allowed} for step in steps] == [every, every, {"b", "bb"}, {"b", "bb"}]
    assert [step.chosen for step in steps] == ["aa", "abb", "b", ""]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_figure_3_after_is_before_with_the_merge_carried_out(case):
    merge = (A, A if case.twin else B, MADE)
    longest = 8
    given = case.before().sequences(longest)
    merged = {tuple(replay(tokens, [merge])) for tokens in given}
    length = {A: 1, B: 1, MADE: 2, article_steps.X: 1, article_steps.Y: 1}
    assert case.after().sequences(longest, length) == merged
    assert {panel.drawing is None for panel in case.panels()} == {True, False}


def test_figure_4_is_three_states_and_their_product():
    texts, lifted, product = article_product.automata()
    assert (len(texts.states()), len(lifted.states())) == (3, 2)
    ids = {token: i for i, token in enumerate(article_product.TOKENS)}
    merges = [(ids[a], ids[b], ids[a + b]) for a, b in article_product.MERGES]
    words = ["a" * k + end for k in range(6) for end in "bc"]
    expected = {tuple(replay([ids[c] for c in word], merges)) for word in words}
    size = {ids[token]: len(token) for token in ids}
    assert product.sequences(6, size) == expected


@pytest.mark.parametrize("name", ["figure1", "figure3", "figure4"])
def test_a_page_goes_into_a_row_and_back_and_onto_paper(name, tmp_path):
    page = redrawn.PAGES[name]()
    assert page_of(json.loads(json.dumps(row_of(page)))) == page
    made = report.Report("", figures=[drawn(page, name)])
    paths = report.write("f", made, {}, tmp_path)
    assert min(path.stat().st_size for path in paths if path.stem == name) > 5000


def test_figure_5_is_drawn_of_the_rows_of_growth(tmp_path):
    made = redrawn.render([GROWTH], MANIFEST)
    (figure,) = made.figures
    assert figure.headline.endswith("i = 1")
    assert "INCOMPLETE" not in figure.note
    assert "INCOMPLETE" in growth_redrawn.note(GROWTH | {"complete": False})
    assert "Figure 5" not in made.tables[0].markdown()
    report.write("f", made, {}, tmp_path)
    assert (tmp_path / "figure5.svg").stat().st_size > 5000


def test_figure_5_is_left_out_where_growth_was_not_run(tmp_path):
    """And copied where it was, anew if that has gone on."""
    settings = Settings(results=tmp_path)
    run = Run("figures", 1, redrawn.Config(), tmp_path / "figures", settings)
    redrawn.copy_growth(run)
    assert run.rows == [{"key": "growth", "kind": "growth", "cells": []}]
    made = redrawn.render(run.rows, MANIFEST)
    assert made.figures == []
    assert "Figure 5 is not drawn" in made.tables[0].markdown()

    growth = redrawn.ARTEFACTS["growth"]
    folder = growth.folder(growth.default(), tmp_path)
    other = Run("growth", 1, growth.default(), folder, settings)
    other.expect(["prepare", *(cell["key"] for cell in CELLS)])
    for row in [{"key": "prepare", "kind": "preparation"}, *CELLS[::-1]]:
        other.add(row["key"], row)
    other.finish()
    redrawn.copy_growth(run)
    (copied,) = run.rows
    assert sorted(row["key"] for row in copied["cells"]) == sorted(row["key"] for row in CELLS)
    assert [row["n"] for row in copied["cells"]] == [1, 1, 2, 2]
    assert copied["complete"]
    written = run.store.path.read_bytes()
    redrawn.copy_growth(run)
    assert run.store.path.read_bytes() == written


def test_figure_6_is_measured_and_keeps_failures(tmp_path):
    tokenizer = Tokenizer.from_json(TABLE)
    engines = engines_of(tokenizer, tokenizer)
    assert engines.outlines is None  # it needs an end of sequence
    regexes = {"letters": "[a-c]{1,5}", "digits": "[0-9]", "look": "(?=a)a"}
    rows = [{"key": n} | costs.costs_of(n, regex, engines, 0) for n, regex in regexes.items()]
    assert [sorted(row["failures"]) for row in rows] == [[], ["ours"], ["ours"]]
    assert ["failure" in row for row in rows] == [False, True, True]
    assert min(rows[0]["masks"]) > 0
    assert {"lift_index", "alone_first", "canonical_first"} <= set(rows[0])
    assert "Failures: 2 ours" in cdf.note(rows)
    made = redrawn.render(rows, MANIFEST)
    assert made.facts["figure6"]["masks"]["n"] == len(rows[0]["masks"])
    assert len(made.tables[0].rows) == 4
    report.write("f", made, {}, tmp_path)
    assert (tmp_path / "figure6.png").stat().st_size > 5000


def test_a_page_that_there_is_not_is_an_error(tmp_path):
    config = redrawn.Config(pages=("figure9",))
    with pytest.raises(ArgumentError, match="'figure9' is none of figure1, "):
        redrawn.measure(Run("figures", 1, config, tmp_path, Settings(results=tmp_path)))


@pytest.mark.parametrize("rows", [[], [{"key": "figure1", "failure": "why"}]])
def test_rows_that_are_missing_are_no_error(rows):
    made = redrawn.render(rows, MANIFEST)
    assert (made.figures, made.facts["regexes"]) == ([], 0)


def test_regexes_come_from_a_file_or_from_schemas(tmp_path):
    lines = "".join(json.dumps({"id": f"r{i}", "regex": "a" * i}) + "\n" for i in range(9))
    (tmp_path / "r.jsonl").write_text(lines)
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    every = regexes_of_file(tmp_path / "r.jsonl")
    assert every == regexes_of_file(tmp_path / "r.jsonl.gz")
    assert every[2] == ("r2", "aa")
    assert some(every, 99, 0) == some(every, None, 0) == every
    chosen = some(every, 3, seed=1)
    assert len(chosen) == 3
    assert chosen == [pair for pair in every if pair in chosen]
    (tmp_path / "r.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(MissingFileError, match="regex"):
        regexes_of_file(tmp_path / "r.jsonl")
    pytest.importorskip("outlines_core")
    assert len(dict(regexes_of_schemas())) >= 30
