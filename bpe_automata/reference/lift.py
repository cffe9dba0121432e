"""The lift: all ids, of whatever tokenization, whose base symbols are in a language.

    { ids : symbols(ids) in L(dfa) }

Source: Willard & Louf 2023.
"""

from __future__ import annotations

from collections.abc import Mapping

from bpe_automata.reference.token_dfa import State, Token, TokenDFA


def lift(dfa: TokenDFA, spelled: Mapping[Token, tuple[Token, ...]]) -> TokenDFA:
    """The relevant part of the lift; `spelled`: the base symbols of each token."""
    transitions = [
        (state, token, target)
        for state in dfa.states()
        for token, symbols in spelled.items()
        if (target := _walk(dfa, state, symbols)) is not None
    ]
    return TokenDFA.of(transitions, dfa.start, dfa.accepting)


def _walk(dfa: TokenDFA, state: State, symbols: tuple[Token, ...]) -> State | None:
    for symbol in symbols:
        if symbol not in dfa.out[state]:
            return None
        state = dfa.out[state][symbol]
    return state
