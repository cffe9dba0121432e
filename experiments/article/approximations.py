"""What others use in place of the canonical automaton: two tests that look at pairs of ids only.

    BpePairs         every id is reachable and every adjacent pair is canonical by BPE alone
    ReencodedPairs   encode(decode([a])) = [a] for every id, encode(decode([a, b])) = [a, b] for
                     every adjacent pair

Both are given the benefit of the doubt where a tool would patch them by hand; see each. Neither is
exact: the first knows nothing of the pretokenizer, the second nothing of what lies further off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from bpe_automata import Tokenizer
from bpe_automata.constructions import canonical_automaton

Ids = Sequence[int]
ANCHOR = "\n"
MOST_KNOWN = 500_000
"""Answers that a test remembers before it begins anew; some 100 MB."""


class Approximation(Protocol):
    """A test of whether ids are canonical."""

    name: str

    def accepted(self, sequences: Sequence[Ids]) -> list[bool]:
        """For each sequence: does the test take it for canonical?"""


class BpePairs:
    """The pair test that ignores the pretokenizer. Added tokens go with everything, since no merge
    crosses them: a tool that did not know this could not read a chat template at all. The byte
    token of a byte that is a character with a token of its own counts as unreachable; of the bytes
    of longer characters a pair test cannot say as much.
    """

    name = "pairs of BPE"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._automaton = canonical_automaton(tokenizer)
        self._reachable = self._automaton.derivation.reachable.tolist()
        for byte, token in tokenizer.description.byte_tokens.items():
            if bytes((byte,)) in tokenizer.description.base:
                self._reachable[token] = False
        self._added = _added(tokenizer)
        self._known: dict[tuple[int, int], bool] = {}

    def accepted(self, sequences: Sequence[Ids]) -> list[bool]:
        """Reachable ids, and canonical pairs of them."""
        return list(map(self.accepts, sequences))

    def accepts(self, ids: Ids) -> bool:
        """The test on one sequence."""
        return all(map(self._id, ids)) and all(map(self._pair, ids, ids[1:]))

    def _id(self, token: int) -> bool:
        return self._reachable[token] or token in self._added

    def _pair(self, left: int, right: int) -> bool:
        if left in self._added or right in self._added:
            return True
        if (left, right) not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            broken = self._automaton.geometry.breaking_merge(left, right) >= 0
            self._known[left, right] = not broken
        return self._known[left, right]


class ReencodedPairs:
    """The pair test by re-encoding, through the whole pipeline.

    Where the tokenizer puts a space before a text, `decode` takes one away and `encode` puts it
    back, so that hardly any pair from the middle of a text would survive: only ids at the beginning
    are tried as they stand, all others after a line feed, whose own ids must come back before them.
    If the first id is only that space, nothing is left of it to encode: it passes if more follows.
    Bytes that are not whole characters are no text: such ids and pairs are left to BPE alone.
    """

    name = "re-encoded pairs"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._bpe = tokenizer, BpePairs(tokenizer)
        self._anchor = tokenizer.encode(ANCHOR) if _puts_space(tokenizer) else []
        self._known: dict[tuple[bool, Ids], bool] = {}

    def accepted(self, sequences: Sequence[Ids]) -> list[bool]:
        """Ids and pairs that are encoded as themselves, each tried once."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        parts = [list(self._parts(ids)) for ids in sequences]
        self._try({part for some in parts for part in some if part not in self._known})
        return [all(map(self._known.__getitem__, some)) for some in parts]

    def _parts(self, ids: Ids) -> Iterable[tuple[bool, Ids]]:
        """(is it tried as it stands, one or two ids)."""
        for i, token in enumerate(ids):
            if i or len(ids) == 1 or self._tokenizer.text_bytes((token,)):
                yield not self._anchor or not i, (token,)
            if i:
                yield not self._anchor or i == 1, (ids[i - 1], token)

    def _try(self, parts: Iterable[tuple[bool, Ids]]) -> None:
        todo: list[tuple[tuple[bool, Ids], list[int], str]] = []
        for part in parts:
            first, ids = part
            whole = [*([] if first else self._anchor), *ids]
            try:
                todo.append((part, whole, self._tokenizer.text_bytes(whole).decode("utf-8")))
            except UnicodeDecodeError:
                self._known[part] = self._bpe.accepts(ids)
        texts = [text for _, _, text in todo]
        for (part, whole, _), own in zip(todo, self._tokenizer.encode_batch(texts), strict=True):
            self._known[part] = own == whole


def _puts_space(tokenizer: Tokenizer) -> bool:
    """Does the first of two tokens lose its space when the two are decoded alone?"""
    return tokenizer.description.prefix.name != "NONE"


def _added(tokenizer: Tokenizer) -> frozenset[int]:
    return frozenset(token.id for token in tokenizer.description.added)


def approximations(tokenizer: Tokenizer) -> tuple[Approximation, ...]:
    """Both, in the order of the table."""
    return BpePairs(tokenizer), ReencodedPairs(tokenizer)
