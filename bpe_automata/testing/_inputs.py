"""Strategies for the inputs of tests: texts, ids, regexes and byte automata."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.tokenizer.tokenizer import Tokenizer

ADVERSARIAL: tuple[str, ...] = (
    *"abcdestlmrvABCDESTLMRV0123456789 \t\n\r'\"_-.,!?{}<>|",
    *("'s", "'ll", "'RE", "'", " the", "  ", "   ", "\r\n", "\n\n", " \n"),
    *("\u00a0", "\u2028", "\u3000", "\u200d", "é", "e\u0301", "\u0301", "ß", "ſ", "İ", "K", "ǆ"),
    *("日", "本", "語", "한", "ก", "ا", "½", "²", "٣", "Ⅷ", "_", "\x00", "\x04", "\x7f"),
    *("🎉", "👩\u200d👧", "🇫🇷", "\U00010348", "\ufeff", "\ufffd", "<|", "|>", "<|im_", "im_end"),
)
"""Texts on which tokenizers are known to be misread: both cases, digits, all kinds of white space,
contractions, combining marks, scripts, emoji, and fragments that look like special tokens."""


def texts(tokenizer: Tokenizer | None = None, max_pieces: int = 12) -> st.SearchStrategy[str]:
    """Random concatenations of strings from `ADVERSARIAL`; with a tokenizer, mostly of its tokens,
    its added tokens and their fragments, so that small vocabularies can spell the text."""
    pieces = st.sampled_from(ADVERSARIAL)
    if tokenizer is not None:
        own = st.sampled_from(tokenizer.derived("pieces of text", own_pieces))
        pieces = st.one_of(own, own, own, pieces)
    return st.lists(pieces, max_size=max_pieces).map("".join)


def own_pieces(tokenizer: Tokenizer) -> tuple[str, ...]:
    """The texts of single tokens, and all prefixes and suffixes of added tokens."""
    contents = [token.content for token in tokenizer.description.cut_out]
    whole = [spelled.decode("utf-8", "ignore") for spelled in tokenizer.spellings]
    parts = [content[:k] for content in contents for k in range(1, len(content) + 1)]
    parts += [content[k:] for content in contents for k in range(1, len(content))]
    return tuple(dict.fromkeys(piece for piece in (*parts, *whole) if piece)) or ADVERSARIAL


@st.composite
def resegmentations(draw: st.DrawFn, tokenizer: Tokenizer, text: str) -> list[int]:
    """`encode(text)` with a stretch of ids, or all of them, replaced by random other ids of the
    same bytes: ordinary tokens, added ones, fragments of characters. They may be the same ids."""
    ids = tokenizer.encode(text)
    first = draw(st.integers(0, len(ids)))
    last = min(len(ids), first + draw(st.integers(1, max(4, len(ids)))))
    spelled = b"".join(map(tokenizer.token_bytes, ids[first:last]))
    return [*ids[:first], *draw(spellings_of(tokenizer, spelled)), *ids[last:]]


@st.composite
def spellings_of(draw: st.DrawFn, tokenizer: Tokenizer, data: bytes) -> list[int]:
    """Random ids that spell `data` from left to right, or only a prefix where no token goes on."""
    ids_of, longest = tokenizer.derived("ids of bytes", _ids_of_bytes)
    found: list[int] = []
    at = 0
    while at < len(data):
        stretches = (data[at:end] for end in range(at + 1, min(len(data), at + longest) + 1))
        options = [i for stretch in stretches for i in ids_of.get(stretch, ())]
        if not options:
            break
        found.append(draw(st.sampled_from(options[::-1])))  # the longest is the simplest example
        at += len(tokenizer.token_bytes(found[-1]))
    return found


def _ids_of_bytes(tokenizer: Tokenizer) -> tuple[dict[bytes, Sequence[int]], int]:
    """(bytes -> ids that spell them, the length of the longest)."""
    ids_of: dict[bytes, list[int]] = {}
    for token, spelled in enumerate(tokenizer.spellings):
        if spelled:
            ids_of.setdefault(spelled, []).append(token)
    return dict(ids_of), max(map(len, ids_of), default=1)


_REPEATS = ("", "", "", "?", "{2}", "{0,2}", "{1,3}")


def finite_regexes(pieces: Sequence[str]) -> st.SearchStrategy[str]:
    """A regex for finitely many strings, all of them concatenations of `pieces`."""
    return _regexes(pieces, _REPEATS)


def cyclic_regexes(pieces: Sequence[str]) -> st.SearchStrategy[str]:
    """A regex for concatenations of `pieces`, with loops."""
    return _regexes(pieces, ("", "", "?", "*", "*", "+", "{2,}"))


def _regexes(pieces: Sequence[str], repeats: Sequence[str]) -> st.SearchStrategy[str]:
    literal = st.sampled_from([re.escape(piece) for piece in pieces])
    choice = st.lists(literal, min_size=1, max_size=4).map("|".join)
    factor = st.builds("({}){}".format, choice, st.sampled_from(repeats))
    branch = st.lists(factor, min_size=1, max_size=3).map("".join)
    group = st.builds("({}|{}){}".format, branch, branch, st.sampled_from(repeats))
    return st.lists(st.one_of(branch, branch, group), min_size=1, max_size=2).map("".join)


@st.composite
def byte_dfas(
    draw: st.DrawFn, characters: Sequence[str] = ("a", "b", "c"), most_states: int = 4
) -> ByteDFA:
    """A DFA over a few ASCII characters with up to `most_states` states that are not dead. It may
    have loops on the start and on accepting states, unreachable and useless states, and an empty
    language."""
    n = draw(st.integers(1, most_states))
    target = st.integers(0, n)  # 0 is dead
    row = st.tuples(*[target] * len(characters))
    rows = draw(st.tuples(*[row] * n))
    ends = draw(st.tuples(*[st.booleans()] * n))
    trans = np.zeros((n + 1, len(characters) + 1), dtype=np.int32)
    trans[1:, 1:] = rows
    byte_class = np.zeros(256, dtype=np.uint8)
    byte_class[[ord(c) for c in characters]] = np.arange(1, len(characters) + 1)
    return ByteDFA(trans, byte_class, np.array([False, *ends]), 1)
