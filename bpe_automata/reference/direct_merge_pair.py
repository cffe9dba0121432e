"""DirectMerge for one merge of two different tokens.

    L(merge_pair(dfa, a, b, ab)) = { sequences of L(dfa) with each a b replaced by ab },   a != b

Source: Tran-Thien 2024, technical appendix, Algorithm 1.
"""

from __future__ import annotations

from bpe_automata.reference.token_dfa import State, Token, TokenDFA


def merge_pair(dfa: TokenDFA, a: Token, b: Token, ab: Token) -> bool:
    """Carry the merge out in place, at each state between an a and a b; was there one?"""
    states = dfa.between(a, b)
    for state in states:
        merge_at(dfa, state, a, b, ab)
    return bool(states)


def merge_at(dfa: TokenDFA, state: State, a: Token, b: Token, ab: Token) -> None:
    """Lead around `state`, between an a and a b. What else comes there, or leaves it, stays."""
    sources, target = dfa.sources(state, a), dfa.out[state][b]
    for source in sources:
        dfa.add(source, ab, target)
    entered = state == dfa.start or any(token != a for token in dfa.into[state])
    left = state in dfa.accepting or any(token != b for token in dfa.out[state])
    if not entered and not left:
        dfa.remove_state(state)
    elif not entered:
        dfa.remove(state, b)
    elif not left:
        for source in sources:
            dfa.remove(source, a)
    else:
        _split(dfa, state, a, b)


def _split(dfa: TokenDFA, state: State, a: Token, b: Token) -> None:
    """A twin of `state` that only a leads to, and b does not leave."""
    twin = dfa.new_state()
    for token, target in dfa.out[state].items():
        if token != b:
            dfa.add(twin, token, target)
    if state in dfa.accepting:
        dfa.accepting.add(twin)
    for source in dfa.sources(state, a):  # the twin itself among them, if a loops at the state
        dfa.redirect(source, a, twin)
