"""The automaton of all texts, by trying every pair of tokens.

    follows(a, b)  iff  BPE(bytes(a) + bytes(b)) = a b

By the pair lemma that is the whole automaton. Quadratic in the vocabulary, for small ones.

Source: Tran-Thien 2024, technical appendix, Algorithm 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bpe_automata.reference.bpe import Ranks, bpe
from bpe_automata.reference.direct_merge import Merge
from bpe_automata.reference.token_dfa import Token


def spelled_in_symbols(
    base: Sequence[Token], merges: Sequence[Merge]
) -> dict[Token, tuple[Token, ...]]:
    """The base symbols of each token that some merges make of them, in whatever way first."""
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
    """For each token that BPE gives back on its own bytes, the ones of these that may not follow
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
