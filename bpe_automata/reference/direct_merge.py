"""DirectMerge: replay the merge table on an automaton of base symbols.

    L(direct_merge(dfa, merges)) = { BPE(w) : w in L(dfa) }

for a proper table: each merge uses tokens that are base symbols or made by earlier merges. Then
replaying rule by rule is the same as merging the pair of least rank first.

Source: Tran-Thien 2024.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bpe_automata.errors import ImproperMergeTableError, NondeterministicError
from bpe_automata.reference.direct_merge_pair import merge_pair
from bpe_automata.reference.direct_merge_twin import merge_twin
from bpe_automata.reference.token_dfa import Token, TokenDFA

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
    """One merge in place; was there anything to merge? Raises ImproperMergeTableError."""
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
    """The same rules on one sequence: each in turn, wherever it applies, left to right."""
    tokens = [*symbols]
    for left, right, made in merges:
        at = 0
        while at + 1 < len(tokens):
            if tokens[at] == left and tokens[at + 1] == right:
                tokens[at : at + 2] = [made]
            at += 1
    return tokens
