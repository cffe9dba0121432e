"""What the hosts of these tests serve: a tokenizer of more than 32 ids, with controls and with
texts that merge; and the definition of each mask."""

from __future__ import annotations

from functools import cache

import numpy as np

from bpe_automata import Tokenizer, constrain
from bpe_automata.testing import added_token, byte_level, byte_spelling, small_tokenizer

BYTES = [byte_spelling(bytes([byte])) for byte in b"abcdefghijklmnopqrstuvwxyz 0123456789[]()"]
MERGES = [("a", "b"), ("ab", "c"), ("n", "o"), ("y", "e"), ("ye", "s"), ("d", "e")]
WHOLE = [one + other for one, other in MERGES]
REGEXES = ["(abc){0,3}", "yes|no|node", "[a-c]{2,5}", "abab"]
V = 52
"""How many logits the models of the tests give: more than the tokenizer has ids."""


@cache
def tokenizer() -> Tokenizer:
    added = [added_token(name, special=True) for name in ("<start>", "<end>", "<pad>")]
    return small_tokenizer([*BYTES, *WHOLE], MERGES, byte_level(), added)


START, END, PAD = range(len(BYTES) + len(WHOLE), len(BYTES) + len(WHOLE) + 3)


@cache
def constraint(regex: str, method: str = "canonical"):
    return constrain(tokenizer(), regex, method=method, eos_ids=(END,))


def bools(ids) -> np.ndarray:
    """bool [V] of ids; without any, only the end."""
    return np.isin(np.arange(V), list(ids) or [END])


def unpacked(words: np.ndarray) -> np.ndarray:
    """bool [V] of a packed mask, int32 [words]; without any id, only the end."""
    return bools(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")))


def mask_after(regex: str, prompt, ids, method: str = "canonical") -> np.ndarray:
    """bool [V]: the definition. A fresh matcher reads the ids; only the end is left when they have
    ended."""
    matcher = constraint(regex, method).matcher(prompt)
    for token in ids:
        matcher.advance(token)
    return bools([] if matcher.is_finished else matcher.allowed_ids())


def answered(step) -> str:
    """What a request is led to write, spaces left out; nothing else is allowed at any step. step:
    bool [V] after the ids so far."""
    ids: list[int] = []
    while True:
        (token,) = np.flatnonzero(step(ids)).tolist()
        if token >= START:
            assert token == END
            return tokenizer().decode(ids).replace(" ", "")
        ids.append(token)


def thinking(prompt):
    """(the mask, bool [V], before each id; the id) of a text whose free part ends with <pad>."""
    matcher = constrain(tokenizer(), "yes", eos_ids=(END,), after="<pad>").matcher(prompt)
    for token in [*tokenizer().encode("de yes"), PAD, *tokenizer().encode("yes"), END]:
        yield bools(matcher.allowed_ids()), token
        matcher.advance(token)
