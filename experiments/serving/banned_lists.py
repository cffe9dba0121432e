"""Random lists of banned words, and a model that wants to write them.

Words come from a tokenizer's own vocabulary: tokens that are words, parts of tokens, two or three
tokens in a row, and such with characters beyond ASCII.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.banning import Ban

KINDS = ("anywhere", "whole words", "any case", "whole words, any case")
SPLITS = 12  # tokenizations of each word that the model knows
_LONGEST = 6  # ids of which it recognises where it is in one


@dataclass(frozen=True)
class WordList:
    """words: what is banned; kind: of KINDS; before: what the text comes after."""

    words: tuple[str, ...]
    kind: str
    before: str

    def ban(self) -> Ban:
        """The ban of the words."""
        return Ban(self.words, (), "whole" in self.kind, "case" in self.kind)


def word_lists(tokenizer: Tokenizer, n: int, seed: int) -> list[WordList]:
    """`n` lists of one to eight words each; every second text comes after the beginning of one."""
    rng = np.random.default_rng(seed)
    plain, beyond = _texts_of_tokens(tokenizer)
    found = []
    for number in range(n):
        words = [_word(rng, plain, beyond) for _ in range(int(rng.integers(1, 9)))]
        distinct = {word.casefold(): word for word in words}
        chosen = tuple(distinct.values())
        half = chosen[0][: (len(chosen[0]) + 1) // 2] if number % 2 else ""
        found.append(WordList(chosen, KINDS[number // 2 % len(KINDS)], half))
    return found


def _texts_of_tokens(tokenizer: Tokenizer) -> tuple[list[str], list[str]]:
    """(ASCII texts, others) of the ordinary tokens that hold more than spaces."""
    texts = []
    for token, spelled in enumerate(tokenizer.spellings):
        if token in tokenizer.added_ids or token in tokenizer.description.controls:
            continue
        try:
            text = spelled.decode()
        except UnicodeDecodeError:
            continue
        if text.strip():
            texts.append(text)
    return [t for t in texts if t.isascii()], [t for t in texts if not t.isascii()]


def _word(rng: np.random.Generator, plain: Sequence[str], beyond: Sequence[str]) -> str:
    """A token, its middle, some in a row, or some with others than ASCII characters."""

    def pick(texts: Sequence[str]) -> str:
        return texts[int(rng.integers(len(texts)))]

    kind, one = rng.integers(4), pick(plain)
    if kind == 0:
        return one.strip()
    if kind == 1:
        return one[1:-1].strip() or one
    if kind == 2 or not beyond:
        return "".join(pick(plain) for _ in range(int(rng.integers(2, 4)))).strip()
    return (pick(beyond) + pick(plain if rng.integers(2) else beyond)).strip()


def wanting_model(
    tokenizer: Tokenizer, words: WordList, seed: int, eos_ids: Sequence[int]
) -> Callable[[Sequence[int]], np.ndarray]:
    """Logits that draw towards the banned words by many tokenizations: random numbers, and more for
    ids that begin or go on with one of `SPLITS` random tokenizations of each word."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(16, tokenizer.n_ids)).astype(np.float32)
    follows: dict[tuple[int, ...], list[int]] = {}
    by_bytes = _ids_by_bytes(tokenizer)
    for ids in _tokenizations(by_bytes, words, rng):
        for at, token in enumerate(ids):
            follows.setdefault(ids[max(0, at - _LONGEST) : at], []).append(token)
    for token in eos_ids:
        noise[:, token] = 9

    def model(so_far: Sequence[int]) -> np.ndarray:
        logits = noise[so_far[-1] % len(noise) if len(so_far) else 0].copy()
        for size in range(min(_LONGEST, len(so_far)) + 1):
            ids = tuple(so_far[len(so_far) - size :])
            logits[follows.get(ids, [])] += 9 + 2 * bool(size)
        return logits

    return model


def _ids_by_bytes(tokenizer: Tokenizer) -> dict[bytes, int]:
    silent = tokenizer.added_ids | tokenizer.description.controls
    return {s: i for i, s in enumerate(tokenizer.spellings) if s and i not in silent}


def _tokenizations(
    by_bytes: dict[bytes, int], words: WordList, rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """Random tokenizations of the words, of their rests after `before`, and of words with a space
    before and a mark after."""
    found = []
    for word in words.words:
        texts = [word, f" {word}", f" {word}.", word.upper()]
        texts += [word.removeprefix(words.before)] if words.before else []
        for k in range(SPLITS):
            ids = _split(by_bytes, texts[k % len(texts)].encode(), rng)
            found += [tuple(ids)] if ids else []
    return found


def _split(by_bytes: dict[bytes, int], data: bytes, rng: np.random.Generator) -> list[int]:
    """Ids that spell `data`, each of random length; none where some byte has no token."""
    ids, at = [], 0
    while at < len(data):
        ends = [e for e in range(at + 1, min(len(data), at + 16) + 1) if data[at:e] in by_bytes]
        if not ends:
            return []
        end = ends[int(rng.integers(len(ends)))]
        ids.append(by_bytes[data[at:end]])
        at = end
    return ids
