"""Other ids for the same bytes."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from bpe_automata.tokenizer import Tokenizer


@st.composite
def resegmentations(draw: st.DrawFn, tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids that spell `encode(text)` otherwise, on a stretch of it or throughout: ordinary tokens,
    added ones and fragments of characters alike. Sometimes they are the same ids."""
    ids = tokenizer.encode(text)
    first = draw(st.integers(0, len(ids)))
    last = min(len(ids), first + draw(st.integers(1, max(4, len(ids)))))
    spelled = b"".join(map(tokenizer.token_bytes, ids[first:last]))
    return [*ids[:first], *draw(spellings_of(tokenizer, spelled)), *ids[last:]]


@st.composite
def spellings_of(draw: st.DrawFn, tokenizer: Tokenizer, data: bytes) -> list[int]:
    """Random ids that spell `data` from left to right. Where no token goes on, what is left is
    given up."""
    ids_of, longest = tokenizer.derived("ids of bytes", _ids_of_bytes)
    found: list[int] = []
    at = 0
    while at < len(data):
        stretches = (data[at:end] for end in range(at + 1, min(len(data), at + longest) + 1))
        options = [i for stretch in stretches for i in ids_of.get(stretch, ())]
        if not options:
            break
        found.append(draw(st.sampled_from(options[::-1])))  # the longest first: it is simplest
        at += len(tokenizer.token_bytes(found[-1]))
    return found


def _ids_of_bytes(tokenizer: Tokenizer) -> tuple[dict[bytes, Sequence[int]], int]:
    """(bytes -> ids that spell them, the greatest length)."""
    ids_of: dict[bytes, list[int]] = {}
    for token, spelled in enumerate(tokenizer.spellings):
        if spelled:
            ids_of.setdefault(spelled, []).append(token)
    return dict(ids_of), max(map(len, ids_of), default=1)
