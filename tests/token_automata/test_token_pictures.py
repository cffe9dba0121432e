"""What people see: pictures and explanations."""

from __future__ import annotations

import pytest
from brute import SYMBOLS, automata, words
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.errors import ArgumentError
from bpe_automata.token_automata import TokenAutomaton

SPELLINGS = [b"a", b" b", b"\n", b"\xff", b"c"]
SMALL = TokenAutomaton.from_transitions(
    [(0, 0, 1), (0, 1, 1), (0, 4, 2), (1, 2, 2), (1, 3, 3)], 0, [2], range(5), SPELLINGS
)


def wide(n):
    """n states in a row, 3 ids from one to the next."""
    listed = [(k, a, k + 1) for k in range(n - 1) for a in range(3)]
    return TokenAutomaton.from_transitions(listed, 0, [n - 1], spellings=SPELLINGS)


def test_one_arrow_for_the_ids_between_two_states():
    drawing = SMALL.picture().drawing
    assert [(e.source, e.target, e.label) for e in drawing.edges] == [
        (0, 1, "a, ␣b"),
        (0, 2, "c"),
        (1, 2, "\\n"),
        (1, 3, "\\xff"),
    ]
    assert [node.accepting for node in drawing.nodes] == [False, False, True, False]
    assert [node.start for node in drawing.nodes] == [True, False, False, False]
    assert drawing.caption == "4 states, 5 transitions"
    assert not any(part.lit for part in (*drawing.nodes, *drawing.edges))


def test_the_path_of_a_sequence_is_lit():
    drawing = SMALL.picture([0, 2]).drawing
    assert [node.lit for node in drawing.nodes] == [True, True, True, False]
    assert [edge.lit for edge in drawing.edges] == [True, False, True, False]
    assert drawing.caption.endswith("the path is accepted")
    assert SMALL.picture([0]).drawing.caption.endswith("the path ends too early")
    broken = SMALL.picture([0, 1, 2]).drawing
    assert [node.lit for node in broken.nodes] == [True, True, False, False]
    assert broken.caption.endswith("␣b cannot be read at position 1")
    for ids in ([0, 3], [0, 3, 1]):
        caption = SMALL.picture(ids).drawing.caption
        assert caption.endswith("nothing can be accepted after \\xff at position 1")
    nothing = TokenAutomaton.from_transitions([(0, 1, 1)], 0, [])
    assert nothing.picture([1]).drawing.caption.endswith("nothing is accepted at all")


def test_all_ways_of_a_text_are_lit():
    """ab is written a b, ab and (not accepted) in a way that ends too early."""
    listed = [(0, 0, 1), (1, 1, 2), (0, 2, 2), (2, 3, 2), (0, 4, 3), (1, 0, 3)]
    spelled = [b"a", b"b", b"ab", b"", b"ab"]
    automaton = TokenAutomaton.from_transitions(listed, 0, [2], spellings=spelled)
    for text in ("ab", b"ab"):
        drawing = automaton.picture(text).drawing
        assert [node.lit for node in drawing.nodes] == [True, True, True, False]
        lit = [(e.source, e.target) for e in drawing.edges if e.lit]
        assert lit == [(0, 1), (0, 2), (1, 2)]
        assert drawing.caption.endswith("2 accepted sequences spell ab")
    none = automaton.picture("aa").drawing
    assert none.caption.endswith("no accepted sequence spells aa")
    assert not any(part.lit for part in (*none.nodes, *none.edges))
    with pytest.raises(ArgumentError, match="no spellings"):
        TokenAutomaton.from_transitions(listed, 0, [2]).picture("ab")
    with pytest.raises(ArgumentError, match="surrogate at position 1"):
        automaton.picture("a\ud800")


@examples(100)
@given(automata(spelled=True), st.binary(max_size=4))
def test_the_ways_of_a_text_by_trying_all(automaton, text):
    """Symbols that spell nothing are left out."""
    data = automaton.spellings

    def spelled(symbol):
        return data[symbol] if symbol < len(data) else b""

    ways = [
        word
        for word in words(len(text), SYMBOLS)
        if all(map(spelled, word)) and b"".join(map(spelled, word)) == text
    ]
    ways = [word for word in ways if automaton.accepts(word)]
    drawing = automaton.picture(text).drawing
    assert f"{len(ways) or 'no'} accepted sequence" in drawing.caption
    lit = {automaton.walk(word[:k]) for word in ways for k in range(len(word) + 1)}
    assert {i for i, node in enumerate(drawing.nodes) if node.lit} == lit


def test_a_large_automaton_is_summarised():
    assert len(wide(40).picture().drawing.nodes) == 40
    big = wide(41)
    drawing = big.picture().drawing
    assert [(node.label, node.note) for node in drawing.nodes] == [("0", "3 out"), ("1", "3 out")]
    assert drawing.caption.startswith("41 states, 120 transitions; too large to draw")
    lit = big.picture([0, 1, 2]).drawing
    assert [node.label for node in lit.nodes] == ["0", "1", "2", "3"]
    assert all(edge.lit for edge in lit.edges)
    assert big.to_dot().count("->") >= 40
    many = TokenAutomaton.from_transitions([(0, a, 1) for a in range(30)], 0, [1])
    assert "28, 29" in many.to_dot()
    assert "28, 29" not in many.to_dot(labels=6)


def test_many_arrows_are_summarised_too():
    full = [(p, q, q) for p in range(15) for q in range(15)]
    drawing = TokenAutomaton.from_transitions(full, 0, [1]).picture().drawing
    assert len(drawing.nodes) == 12  # of those that the start leads to, itself among them
    assert "too large" in drawing.caption


def test_long_labels_are_cut():
    listed = [(0, a, 1) for a in range(1000)]
    label = TokenAutomaton.from_transitions(listed, 0, [1]).picture(labels=2).drawing.edges[0].label
    assert label == "0, 1 … +998 more"
    automaton = TokenAutomaton.from_transitions(listed, 0, [1])
    assert automaton.picture([700], labels=2).drawing.edges[0].label == "700, 0 … +998 more"


def test_notebooks_get_what_a_picture_gives():
    shown = SMALL._repr_mimebundle_()
    assert shown == SMALL.picture()._repr_mimebundle_()
    assert "text/plain" in shown
    assert repr(SMALL) == "TokenAutomaton(4 states, 5 transitions)"
    one = TokenAutomaton.from_transitions([(0, 1, 0)], 0, [])
    assert repr(one) == "TokenAutomaton(1 state, 1 transition)"
    assert one.picture().drawing.caption == "1 state, 1 transition"


# ---------------------------------------------------------------- explanations


def test_explanations_to_read():
    assert str(SMALL.explain([0, 2])) == "accepted: 0 (a), 2 (\\n)"
    assert str(SMALL.explain([0])) == (
        "not accepted: it ends too early; the shortest completion is 2 (\\n)"
    )
    assert str(SMALL.explain([0, 3])) == (
        "not accepted: nothing can be accepted after 3 (\\xff) at position 1; what can be read "
        "there and lead on: 2 (\\n); the shortest end: 2 (\\n)"
    )
    assert str(SMALL.explain([0, 1])) == (
        "not accepted: 1 (␣b) cannot be read at position 1; what can be read there: 2 (\\n); "
        "the shortest end: 2 (\\n)"
    )
    empty = TokenAutomaton.from_transitions([], 0, [0])
    assert str(empty.explain([])) == "accepted: the empty sequence"
    assert str(SMALL.explain([4, 4])).endswith(
        "what can be read there: nothing; it could end there"
    )
    nothing = TokenAutomaton.from_transitions([(0, 1, 1)], 0, [])
    assert str(nothing.explain([1])) == "not accepted: the automaton accepts nothing at all"


@examples(200)
@given(automata(), st.lists(st.sampled_from((3, 5, 8, 9)), max_size=4))
def test_an_explanation_is_true(automaton, ids):
    found, walks = automaton.explain(ids), words(automaton.n_states)
    assert found.accepted == automaton.accepts(ids)

    def alive(word):
        return any(automaton.accepts((*word, *rest)) for rest in walks)

    first = next((k for k in range(len(ids)) if not alive(ids[: k + 1])), None)
    assert found.position == first
    before = ids[:first]
    assert found.readable == tuple(a for a in (3, 5, 8) if alive([*before, a]))
    ends = [rest for rest in walks if automaton.accepts((*before, *rest))]
    assert found.completion == (ends[0] if ends else None)
