"""Masks by trying everything."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions.engine import Engine
from bpe_automata.kernels.bits import members
from bpe_automata.kernels.distance import NEVER
from bpe_automata.tokenizer import Tokenizer

Trie = dict[tuple[int, ...], set[int | None]]
"""Ids read so far -> the ids that go on; None: the text may end here."""


def lift_mask(
    tokenizer: Tokenizer, dfa: ByteDFA, state: int, eos_ids: Collection[int] = ()
) -> set[int]:
    """{ id : its bytes lead from `state` to where acceptance is in reach }, every id tried, and
    end-of-sequence where the state accepts. In reach for bytes, all of which must have a token."""
    distance = dfa.distance()
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
    own ids `prefix`. Left out: texts whose ids do not spell them (a character without a token),
    do not begin with `prefix`, or hold a banned id (end of sequence is never text). Empty where
    `prefix` ends inside a character: `decode` would show that as U+FFFD, which is another text, and
    one whose ids may begin alike."""
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
    Below a mask that differs only what both have is looked at."""
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
