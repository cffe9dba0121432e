"""CartesianMerge: the lift times the automaton of all texts.

    { ids in D : bytes(ids) in L }  =  lift(L)  x  { BPE(w) : w in base* }

A state is a pair (state of the lift, state of all texts). The relevant ones are found once, by a
forward and a backward search; a mask is then read off both automata (`product_mask`).

Source: Tran-Thien 2024, technical appendix, Algorithm 5.
"""

from __future__ import annotations

from collections.abc import Mapping

from bpe_automata._sharing import cached
from bpe_automata.reference._all_texts import START, AllTexts
from bpe_automata.reference._token_dfa import State, Token, TokenDFA, reach

Pair = tuple[State, int]


class CartesianProduct:
    """The product of a lift with the automaton of all texts of the same tokenizer."""

    def __init__(self, lifted: TokenDFA, texts: AllTexts) -> None:
        self.lifted, self.texts = lifted, texts
        self.start: Pair = (lifted.start, START)

    @cached
    def relevant(self) -> set[Pair]:
        """The pairs on a path from the start to acceptance."""
        after: dict[Pair, set[Pair]] = {}
        todo = [self.start]
        while todo:
            pair = todo.pop()
            if pair not in after:
                after[pair] = {target for _, target in self.readable(pair)}
                todo += after[pair]
        before: dict[Pair, set[Pair]] = {pair: set() for pair in after}
        for pair, targets in after.items():
            for target in targets:
                before[target].add(pair)
        return reach({pair for pair in after if pair[0] in self.lifted.accepting}, before)

    def readable(self, pair: Pair) -> list[tuple[Token, Pair]]:
        """(token, pair behind it) of each token that both automata read."""
        state, text = pair
        forbidden, delta = self.texts.forbidden[text], self.texts.delta
        return [
            (token, (target, delta[token]))
            for token, target in self.lifted.out[state].items()
            if token in delta and token not in forbidden
        ]

    def step(self, pair: Pair, token: Token) -> Pair:
        """The pair after a token that can be read."""
        return self.lifted.out[pair[0]][token], self.texts.delta[token]

    def automaton(self) -> TokenDFA:
        """The relevant part, written out."""
        transitions = (
            (pair, token, target) for pair in self.relevant for token, target in self.readable(pair)
        )
        accepting = (pair for pair in self.relevant if pair[0] in self.lifted.accepting)
        return TokenDFA.of(transitions, self.start, accepting)


# The mask of a pair of states.
#
#     mask(q, s) = { t : the lift reads t at q, all texts read t at s, to a relevant pair }
#
# Source: Tran-Thien 2024, technical appendix, Algorithm 6.


def product_mask(product: CartesianProduct, pair: Pair) -> set[Token]:
    """The tokens that may come next at a pair of states."""
    return {token for token, target in product.readable(pair) if target in product.relevant}


# The lift: all ids, of whatever tokenization, whose base symbols are in a language.
#
#     { ids : symbols(ids) in L(dfa) }
#
# Source: Willard & Louf 2023.


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
