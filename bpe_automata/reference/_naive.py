"""The naive engine, which tries every token with a partial regex match.

    mask(text) = { t : text + bytes(t) matches, or begins something that does }

That is how guided decoding was first done, and is still explained: no automaton, one call of the
package `regex` for each token of the vocabulary at each step. Half a character at the end of the
bytes counts if some character that begins with it does.

`regex.fullmatch(pattern, text, partial=True)` is trusted, although it is wrong or differs in these
cases (each is tested in tests/constructions/test_lift.py):

    lazy repetition     after a lazy repetition of one character it says yes to what cannot go on:
                        `a+?b` and `ac`. Refused here; for whole texts laziness means nothing
    parts without text  `a|b[^\\s\\S]`: it says that `b` can go on
    the vocabulary      it says that some text goes on, not that the ids can spell it. So these are
                        the lift's masks only where every character has an id
    the language        it reads the pattern as `regex` does, whose `\\w`, `\\s` and newest
                        characters are not those of Python's `re`
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import regex

from bpe_automata._arguments import end_ids, integer
from bpe_automata._kernels.bits import members, packed
from bpe_automata._kernels.distance import NEVER
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.syntax import Alternation, Repetition, Tree, parse
from bpe_automata.constructions.engine import Engine
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.errors import (
    EmptyLanguageError,
    TokenOutOfRangeError,
    UnsupportedRegexError,
    UnsupportedTokenizerError,
)
from bpe_automata.tokenizer.description import Prefix
from bpe_automata.tokenizer.tokenizer import Tokenizer


class Naive:
    """A `TextEngine` whose state is the text so far, as bytes. Slow by design."""

    def __init__(self, tokenizer: Tokenizer, pattern: str, eos_ids: tuple[int, ...] = ()) -> None:
        """Raises RegexError (lazy repetition too), UnsupportedTokenizerError where `encode` puts a
        space before the text, EmptyLanguageError, and for `eos_ids` TokenOutOfRangeError and
        ArgumentError. `dfa` is there for other code; no mask uses it."""
        if tokenizer.description.prefix is not Prefix.NONE:
            why = "the naive engine reads the text as ids spell it, with the space put before it"
            raise UnsupportedTokenizerError("prefix", tokenizer.description.prefix.value, why)
        _refuse_lazy(pattern)
        self.tokenizer, self.pattern = tokenizer, pattern
        self.eos_ids = end_ids(eos_ids, tokenizer.n_ids)
        self.dfa = compile_regex(pattern)
        self._matches = regex.compile(pattern).fullmatch
        self.can_go_on = lru_cache(maxsize=100_000)(self._can_go_on)
        if self.dfa.is_empty:
            raise EmptyLanguageError(f"no text matches {pattern!r}")

    @property
    def n_ids(self) -> int:
        return self.tokenizer.n_ids

    def initial(self, prefix: Sequence[int] = ()) -> bytes:
        for token in prefix:
            token = integer(token, "a prompt id")
            if not 0 <= token < self.n_ids:
                raise TokenOutOfRangeError(f"prompt id {token} is not in 0 .. {self.n_ids - 1}")
        return b""

    def mask(self, state: bytes) -> np.ndarray:
        return packed((i for i in range(self.n_ids) if self.allows(state, i)), self.n_ids)

    def allows(self, state: bytes, token: int) -> bool:
        """Is this one id in the mask?"""
        if token in self.eos_ids:
            return self.accepting(state)
        spelled = self.tokenizer.spellings[token]
        return bool(spelled) and self.can_go_on(state + spelled)

    def step(self, state: bytes, token: int) -> bytes:
        return state + self.tokenizer.spellings[token]

    def steps(self, state: bytes, tokens: np.ndarray) -> list[bytes]:
        return [self.step(state, token) for token in tokens.tolist()]

    def accepting(self, state: bytes) -> bool:
        text, rest = _whole_characters(state)
        return rest == b"" and self._matches(text) is not None

    def dfa_state(self, state: bytes) -> int:
        return int(self.dfa.walk(state, self.dfa.start))

    def _can_go_on(self, state: bytes) -> bool:
        """Does a text that matches begin with these bytes?"""
        text, rest = _whole_characters(state)
        if not rest:
            return self._matches(text, partial=True) is not None
        endings = (text + character for character in _characters(rest))
        return any(self._matches(ending, partial=True) is not None for ending in endings)


def naive_constraint(
    tokenizer: Tokenizer, pattern: str, eos_ids: tuple[int, ...] | None = None
) -> Constraint:
    """A `Constraint` that runs on the naive engine, for decoding loops. `method` is "lift", since
    any tokenization is admitted. Raises what `Naive` raises."""
    engine = Naive(tokenizer, pattern, tokenizer.eos_ids if eos_ids is None else eos_ids)
    return Constraint(tokenizer, engine.dfa, "lift", engine)


def _whole_characters(data: bytes) -> tuple[str, bytes]:
    """The characters of some bytes, and the rest, from the first incomplete or invalid one on."""
    try:
        return data.decode("utf-8"), b""
    except UnicodeDecodeError as error:
        return data[: error.start].decode("utf-8"), data[error.start :]


def _characters(beginning: bytes) -> Iterator[str]:
    """Every character whose UTF-8 begins with these bytes and goes on: none, where they are broken;
    for one byte of a four-byte character some 262,144."""
    lead = beginning[0]
    length = 2 if 0xC2 <= lead < 0xE0 else 3 if 0xE0 <= lead < 0xF0 else 4
    missing = length - len(beginning)
    if not 0xC2 <= lead < 0xF5 or missing < 1:
        return
    if any(not 0x80 <= byte < 0xC0 for byte in beginning[1:]):
        return
    # The bits of the bytes that are there, above six bits for each byte that is missing.
    high = lead & (0x7F >> length)
    for byte in beginning[1:]:
        high = high << 6 | byte & 0x3F
    least = {2: 0x80, 3: 0x800, 4: 0x10000}[length]
    for code in range(max(least, high << 6 * missing), min(high + 1 << 6 * missing, 0x110000)):
        if not 0xD800 <= code < 0xE000:
            yield chr(code)


def _refuse_lazy(pattern: str) -> None:
    """Raises UnsupportedRegexError for a lazy repetition, RegexSyntaxError for no regex."""
    if _is_lazy(parse(pattern)):
        lazy = regex.search(r"[*+?}]\?", pattern)
        raise UnsupportedRegexError(
            pattern,
            lazy.start() + 1 if lazy else 0,
            "partial matches of the package regex are wrong after a lazy repetition (leave the "
            "`?` out: whole texts match the same)",
        )


def _is_lazy(tree: Tree) -> bool:
    """Is there a lazy repetition in a tree?"""
    return any(
        (isinstance(node, Alternation) and any(map(_is_lazy, node.options)))
        or (isinstance(node, Repetition) and (not node.greedy or _is_lazy(node.body)))
        for node in tree
    )


# Compares any engine with masks that are found by trying everything: with a trie of all canonical
# sequences up to a length.

Trie = dict[tuple[int, ...], set[int | None]]
"""Ids read so far -> the ids that go on; None: the text may end here."""


def lift_mask(
    tokenizer: Tokenizer, dfa: ByteDFA, state: int, eos_ids: Collection[int] = ()
) -> set[int]:
    """{ id : its bytes lead from `state` to where acceptance can be reached }, every id tried, and
    end-of-sequence ids where `state` accepts. Requires that every byte has a token, since the end
    is reached by bytes."""
    distance = dfa.far
    ids = set(eos_ids) if dfa.accepting[state] else set()
    for token, spelled in enumerate(tokenizer.spellings):
        if spelled and token not in eos_ids and distance[dfa.walk(spelled, state)] != NEVER:
            ids.add(token)
    return ids


def canonical_trie(
    tokenizer: Tokenizer,
    strings: Iterable[str],
    prefix: Sequence[int] = (),
    banned: Collection[int] = (),
) -> Trie:
    """The trie of `encode(prompt + s)` over all strings s of a finite language, below the prompt's
    own ids `prefix`. A text is left out if its ids do not spell it (a character without a token),
    do not begin with `prefix`, or hold a banned id (end of sequence is never text). The trie is
    empty if `prefix` ends inside a character: `decode` would give U+FFFD for that, which is another
    text, whose ids may begin alike."""
    try:
        prompt = tokenizer.text_bytes(prefix).decode()
    except UnicodeDecodeError:
        return {}
    whole = [prompt + s for s in strings]
    trie: Trie = {}
    for text, ids in zip(whole, tokenizer.encode_batch(whole), strict=True):
        rest = tuple(ids[len(prefix) :])
        if tokenizer.decode(ids) != text or ids[: len(prefix)] != list(prefix):
            continue
        if set(rest).isdisjoint(banned):
            _insert(trie, rest)
    return trie


def _insert(trie: Trie, ids: tuple[int, ...]) -> None:
    for length, token in enumerate(ids):
        trie.setdefault(ids[:length], set()).add(token)
    trie.setdefault(ids, set()).add(None)


class Mismatch(NamedTuple):
    """Where a mask differs from the trie. None among the ids: accepting."""

    ids: tuple[int, ...]
    extra: frozenset[int | None]
    missing: frozenset[int | None]


def compare(engine: Engine[Any], state: Any, trie: Trie) -> Iterator[Mismatch | None]:
    """Every mask of the engine below `state` against a finite trie: None for each that is equal.
    Below a mask that differs, only the ids that both have are followed."""
    eos = set(engine.eos_ids)
    stack: list[tuple[tuple[int, ...], Any]] = [((), state)]
    while stack:
        ids, here = stack.pop()
        end: set[int | None] = {None, *eos} if engine.accepting(here) else set()
        got: set[int | None] = {*members(engine.mask(here)).tolist()} | (end - eos)
        wanted = trie.get(ids, set()) | (eos if None in trie.get(ids, set()) else set())
        extra, missing = frozenset(got - wanted), frozenset(wanted - got)
        yield Mismatch(ids, extra, missing) if extra or missing else None
        for token in (got & wanted) - eos:
            if token is not None:
                stack.append(((*ids, token), engine.step(here, token)))
