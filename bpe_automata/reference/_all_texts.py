"""The automaton of all texts, DirectMerge of `.*`.

    { BPE(w) : w in base* }

All its states accept, and a token leads to the same state wherever it is read. So it is enough to
keep delta(token), and for each state the tokens that it does not read.

Source: Tran-Thien 2024, technical appendix, Algorithm 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bpe_automata.errors import ImproperMergeTableError
from bpe_automata.reference._bpe import Ranks, bpe
from bpe_automata.reference._direct_merge import Merge
from bpe_automata.reference._token_dfa import Token, TokenDFA

START = 0


@dataclass
class AllTexts:
    """delta[t]: the state that t leads to; forbidden[s]: the tokens that state s does not read;
    users[s]: the tokens that lead to s. Tokens that are never made are in none of them."""

    delta: dict[Token, int] = field(default_factory=dict)
    forbidden: list[set[Token]] = field(default_factory=lambda: [set()])
    users: list[set[Token]] = field(default_factory=lambda: [set()])

    def add(self, token: Token, state: int) -> None:
        """Let `token` lead to `state`. Raises ImproperMergeTableError where it leads elsewhere."""
        if token in self.delta:
            raise ImproperMergeTableError(f"two merges make token {token}: the table is improper")
        self.delta[token] = state
        self.users[state].add(token)

    def twin(self, state: int, token: Token) -> int:
        """A new state like `state`, to which `token` leads from now on."""
        self.forbidden.append(set(self.forbidden[state]))
        self.users[state].discard(token)
        self.users.append({token})
        self.delta[token] = len(self.users) - 1
        return self.delta[token]

    def follows(self, left: Token, right: Token) -> bool:
        """May `right` come right after `left`?"""
        return right not in self.forbidden[self.delta[left]]

    def fused(self) -> AllTexts:
        """The same language, where states with equal forbidden sets are merged."""
        number: dict[frozenset[Token], int] = {}
        of = {
            state: number.setdefault(frozenset(self.forbidden[state]), len(number))
            for state in sorted({START, *self.delta.values()})
        }
        fused = AllTexts(
            {token: of[state] for token, state in self.delta.items()},
            [set(tokens) for tokens in number],
            [set() for _ in number],
        )
        for token, state in fused.delta.items():
            fused.users[state].add(token)
        return fused

    def automaton(self) -> TokenDFA:
        """The automaton with all transitions, one for each state and each token that it reads."""
        dfa = TokenDFA(START, {*range(len(self.forbidden))})
        for state, forbidden in enumerate(self.forbidden):
            for token, target in self.delta.items():
                if token not in forbidden:
                    dfa.add(state, token, target)
        dfa.keep(dfa.relevant())
        return dfa


def all_texts(base: Iterable[Token], merges: Iterable[Merge]) -> AllTexts:
    """Replay the merges on one state that reads every base symbol. Not fused."""
    texts = AllTexts()
    for symbol in base:
        texts.add(symbol, START)
    for left, right, made in merges:
        if left in texts.delta and right in texts.delta and texts.follows(left, right):
            _merge(texts, left, right, made)
    return texts


def _merge(texts: AllTexts, left: Token, right: Token, made: Token) -> None:
    """What Algorithms 1 and 2 do where every state accepts, and tokens have one target each."""
    state = texts.delta[left]
    for forbidden in texts.forbidden:  # a state that does not read `left` does not read `made`
        if left in forbidden:
            forbidden.add(made)
    if state == START or texts.users[state] != {left} or left == right:
        after_left = texts.twin(state, left)
    else:
        after_left = state
    if left == right:  # after an odd number of them; an even number is back in `state`
        texts.forbidden[after_left] |= {left, made}
        texts.add(made, state)
    else:
        texts.forbidden[after_left].add(right)
        texts.add(made, texts.delta[right])


# The same automaton, by trying every pair of tokens.
#
#     follows(a, b)  iff  BPE(bytes(a) + bytes(b)) = a b
#
# By the pair lemma that is the whole automaton. Quadratic in the vocabulary, for small ones.
#
# Source: Tran-Thien 2024, technical appendix, Algorithm 4.


def spelled_in_symbols(
    base: Sequence[Token], merges: Sequence[Merge]
) -> dict[Token, tuple[Token, ...]]:
    """The base symbols of each token that merges make of them, in the way that is found first."""
    spelled: dict[Token, tuple[Token, ...]] = {symbol: (symbol,) for symbol in base}
    size = 0
    while size < len(spelled):
        size = len(spelled)
        for left, right, made in merges:
            if left in spelled and right in spelled:
                spelled.setdefault(made, spelled[left] + spelled[right])
    return spelled


def ranks_of(merges: Sequence[Merge]) -> dict[tuple[Token, Token], tuple[int, Token]]:
    """(left, right) -> (rank, token made); of a pair that is listed twice the last one counts, as
    in `tokenizers`."""
    return {(left, right): (rank, made) for rank, (left, right, made) in enumerate(merges)}


def all_pairs(spelled: Mapping[Token, tuple[Token, ...]], ranks: Ranks) -> dict[Token, set[Token]]:
    """For each token that BPE gives back on its own bytes, which of these tokens may not follow
    it."""
    reachable = [token for token, symbols in spelled.items() if bpe(symbols, ranks) == [token]]
    return {
        left: {
            right
            for right in reachable
            if bpe(spelled[left] + spelled[right], ranks) != [left, right]
        }
        for left in reachable
    }
