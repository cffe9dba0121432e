"""What a normalizer removes from a language.

    { s in L : normalize(s) != s }

Such texts have no canonical ids, as `encode` writes the normalized text, which is another one. So a
constraint over a tokenizer with a normalizer (NFC, lower case, ...) is the language intersected
with the texts that the normalizer does not change.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from bpe_automata._budget import check, with_room
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata.errors import BudgetExceededError
from bpe_automata.tokenizer.alphabet import build_alphabet
from bpe_automata.tokenizer.filter_table import FilterProduct, product
from bpe_automata.tokenizer.normalizer_filters import filters_of
from bpe_automata.tokenizer.tokenizer import Tokenizer

_MOST_NODES = 1_000_000
_DEAD = -1


@dataclass(frozen=True)
class Removed:
    """text: a text of the language that the normalizer changes, where this is certain after the
    fewest bytes; normal: what the normalizer makes of it."""

    text: str
    normal: str

    def __str__(self) -> str:
        became = f"{self.text!a} becomes {self.normal!a}"
        return f"texts of the language, which the normalizer changes: {became}"


def removed_by_normalizer(tokenizer: Tokenizer, language: ByteAutomaton) -> Removed | None:
    """None if the normalizer changes no text of the language. Raises BudgetExceededError if the
    search for one is too long."""
    if not tokenizer.description.normalizers or language.is_empty:
        return None
    dfa = language.to_dfa() if isinstance(language, LinkedDFA) else language
    found = _shortest(*tokenizer.derived("fixed texts", _fixed), dfa)
    if found is None:
        return None
    normal = text = found.decode("utf-8")
    for step in tokenizer.description.normalizers:
        normal = step.apply(normal)
    return Removed(text, normal)


def _fixed(tokenizer: Tokenizer) -> tuple[np.ndarray, FilterProduct]:
    """The texts that no normalizer changes, over bytes: (int32 [rows, 256], see
    `tokenizer.alphabet`; the product of the filters, over the atoms)."""
    description, engine = tokenizer.description, tokenizer.backend.engine
    filters = with_room(lambda: filters_of(description.normalizers, engine))
    letters = build_alphabet(
        [ranges for filter_ in filters for ranges in filter_.classes], marked=()
    )
    return letters.utf8, product(filters, letters.inside)


def _shortest(utf8: np.ndarray, allowed: FilterProduct, dfa: ByteDFA) -> bytes | None:
    """A string of the language that is not fixed, by breadth-first search: a shortest beginning
    after which it cannot be fixed, then the shortest rest."""
    far, start = dfa.far, (dfa.start, 0, 0)  # states: DFA, row of UTF-8, filter
    came, waiting = {start}, deque([(b"", start)])
    while waiting:
        check()
        text, (q, row, f) = waiting.popleft()
        if row == 0 and (f == _DEAD or (dfa.accepting[q] and not allowed.ends[f])):
            return text + ((dfa.shortest(q) or b"") if f == _DEAD else b"")
        for byte in np.flatnonzero(far[dfa.trans[q]][dfa.byte_class] >= 0).tolist():
            entry = int(utf8[row, byte])
            if entry == -1:
                continue
            after = dfa.step(q, byte), entry, f
            if entry < 0:  # the character is complete
                after = after[0], 0, int(allowed.next[f, -2 - entry])
            if after not in came:
                came.add(after)
                waiting.append((text + bytes([byte]), after))
        if len(came) > _MOST_NODES:
            advice = "what the normalizer removes from this language is not known"
            raise BudgetExceededError("states", _MOST_NODES, advice)
    return None
