"""Small models over small vocabularies: a tokenizer of characters, a compressor, an n-gram model.

**Compression.** The id that makes the compressed file grow least is the most likely:

    logit(t | ids) = -8 ln 2 |gzip(training text + bytes(ids) + bytes(t))|,     lengths in bytes

so p(t) is proportional to 2 to the power of minus the length in bits, as if gzip were an optimal
code. The idea is old; Deletang et al., *Language Modeling Is Compression*, 2023, measure it.
Lengths are whole bytes, so many ids tie, and one byte is a factor of 256. gzip looks back 32 KiB,
so only the end of a longer training text matters.

**Backing-off n-grams**, with the smoothing s:

    p(t | c_1 .. c_k) = (count(c_1 .. c_k t) + s p(t | c_2 .. c_k)) / (count(c_1 .. c_k) + s)
    where 1 / V stands for p(t | c_2 .. c_k) if k = 0

A context that was never seen is shortened. With order 1 this is additive smoothing, s / V for each
id; in general it is the mean of a hierarchy of Dirichlet distributions (MacKay and Peto 1995).
Every id has positive probability everywhere.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._arguments import integer, sequence_of_ids, short
from bpe_automata.errors import ArgumentError, TokenOutOfRangeError
from bpe_automata.tokenizer.tokenizer import Tokenizer


def character_tokenizer(text_or_alphabet: str, end: str = "<end>") -> Tokenizer:
    """The tokenizer whose vocabulary is the characters of a text, by code point, and then `end`.

    end: how the end-of-sequence id is written; it is an added token, so a text that spells it is
    not read character by character. Characters outside of the vocabulary cannot be encoded:
    `encode` leaves them out, as `tokenizers` does.

    Raises ArgumentError for an empty alphabet, lone surrogates, or an `end` of fewer than two
    characters.
    """
    alphabet = sorted(set(text_or_alphabet))
    if not alphabet or any("\ud800" <= character <= "\udfff" for character in alphabet):
        raise ArgumentError(
            "an alphabet needs at least one character, and no lone surrogates: "
            f"{text_or_alphabet[:20]!r} will not do"
        )
    if len(end) < 2:
        raise ArgumentError(f"end {end!r} could be a character of the text: give a longer name")
    vocabulary = {character: number for number, character in enumerate(alphabet)}
    last = len(vocabulary)
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return Tokenizer.from_json(
        {
            "version": "1.0",
            "added_tokens": [{"id": last, "content": end, "special": True, **flags}],
            "normalizer": None,
            "pre_tokenizer": None,
            "post_processor": None,
            "decoder": {"type": "Fuse"},
            "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
        },
        eos_ids=(last,),
        name="characters",
    )


# ---------------------------------------------------------------- arguments


def known_ids(ids: Sequence[int], n_ids: int) -> tuple[int, ...]:
    """`ids`, each from 0 to n_ids - 1. Raises TokenOutOfRangeError, ArgumentError."""
    found = sequence_of_ids(ids)
    wrong = next((token for token in found if not 0 <= token < n_ids), None)
    if wrong is not None:
        raise TokenOutOfRangeError(f"id {wrong} is not in 0 .. {n_ids - 1}, the model's ids")
    return found


def utf8(text: Any, name: str) -> bytes:
    """The bytes of a text. Raises ArgumentError."""
    if not isinstance(text, str):
        raise ArgumentError(f"{name} is {short(text)}: give a text")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"{name} has a lone surrogate, {text[error.start]!r}, at position {error.start}: that "
            "is no character, so it has no bytes"
        ) from None


# ---------------------------------------------------------------- compression

_GZIP = 31  # window of 32 KiB, header and trailer of gzip
_NATS_PER_BYTE = 8 * np.log(2)


class _Stream(NamedTuple):
    """compressor: the state of gzip; written: the bytes that it has returned so far."""

    compressor: zlib._Compress
    written: int

    def after(self, data: bytes) -> _Stream:
        """The stream after some bytes. This one is not changed: the training text is compressed
        once, and an id takes one copy of the state and the end of one block."""
        twin = self.compressor.copy()
        return _Stream(twin, self.written + len(twin.compress(data)))

    def length(self) -> int:
        """The length in bytes of the file that ends here."""
        return self.written + len(self.compressor.copy().flush())


class CompressionModel:
    """ids so far -> logits of the next id, float64 [n_ids], all finite.

    Meant for a vocabulary of characters (`character_tokenizer`): every id is tried at every call,
    some 0.1 ms each. Raises TokenOutOfRangeError, ArgumentError.
    """

    def __init__(
        self, tokenizer: Tokenizer, training_text: str, *, end: str = "\n", level: int = 9
    ) -> None:
        """training_text: any text. end: the text of end-of-sequence; a line feed suits a training
        text of one record per line. level: of compression, 1 to 9.

        Raises ArgumentError."""
        level = integer(level, "level")
        if not 1 <= level <= 9:
            raise ArgumentError(f"level {level} is not in 1 .. 9")
        ends, ending = set(tokenizer.eos_ids), utf8(end, "end")
        tokens = enumerate(tokenizer.spellings)
        self._spelled = [ending if i in ends else spelled for i, spelled in tokens]
        start = _Stream(zlib.compressobj(level, wbits=_GZIP), 0)
        self._trained = start.after(utf8(training_text, "training_text"))

    def __call__(self, ids: Sequence[int]) -> np.ndarray:
        checked = known_ids(ids, len(self._spelled))
        here = self._trained.after(b"".join(self._spelled[i] for i in checked))
        lengths = [here.after(spelled).length() for spelled in self._spelled]
        return -_NATS_PER_BYTE * np.array(lengths, dtype=np.float64)


# ---------------------------------------------------------------- n-grams


class Followers(NamedTuple):
    """The ids that follow a context. ids: int64; counts: float64, how often each does; total: the
    sum of counts."""

    ids: np.ndarray
    counts: np.ndarray
    total: float


class NGramModel:
    """ids so far -> logits of the next id, float64 [n_ids]: the natural logarithms of a
    distribution with full support. Only the last `order - 1` ids matter. Raises
    TokenOutOfRangeError, ArgumentError. Make one with `train`."""

    def __init__(
        self, n_ids: int, order: int, smoothing: float, seen: dict[tuple[int, ...], Followers]
    ) -> None:
        self.n_ids, self.order, self.smoothing = n_ids, order, smoothing
        self._seen = seen

    @classmethod
    def train(
        cls,
        tokenizer: Tokenizer,
        texts: str | Iterable[str],
        order: int = 3,
        smoothing: float = 1.0,
    ) -> NGramModel:
        """The model of the ids of one or several texts, each followed by the tokenizer's first
        end-of-sequence id, if it has one.

        order: ids in an n-gram, at least 1; smoothing: over 0. Raises ArgumentError.
        """
        order = integer(order, "order")
        if order < 1 or not isinstance(smoothing, Real) or not 0 < smoothing < np.inf:
            raise ArgumentError(
                f"order {order} must be at least 1, smoothing {smoothing} over 0 and finite"
            )
        counts: dict[tuple[int, ...], Counter[int]] = {}
        for text in [texts] if isinstance(texts, str) else texts:
            ids = [*tokenizer.encode(text), *tokenizer.eos_ids[:1]]
            for at, token in enumerate(ids):
                for length in range(min(order - 1, at) + 1):
                    counts.setdefault(tuple(ids[at - length : at]), Counter())[token] += 1
        seen = {context: _followers(counter) for context, counter in counts.items()}
        return cls(tokenizer.n_ids, order, smoothing, seen)

    def __call__(self, ids: Sequence[int]) -> np.ndarray:
        ids = known_ids(ids, self.n_ids)
        distribution = np.full(self.n_ids, 1 / self.n_ids)
        for length in range(min(self.order - 1, len(ids)) + 1):
            found = self._seen.get(ids[len(ids) - length :])
            if found is None:
                break
            distribution *= self.smoothing
            distribution[found.ids] += found.counts
            distribution /= found.total + self.smoothing
        return np.log(distribution)


def _followers(counter: Counter[int]) -> Followers:
    ids = np.fromiter(counter.keys(), np.int64, len(counter))
    counts = np.fromiter(counter.values(), np.float64, len(counter))
    return Followers(ids, counts, float(counts.sum()))
