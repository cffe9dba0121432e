"""What a normalizer removes from a language.

    { s in L : normalize(s) != s }

Such texts have no canonical ids: `encode` writes the normalized text, and that is another one. So a
constraint over a tokenizer with a normalizer (NFC, lower case, ...) is the language intersected
with the texts that the normalizer leaves as they are.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata._budget import check, with_room
from bpe_automata._tokenizer.alphabet import build_alphabet
from bpe_automata._tokenizer.filter_table import FilterProduct, product
from bpe_automata._tokenizer.normalizer_filters import filters_of
from bpe_automata._tokenizer.tokenizer import Tokenizer
from bpe_automata.errors import BudgetExceededError

_MOST_COUNTED = 20_000
_MOST_NODES = 1_000_000
_DEAD = -1


@dataclass(frozen=True)
class Removed:
    """text: a shortest text of the language that the normalizer changes, up to the change; normal:
    what it makes of it; count: how many texts it removes, None for too many to list."""

    text: str
    normal: str
    count: int | None

    def __str__(self) -> str:
        many = "some texts" if self.count is None else f"{self.count} text(s)"
        became = f"{self.text!a} becomes {self.normal!a}"
        return f"{many} of the language, which the normalizer changes: {became}"


@dataclass(frozen=True)
class _Fixed:
    """The texts that the normalizers leave alone, over bytes. utf8: int32 [rows, 256], see
    `_tokenizer.alphabet`; allowed: over its atoms."""

    utf8: np.ndarray
    allowed: FilterProduct


def removed_by_normalizer(tokenizer: Tokenizer, language: ByteAutomaton) -> Removed | None:
    """None if the normalizer leaves all texts of the language as they are. Raises
    BudgetExceededError where that could not be settled."""
    if not tokenizer.description.normalizers or language.is_empty:
        return None
    dfa = language.to_dfa() if isinstance(language, LinkedDFA) else language
    found = _shortest(tokenizer.derived("fixed texts", _fixed), dfa)
    if found is None:
        return None
    text = found.decode("utf-8")
    return Removed(text, _normalized(tokenizer, text), _count(tokenizer, dfa))


def _normalized(tokenizer: Tokenizer, text: str) -> str:
    for step in tokenizer.description.normalizers:
        text = step.apply(text)
    return text


def _count(tokenizer: Tokenizer, dfa: ByteDFA) -> int | None:
    try:
        texts = [string.decode("utf-8") for string in dfa.strings(_MOST_COUNTED)]
    except BudgetExceededError:
        return None
    return sum(_normalized(tokenizer, text) != text for text in texts)


def _fixed(tokenizer: Tokenizer) -> _Fixed:
    description, engine = tokenizer.description, tokenizer.backend.engine
    filters = with_room(lambda: filters_of(description.normalizers, engine))
    letters = build_alphabet(
        [ranges for filter_ in filters for ranges in filter_.classes], marked=()
    )
    return _Fixed(letters.utf8, product(filters, letters.inside))


def _shortest(fixed: _Fixed, dfa: ByteDFA) -> bytes | None:
    """A shortest string of the language that is not fixed, by breadth-first search over (DFA state,
    UTF-8 row, state of the filter)."""
    rest = dfa.distance()
    start = (dfa.start, 0, 0)
    came: dict[tuple[int, int, int], tuple[tuple[int, int, int], int]] = {}
    queue, seen = deque([start]), {start}
    while queue:
        check()
        here = queue.popleft()
        q, row, f = here
        if row == 0 and (f == _DEAD or (dfa.accepting[q] and not fixed.allowed.ends[f])):
            return _spelled(came, here) + _home(dfa, q, f)
        for byte in np.flatnonzero(rest[dfa.trans[q]][dfa.byte_class] >= 0).tolist():
            after = _step(fixed, dfa, here, byte)
            if after is not None and after not in seen:
                seen.add(after)
                came[after] = here, byte
                queue.append(after)
        if len(seen) > _MOST_NODES:
            raise BudgetExceededError(
                "states", _MOST_NODES, "what the normalizer removes from this language is not known"
            )
    return None


def _step(
    fixed: _Fixed, dfa: ByteDFA, here: tuple[int, int, int], byte: int
) -> tuple[int, int, int] | None:
    q, row, f = here
    entry = int(fixed.utf8[row, byte])
    if entry == -1:
        return None
    after = dfa.step(q, byte)
    if entry >= 0:
        return after, entry, f
    return after, 0, int(fixed.allowed.next[f, -2 - entry])


def _spelled(
    came: dict[tuple[int, int, int], tuple[tuple[int, int, int], int]], node: tuple[int, int, int]
) -> bytes:
    found = bytearray()
    while node in came:
        node, byte = came[node]
        found.append(byte)
    return bytes(reversed(found))


def _home(dfa: ByteDFA, state: int, f: int) -> bytes:
    """The shortest rest of the text, once it has been changed."""
    if f != _DEAD:
        return b""
    return ByteDFA(dfa.trans, dfa.byte_class, dfa.accepting, state).shortest() or b""
