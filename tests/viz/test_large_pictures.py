"""Whatever the size of an automaton, its picture is small enough to be drawn and looked at."""

from __future__ import annotations

import time

import pytest
from strategies import many_arrows

from bpe_automata.automata import ByteDFA, compile_regex
from bpe_automata.errors import ArgumentError
from bpe_automata.token_automata import TokenAutomaton
from bpe_automata.viz import Picture, layout
from bpe_automata.viz.layout import lay_out

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


# ---------------------------------------------------------------- time


@pytest.mark.parametrize("cycles", [False, True])
def test_the_largest_whole_drawing_tries_few_curves(
    cycles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 states, and more arrows than an automaton draws: seconds, not most of a minute."""
    drawing, tried = many_arrows(40, 200, cycles), []
    plain = layout.bowed
    monkeypatch.setattr(layout, "bowed", lambda *ends: tried.append(0) or plain(*ends))
    begin = time.process_time()
    places = lay_out(drawing)
    assert time.process_time() - begin < 5  # it takes a tenth of a second
    layout.route(drawing, places)
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
