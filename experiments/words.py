"""A word in its sentence, in the tokenizer's own tokens and in others that spell the same.

The words, by category, and the templates of their sentences are in `words.json`; they were chosen
without looking at what models make of them. In each template `{}` is the word; any word of its
category fits there. The file also has the published numbers of the example "weasel shark", by
animal: P(mammal) / P(fish) after the word's own ids, and after ` s`, `har`, `k`. Source: the
article's companion notebook (Tran-Thien, 2024), section on self-intoxication; Mistral-7B-v0.1 in 4
bits.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from bpe_automata import Tokenizer
from bpe_automata.errors import BpeAutomataError
from bpe_automata.tokenizer.alphabet import is_utf8

_DATA: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
WORDS: dict[str, list[str]] = {
    category: own["words"].split() for category, own in _DATA["categories"].items()
}
PUBLISHED: dict[str, tuple[float, float]] = _DATA["published"]

CUT, RANDOM, SMALLEST = WAYS = ("one token cut in two", "cut at random", "single characters")
OWN, ANOTHER = "own", "another word"
"""The other measured ways than `WAYS`: the word's own ids, and a control."""
_TRIES, _SHOWN = 30, 60


class Template(NamedTuple):
    """A sentence without its word. name: the same in all categories that share it."""

    name: str
    before: str
    after: str


TEMPLATES: dict[str, list[Template]] = {
    category: [
        Template(f"{own['templates']} {k}", *text.split("{}"))
        for k, text in enumerate(_DATA["templates"][own["templates"]])
    ]
    for category, own in _DATA["categories"].items()
}


def templates_of(category: str, number: int, count: int) -> list[Template]:
    """The templates for the word of this number: `count` of them (or all), one after the other from
    the one of the word's own number on, so that no result decides which."""
    every = TEMPLATES[category]
    return [every[(number + k) % len(every)] for k in range(min(count, len(every)))]


class SentenceError(BpeAutomataError):
    """The tokens of a text do not spell it, so that a word's tokens cannot be found in it."""


@dataclass(frozen=True)
class Sentence:
    """The canonical ids of a text, in three parts: those before the word, those that hold a part of
    it, and those after it."""

    before: tuple[int, ...]
    word: tuple[int, ...]
    after: tuple[int, ...]


def sentence(tokenizer: Tokenizer, before: str, word: str, after: str) -> Sentence:
    """The parts of a text. Raises SentenceError if its tokens spell other bytes: a SentencePiece
    model may put a space before a text, other tokenizers change its characters."""
    text = before + word + after
    ids = tokenizer.encode(text)
    spelled = [tokenizer.token_bytes(token) for token in ids]
    if b"".join(spelled) != text.encode():
        other = b"".join(spelled).decode(errors="replace")
        raise SentenceError(
            f"the tokens of {text[:_SHOWN]!r} spell {other[:_SHOWN]!r}: take a model whose "
            "tokenizer adds and changes nothing"
        )
    ends = list(accumulate(map(len, spelled)))
    begin = len(before.encode())
    end = begin + len(word.encode())
    first = next(k for k, at in enumerate(ends) if at > begin)
    last = next(k for k, at in enumerate(ends) if at >= end) + 1
    return Sentence(tuple(ids[:first]), tuple(ids[first:last]), tuple(ids[last:]))


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


def other_ways(
    tokenizer: Tokenizer, word: Sequence[int], rng: random.Random
) -> dict[str, tuple[int, ...]]:
    """Other ids for the same bytes, by way; all different, and none the word's own. If single
    characters are the word's own ids, single bytes are taken."""
    tokens = OrdinaryTokens(tokenizer)
    each = (tokens.cut_once(word, rng), tokens.at_random(word, rng), tokens.smallest(word))
    found: dict[str, tuple[int, ...]] = {}
    for way, candidates in zip(WAYS, each, strict=True):
        used = {tuple(word), *found.values()}
        fresh = next((ids for ids in candidates if ids not in used), None)
        if fresh is not None:
            found[way] = fresh
    return found


class OrdinaryTokens:
    """The tokens of a tokenizer that are not added ones, by what they spell."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids, self._longest = tokenizer.derived("ordinary tokens", _ordinary)

    def cut_once(self, word: Sequence[int], rng: random.Random) -> Iterator[tuple[int, ...]]:
        """Ways to cut one of the word's tokens in two tokens, in random order."""
        found = []
        for k, token in enumerate(word):
            data = self._tokenizer.token_bytes(token)
            for at in range(1, len(data)):
                first, second = self._ids.get(data[:at]), self._ids.get(data[at:])
                if first is not None and second is not None and is_utf8(data[:at]):
                    found.append((*word[:k], first, second, *word[k + 1 :]))
        rng.shuffle(found)
        yield from found

    def at_random(self, word: Sequence[int], rng: random.Random) -> Iterator[tuple[int, ...]]:
        """Tokens of whole characters from the beginning on, each with the same probability."""
        data = b"".join(map(self._tokenizer.token_bytes, word))
        for _ in range(_TRIES):
            ids: list[int] = []
            at = 0
            while ends := self._ends(data, at):
                end = rng.choice(ends)
                ids.append(self._ids[data[at:end]])
                at = end
            if at == len(data):
                yield tuple(ids)

    def smallest(self, word: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The word's characters one by one, then its bytes."""
        data = b"".join(map(self._tokenizer.token_bytes, word))
        single = [bytes([byte]) for byte in data]
        characters: list[bytes] = []
        for character in map(str.encode, data.decode("utf-8")):
            is_token = character in self._ids
            characters += [character] if is_token else [bytes([byte]) for byte in character]
        for parts in (characters, single):
            if all(part in self._ids for part in parts):
                yield tuple(self._ids[part] for part in parts)

    def all_ways(self, data: bytes) -> Iterator[tuple[int, ...]]:
        """All sequences of tokens of whole characters that spell the bytes."""
        if not data:
            yield ()
        for end in self._ends(data, 0):
            for rest in self.all_ways(data[end:]):
                yield (self._ids[data[:end]], *rest)

    def _ends(self, data: bytes, at: int) -> list[int]:
        """The positions where a token of whole characters that begins at `at` may end."""
        ends = range(at + 1, min(len(data), at + self._longest) + 1)
        return [end for end in ends if data[at:end] in self._ids and is_utf8(data[at:end])]


def _ordinary(tokenizer: Tokenizer) -> tuple[dict[bytes, int], int]:
    """(bytes -> id, the greatest length); a byte's fallback token only if it has no other token."""
    fallback = frozenset(tokenizer.description.byte_tokens.values())
    ids: dict[bytes, int] = {}
    for token in sorted(range(tokenizer.n_ids), key=lambda token: token not in fallback):
        data = tokenizer.token_bytes(token)
        if data and token not in tokenizer.added_ids:
            ids[data] = token
    return ids, max(map(len, ids))
