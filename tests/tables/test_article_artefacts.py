"""The article's constructions on a tiny table: methods that agree, limits that are rows, and
comparisons that can fail."""

from __future__ import annotations

import re
from string import ascii_lowercase

import numpy as np
import pytest

from bpe_automata import Segments, Tokenizer, compile_regex
from bpe_automata._core.geometry import Geometry
from bpe_automata._tokenizer.derivation import derive
from bpe_automata.errors import ArgumentError
from bpe_automata.reference import all_texts, merges_in_order, replay
from bpe_automata.testing import small_tokenizer
from experiments.artefacts import figures, growth, table2
from experiments.artefacts.distortion import MERGES as MERGES_5
from experiments.artefacts.distortion import TOKENS
from experiments.artefacts.figures import MADE as NEW
from experiments.artefacts.figures import A, B, X, Y
from experiments.article import mistral
from experiments.inputs import Case

MADE = ("ab", "aa", "aab", "abc")
MERGES = (("a", "b"), ("a", "a"), ("a", "ab"), ("ab", "c"))
TABLE = {
    "version": "1.0",
    "model": {
        "type": "BPE",
        "vocab": {token: number for number, token in enumerate((*ascii_lowercase, *MADE))},
        "merges": [list(merge) for merge in MERGES],
    },
    "decoder": {"type": "Fuse"},
}


@pytest.fixture(scope="module")
def table():
    return Tokenizer.from_json(TABLE)


@pytest.fixture
def grown(table, monkeypatch):
    """Gives the rows of a family over the tiny table."""
    reference = mistral.Reference(table)
    monkeypatch.setattr(growth, "prepared", lambda _: (reference, {}))

    def of(regex_of, sizes, **limits):
        monkeypatch.setitem(growth.FAMILIES, "some", (regex_of, sizes))
        rows = growth.measure(growth.Config(**limits), "some")
        return {(row["n"], row["method"]): row for row in rows}

    return of


def test_all_methods_agree(grown):
    rows = grown("[a-c]{{{}}}".format, (1, 2, 3))
    assert {row["status"] for row in rows.values()} == {"done"}
    assert [row["disagrees"] for row in rows.values()] == [[]] * len(rows)
    direct = rows[3, growth.DIRECT]
    # abc, aab, aa b are merged: 8 states are the least.
    assert (direct["states"], direct["transitions"], direct["minimal"]) == (8, 21, [8, 21])
    assert direct["integers"] == 8 + 2 * 21
    assert rows[3, growth.EXPLICIT]["equal to"] == [growth.DIRECT, growth.CARTESIAN]
    assert rows[3, growth.LAZY]["first ids"] == direct["first ids"] == 7


def test_a_method_that_differs_is_said_to(grown, monkeypatch, table):
    def wrong(bench, dfa):
        return growth.written_out(bench, compile_regex("[a-c]b|c[a-b]"))

    monkeypatch.setitem(growth.METHODS, growth.EXPLICIT, wrong)
    row = grown("[a-c]{{{}}}".format, (2,))[2, growth.EXPLICIT]
    assert any(growth.DIRECT in said for said in row["disagrees"])


def test_what_is_over_a_limit_skips_larger_ones(grown, monkeypatch):
    def endless(*_):
        while True:
            pass

    monkeypatch.setitem(growth.METHODS, growth.DIRECT, endless)
    rows = grown("[a-c]{{{}}}".format, (1, 2), limit=0.05)
    assert rows[1, growth.DIRECT]["status"] == "over 0.05 s"
    assert rows[2, growth.DIRECT]["status"] == "skipped"


def test_what_the_language_lacks_is_a_failure_of_one_method(grown):
    row = grown(lambda n: "0" * n, (1,))[1, growth.LAZY]
    assert row["status"] == "failed"
    assert row["failure"]


def test_rectangles_and_algorithm_3_are_equal_and_a_difference_is_counted(table):
    texts = all_texts(table.description.base.values(), merges_in_order(table.description))
    geometry, config = Geometry(derive(table.description)), table2.Config(pairs=1000)
    same = table2.compared(texts, geometry, config)
    assert (same["tokens"], same["pairs"], same["random pairs"]) == (30, 900, 900)
    assert same["forbidden pairs"] > 0
    assert {same[f"differences by {how}"] for how in ("row", "column", "merge")} == {0}
    texts.forbidden[0].add(5)  # `f` after each token that leads to the first state
    found = table2.compared(texts, geometry, config)
    expected = sum(state == 0 for state in texts.delta.values())
    assert found["differences by row"] == found["differences by column"] == expected
    assert found["differences by merge"] > 0
    steps = table2.beginnings(table, table2.Config(budget=60))
    assert [(step["merges"], step["equal"]) for step in steps] == [(1, True), (2, True), (4, True)]


SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
CHARACTERS = [*dict.fromkeys('{"a":truefls}')]


@pytest.fixture(scope="module")
def letters():
    merges = [("t", "r"), ("u", "e"), ("tr", "ue"), ('"', "a"), ('"', ":"), ("a", '":')]
    return small_tokenizer([*CHARACTERS, *("".join(m) for m in merges)], merges)


def test_each_engine_goes_along_a_valid_text(letters):
    case = Case("one", "", {"schema": SCHEMA}, ('{"a":no}', '{"a":true}'), (False, True))
    dfa, text = table2.dfa_of(case)
    assert text == '{"a":true}'
    ids = letters.encode(text)
    eager = table2.eager(letters, dfa, text)
    plain = table2.published(mistral.Reference(letters), dfa, text)
    for row in (eager, table2.lazy(letters, dfa, text), plain):
        assert len(row["masks"]) == len(ids)
    assert eager["nodes"] >= 10
    engine = table2.CartesianMerge(letters, dfa)
    with pytest.raises(ValueError, match="number 0"):
        table2.along(engine, letters.encode("true"))


def test_a_schema_that_is_refused_is_a_failure():
    (row,) = table2.of_schema(table2.Config(), Case("x", "", {"schema": False}, (), ()), False)
    assert row["failure"]


def test_known_segments_are_found_and_a_difference_is_an_error(letters, monkeypatch):
    dfa, _ = table2.dfa_of(Case("one", "", {"schema": SCHEMA}, (), ()))
    segments = Segments(letters)
    first = {row["variant"]: row for row in table2.variants(segments, dfa)}
    assert first["shared"]["made"] == first["alone"]["made"] > 0
    assert first["again"]["made"] == 0
    own = Segments.automaton
    monkeypatch.setattr(Segments, "automaton", lambda *given: own(*given).complement())
    with pytest.raises(ValueError, match="it differs"):
        table2.variants(segments, dfa)


def test_bpe_alone_keeps_merges_and_symbols(monkeypatch, table):
    described = table.description
    again = Tokenizer.from_json(mistral.bpe_alone(table)).description
    assert again.tokens == described.tokens
    assert np.array_equal(again.merges, described.merges)
    assert again.base == described.base
    monkeypatch.setattr(mistral, "mistral", lambda: table)
    assert mistral.bpe_alone_of_mistral(2)["model"]["merges"] == TABLE["model"]["merges"][:2]
    with pytest.raises(ArgumentError, match="--merges 0"):
        mistral.bpe_alone_of_mistral(0)


def test_figure_1_masks_are_those_of_the_regex():
    _, _, (_, (panel,)) = figures.figure_1()
    every = set(figures.TOKENS_1)
    allowed = [{*step["allowed"]} for step in panel["squares"]]
    assert allowed == [every, every, {"b", "bb"}, {"b", "bb"}]
    assert [step["chosen"] for step in panel["squares"]] == ["aa", "abb", "b", ""]


@pytest.mark.parametrize("title", figures.CASES)
def test_figure_4_after_is_before_with_the_merge_carried_out(title):
    before, after = figures.merged(title)
    merge = (A, A if title.startswith("a a") else B, NEW)
    merged = {tuple(replay(tokens, [merge])) for tokens in before.sequences(8)}
    assert after.sequences(8, {A: 1, B: 1, NEW: 2, X: 1, Y: 1}) == merged


def test_figure_5_is_three_states_and_their_product():
    texts, lifted, product = figures.automata_5()
    assert (len(texts.states()), len(lifted.states())) == (3, 2)
    ids = {token: i for i, token in enumerate(TOKENS)}
    merges = [(ids[a], ids[b], ids[a + b]) for a, b in MERGES_5]
    words = ["a" * k + end for k in range(6) for end in "bc"]
    expected = {tuple(replay([ids[c] for c in word], merges)) for word in words}
    assert product.sequences(6, {ids[token]: len(token) for token in ids}) == expected


def test_figure_6_parts_are_the_whole():
    """Put in place of its name, the segment gives back the automaton, as a language."""
    pytest.importorskip("mistral_common", reason="the Mistral-7B tokenizer is in it")
    tokenizer = mistral.mistral()
    whole, outline, part = map(paths, figures.segmented(tokenizer, figures.REGEX_6))
    (outlined,) = outline
    put = {()}
    for label in outlined:
        ways = part if label == "V" else {(label,)}
        put = {(*before, *way) for before in put for way in ways}
    assert put == whole
    assert len(whole) == 9
    for labels in whole:
        text = "".join(labels).replace("\\n", "\n").removeprefix("␣")
        assert re.fullmatch(figures.REGEX_6, text)
        own = [tokenizer.token_bytes(token).decode() for token in tokenizer.encode(text)]
        assert [label.replace("\\n", "\n").replace("␣", " ") for label in labels] == own


def paths(drawing) -> set[tuple[str, ...]]:
    """What can be read from the start to an accepting state, of a drawing without loops."""
    found, ways = set(), [(0, ())]
    for node, labels in ways:  # grows while we go
        if drawing.nodes[node].accepting:
            found.add(labels)
        ways += [(edge.target, (*labels, edge.label)) for edge in drawing.leaving(node)]
    return found
