"""DirectMerge for the merge of a token with itself.

    L(merge_twin(dfa, a, aa)) = { sequences of L(dfa) with a a replaced by aa, left to right }

In a run of a's the second, fourth, ... are swallowed by the one before. So a state in the middle of
such runs is told apart by the parity of the a's that led to it, and only after an odd number of
them is the next a merged.

Source: Tran-Thien 2024, technical appendix, Algorithm 2.
"""

from __future__ import annotations

from bpe_automata.reference.direct_merge_pair import merge_at
from bpe_automata.reference.token_dfa import State, Token, TokenDFA, reach


def merge_twin(dfa: TokenDFA, a: Token, aa: Token) -> bool:
    """Carry the merge out in place; was there anything to merge?"""
    even = dfa.between(a, a)
    if not even:
        return False
    odd = {state: dfa.new_state() for state in even}
    for state, twin in odd.items():
        _copy(dfa, state, twin)
    _alternate(dfa, a, odd)
    for twin in odd.values():
        merge_at(dfa, twin, a, a, aa)
    _remove_unreached(dfa, {*odd, *odd.values()})
    return True


def _copy(dfa: TokenDFA, state: State, twin: State) -> None:
    for token, target in [*dfa.out[state].items()]:
        dfa.add(twin, token, target)
    if state in dfa.accepting:
        dfa.accepting.add(twin)


def _alternate(dfa: TokenDFA, a: Token, odd: dict[State, State]) -> None:
    """An a leads from an even state, or from outside, to an odd one, and back."""
    after_odd = set(odd.values())
    for source in dfa.readers[a] - after_odd:
        target = dfa.out[source][a]
        if target in odd:
            dfa.redirect(source, a, odd[target])


def _remove_unreached(dfa: TokenDFA, twins: set[State]) -> None:
    """Some states had only one parity. All other states are reached as before: every path of the
    old automaton has one in the new one."""
    twins = {state for state in twins if state in dfa.out}
    from_outside = {
        s for s in twins if s == dfa.start or not set().union(*dfa.into[s].values()) <= twins
    }
    inside = {s: {t for t in dfa.out[s].values() if t in twins} for s in twins}
    for state in twins - reach(from_outside, inside):
        dfa.remove_state(state)
