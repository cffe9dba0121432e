"""`ignore_merges`: a pretoken that is in the vocabulary becomes that token.

That changes nothing for tokens that BPE makes anyway. A token x that no merge reaches is legal only
as a whole pretoken; and the BPE spelling of x, legal anywhere else, is illegal as a whole pretoken.
So every hypothesis follows where it is in a trie of those spellings since its pretoken began:

    OFF        in none of them           MUST_END   x itself was read: the pretoken ends here
    k >= 0     at node k of the trie; at a spelling's end the pretoken must go on
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.alphabet import is_utf8
from bpe_automata.tokenizer.derivation import Derivation, bpe
from bpe_automata.tokenizer.description import Description

OFF, MUST_END, ILLEGAL = -1, -2, -3


@dataclass(frozen=True)
class Unmade:
    """The tokens that no merge reaches and that are legal as a whole pretoken all the same.

    ids: int32 [k], ascending; start: int32 [k + 1] and spelled: int32, CSR of the ids that BPE
    makes of each. There are none without `ignore_merges`."""

    ids: np.ndarray
    start: np.ndarray
    spelled: np.ndarray


class WholePieces:
    """The trie. `tokens`: the ids that are legal only as a whole pretoken; `told_apart`: bool
    [n_ids], the ids whose reading moves the trie."""

    def __init__(self, n_ids: int, unmade: Unmade) -> None:
        self.children: list[dict[int, int]] = [{}]
        self.complete: set[int] = set()
        self.tokens: list[int] = unmade.ids.tolist()
        for spelling in np.split(unmade.spelled, unmade.start[1:-1]) if self.tokens else []:
            self._insert(spelling.tolist())
        self.told_apart = np.zeros(n_ids, dtype=bool)
        self.told_apart[[*self.tokens, *{t for node in self.children for t in node}]] = True
        self._whole = frozenset(self.tokens)

    def _insert(self, spelling: list[int]) -> None:
        node = 0
        for token in spelling:
            if token not in self.children[node]:
                self.children[node][token] = len(self.children)
                self.children.append({})
            node = self.children[node][token]
        self.complete.add(node)

    def may_end(self, where: int) -> bool:
        """Can the pretoken end here?"""
        return where not in self.complete

    def after(self, where: int, token: int, boundary: bool) -> int | None:
        """Where we are after `token` (-1: one that is not told apart), or None if it is illegal."""
        if token in self._whole:
            return MUST_END if boundary else None
        if boundary:
            return self.children[0].get(token, OFF)
        return OFF if where < 0 else self.children[where].get(token, OFF)

    def after_each(self, where: int, tokens: np.ndarray, boundary: bool) -> np.ndarray:
        """int32: the same for each of the tokens, ILLEGAL for None."""
        found = np.full(len(tokens), OFF, dtype=np.int32)
        found[np.isin(tokens, self.tokens)] = MUST_END if boundary else ILLEGAL
        node = 0 if boundary else where
        for token, child in self.children[node].items() if node >= 0 else ():
            if token not in self._whole:
                found[tokens == token] = child
        return found


def find_unmade(description: Description, derivation: Derivation) -> Unmade:
    """Raises UnsupportedTokenizerError for a token that holds a symbol which is none itself."""
    tokens = _unreachable(description, derivation) if description.ignore_merges else []
    spelled = [_spelling(description, derivation, token) for token in tokens]
    return Unmade(
        np.array(tokens, dtype=np.int32),
        np.cumsum([0, *map(len, spelled)]).astype(np.int32),
        np.array([token for spelling in spelled for token in spelling], dtype=np.int32),
    )


def _unreachable(description: Description, derivation: Derivation) -> list[int]:
    added = {token.id for token in description.added}
    numbers = np.flatnonzero(~derivation.reachable).tolist()
    tokens = [(number, description.tokens[number]) for number in numbers if number not in added]
    return [number for number, token in tokens if token and is_utf8(token)]


def _spelling(description: Description, derivation: Derivation, token: int) -> list[int]:
    data = description.tokens[token] or b""
    if description.byte_level:
        symbols = [bytes([byte]) for byte in data]
    else:
        symbols = [
            c.encode("utf-8", "surrogatepass") for c in data.decode("utf-8", "surrogatepass")
        ]
    missing = [s for s in symbols if s not in description.base]
    if missing:
        raise UnsupportedTokenizerError(
            "ignore_merges",
            data,
            f"this token holds {missing[0]!r}, which is no token of its own; not modelled",
        )
    return bpe(derivation, [description.base[s] for s in symbols])
