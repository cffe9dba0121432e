"""The article's figures: that each shows what the library computes, and that failures are kept."""

from __future__ import annotations

import gzip
import json

import pytest
from test_growth import TABLE

from bpe_automata import Tokenizer
from bpe_automata.errors import MissingFileError
from bpe_automata.reference import replay
from experiments import (
    article_cdf,
    article_figures,
    article_growth,
    article_idea,
    article_panels,
    article_product,
    article_steps,
    growth_methods,
)
from experiments.article_distribution import Engines, regexes_of_file, regexes_of_schemas
from experiments.article_steps import CASES, MADE, A, B
from experiments.runner import Options, read_run

pytest.importorskip("matplotlib")


def cell(method: str, n: int, status: str = "done") -> dict:
    row = {"kind": "cell", "family": article_growth.FAMILY.name, "n": n, "method": method}
    return row | {"status": status, "seconds": n, "integers": n**3}


CELLS = [cell(growth_methods.DIRECT, 1), cell(growth_methods.DIRECT, 2, "over time")]
CELLS += [cell(growth_methods.LAZY, n) for n in (1, 2)]
MANIFEST = {"tokenizer": "T", "config": {"limit_seconds": 60, "limit_mb": 4000}}


def test_figure_1_masks_are_those_of_the_regex():
    tokenizer = article_idea.small_tokenizer(article_idea.TOKENS, article_idea.MERGES)
    lift = article_idea.Lift(tokenizer, article_idea.compile_regex(article_idea.REGEX))
    rows = article_idea.masks_along(tokenizer, lift, article_idea.DECODED)
    every = set(article_idea.TOKENS)
    assert [allowed for _, allowed, _ in rows] == [every, every, {"b", "bb"}, {"b", "bb"}]
    assert [chosen for _, _, chosen in rows] == ["aa", "abb", "b", ""]


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


def test_pages_are_written(tmp_path):
    for k, module in ((1, article_idea), (3, article_steps), (4, article_product)):
        rows = getattr(module, f"figure_{k}")()
        article_panels.save(rows, module.HEADLINE, module.NOTE, tmp_path, f"figure{k}")
    article_growth.draw(CELLS, MANIFEST, tmp_path)
    assert article_growth.headline(CELLS).endswith("i = 1")
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {f"figure{k}.{kind}" for k in (1, 3, 4, 5) for kind in ("png", "pdf")}
    assert min(sizes.values()) > 5000


def test_figure_6_is_measured_and_keeps_failures(tmp_path):
    tokenizer = Tokenizer.from_json(TABLE)
    options = Options("figures", model="tiny", results=tmp_path)
    regexes = [("letters", "[a-c]{1,5}"), ("digits", "[0-9]"), ("look", "(?=a)a")]
    article_figures.measure(options, Engines(tokenizer, tokenizer, None), regexes)
    rows, manifest = read_run(options)
    assert manifest["complete"]
    assert [sorted(row["failures"]) for row in rows] == [[], ["ours"], ["ours"]]
    assert min(rows[0]["masks"]) > 0
    assert {"lift_index", "alone_first", "canonical_first"} <= set(rows[0])
    article_cdf.draw(rows, tmp_path)
    assert "Failures: 2 ours" in article_cdf.note(rows)
    assert (tmp_path / "figure6.png").stat().st_size > 5000


def test_regexes_come_from_a_file_or_from_schemas(tmp_path):
    lines = "".join(json.dumps({"id": f"r{i}", "regex": "a" * i}) + "\n" for i in range(9))
    (tmp_path / "r.jsonl").write_text(lines)
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    every = regexes_of_file(tmp_path / "r.jsonl", None, 0)
    assert every == regexes_of_file(tmp_path / "r.jsonl.gz", 99, 0)
    assert every[2] == ("r2", "aa")
    some = regexes_of_file(tmp_path / "r.jsonl", 3, seed=1)
    assert len(some) == 3
    assert some == [pair for pair in every if pair in some]
    (tmp_path / "r.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(MissingFileError, match="regex"):
        regexes_of_file(tmp_path / "r.jsonl", None, 0)
    pytest.importorskip("outlines_core")
    assert len(dict(regexes_of_schemas())) >= 30
