"""The article's constructions on a tiny table: methods that agree, limits that are rows, and
comparisons that can fail."""

from string import ascii_lowercase

import pytest

from bpe_automata import compile_regex
from bpe_automata.canonical.geometry import Geometry
from bpe_automata.reference import all_texts, merges_in_order, replay
from bpe_automata.testing import small_tokenizer
from bpe_automata.tokenizer.derivation import derive
from experiments import mistral
from experiments.artefacts import figures, growth
from experiments.artefacts.distortion import MERGES as MERGES_5
from experiments.artefacts.distortion import TOKENS
from experiments.artefacts.figures import MADE as NEW
from experiments.artefacts.figures import A, B, X, Y

MERGES = (("a", "b"), ("a", "a"), ("a", "ab"), ("ab", "c"))


@pytest.fixture(scope="module")
def table():
    vocabulary = [*ascii_lowercase, *map("".join, MERGES)]
    return small_tokenizer(vocabulary, MERGES, decoder={"type": "Fuse"})


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
    assert direct["size"] == direct["minimal"] == [8, 21]
    assert rows[3, growth.EXPLICIT]["equal to"] == [growth.DIRECT, growth.CARTESIAN]
    assert rows[3, growth.LAZY]["first ids"] == direct["first ids"] == 7


def test_a_method_that_differs_is_said_to_and_one_without_end_is_a_row(grown, monkeypatch):
    def wrong(bench, dfa):
        return growth.written_out(bench, compile_regex("[a-c]b|c[a-b]"))

    def endless(*_):
        while True:
            pass

    monkeypatch.setitem(growth.METHODS, growth.EXPLICIT, wrong)
    row = grown("[a-c]{{{}}}".format, (2,))[2, growth.EXPLICIT]
    assert any(growth.DIRECT in said for said in row["disagrees"])
    monkeypatch.setitem(growth.METHODS, growth.DIRECT, endless)
    rows = grown("[a-c]{{{}}}".format, (1, 2), limit=0.05)
    assert rows[1, growth.DIRECT]["status"] == "over 0.05 s"
    assert rows[2, growth.DIRECT]["status"] == "skipped"


def test_rectangles_and_algorithm_3_are_equal_and_a_difference_is_counted(table):
    texts = all_texts(table.description.base.values(), merges_in_order(table.description))
    geometry = Geometry(derive(table.description))
    same = mistral.compared(texts, geometry)
    assert (same["tokens"], same["pairs"], same["differences by row"]) == (30, 900, 0)
    assert same["forbidden pairs"] > 0
    texts.forbidden[0].add(5)  # `f` after each token that leads to the first state
    expected = sum(state == 0 for state in texts.delta.values())
    assert mistral.compared(texts, geometry)["differences by row"] == expected


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
