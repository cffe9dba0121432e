"""What never merges with what: where two ids must meet, whatever the pretokenizer does.

    joint(q)  if  no merge (u, v) has a last byte of u that is read into q and a first byte of v
                  that is read out of q

A token that is read across q is made by merges, and one of them joins what it spells before q with
what it spells after: its left part ends in a byte read into q, its right part begins with one read
out of q. So at a joint no token is read across q, and no pair of tokens that meet there is broken.
Tokens that no merge makes (`ignore_merges`) count as if any two neighbouring bytes of them merged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata._budget import check
from bpe_automata._constructions.canonical import CanonicalAutomaton
from bpe_automata._kernels.product import Dfa

_CONTINUATION = slice(0x80, 0xC0)
_AT_ONCE = 8192
"""States that are looked at between two looks at the clock."""


def meetings(canonical: CanonicalAutomaton) -> np.ndarray:
    """bool [256, 256]: does a merge join a part that ends in the first byte with a part that begins
    with the second one?"""
    return canonical.tokenizer.derived("meetings", lambda _: _meetings(canonical))


def _meetings(canonical: CanonicalAutomaton) -> np.ndarray:
    spelled = canonical.tokenizer.spellings
    met = np.zeros((256, 256), dtype=bool)
    left, right, _ = canonical.derivation.proper.T
    last = np.array([s[-1] if s else 0 for s in spelled])
    first = np.array([s[0] if s else 0 for s in spelled])
    met[last[left], first[right]] = True
    for token in canonical.whole.tokens:
        data = np.frombuffer(spelled[token], dtype=np.uint8)
        met[data[:-1], data[1:]] = True
    return met


@dataclass(frozen=True)
class Joints:
    """Of each state of a DFA, bool [n_states]. joint: see the module's docstring; inside: it may be
    inside a character, so it is never a cut."""

    joint: np.ndarray
    inside: np.ndarray


def joints(canonical: CanonicalAutomaton, dfa: Dfa) -> Joints:
    """The joints of a trimmed DFA."""
    n, k = dfa.steps.trans.shape
    into = np.zeros((n, k), dtype=bool)
    met = np.zeros((k, k), dtype=np.float32)
    x, y = np.nonzero(meetings(canonical))
    met[dfa.steps.byte_class[x], dfa.steps.byte_class[y]] = 1
    continuation = np.unique(dfa.steps.byte_class[_CONTINUATION])
    merged, inside = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    slices = [slice(begin, begin + _AT_ONCE) for begin in range(0, n, _AT_ONCE)]
    for some in slices:
        check()
        # That of state 0, the dead one, is not asked.
        into[dfa.steps.trans[some], np.arange(k)] = True
    for some in slices:
        check()
        goes = dfa.steps.trans[some] > 0
        merged[some] = ((into[some].astype(np.float32) @ met > 0) & goes).any(axis=1)
        inside[some] = goes[:, continuation].any(axis=1)
    return Joints(~merged, inside)


# ---------------------------------------------------------------- the table


@dataclass(frozen=True)
class Neighbours:
    """left, right: the ASCII characters that are the last before, or the first after it, in some
    merge that it stands in, as a string; alone: is it in no merge at all, with any byte?"""

    character: str
    left: str
    right: str
    alone: bool


def neighbours(canonical: CanonicalAutomaton, character: str) -> Neighbours:
    """What an ASCII character merges with, on either side."""
    met, byte = meetings(canonical), ord(character)
    before, after = np.flatnonzero(met[:128, byte]), np.flatnonzero(met[byte, :128])
    alone = not met[byte].any() and not met[:, byte].any()
    return Neighbours(
        character, bytes(before.tolist()).decode(), bytes(after.tolist()).decode(), alone
    )
