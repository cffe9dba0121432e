"""DirectMerge: replay the merge table on an automaton of base symbols.

    L(direct_merge(dfa, merges)) = { BPE(w) : w in L(dfa) }

for a proper table: each merge uses tokens that are base symbols or made by earlier merges. Then
replaying rule by rule is the same as merging the pair of least rank first.

Source: Tran-Thien 2024.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bpe_automata.errors import ImproperMergeTableError, NondeterministicError
from bpe_automata.reference._token_dfa import State, Token, TokenDFA, reach

# DirectMerge for one merge of two different tokens.
#
#     L(merge_pair(dfa, a, b, ab)) = { sequences of L(dfa) with each a b replaced by ab },   a != b
#
# Source: Tran-Thien 2024, technical appendix, Algorithm 1.


def merge_pair(dfa: TokenDFA, a: Token, b: Token, ab: Token) -> bool:
    """Carry the merge out in place, at each state between an a and a b. Returns whether there was
    one."""
    states = dfa.between(a, b)
    for state in states:
        merge_at(dfa, state, a, b, ab)
    return bool(states)


def merge_at(dfa: TokenDFA, state: State, a: Token, b: Token, ab: Token) -> None:
    """Let ab lead around `state`, and remove a b through it; all other paths through it stay."""
    sources, target = dfa.sources(state, a), dfa.out[state][b]
    for source in sources:
        dfa.add(source, ab, target)
    entered_otherwise = state == dfa.start or any(token != a for token in dfa.into[state])
    left_otherwise = state in dfa.accepting or any(token != b for token in dfa.out[state])
    if not entered_otherwise and not left_otherwise:
        dfa.remove_state(state)
    elif not entered_otherwise:
        dfa.remove(state, b)
    elif not left_otherwise:
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


Merge = tuple[Token, Token, Token]
"""(left, right, the token made)."""


def direct_merge(dfa: TokenDFA, merges: Iterable[Merge]) -> TokenDFA:
    """All merges, in order of rank, on a copy. `dfa` must hold only relevant states. Raises
    ImproperMergeTableError where a merge makes what another one has made."""
    merged = dfa.copy()
    for merge in merges:
        apply(merged, merge)
    return merged


def steps(dfa: TokenDFA, merges: Iterable[Merge]) -> Iterator[tuple[Merge, TokenDFA]]:
    """Each merge that changes the automaton, and the automaton after it."""
    merged = dfa.copy()
    for merge in merges:
        if apply(merged, merge):
            yield merge, merged.copy()


def apply(dfa: TokenDFA, merge: Merge) -> bool:
    """Carry one merge out in place. Returns whether there was anything to merge. Raises
    ImproperMergeTableError."""
    left, right, made = merge
    try:
        if left == right:
            return merge_twin(dfa, left, made)
        return merge_pair(dfa, left, right, made)
    except NondeterministicError as error:
        raise ImproperMergeTableError(
            f"the merge of {left} and {right} makes {made} where another merge has made it "
            "already: replay the derivations only (`merges_in_order`)"
        ) from error


def replay(symbols: Iterable[Token], merges: Iterable[Merge]) -> list[Token]:
    """The same merges on one sequence: each in turn, wherever it applies, left to right."""
    tokens = [*symbols]
    for left, right, made in merges:
        at = 0
        while at + 1 < len(tokens):
            if tokens[at] == left and tokens[at + 1] == right:
                tokens[at : at + 2] = [made]
            at += 1
    return tokens


# One merge of a token with itself.
#
#     L(merge_twin(dfa, a, aa)) = { sequences of L(dfa) with a a replaced by aa, left to right }
#
# In a run of a's the second, fourth, ... are merged into the one before. So a state in the middle
# of such runs is split by the parity of the a's that led to it, and the next a is merged only after
# an odd number of them.
#
# Source: Tran-Thien 2024, technical appendix, Algorithm 2.


def merge_twin(dfa: TokenDFA, a: Token, aa: Token) -> bool:
    """Carry the merge out in place. Returns whether there was anything to merge."""
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
    """Let a lead from an even state, or from outside, to an odd one; it leads back already."""
    after_odd = set(odd.values())
    for source in dfa.readers[a] - after_odd:
        target = dfa.out[source][a]
        if target in odd:
            dfa.redirect(source, a, odd[target])


def _remove_unreached(dfa: TokenDFA, twins: set[State]) -> None:
    """Remove the states of a parity that never occurs. All other states are reached as before:
    every path of the old automaton has one in the new one."""
    twins = {state for state in twins if state in dfa.out}
    from_outside = {
        s for s in twins if s == dfa.start or not set().union(*dfa.into[s].values()) <= twins
    }
    inside = {s: {t for t in dfa.out[s].values() if t in twins} for s in twins}
    for state in twins - reach(from_outside, inside):
        dfa.remove_state(state)
