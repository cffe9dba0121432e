"""Automata from lists of transitions, from networkx, from interegular; arrays that are none."""

from __future__ import annotations

import re

import interegular
import networkx
import numpy as np
import pytest
from brute import SYMBOLS, automata, of, words
from budget import examples
from hypothesis import given

from bpe_automata.errors import MalformedAutomatonError, NondeterministicError
from bpe_automata.token_automata import TokenAutomaton

GOOD = {
    "start": 0,
    "accepting": np.array([False, True]),
    "offsets": np.array([0, 2, 2]),
    "symbols": np.array([3, 5]),
    "targets": np.array([1, 0]),
    "alphabet": np.array([3, 5, 8]),
}
BAD = [
    ("start", 2, "start is 2, of 2"),
    ("start", -1, "start is -1"),
    ("start", "s", "start is 's'"),
    ("accepting", np.array([0, 1]), "not an array of bool"),
    ("accepting", np.array([], dtype=bool), "no state"),
    ("offsets", np.array([0, 2]), "2 offsets for 2 states"),
    ("offsets", np.array([0, 3, 2]), "do not ascend from 0 to 2"),
    ("offsets", np.array([0, 1, 1]), "do not ascend from 0 to 2"),
    ("symbols", np.array([5, 3]), "symbols of state 0 do not ascend: 5 comes before 3"),
    ("symbols", np.array([3, 3]), "3 comes before 3"),
    ("symbols", np.array([3, 4]), r"symbol \[4\] is not in the alphabet"),
    ("symbols", np.array([-3, 5]), "symbols holds -3..5"),
    ("symbols", np.array([3, 2**31]), "symbols holds 3..2147483648"),
    ("symbols", np.array([3.0, 5.0]), "symbols is float64"),
    ("targets", np.array([1, 2]), "target 2 of 2 states"),
    ("targets", np.array([1]), "2 symbols, but 1 targets"),
    ("targets", np.array([[1, 0]]), r"targets has shape \(1, 2\)"),
    ("alphabet", np.array([5, 3, 8]), "alphabet does not ascend"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_arrays_that_are_no_automaton(name, value, message):
    assert TokenAutomaton(**GOOD).n_transitions == 2
    with pytest.raises(MalformedAutomatonError, match=message):
        TokenAutomaton(**{**GOOD, name: value})


def test_arrays_cannot_be_changed_and_are_the_automatons_own():
    automaton = TokenAutomaton(**GOOD)
    with pytest.raises(ValueError, match="read-only"):
        automaton.symbols[0] = 1
    given = {**GOOD, "targets": np.array([1, 0], dtype=np.int32)}
    automaton = TokenAutomaton(**given)
    given["targets"][0] = 0
    assert automaton.targets.tolist() == [1, 0]


def test_states_may_be_anything_and_transitions_may_be_repeated():
    listed = [("a", 3, ("b", 1)), (("b", 1), 5, None), ("a", 3, ("b", 1))]
    automaton = TokenAutomaton.from_transitions(listed, "a", [None, "far"])
    assert list(automaton.transitions()) == [(0, 3, 1), (1, 5, 2)]
    assert automaton.accepting.tolist() == [False, False, True, True]
    assert automaton.alphabet.tolist() == [3, 5]


def test_a_choice_is_refused_and_both_transitions_are_named():
    listed = [("p", 3, "q"), ("p", 5, "q"), ("p", 3, "r")]
    with pytest.raises(NondeterministicError) as caught:
        TokenAutomaton.from_transitions(listed, "p", [])
    assert caught.value.first == ("p", 3, "q")
    assert caught.value.second == ("p", 3, "r")
    assert "('p', 3, 'q')" in str(caught.value)
    assert "('p', 3, 'r')" in str(caught.value)
    assert TokenAutomaton.from_transitions(listed, "p", ["r"], determinise=True).accepts([3])


@pytest.mark.parametrize(
    "transition", [(0, 1.5, 1), (0, "a", 1), ([], 1, 0), (0, 1), 7, (0, -1, 1), (0, 2**31, 1)]
)
def test_transitions_that_are_none(transition):
    with pytest.raises(MalformedAutomatonError):
        TokenAutomaton.from_transitions([(0, 1, 0), transition], 0, [0])


def test_a_silent_move_needs_determinise():
    with pytest.raises(NondeterministicError, match="determinise=True"):
        TokenAutomaton.from_transitions([(0, None, 1)], 0, [1])


# ---------------------------------------------------------------- networkx


@examples(100)
@given(automata(spelled=True))
def test_there_and_back_through_networkx(automaton):
    graph = automaton.to_networkx()
    assert isinstance(graph, networkx.MultiDiGraph)
    assert graph.number_of_edges() == automaton.n_transitions
    assert TokenAutomaton.from_networkx(graph).identical(automaton)


def test_edges_carry_visible_text():
    automaton = TokenAutomaton.from_transitions(
        [(0, 1, 1), (0, 2, 1), (1, 7, 1)], 0, [1], spellings=[b"x", b" the", b"\n"]
    )
    edges = automaton.to_networkx().edges(data=True)
    assert [(p, q, d["symbol"], d["text"]) for p, q, d in edges] == [
        (0, 1, 1, "␣the"),
        (0, 1, 2, "\\n"),
        (1, 1, 7, "7"),
    ]


def test_a_graph_of_ones_own():
    graph = networkx.DiGraph()
    graph.add_node("in", start=True)
    graph.add_node("out", accepting=True)
    graph.add_edge("in", "out", token=5)
    assert list(TokenAutomaton.from_networkx(graph, "token").enumerate()) == [(5,)]
    with pytest.raises(MalformedAutomatonError, match="from 'in' to 'out' has no attribute"):
        TokenAutomaton.from_networkx(graph)
    with pytest.raises(MalformedAutomatonError, match="not directed"):
        TokenAutomaton.from_networkx(graph.to_undirected())
    graph.nodes["out"]["start"] = True
    with pytest.raises(MalformedAutomatonError, match="2 nodes"):
        TokenAutomaton.from_networkx(graph)


# ---------------------------------------------------------------- interegular

REGEXES = ["a*b", "(ab|é)+", "a(b|c)?a", "", "[ab]{2,3}c", "(a|ab)(c|bcd)?", "a[^b]*", "[^a]b?"]
LETTERS = {"a": 3, "b": 5, "c": 8, "d": 9, "é": 10}


@pytest.mark.parametrize("regex", REGEXES)
def test_a_regex_over_named_characters(regex):
    """With a number for each character, `anything_else` is those that the regex does not name."""
    fsm = interegular.parse_pattern(regex).to_fsm()
    automaton = TokenAutomaton.from_interegular(fsm, LETTERS)
    for word in words(4, tuple(LETTERS)):
        expected = re.fullmatch(regex, "".join(word)) is not None
        assert automaton.accepts(map(LETTERS.get, word)) == expected, word


@pytest.mark.parametrize("regex", REGEXES[:6])
def test_a_regex_over_code_points(regex):
    automaton = TokenAutomaton.from_interegular(interegular.parse_pattern(regex).to_fsm())
    for word in words(4, tuple(LETTERS)):
        expected = re.fullmatch(regex, "".join(word)) is not None
        assert automaton.accepts(map(ord, word)) == expected, word


def test_anything_else_must_be_said():
    fsm = interegular.parse_pattern("a[^b]").to_fsm()
    with pytest.raises(MalformedAutomatonError, match="anything_else"):
        TokenAutomaton.from_interegular(fsm)
    automaton = TokenAutomaton.from_interegular(fsm, anything_else=[ord("c"), ord("z")])
    assert ["".join(map(chr, word)) for word in automaton.enumerate()] == ["aa", "ac", "az"]
    assert TokenAutomaton.from_interegular(fsm, anything_else=[]).total() == 1


@pytest.mark.parametrize("regex", ["ab|ac|bd", "(ab|c)*a", "a*b|c[^a]"])
def test_characters_may_share_a_number(regex):
    numbers = {"a": 1, "b": 1, "c": 2, "d": 4}
    fsm = interegular.parse_pattern(regex).to_fsm()
    automaton = TokenAutomaton.from_interegular(fsm, numbers)
    matching = [w for w in words(4, tuple("abcd")) if re.fullmatch(regex, "".join(w))]
    expected = {tuple(map(numbers.get, w)) for w in matching}
    assert set(automaton.enumerate(max_length=4)) == expected


@examples(50)
@given(automata())
def test_the_alphabet_is_what_was_given(automaton):
    assert automaton.alphabet.tolist() == list(SYMBOLS)
    assert of(automaton.trimmed()) == of(automaton)
