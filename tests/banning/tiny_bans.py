"""A small tokenizer with parts of characters among its tokens, and what is banned, by hand."""

from __future__ import annotations

import itertools

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


def parts(ban, data: bytes, ended: bool) -> list[tuple[int, int]]:
    """The (start, end) in `data`, a beginning of a text, of what is banned and complete; with
    `ended` the text ends there. By trying every part, in bytes; not for bans that ignore case."""
    ends = range(1, len(data) + 1)
    tried = ((start, end) for end in ends for start in range(end))
    return [(start, end) for start, end in tried if _is_banned(ban, data, start, end, ended)]


def _is_banned(ban, data, start, end, ended):
    if data[start:end] not in [word.encode() for word in ban.words]:
        return False
    if not ban.whole_word:
        return True
    left, rest = data[:start].decode(errors="replace"), data[end:]
    if left and (left[-1].isalnum() or left[-1] == "_"):
        return False
    if not rest:
        return ended
    size = 1 if rest[0] < 0x80 else 2 if rest[0] < 0xE0 else 3
    if len(rest) < size:
        return False
    follows = rest[:size].decode()
    return not (follows.isalnum() or follows == "_")


def places(ban, before: bytes, spelled: list[bytes], ended: bool) -> set[int]:
    """In which ids something banned begins that is complete and not all of it in `before`."""
    data, found = b"".join([before, *spelled]), set()
    for start, end in parts(ban, data, ended):
        if end > len(before):
            at, low = 0, len(before) + len(spelled[0])
            while low <= start:
                at += 1
                low += len(spelled[at])
            found.add(at)
    return found


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
