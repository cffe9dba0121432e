"""Pictures of byte automata and of large automata, small enough to be drawn and looked at."""

from __future__ import annotations

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import many_arrows

from bpe_automata.automata import ByteDFA, compile_regex, from_strings
from bpe_automata.automata.dfa import byte_ranges
from bpe_automata.errors import ArgumentError
from bpe_automata.token_automata import TokenAutomaton
from bpe_automata.viz import Picture, layout
from bpe_automata.viz.layout import lay_out


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (b"abc", "a-c"),
        (b"ab", "a, b"),
        (b"0123456789_xyz", "0-9, _, x-z"),
        (b" !", "␣, !"),
        (b",", ","),
        (range(0x80, 0xC0), "\\x80-\\xbf"),
        (range(0, 256, 2), "\\x00, \\x02, \\x04, \\x06, \\x08, \\n … +122 more"),
    ],
)
def test_byte_ranges(values, expected: str) -> None:
    assert byte_ranges(values) == expected


def test_a_star_b_star() -> None:
    dfa = compile_regex("a*b*")
    drawing = dfa.picture("ab").drawing
    assert [(n.label, n.accepting, n.start, n.lit) for n in drawing.nodes] == [
        ("1", True, True, True),
        ("2", True, False, True),
    ]
    edges = [(e.source, e.target, e.label, e.lit) for e in drawing.edges]
    assert edges == [(0, 0, "a", True), (0, 1, "b", True), (1, 1, "b", False)]
    assert drawing.caption == "ab: match"
    assert not any(
        part.lit for part in (*dfa.picture().drawing.nodes, *dfa.picture().drawing.edges)
    )
    assert "text/plain" in dfa._repr_mimebundle_()


@pytest.mark.parametrize(
    ("path", "caption"),
    [
        (b"tru", "tru: ends too early"),
        ("true", "true: match"),
        ("trip", "trip: no match goes on with i at 2"),
        (b"\xff", "\\xff: no match goes on with \\xff at 0"),
        ("", ": ends too early"),
    ],
)
def test_the_caption_says_what_becomes_of_a_text(path: bytes | str, caption: str) -> None:
    assert compile_regex("true|false").picture(path).drawing.caption == caption


@given(st.sets(st.text("abcdxyz", max_size=4), min_size=1, max_size=8))
@examples(60)
def test_the_drawing_is_the_automaton(strings: set[str]) -> None:
    """Read back from labels of single bytes, it accepts the same strings."""
    drawing = from_strings(strings).picture().drawing
    leads: dict[tuple[int, str], int] = {}
    for edge in drawing.edges:
        for part in edge.label.split(", "):
            low, high = part[0], part[-1]
            for code in range(ord(low), ord(high) + 1):
                leads[edge.source, chr(code)] = edge.target
    (start,) = (i for i, node in enumerate(drawing.nodes) if node.start)
    found, level = set(), [("", start)]
    while level:
        found |= {word for word, node in level if drawing.nodes[node].accepting}
        level = [(w + c, to) for w, node in level for (p, c), to in leads.items() if p == node]
    assert found == strings


def test_a_large_automaton_is_summarised_and_shows_the_path() -> None:
    dfa = compile_regex("[ab]{100}")
    drawing = dfa.picture("ab" * 10).drawing
    assert drawing.caption.startswith("101 states, too large to draw")
    assert len(drawing.nodes) == 21
    assert sum(edge.lit for edge in drawing.edges) == 20


def test_nothing() -> None:
    drawing = from_strings([]).picture("a").drawing
    assert [(node.start, node.accepting) for node in drawing.nodes] == [(True, False)]
    assert drawing.caption.startswith("accepts nothing")


DENSE = TokenAutomaton.from_transitions(
    [(p, q, q) for p in range(60) for q in range(60)], 0, [1], states=range(60)
)
ROW = TokenAutomaton.from_transitions([(k, 0, k + 1) for k in range(60)], 0, [60])


def arrows(picture: Picture) -> set[tuple[str, str, bool]]:
    """(source, target, on the path?) of all, each of which occurs once."""
    drawing = picture.drawing
    names = [node.label for node in drawing.nodes]
    found = [(names[e.source], names[e.target], e.lit) for e in drawing.edges]
    assert len(set(found)) == len(found)
    return set(found)


def test_a_summary_has_the_arrows_of_the_path_and_of_the_start_only() -> None:
    picture = DENSE.picture([*range(1, 41)])
    path = {(str(p), str(p + 1), True) for p in range(39)}
    others = {("0", str(q), False) for q in range(12) if q != 1}
    assert arrows(picture) == path | others
    assert len(picture.drawing.nodes) == 40
    assert picture.drawing.caption == (
        "60 states, 3,600 transitions; too large to draw: only arrows of the start and of the path "
        "are shown; the first 40 of 41 states of the path; the path ends too early"
    )


def test_without_a_path_there_are_the_arrows_of_the_start() -> None:
    picture = DENSE.picture()
    assert arrows(picture) == {("0", str(q), False) for q in range(12)}
    assert picture.drawing.caption.endswith("only arrows of the start are shown")


def test_the_caption_says_that_a_long_path_is_cut() -> None:
    caption = ROW.picture([0] * 60).drawing.caption
    assert "the first 40 of 61 states of the path; the path is accepted" in caption
    assert "the first" not in ROW.picture([0] * 39).drawing.caption


def test_a_path_that_goes_to_and_fro_is_cut_too() -> None:
    """Few states, many arrows: each pair out of 20 states."""
    path = [q for p in range(20) for k in range(p + 1, 20) for q in (p, k)]
    picture = DENSE.picture(path)
    assert sum(edge.lit for edge in picture.drawing.edges) == 40
    assert len(picture.drawing.edges) <= 52
    assert "the first 40 of" in picture.drawing.caption
    assert "arrows of the path" in picture.drawing.caption


def test_all_states_of_a_summary_that_all_fit_are_told_from_a_whole_drawing() -> None:
    full = [(p, q, q) for p in range(15) for q in range(15)]
    picture = TokenAutomaton.from_transitions(full, 0, [1], states=range(15)).picture([*range(15)])
    assert len(picture.drawing.nodes) == 15
    assert "too large to draw" in picture.drawing.caption


@pytest.fixture(scope="module")
def dense_bytes() -> ByteDFA:
    """Any texts of a, b, c, in which the sixth letter before the end is an a."""
    return compile_regex("[abc]*a[abc]{5}")


def test_a_large_byte_automaton(dense_bytes: ByteDFA) -> None:
    long = dense_bytes.picture("ab" * 4)
    lit = [edge for edge in long.drawing.edges if edge.lit]
    assert {e.source for e in long.drawing.edges if not e.lit} <= {
        i for i, node in enumerate(long.drawing.nodes) if node.start
    }
    assert 2 <= len(lit) <= 8
    assert "only arrows of the start and of the path are shown" in long.drawing.caption
    row = compile_regex("[ab]{100}")
    assert "the first 40 of 61 states of the path" in row.picture("ab" * 30).drawing.caption
    assert len(row.picture("ab" * 30).drawing.edges) == 39
    assert row.picture().drawing.caption.endswith("only arrows of the start are shown")


def test_labels_are_not_negative() -> None:
    for automaton in (ROW, DENSE, TokenAutomaton.from_transitions([], 0, [0])):
        with pytest.raises(ArgumentError, match="labels is -3"):
            automaton.picture(labels=-3)
    three = TokenAutomaton.from_transitions([(0, a, 1) for a in range(3)], 0, [1])
    assert three.picture(labels=0).drawing.edges[0].label == "… +3 more"


# ---------------------------------------------------------------- work


@pytest.mark.parametrize("cycles", [False, True])
def test_the_largest_whole_drawing_tries_few_curves(
    cycles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 states, and more arrows than an automaton draws; with all curves it takes a minute."""
    drawing, tried = many_arrows(40, 200, cycles), []
    plain = layout.bowed
    monkeypatch.setattr(layout, "bowed", lambda *ends: tried.append(0) or plain(*ends))
    layout.route(drawing, lay_out(drawing))
    assert 200 <= len(tried) <= 200 * 17


def test_pictures_with_few_arrows_have_all_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing, tried = many_arrows(20, 70, cycles=False), set()
    plain = layout.bowed

    def spied(start, end, bows):
        tried.add(bows)
        return plain(start, end, bows)

    monkeypatch.setattr(layout, "bowed", spied)
    layout.route(drawing, lay_out(drawing))
    assert any(first != second for first, second in tried)
