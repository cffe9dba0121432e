"""A small tokenizer with parts of characters among its tokens, and what is banned, by hand."""

from __future__ import annotations

import itertools
import re

import numpy as np

from bpe_automata import constrain
from bpe_automata.testing import byte_level, byte_spelling, small_tokenizer

SPELLINGS = [b"\xc3", b"\xa9", b"a", b"b", b"ab", b" ", b"b ", b"ba", "é".encode(), "aé".encode()]
END, SPECIAL = 10, 11


def tokenizer():
    return small_tokenizer(
        [byte_spelling(spelled) for spelled in SPELLINGS],
        (),
        byte_level(),
        ["<end>", "<x>"],
    )


def sequences(longest):
    """Every sequence of at most `longest` ids of text."""
    for length in range(longest + 1):
        yield from itertools.product(range(len(SPELLINGS)), repeat=length)


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def may_be_text(data: bytes) -> bool:
    """Is it the beginning of a text?"""
    return is_text(data) or is_text(data + b"\xa9")


def parts(ban, data: bytes, ended: bool):
    """The (start, end) in `data`, a beginning of a text, of what is banned and complete; with
    `ended` the text ends there. By trying every part; not for bans that ignore case."""
    text = data.decode(errors="ignore")  # without a character that is not whole yet
    for start, end in itertools.combinations(range(len(text) + 1), 2):
        around = text[max(0, start - 1) : start] + text[end : end + 1]
        whole = (end < len(text) or ended) and not re.search(r"\w", around)
        if text[start:end] in ban.words and (whole or not ban.whole_word):
            yield len(text[:start].encode()), len(text[:end].encode())


def places(ban, before: bytes, spelled: list[bytes], ended: bool) -> set[int]:
    """In which ids something banned begins that is complete and not all of it in `before`."""
    ends = np.cumsum([len(before), *map(len, spelled)])
    found = parts(ban, b"".join([before, *spelled]), ended)
    starts = [start for start, end in found if end > len(before)]
    return set(np.maximum(0, np.searchsorted(ends, starts, side="right") - 1).tolist())


TOKENIZER = tokenizer()
N = TOKENIZER.n_ids
FREE = constrain(TOKENIZER, "[abé ]*", "lift", eos_ids=[END], added_tokens=False)


def indifferent(ids):
    """A model that takes every id to be as likely as any other."""
    return np.zeros(N)


def only(ids):
    """A model that gives these ids all the mass, in equal parts."""
    logits = np.full(N, -np.inf)
    logits[ids] = 0
    return lambda so_far: logits


def random_model(seed):
    """Logits that depend on the last two ids."""

    def model(ids):
        key = [seed, *(i + 1 for i in ids[-2:])]
        return np.random.default_rng(key).normal(scale=2, size=N)

    return model
