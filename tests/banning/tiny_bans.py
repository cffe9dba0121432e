"""A small tokenizer with parts of characters among its tokens, and what is banned, by hand."""

from __future__ import annotations

import itertools
import re

import numpy as np

from bpe_automata import constrain
from bpe_automata.testing import byte_level, byte_spelling, small_tokenizer

SPELLINGS = [b"\xc3", b"\xa9", b"a", b"b", b"ab", b" ", b"b ", b"ba", "é".encode(), "aé".encode()]
END, SPECIAL = 10, 11
TOKENIZER = small_tokenizer([*map(byte_spelling, SPELLINGS)], (), byte_level(), ["<end>", "<x>"])
N = TOKENIZER.n_ids
FREE = constrain(TOKENIZER, "[abé ]*", "lift", eos_ids=[END], added_tokens=False)


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


def parts(ban, text: str, ended: bool = True):
    """The (start, end) of what is banned and complete in a text that ends there, or may go on; by
    trying every part."""
    folded = {word.casefold() for word in ban.words} if ban.ignore_case else ()
    flags = re.IGNORECASE * ban.ignore_case
    banned = [re.compile(one, flags) for one in (*map(re.escape, ban.words), *ban.regexes)]
    for start, end in itertools.combinations(range(len(text) + 1), 2):
        part, around = text[start:end], text[max(0, start - 1) : start] + text[end : end + 1]
        whole = (end < len(text) or ended) and not re.search(r"\w", around)
        if (whole or not ban.whole_word) and (
            part.casefold() in folded or any(one.fullmatch(part) for one in banned)
        ):
            yield start, end


def byte_parts(ban, data: bytes, ended: bool):
    """The same in bytes that begin a text, without a character that is not whole yet."""
    text = data.decode(errors="ignore")
    for part in parts(ban, text, ended):
        yield tuple(len(text[:at].encode()) for at in part)


def places(ban, before: bytes, spelled: list[bytes], ended: bool) -> set[int]:
    """In which ids something banned begins that is complete and not all of it in `before`."""
    ends = np.cumsum([len(before), *map(len, spelled)])
    found = byte_parts(ban, b"".join([before, *spelled]), ended)
    starts = [start for start, end in found if end > len(before)]
    return set(np.maximum(0, np.searchsorted(ends, starts, side="right") - 1).tolist())


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
