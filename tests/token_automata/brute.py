"""Small random automata, and their languages by walking over every sequence."""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

from bpe_automata.token_automata import TokenAutomaton

SYMBOLS = (3, 5, 8)
LONGEST = 5


def words(longest=LONGEST, symbols=SYMBOLS):
    """Every sequence of at most `longest` symbols, in length-lexicographic order."""
    return [word for n in range(longest + 1) for word in product(symbols, repeat=n)]


def language(transitions, start, accepting, longest=LONGEST):
    """The accepted sequences, in order; None as symbol reads nothing, choices are all followed."""
    level, found = [((), _closed(transitions, {start}))], []
    for _ in range(longest + 1):
        found += [word for word, states in level if states & set(accepting)]
        level = [
            ((*word, symbol), after)
            for word, states in level
            for symbol in SYMBOLS
            if (after := _after(transitions, states, symbol))
        ]
    return found


def _after(transitions, states, symbol):
    return _closed(transitions, {q for p, a, q in transitions if p in states and a == symbol})


def _closed(transitions, states):
    while True:
        grown = states | {q for p, a, q in transitions if p in states and a is None}
        if grown == states:
            return states
        states = grown


def of(automaton, longest=LONGEST):
    """The language of an automaton, by its own transitions and nothing else of it."""
    accepting = [state for state in automaton.states() if automaton.accepting[state]]
    return language(list(automaton.transitions()), automaton.start, accepting, longest)


@st.composite
def parts(draw, nondeterministic=False, most_states=4, symbols=SYMBOLS):
    """(transitions, start, accepting) over states 0 to 3."""
    n = draw(st.integers(1, most_states))
    state = st.integers(0, n - 1)
    if nondeterministic:
        read = st.sampled_from((*symbols, None))
        listed = draw(st.lists(st.tuples(state, read, state), max_size=9))
    else:
        moves = draw(st.dictionaries(st.tuples(state, st.sampled_from(symbols)), state, max_size=9))
        listed = [(p, a, q) for (p, a), q in moves.items()]
    start = draw(state)
    known = sorted({start, *(p for p, _, _ in listed), *(q for _, _, q in listed)})
    return listed, start, draw(st.sets(st.sampled_from(known)))


@st.composite
def automata(draw, spelled=False, symbols=SYMBOLS):
    """Random automata over SYMBOLS, often with irrelevant states."""
    spellings = draw(st.lists(st.binary(max_size=3), max_size=10)) if spelled else None
    return TokenAutomaton.from_transitions(*draw(parts(symbols=symbols)), SYMBOLS, spellings)
