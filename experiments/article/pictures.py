"""Automata as drawings whose states have names."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from bpe_automata import TokenAutomaton
from bpe_automata.reference import TokenDFA
from bpe_automata.viz import Drawing, Edge, Node, edge_label


def drawing_of(automaton: TokenAutomaton, labels: int = 6) -> Drawing:
    """Every state and arrow of an automaton, numbered from the start on, without the caption."""
    return numbered(automaton.picture(labels=labels).drawing, automaton.start)


def numbered(drawing: Drawing, start: int) -> Drawing:
    """What can be reached from a node, numbered from there on, without the caption."""
    order = [start]
    for node in order:  # grows while we go
        order += dict.fromkeys(e.target for e in drawing.leaving(node) if e.target not in order)
    place = {node: i for i, node in enumerate(order)}
    nodes = tuple(
        replace(drawing.nodes[node], label=str(i), start=i == 0) for i, node in enumerate(order)
    )
    edges = (
        replace(e, source=place[e.source], target=place[e.target])
        for e in drawing.edges
        if e.source in place
    )
    return Drawing(nodes, tuple(sorted(edges, key=lambda e: (e.source, e.target))))


def drawing_of_dfa(
    dfa: TokenDFA, tokens: Mapping[int, str], names: Mapping[Hashable, str]
) -> Drawing:
    """A reference automaton with the states and tokens named. States without a name are new: they
    are called S′."""
    order = [*(state for state in names if state in dfa.states())]
    order += sorted((state for state in dfa.states() if state not in names), key=str)
    place = {state: i for i, state in enumerate(order)}
    nodes = [
        Node(names.get(state, "S′"), state in dfa.accepting, state == dfa.start) for state in order
    ]
    labels: dict[tuple[int, int], list[int]] = {}
    for source, token, target in dfa.transitions():
        labels.setdefault((place[source], place[target]), []).append(token)
    edges = [
        Edge(source, target, edge_label([tokens[token] for token in sorted(read)]))
        for (source, target), read in sorted(labels.items())
    ]
    return Drawing(tuple(nodes), tuple(edges))
