"""Why a sequence of ids is, or is not, what the tokenizer itself makes of its text.

    explain(tokenizer, ids).canonical  <=>  encode(decode(ids)) == ids

That equation decides; the automaton says where the sequence leaves the canonical ones, and
`faults` which of their rules it breaks there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bpe_automata.constructions.canonical import CanonicalAutomaton, canonical_automaton
from bpe_automata.decoding.faults import Fault, find_fault
from bpe_automata.decoding.visible import visible, visible_tokens
from bpe_automata.tokenizer import Tokenizer
from bpe_automata.tokenizer.alphabet import is_utf8


@dataclass(frozen=True)
class Explanation:
    """canonical: is it; ids, tokens: the sequence, and the bytes of each id; expected_ids: what
    `encode` makes of its text; position: index of the first token with which no canonical sequence
    goes on, whatever follows (where only the end of the text shows it: of the token that is wrong
    there), None if canonical; reason: one sentence without a full stop."""

    canonical: bool
    ids: tuple[int, ...]
    tokens: tuple[bytes, ...]
    expected_ids: tuple[int, ...]
    position: int | None
    reason: str

    @property
    def text(self) -> str:
        """What the ids spell; broken UTF-8 becomes U+FFFD."""
        return b"".join(self.tokens).decode("utf-8", "replace")

    def __str__(self) -> str:
        if self.canonical:
            return self.reason
        return f"not canonical at token {self.position}: {self.reason}"


def explain(tokenizer: Tokenizer, ids: Iterable[int]) -> Explanation:
    """Say whether `ids` are canonical, and if not, at which token and why.

    Raises TokenOutOfRangeError, and what `canonical_automaton` raises.
    """
    sequence = tuple(ids)
    tokens = tuple(tokenizer.token_bytes(token) for token in sequence)
    expected = tuple(tokenizer.encode(tokenizer.decode(sequence)))
    if sequence == expected and is_utf8(b"".join(tokens)):
        reason = f"canonical: encode makes these {len(sequence)} token(s) of their text"
        return Explanation(True, sequence, tokens, expected, None, reason)
    automaton = canonical_automaton(tokenizer)
    fault = find_fault(automaton, sequence) or _difference(tokenizer, sequence, expected)
    position, reason = _dead_end(automaton, sequence), fault.reason
    if position is None:
        position, reason = fault.position, f"the text cannot end here: {reason}"
    elif fault.position < position:
        reason = f"{reason} (token {fault.position}, settled by {visible(tokens[position])})"
    return Explanation(False, sequence, tokens, expected, position, reason)


def _dead_end(automaton: CanonicalAutomaton, ids: tuple[int, ...]) -> int | None:
    """The first token that no canonical sequence has after those before it; None if only the end
    of the text is at fault."""
    state = automaton.start
    for position, token in enumerate(ids):
        after = automaton.step(state, token)
        if after is None:
            return position
        state = after
    return None


def _difference(tokenizer: Tokenizer, ids: tuple[int, ...], expected: tuple[int, ...]) -> Fault:
    """For a sequence that breaks no rule and still is not what `encode` makes."""
    pairs = enumerate(zip(ids, expected, strict=False))
    first = next((i for i, (a, b) in pairs if a != b), min(len(expected), len(ids) - 1))
    ours, theirs = (visible_tokens(tokenizer, part[first : first + 1]) for part in (ids, expected))
    return Fault(first, f"encode makes {theirs} where {ours} stands")
