"""A compressor as a model: what makes the file grow least is likeliest.

    logit(t | ids) = -8 ln 2 |gzip(training text + bytes(ids) + bytes(t))|,     lengths in bytes

so that p(t) is proportional to 2 to the power of minus the length in bits: a code of l bits is
taken for a probability of 2^-l. The idea is old; Deletang et al., *Language Modeling Is
Compression*, 2023, measure it. Lengths are whole bytes, so many ids tie, and one byte is a factor
of 256. gzip looks back 32 KiB, so of a longer training text only the end is ever quoted.

The training text is compressed once. A compressor can be copied where it stands, so an id costs one
copy of its state and the end of one block.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bpe_automata.arguments import integer
from bpe_automata.errors import ArgumentError
from bpe_automata.models.checks import known_ids, utf8
from bpe_automata.tokenizer import Tokenizer

_GZIP = 31  # window of 32 KiB, header and trailer of gzip
_NATS_PER_BYTE = 8 * np.log(2)


class _Stream(NamedTuple):
    """compressor: where it stands; written: bytes that it gave away so far."""

    compressor: zlib._Compress
    written: int

    def after(self, data: bytes) -> _Stream:
        """The stream some bytes later; this one stays as it is."""
        twin = self.compressor.copy()
        return _Stream(twin, self.written + len(twin.compress(data)))

    def length(self) -> int:
        """How long the whole file would be if it ended here, in bytes."""
        return self.written + len(self.compressor.copy().flush())


class CompressionModel:
    """ids so far -> logits of the next id, float64 [n_ids], all finite.

    Meant for a vocabulary of characters (`character_tokenizer`): every id is tried at every call,
    some 0.1 ms each. Raises TokenOutOfRangeError, ArgumentError.
    """

    def __init__(
        self, tokenizer: Tokenizer, training_text: str, *, end: str = "\n", level: int = 9
    ) -> None:
        """training_text: any text. end: what end-of-sequence counts as; a line end suits a
        training text of one record per line. level: of compression, 1 to 9.

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
        known = known_ids(ids, len(self._spelled))
        here = self._trained.after(b"".join(self._spelled[i] for i in known))
        lengths = [here.after(spelled).length() for spelled in self._spelled]
        return -_NATS_PER_BYTE * np.array(lengths, dtype=np.float64)
