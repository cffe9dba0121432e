"""The article's figures: that each shows what the library computes, and that failures are kept."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from test_article import TABLE

from bpe_automata import Tokenizer
from bpe_automata.errors import MissingFileError
from bpe_automata.reference import replay
from experiments.artefacts.distortion import MERGES, TOKENS
from experiments.article import redrawn, redrawn_pages
from experiments.article.mistral import mistral
from experiments.article.redrawn import engines_of, regexes_of_file, regexes_of_schemas, some
from experiments.article.redrawn_pages import CASES, MADE, PAGES, A, B
from experiments.article.redrawn_panels import drawn, page_of, row_of

pytest.importorskip("matplotlib")


def test_figure_1_masks_are_those_of_the_regex():
    tokenizer = redrawn_pages.small_tokenizer(redrawn_pages.TOKENS_1, redrawn_pages.MERGES_1)
    lift = redrawn_pages.Lift(tokenizer, redrawn_pages.compile_regex(redrawn_pages.REGEX_1))
    steps = redrawn_pages.steps_along(tokenizer, lift, redrawn_pages.DECODED)
    every = set(redrawn_pages.TOKENS_1)
    assert [{*step.allowed} for step in steps] == [every, every, {"b", "bb"}, {"b", "bb"}]
    assert [step.chosen for step in steps] == ["aa", "abb", "b", ""]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_figure_4_after_is_before_with_the_merge_carried_out(case):
    merge = (A, A if case.twin else B, MADE)
    longest = 8
    given = case.before().sequences(longest)
    merged = {tuple(replay(tokens, [merge])) for tokens in given}
    length = {A: 1, B: 1, MADE: 2, redrawn_pages.X: 1, redrawn_pages.Y: 1}
    assert case.after().sequences(longest, length) == merged
    assert {panel.drawing is None for panel in case.panels()} == {True, False}


def test_figure_5_is_three_states_and_their_product():
    texts, lifted, product = redrawn_pages.automata_5()
    assert (len(texts.states()), len(lifted.states())) == (3, 2)
    ids = {token: i for i, token in enumerate(TOKENS)}
    merges = [(ids[a], ids[b], ids[a + b]) for a, b in MERGES]
    words = ["a" * k + end for k in range(6) for end in "bc"]
    expected = {tuple(replay([ids[c] for c in word], merges)) for word in words}
    size = {ids[token]: len(token) for token in ids}
    assert product.sequences(6, size) == expected


@pytest.mark.parametrize("name", PAGES)
def test_a_page_goes_into_a_row_and_back(name):
    if name in ("figure2", "figure3", "figure6"):
        pytest.importorskip("interegular")
        pytest.importorskip("mistral_common", reason="the Mistral-7B tokenizer is in it")
    page = PAGES[name]()
    assert page_of(json.loads(json.dumps(row_of(page)))) == page
    drawn(page, name).drawn.draw_without_rendering()


def test_figure_6_parts_are_the_whole():
    """Put in place of its name, the segment gives back the automaton, as a language."""
    pytest.importorskip("mistral_common", reason="the Mistral-7B tokenizer is in it")
    tokenizer = mistral()
    found = redrawn_pages.segmented(tokenizer, redrawn_pages.REGEX_6)
    every = labels_of(found.whole)
    assert len(every) == 9
    segment = labels_of(found.part)
    (outline,) = labels_of(found.outline)
    assert outline.count(redrawn_pages.SEGMENT) == 2
    put = {()}
    for label in outline:
        ways = segment if label == redrawn_pages.SEGMENT else {(label,)}
        put = {(*before, *way) for before in put for way in ways}
    assert put == every
    for labels in every:
        text = "".join(labels).replace("\\n", "\n").removeprefix("␣")
        assert re.fullmatch(redrawn_pages.REGEX_6, text)
        own = [tokenizer.token_bytes(token).decode() for token in tokenizer.encode(text)]
        assert [label.replace("\\n", "\n").replace("␣", " ") for label in labels] == own


def labels_of(drawing) -> set[tuple[str, ...]]:
    """What can be read from the start to an accepting state, of a drawing without loops."""
    found, ways = set(), [(0, ())]
    for node, labels in ways:  # grows while we go
        if drawing.nodes[node].accepting:
            found.add(labels)
        ways += [(edge.target, (*labels, edge.label)) for edge in drawing.leaving(node)]
    return found


def test_times_are_measured_and_failures_kept():
    tokenizer = Tokenizer.from_json(TABLE)
    engines = engines_of(tokenizer, tokenizer)
    assert engines.outlines is None  # it needs an end of sequence
    regexes = {"letters": "[a-c]{1,5}", "digits": "[0-9]", "look": "(?=a)a"}
    rows = [{"key": n} | redrawn.costs_of(n, regex, engines, 0) for n, regex in regexes.items()]
    assert [sorted(row["failures"]) for row in rows] == [[], ["ours"], ["ours"]]
    assert ["failure" in row for row in rows] == [False, True, True]
    assert min(rows[0]["masks"]) > 0
    made = redrawn.render(rows, {"config": {"regexes": None}})
    assert made.facts["times"]["masks"]["n"] == len(rows[0]["masks"])
    assert "Failures: 2 ours" in made.figures[0].note


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
