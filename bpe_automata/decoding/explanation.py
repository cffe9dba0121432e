"""Why a sequence of ids is, or is not, what the tokenizer itself makes of its text.

    explain(tokenizer, ids).canonical  <=>  encode(decode(ids)) == ids

This equation decides. The automaton then says at which token the sequence stops being the beginning
of a canonical one, and `encode` says which tokens would stand there instead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from bpe_automata.canonical.canonical import CanonicalAutomaton, canonical_automaton
from bpe_automata.decoding.visible import visible, visible_tokens
from bpe_automata.tokenizer.alphabet import is_utf8
from bpe_automata.tokenizer.derivation import bpe
from bpe_automata.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Explanation:
    """canonical: is the sequence canonical? ids, tokens: the sequence, and the bytes of each id;
    expected_ids: what `encode` makes of its text; position: index of the token with which the
    sequence stops being the beginning of a canonical one (if only the end of the text is at fault,
    that of the wrong token there), None if canonical; reason: one sentence without a full stop."""

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
    position = _dead_end(automaton, sequence)
    begun = sequence if position is None else sequence[: position + 1]
    fault = (
        _unreadable(tokenizer, begun)
        or _difference(tokenizer, begun)
        or _difference(tokenizer, sequence)
        or _fragment(automaton, begun)
    )
    reason = fault.reason
    if position is None:
        position, reason = fault.position, f"the text cannot end here: {reason}"
    elif fault.position < position:
        reason = f"{reason} (token {fault.position}, settled by {visible(tokens[position])})"
    return Explanation(False, sequence, tokens, expected, position, reason)


def _dead_end(automaton: CanonicalAutomaton, ids: tuple[int, ...]) -> int | None:
    """Index of the first token that no canonical sequence has after the tokens before it; None if
    the sequence begins a canonical one, so that only the end of the text is at fault."""
    state = automaton.start
    for position, token in enumerate(ids):
        after = automaton.step(state, token)
        if after is None:
            return position
        state = after
    return None


class _Fault(NamedTuple):
    """position: index of the last token that is needed to see it; reason: half a sentence."""

    position: int
    reason: str


def _unreadable(tokenizer: Tokenizer, ids: tuple[int, ...]) -> _Fault | None:
    """The fault of bytes that cannot occur in UTF-8 where they stand; None if there are none."""
    spelled = [tokenizer.token_bytes(token) for token in ids]
    try:
        b"".join(spelled).decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return None
        wrong = error.start if error.reason == "invalid start byte" else error.end
        position = bisect_right([*accumulate(map(len, spelled))], wrong)
        after = f" after {visible(error.object[error.start : wrong])}" * (wrong > error.start)
        return _Fault(position, f"{visible(spelled[position])}{after} is not valid UTF-8")
    return None


def _difference(tokenizer: Tokenizer, ids: tuple[int, ...]) -> _Fault | None:
    """The first tokens that `encode` would write otherwise, up to where both tokenizations have a
    boundary at the same byte; None if there are none, or the ids spell no text."""
    if not is_utf8(b"".join(map(tokenizer.token_bytes, ids))):
        return None
    expected = tuple(tokenizer.encode(tokenizer.decode(ids)))
    pairs = enumerate(zip(ids, expected, strict=False))
    first = next((i for i, (a, b) in pairs if a != b), min(len(ids), len(expected)))
    ours, theirs = _ends(tokenizer, ids, first), _ends(tokenizer, expected, first)
    common = min(ours.keys() & theirs.keys(), default=None)
    last, past = (len(ids), len(expected)) if common is None else (ours[common], theirs[common])
    written, own = ids[first:last], expected[first:past]
    if written == own:
        return None
    found, instead = visible_tokens(tokenizer, written), visible_tokens(tokenizer, own)
    if found == instead:  # different ids that spell the same
        found, instead = f"{found} (id {written[0]})", f"{instead} (id {own[0]})"
    return _Fault(max(0, last - 1), f"{found} would be {instead}")


def _ends(tokenizer: Tokenizer, ids: Sequence[int], first: int) -> dict[int, int]:
    """By the byte offset of each boundary after token `first`, the number of tokens before it."""
    offsets = accumulate(len(tokenizer.token_bytes(token)) for token in ids)
    return {offset: k for k, offset in enumerate(offsets, start=1) if k > first}


def _fragment(automaton: CanonicalAutomaton, ids: tuple[int, ...]) -> _Fault:
    """The fault of ids that end inside a character."""
    derivation, last, tokenizer = automaton.derivation, len(ids) - 1, automaton.tokenizer
    symbols = [symbol for token in ids[-2:] for symbol in derivation.base_symbols(token)]
    made = tuple(bpe(derivation, symbols)) if symbols else ids[-2:]
    if made != ids[-2:]:
        ours, theirs = (visible_tokens(tokenizer, some) for some in (ids[-2:], made))
        return _Fault(last, f"{ours} would be {theirs}")
    return _Fault(last, f"it is inside a character, after {visible_tokens(tokenizer, ids[-1:])}")
