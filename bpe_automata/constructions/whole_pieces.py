"""`ignore_merges`: a pretoken that is in the vocabulary becomes that token.

That changes nothing for tokens that BPE makes anyway. A token x that no merge reaches is legal only
as a whole pretoken; and the BPE spelling of x, legal anywhere else, is illegal as a whole pretoken.
So every hypothesis follows where it is in a trie of those spellings since its pretoken began:

    OFF        in none of them           MUST_END   x itself was read: the pretoken ends here
    k >= 0     at node k of the trie; at a spelling's end the pretoken must go on
"""

from __future__ import annotations

import numpy as np

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.derivation import Derivation, bpe
from bpe_automata.tokenizer.description import Description

OFF, MUST_END = -1, -2


class WholePieces:
    """The trie. `tokens`: the ids that are legal only as a whole pretoken; `told_apart`: bool
    [n_ids], the ids whose reading moves the trie."""

    def __init__(self, description: Description, derivation: Derivation) -> None:
        self.children: list[dict[int, int]] = [{}]
        self.complete: set[int] = set()
        self.tokens = _unreachable(description, derivation) if description.ignore_merges else []
        for token in self.tokens:
            self._insert(_spelling(description, derivation, token))
        self.told_apart = np.zeros(description.n_ids, dtype=bool)
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


def _unreachable(description: Description, derivation: Derivation) -> list[int]:
    added = {token.id for token in description.added}
    return [
        number
        for number, token in enumerate(description.tokens)
        if token and not derivation.reachable[number] and number not in added and _is_text(token)
    ]


def _is_text(token: bytes) -> bool:
    """Pretokens are whole characters."""
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


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
