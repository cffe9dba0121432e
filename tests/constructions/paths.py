"""Walking engines and automata, for the tests of this folder."""

from __future__ import annotations

from bpe_automata.constructions import explore


def is_canonical(tokenizer, ids):
    """By definition: encode(decode(ids)) == ids, if the ids spell text at all."""
    try:
        text = tokenizer.text_bytes(ids).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return tokenizer.encode(text) == list(ids)


def shortest_paths(engine, initial, max_edges=4000):
    """(explicit automaton, ids from the start to each state, ids from each state to acceptance;
    None where there are none)."""
    automaton = explore(engine, initial, max_edges)
    edges = list(automaton.transitions())
    there = _spread({automaton.start: ()}, edges, forward=True)
    ends = {state: () for state in automaton.states() if automaton.accepting[state]}
    return automaton, there, _spread(ends, edges, forward=False)


def _spread(found, edges, forward):
    grown = True
    while grown:
        grown = False
        for source, token, target in edges:
            here, after = (source, target) if forward else (target, source)
            if here in found and after not in found:
                found[after] = (*found[here], token) if forward else (token, *found[here])
                grown = True
    return found
