"""Automata from lists of transitions, from networkx, from interegular; arrays that are none."""

import json

import networkx
import numpy as np
import pytest
from hypothesis import given
from support import examples
from support.drawn import automata

from bpe_automata.errors import ArgumentError, MalformedAutomatonError, NondeterministicError
from bpe_automata.token_automata.automaton import TokenAutomaton

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
    ("start", "s", "start is 's'"),
    ("accepting", np.array([0, 1]), "not an array of bool"),
    ("offsets", np.array([0, 2]), "2 offsets for 2 states"),
    ("offsets", np.array([0, 3, 2]), "do not ascend from 0 to 2"),
    ("symbols", np.array([5, 3]), "symbols of state 0 do not ascend: 5 comes before 3"),
    ("symbols", np.array([3, 4]), r"symbol \[4\] is not in the alphabet"),
    ("symbols", np.array([3, 2**31]), "symbols holds 3..2147483648"),
    ("symbols", np.array([3.0, 5.0]), "symbols is float64"),
    ("targets", np.array([1, 2]), "target 2 of 2 states"),
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
    base = np.array([1, 0], dtype=np.int32)
    view = base[:]
    view.flags.writeable = False
    automaton = TokenAutomaton(**{**GOOD, "targets": view})
    base[0] = 0
    assert automaton.targets.tolist() == [1, 0]


def test_states_may_be_anything_and_transitions_may_be_repeated():
    listed = [("a", 3, ("b", 1)), (("b", 1), 5, None), ("a", 3, ("b", 1))]
    automaton = TokenAutomaton.from_transitions(
        listed, "a", [None, "far"], states=["a", ("b", 1), None, "far"]
    )
    assert list(automaton.transitions()) == [(0, 3, 1), (1, 5, 2)]
    assert automaton.accepting.tolist() == [False, False, True, True]
    assert automaton.alphabet.tolist() == [3, 5]


def test_a_choice_is_refused_and_both_transitions_are_named():
    listed = [("p", 3, "q"), ("p", 5, "q"), ("p", 3, "r")]
    with pytest.raises(NondeterministicError) as caught:
        TokenAutomaton.from_transitions(listed, "p", [])
    for named, transition in (("first", ("p", 3, "q")), ("second", ("p", 3, "r"))):
        assert getattr(caught.value, named) == transition
        assert str(transition) in str(caught.value)
    assert TokenAutomaton.from_transitions(listed, "p", ["r"], determinise=True).accepts([3])
    with pytest.raises(NondeterministicError, match=r"None, 1\) reads nothing.*determinise=True"):
        TokenAutomaton.from_transitions([(0, None, 1)], 0, [1])


WRONG = [
    *(({"listed": [(0, 1, 0), wrong]}, None)
      for wrong in ((0, 1.5, 1), (0, "a", 1), ([], 1, 0), (0, 1), 7, (0, -1, 1), (0, 2**31, 1))),
    ({"accepting": 1}, "accepting is 1: give a list"),
    ({"accepting": ["tpyo"]}, "accepting state 'tpyo' is in no transition"),
    ({"start": []}, "not hashable"),
    ({"listed": [(0, 2**70, 1)]}, "symbol of transition 0 is 1180591620717411303424"),
    ({"alphabet": "ab"}, "alphabet is 'ab': give a list"),
    ({"alphabet": [1, 2.7]}, "alphabet at 1 is 2.7"),
    ({"spellings": "abc"}, "spellings are 'abc'"),
    ({"spellings": [b"a", None]}, "spelling of symbol 1 is None"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_arguments_that_are_wrong_say_what(change, message):
    good = {"listed": [(0, 1, 1)], "start": 0, "accepting": [1], "alphabet": [1], "spellings": []}
    assert TokenAutomaton.from_transitions(**good).accepts([1])
    with pytest.raises(MalformedAutomatonError, match=message):
        TokenAutomaton.from_transitions(**{**good, **change})


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda a: a.accepts("ab"), "'ab', a text: give its ids"),
        (lambda a: a.accepts([3, None]), "id at position 1 is None"),
        (lambda a: a.picture([3, "x"]), "id at position 1 is 'x'"),
        (lambda a: a.enumerate(limit="x"), "limit is 'x'"),
        (lambda a: a.step(-2, 3), "no state -2: they are 0 to 1"),
        (lambda a: a.step(0, None), "symbol is None"),
        (lambda a: a.row(-1), "no state -1"),
    ],
)
def test_questions_that_are_none(ask, message):
    with pytest.raises(ArgumentError, match=message):
        ask(TokenAutomaton(**GOOD))


# ---------------------------------------------------------------- networkx


@examples(40)
@given(automata())
def test_there_and_back_through_networkx(automaton):
    graph = automaton.to_networkx()
    assert isinstance(graph, networkx.MultiDiGraph)
    assert graph.number_of_edges() == automaton.n_transitions
    linked = json.loads(json.dumps(networkx.node_link_data(graph, edges="edges")))
    for again in (
        graph,
        networkx.node_link_graph(linked, edges="edges"),
        networkx.parse_graphml("".join(networkx.generate_graphml(graph))),
        networkx.parse_gml(list(networkx.generate_gml(graph))),
    ):
        assert TokenAutomaton.from_networkx(again).equivalent(automaton) is None


def test_a_graph_of_ones_own():
    graph = networkx.DiGraph()
    graph.add_node("in", start=True)
    graph.add_node("out", accepting=True)
    graph.add_edge("in", "out", symbol=5)
    assert list(TokenAutomaton.from_networkx(graph).enumerate()) == [(5,)]
    del graph.edges["in", "out"]["symbol"]
    with pytest.raises(MalformedAutomatonError, match="from 'in' to 'out' has no attribute"):
        TokenAutomaton.from_networkx(graph)
    with pytest.raises(MalformedAutomatonError, match="no directed graph"):
        TokenAutomaton.from_networkx(graph.to_undirected())
    graph.nodes["out"]["start"] = True
    with pytest.raises(MalformedAutomatonError, match="2 nodes"):
        TokenAutomaton.from_networkx(graph)
