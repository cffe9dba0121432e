"""The published heuristic for forced ids: tokenize the forced bytes, give the last ids back.

    chop(w) = encode(w) without the ids from the first byte on at which some token begins that goes
              beyond w, where the grammar allows what it goes on with

Only the last `max_tokens` ids may be given back; with `least_bytes`, as many more as it takes to
spell so many bytes. Without `grammar`, any byte may follow. The source is llguidance:
docs/fast_forward.md ("Safely converting FF-strings to FF-tokens": `max_tokens` 4, the rule of 7
bytes, the conservative one without the grammar) and, for the text around the forced bytes,
`TokTrie::chop_tokens` and `TokenParser::ff_tokens`. The heuristic may append ids that `encode`
gives for no text, and gives back ids that are certain; `forced_tokens` is exact. Both are counted
along given texts.
"""

from __future__ import annotations

import codecs
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate
from typing import Any

from bpe_automata import Tokenizer, constrain
from bpe_automata._kernels.bits import has
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.constructions.engine import TextEngine
from bpe_automata.decoding.forced import bytes_from, forced_tokens, text_state
from bpe_automata.tokenizer.description import Prefix
from experiments.lab import Row

CHOPS: dict[str, Row] = {f"chop {k}": {"max_tokens": k} for k in (0, 1, 2, 4)}
CHOPS["chop 7 bytes"] = {"max_tokens": 1, "least_bytes": 7}
CHOPS["chop 4, no grammar"] = {"max_tokens": 4, "grammar": False}
"""The options of `chopped`, by name."""
METHODS = ("canonical", "lift", *CHOPS)
COUNTS = ("ids", "known", "runs", "departing", "no_match")
Runs = Callable[[int], Sequence[int]]
"""The run of ids that a method gives after so many ids of a text."""
_SENTINEL = "\x02"
"""Stands before a text that `encode` must not take for a beginning, as in llguidance."""


def encoded(
    engine: TextEngine[Any], state: Hashable, before: Sequence[int] = ()
) -> tuple[int, tuple[int, ...]]:
    """The forced text in a state of the engine, tokenized: (the state of `engine.dfa` after it, its
    ids). before: the ids that led to the state, prompt first. There are no ids if nothing is
    forced, or if `encode` does not give the text back (for a normalizer or an incomplete
    character)."""
    start = text_state(engine, state)
    text, ids = in_context(engine.tokenizer, before, bytes_from(engine.dfa, start))
    return engine.dfa.walk(text, start), ids


def chopped(
    tokenizer: Tokenizer,
    dfa: ByteAutomaton,
    state: int,
    ids: Sequence[int],
    max_tokens: int,
    least_bytes: int = 0,
    grammar: bool = True,
) -> tuple[int, ...]:
    """Ids without the last ones that a longer token might replace. state: of `dfa`, after ids."""
    kept = list(ids)
    lengths = [len(tokenizer.token_bytes(token)) for token in kept]
    spelled = b"".join(map(tokenizer.token_bytes, kept))
    n = min(max_tokens, len(kept))
    while n < len(kept) and sum(lengths[len(kept) - n :]) < least_bytes:
        n += 1
    edge = len(spelled)
    for at in range(sum(lengths[: len(kept) - n]), len(spelled)):
        suffix = spelled[at:]
        if spans(tokenizer, suffix, dfa, state) if grammar else goes_on(tokenizer, suffix):
            edge = at
            break
    while kept and sum(lengths[: len(kept)]) > edge:
        kept.pop()
    return tuple(kept)


def spans(tokenizer: Tokenizer, suffix: bytes, dfa: ByteAutomaton, state: int) -> bool:
    """Is there a token that begins with `suffix` and goes on with one or more bytes that `dfa`
    allows from `state`? Added tokens do not count: they are not made of text."""
    spelled = tokenizer.derived("sorted spellings", _sorted)
    at = bisect_left(spelled, suffix)
    if at == len(spelled) or not spelled[at].startswith(suffix):
        return False
    for byte in dfa.live_bytes(state).tolist():
        longer = suffix + bytes((byte,))
        at = bisect_left(spelled, longer)
        if at < len(spelled) and spelled[at] == longer:
            return True
        if spans(tokenizer, longer, dfa, dfa.step(state, byte)):
            return True
    return False


def goes_on(tokenizer: Tokenizer, suffix: bytes) -> bool:
    """Is there a token that begins with `suffix` and has more bytes?"""
    spelled = tokenizer.derived("sorted spellings", _sorted)
    at = bisect_right(spelled, suffix)
    return at < len(spelled) and spelled[at].startswith(suffix)


def _sorted(tokenizer: Tokenizer) -> list[bytes]:
    """What ordinary tokens spell, each once."""
    return sorted({token for token in tokenizer.description.tokens if token})


# What `encode` gives inside a text.


def in_context(
    tokenizer: Tokenizer, before: Sequence[int], forced: bytes
) -> tuple[bytes, tuple[int, ...]]:
    """(the whole characters that forced bytes begin with, their ids).

    At the beginning of a text they are encoded as a text. After other ids they are encoded together
    with the bytes of the last id, which is then removed from the front; if `encode` begins with
    another id, they are encoded alone. (b"", ()) if `encode` changes the text, or forced bytes
    begin in the middle of a character."""
    past = tokenizer.last_text(before)
    head = tokenizer.token_bytes(past[-1]) if past else b""
    for given in dict.fromkeys((head, b"")):
        text = _characters(given + forced)
        ids = _tokenized(tokenizer, text, bool(past))
        if ids is None or (given and ids[:1] != past[-1:]):
            continue
        return text.encode()[len(given) :], ids[1 if given else 0 :]
    return b"", ()


def _characters(data: bytes) -> str:
    """The whole characters that the bytes begin with; "" if they are no UTF-8."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return ""


def _tokenized(tokenizer: Tokenizer, text: str, inside: bool) -> tuple[int, ...] | None:
    """The ids of a text, at the beginning or inside another; None if they spell other bytes."""
    if not (inside and tokenizer.description.prefix is not Prefix.NONE):
        ids = tuple(tokenizer.encode(text))
    else:
        front = tokenizer.encode(_SENTINEL)
        ids = tuple(tokenizer.encode(_SENTINEL + text))
        if list(ids[: len(front)]) != front:
            return None
        ids = ids[len(front) :]
    spelled = b"".join(map(tokenizer.token_bytes, ids)) if inside else tokenizer.text_bytes(ids)
    return ids if spelled == text.encode() else None


# Counts along given texts.


def walked(tokenizer: Tokenizer, dfa: ByteDFA, texts: Sequence[str]) -> list[Row]:
    """Counts of each method over all texts. ids: of all texts; known: those that a method gave and
    the text has; departing: runs that differ from the text; no_match: those of them that no text of
    the language has there. A text without canonical ids is skipped."""
    canonical: Any = constrain(tokenizer, dfa).engine
    lift: Any = constrain(tokenizer, dfa, "lift").engine
    totals = {method: Counter(dict.fromkeys(COUNTS, 0)) for method in METHODS}
    for text in texts:
        ids = tuple(tokenizer.encode(text))
        if not follows(canonical, canonical.initial(), ids):
            continue
        own, any_ = ([*accumulate(ids, of.step, initial=of.initial())] for of in (canonical, lift))
        if not canonical.accepting(own[-1]):
            continue
        runs = {"canonical": forced(canonical, own), "lift": forced(lift, any_)}
        runs |= {name: chops(canonical, own, ids, options) for name, options in CHOPS.items()}
        for method, of in totals.items():
            of.update(counted(runs[method], ids, canonical, own))
    return [{"method": name, **of} for name, of in totals.items()]


def forced(engine: Any, states: Sequence[Any]) -> Runs:
    """The ids that an automaton forces."""
    return lambda k: forced_tokens(engine, states[k]).ids


def chops(engine: Any, states: Sequence[Any], ids: Sequence[int], options: Row) -> Runs:
    """The ids that the heuristic appends."""

    def run(k: int) -> Sequence[int]:
        state, made = encoded(engine, states[k], ids[:k])
        return chopped(engine.tokenizer, engine.dfa, state, made, **options)

    return run


def counted(runs: Runs, ids: Sequence[int], canonical: Any, states: Sequence[Any]) -> Counter[str]:
    """The counts of one method along one text."""
    counts, k = Counter(ids=len(ids)), 0
    while k < len(ids):
        run, rest = runs(k), ids[k:]
        differ = (n for n, (a, b) in enumerate(zip(run, rest, strict=False)) if a != b)
        agreed = next(differ, min(len(run), len(rest)))
        counts.update(runs=bool(run), known=agreed)
        if agreed < len(run):
            counts.update(departing=1, no_match=not follows(canonical, states[k], run))
        k += agreed + (agreed < len(run) or not run)
    return counts


def follows(engine: Any, state: Any, run: Sequence[int]) -> bool:
    """Can these ids come next?"""
    for token in run:
        if not has(engine.mask(state), token):
            return False
        state = engine.step(state, token)
    return True
