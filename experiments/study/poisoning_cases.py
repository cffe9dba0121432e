"""A word in its sentence, in its own tokens and in others that spell the same."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from bpe_automata import Tokenizer
from bpe_automata.errors import BpeAutomataError
from bpe_automata.tokenizer.alphabet import is_utf8

CUT, RANDOM, SMALLEST = WAYS = ("one token cut in two", "cut at random", "single characters")
_TRIES, SHOWN = 30, 60


class SentenceError(BpeAutomataError):
    """The tokens of a text do not spell it, so that no token can be found by its place in it."""


@dataclass(frozen=True)
class Sentence:
    """The canonical ids of a text, in three parts: before the tokens of the word, these tokens (all
    that hold a part of it), and after."""

    before: tuple[int, ...]
    word: tuple[int, ...]
    after: tuple[int, ...]


def sentence(tokenizer: Tokenizer, before: str, word: str, after: str) -> Sentence:
    """The parts of a text. Raises SentenceError where the bytes of its tokens are others than its
    own: a SentencePiece model may put a space before a text, others change its characters."""
    text = before + word + after
    ids = tokenizer.encode(text)
    spelled = [tokenizer.token_bytes(token) for token in ids]
    if b"".join(spelled) != text.encode():
        shown = b"".join(spelled).decode(errors="replace")
        raise SentenceError(
            f"the tokens of {text[:SHOWN]!r} spell {shown[:SHOWN]!r}: take a model whose tokenizer "
            "adds and changes nothing"
        )
    ends = list(accumulate(map(len, spelled)))
    begin = len(before.encode())
    end = begin + len(word.encode())
    first = next(k for k, place in enumerate(ends) if place > begin)
    last = next(k for k, place in enumerate(ends) if place >= end) + 1
    return Sentence(tuple(ids[:first]), tuple(ids[first:last]), tuple(ids[last:]))


def other_ways(
    tokenizer: Tokenizer, word: Sequence[int], rng: random.Random
) -> dict[str, tuple[int, ...]]:
    """Other ids for the same bytes, by the way that they are made; none twice, and none that is the
    word's own. Where single characters are its own, single bytes are taken."""
    pieces = Pieces(tokenizer)
    found: dict[str, tuple[int, ...]] = {}
    known = {tuple(word)}
    for way, candidates in (
        (CUT, pieces.cut_once(word, rng)),
        (RANDOM, pieces.at_random(word, rng)),
        (SMALLEST, pieces.smallest(word)),
    ):
        fresh = next((ids for ids in candidates if ids not in known), None)
        if fresh is not None:
            found[way] = fresh
            known.add(fresh)
    return found


class Pieces:
    """The ordinary tokens of a tokenizer, by what they spell."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids, self._longest = tokenizer.derived("ordinary tokens", _ordinary)

    def cut_once(self, word: Sequence[int], rng: random.Random) -> Iterator[tuple[int, ...]]:
        """One of its tokens in two parts that are tokens; in random order."""
        found = []
        for k, token in enumerate(word):
            data = self._tokenizer.token_bytes(token)
            for at in range(1, len(data)):
                left, right = self._ids.get(data[:at]), self._ids.get(data[at:])
                if left is not None and right is not None and is_utf8(data[:at]):
                    found.append((*word[:k], left, right, *word[k + 1 :]))
        rng.shuffle(found)
        yield from found

    def at_random(self, word: Sequence[int], rng: random.Random) -> Iterator[tuple[int, ...]]:
        """From left to right, each token of whole characters alike."""
        data = b"".join(map(self._tokenizer.token_bytes, word))
        for _ in range(_TRIES):
            ids: list[int] = []
            at = 0
            while at < len(data):
                ends = [e for e in self._ends(data, at) if is_utf8(data[at:e])]
                if not ends:
                    break
                end = rng.choice(ends)
                ids.append(self._ids[data[at:end]])
                at = end
            if at == len(data):
                yield tuple(ids)

    def smallest(self, word: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Its characters one by one, and its bytes."""
        text = b"".join(map(self._tokenizer.token_bytes, word)).decode("utf-8")
        for parts in (
            [part for c in text for part in self._character(c)],
            [bytes([byte]) for byte in text.encode()],
        ):
            if all(part in self._ids for part in parts):
                yield tuple(self._ids[part] for part in parts)

    def all_ways(self, data: bytes) -> Iterator[tuple[int, ...]]:
        """All sequences of tokens of whole characters that spell the bytes."""
        if not data:
            yield ()
        for end in self._ends(data, 0):
            if is_utf8(data[:end]):
                for rest in self.all_ways(data[end:]):
                    yield (self._ids[data[:end]], *rest)

    def _ends(self, data: bytes, at: int) -> list[int]:
        most = min(len(data), at + self._longest)
        return [end for end in range(at + 1, most + 1) if data[at:end] in self._ids]

    def _character(self, character: str) -> list[bytes]:
        data = character.encode()
        return [data] if data in self._ids else [bytes([byte]) for byte in data]


def _ordinary(tokenizer: Tokenizer) -> tuple[dict[bytes, int], int]:
    """(bytes -> id, the greatest length); a byte's fallback token only where it has no other."""
    fallback = frozenset(tokenizer.description.byte_tokens.values())
    ids: dict[bytes, int] = {}
    ordered = sorted(range(tokenizer.n_ids), key=lambda token: token not in fallback)
    for token in ordered:
        data = tokenizer.token_bytes(token)
        if data and token not in tokenizer.added_ids:
            ids[data] = token
    return ids, max(map(len, ids))


def with_another_word(
    tokenizer: Tokenizer, own: Sentence, before: str, words: Iterable[str], after: str, needed: int
) -> tuple[str, Sentence] | None:
    """The same sentence with the first of these words that leaves the ids around it as they are:
    all before it, and the first `needed` after it. None if none does."""
    for word in words:
        other = sentence(tokenizer, before, word, after)
        if other.before == own.before and other.after[:needed] == own.after[:needed]:
            return word, other
    return None
