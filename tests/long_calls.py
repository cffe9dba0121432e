"""Calls of every kind that a user can start, each of which takes long.

A long call is made by (folder) -> call.
"""

from __future__ import annotations

import itertools
import json
import random
import string
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from uuid import uuid4

import numpy as np

from bpe_automata import Budget, TokenAutomaton, Tokenizer, compile_regex, constrain
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata._decoding.constraint import Constraint
from bpe_automata.banning import Ban
from bpe_automata.schemas import json_schema
from bpe_automata.testing import (
    added_token,
    byte_level,
    byte_spelling,
    small_tokenizer,
)

Call = Callable[[], object]

HARD = "(?:.{1,30}a.{1,30}){1,30}x.{15}"
ROOM = Budget(max_states=10**7, max_seconds=1000, max_bytes=8 * 10**9)
FEWER_STATES = replace(ROOM, max_states=2 * 10**6)
_LETTERS = [byte_spelling(bytes([byte])) for byte in range(256)]
_MERGES = [("a", "b"), ("b", "a"), ("ab", "a"), ("ab", "ab"), ("c", "d"), ("cd", "a"), ("d", "d")]


# ---------------------------------------------------------------- what they work on


def _tokenizer(**options: object) -> Tokenizer:
    vocabulary = [*_LETTERS, *("".join(pair) for pair in _MERGES)]
    steps = byte_level(use_regex=False)
    return small_tokenizer(vocabulary, _MERGES, steps, ["<end>"], decoder=byte_level(), **options)


@cache
def _tangle(n: int) -> ByteDFA:
    """A DFA of random transitions by a, b, c, d, with one accepting state far away."""
    trans = np.random.default_rng(0).integers(1, n - 1, (n, 5)).astype(np.int32)
    trans[:, 0], trans[0] = 0, 0
    trans[n - 2, 1] = n - 1
    byte_class, accepting = np.zeros(256, np.uint8), np.arange(n) == n - 1
    byte_class[list(b"abcd")] = [1, 2, 3, 4]
    return ByteDFA(trans, byte_class, accepting, 1)


@cache
def _hopeless() -> Constraint:
    """Whatever ids come, in the end stands a text that the tokenizer's normalizer changes: that is
    known once all that they lead to was looked at."""
    n, end = 3_000_000, "e\u0301".encode()
    tangle = _tangle(n)
    trans = np.zeros((n + len(end), 5 + len(end)), np.int32)
    trans[:n, :5] = tangle.trans
    byte_class, accepting = tangle.byte_class.copy(), np.zeros(len(trans), np.bool_)
    for k, byte in enumerate(end):
        byte_class[byte] = 5 + k
        trans[n - 1 + k, 5 + k] = n + k
    accepting[-1] = True
    composing = _tokenizer(normalizer={"type": "NFC"})
    return constrain(composing, ByteDFA(trans, byte_class, accepting, 1), budget=ROOM)


@cache
def _automaton(states: int, symbols: int, seed: int = 0) -> TokenAutomaton:
    """Half of the symbols can be read in each state, at random."""
    rng, k = np.random.default_rng(seed), symbols // 2
    read = np.argsort(rng.random((states, symbols)), axis=1)[:, :k]
    offsets = np.arange(states + 1, dtype=np.int64) * k
    targets = rng.integers(0, states, states * k)
    return TokenAutomaton(
        0, rng.random(states) < 0.1, offsets, np.sort(read, axis=1).ravel(), targets
    )


def _words(n: int) -> list[str]:
    rng = random.Random(0)
    made = ("".join(rng.choices(string.ascii_lowercase, k=rng.randint(5, 14))) for _ in range(n))
    return list(dict.fromkeys(made))


def _file(folder: Path, doublings: int, pairs: int, words: int) -> Path:
    """A tokenizer.json with a token of 2 ** doublings letters, pairs of letters, added tokens; one
    of them is new each time, so that nothing made of it is found on the disk."""
    path = folder / "tokenizer.json"
    powers = ["a" * 2**k for k in range(doublings + 1)]
    two = itertools.islice(itertools.product(_LETTERS, repeat=2), pairs)
    merges = [*zip(powers[:-1], powers[:-1], strict=True), *two]
    added = [added_token(f"<{word}>") for word in [*_words(words), uuid4().hex]]
    tokens = dict.fromkeys([*_LETTERS, *map("".join, merges)])
    vocabulary = {token: number for number, token in enumerate(tokens)}
    entries = [{"id": len(tokens) + number, **entry} for number, entry in enumerate(added)]
    data = {
        "added_tokens": entries,
        "pre_tokenizer": byte_level(),
        "decoder": byte_level(),
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    }
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


# ---------------------------------------------------------------- the calls


def _written_out(_: Path) -> Call:
    constraint = constrain(_tokenizer(), _tangle(300_000), budget=ROOM)
    return lambda: constraint.automaton(max_edges=10**8)


def _ban(_: Path) -> Call:
    words = _words(20_000)
    return lambda: Ban(words, whole_word=True, ignore_case=True, budget=ROOM).allowed


def _schema(_: Path) -> Call:
    """Nothing is twice in it, so that nothing made for one part serves another."""
    words = _words(100_000)
    lists = [{"items": {"enum": words[at : at + 200]}} for at in range(0, len(words) - 199, 200)]
    schema = {"type": "object", "properties": dict(zip(words, lists, strict=False))}
    return lambda: json_schema(schema, budget=FEWER_STATES).to_dfa(ROOM)


def _load(folder: Path) -> Call:
    path = _file(folder, 10, 256**2, 10_000)
    return lambda: Tokenizer.load(path)


def _canonical(folder: Path) -> Call:
    tokenizer = Tokenizer.load(_file(folder, 19, 0, 3000))
    return lambda: canonical_automaton(tokenizer, ROOM)


def _operation(do: Callable[[TokenAutomaton, TokenAutomaton], object]) -> Callable[[Path], Call]:
    def made(_: Path) -> Call:
        one, other = _automaton(300_000, 20), _automaton(300_000, 20, 1)
        return lambda: do(one, other)

    return made


LONG: dict[str, Callable[[Path], Call]] = {
    "compile": lambda _: lambda: compile_regex(HARD, ROOM),
    "mask": lambda _: _hopeless().matcher,  # the first mask is made with it
    "within": lambda _: _hopeless().within(3000).matcher,
    "automaton": _written_out,
    "ban": _ban,
    "schema": _schema,
    "load": _load,
    "canonical automaton": _canonical,
    "minimised": _operation(lambda one, _: one.minimised()),
    "intersection": _operation(lambda one, other: one.intersection(other)),
    "equivalent": _operation(lambda one, other: [one.equivalent(one), one.equivalent(other)]),
}
