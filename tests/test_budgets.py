"""Budgets of time bound whatever is started, and Ctrl-C ends it: see `budget`, `_kernels.watch`.

A long call, of every kind that a user can start, is made by (folder) -> call.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import inf
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from support import called_after
from support.making import PLAIN, make

from bpe_automata import Budget, TokenAutomaton, Tokenizer, compile_regex, constrain
from bpe_automata._budget import (
    check,
    check_bytes,
    seconds_left,
    spending,
    with_room,
)
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.banning import Ban
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas import json_schema
from bpe_automata.testing import byte_level, byte_spelling, small_tokenizer

Call = Callable[[], object]

HARD = "(?:.{1,30}a.{1,30}){1,30}x.{15}"
ROOM = Budget(max_states=10**7, max_seconds=1000, max_bytes=8 * 10**9)
_LETTERS = [byte_spelling(bytes([byte])) for byte in range(256)]
_MERGES = [("a", "b"), ("b", "a"), ("ab", "a"), ("ab", "ab"), ("c", "d"), ("cd", "a"), ("d", "d")]
_END = "e\u0301".encode()
_FIRST_WORD = 10**6


def _tokenizer(**options: object) -> Tokenizer:
    vocabulary = [*_LETTERS, *map("".join, _MERGES)]
    return small_tokenizer(vocabulary, _MERGES, byte_level(), ["<end>"], **options)


@cache
def _tangle(n: int) -> ByteDFA:
    """A DFA of random transitions by a, b, c, d, which from one state far away reads an e with an
    accent, and ends."""
    k = len(_END)
    trans = np.zeros((n + k, 5 + k), np.int32)
    trans[1:n, 1:5] = np.random.default_rng(0).integers(1, n - 1, (n - 1, 4))
    trans[n - 2, 1] = n - 1
    trans[range(n - 1, n + k - 1), range(5, 5 + k)] = range(n, n + k)
    byte_class = np.zeros(256, np.uint8)
    byte_class[[*b"abcd", *_END]] = range(1, 5 + k)
    return ByteDFA(trans, byte_class, np.arange(n + k) == n + k - 1, 1)


@cache
def _hopeless() -> Constraint:
    """Whatever ids come, in the end stands a text that the tokenizer's normalizer changes: that is
    known once all that they lead to was looked at."""
    return constrain(_tokenizer(normalizer={"type": "NFC"}), _tangle(3_000_000), budget=ROOM)


@cache
def _automaton(seed: int, states: int = 300_000, symbols: int = 20) -> TokenAutomaton:
    """Half of the symbols can be read in each state, at random."""
    rng, k = np.random.default_rng(seed), symbols // 2
    read = np.sort(np.argsort(rng.random((states, symbols)), axis=1)[:, :k]).ravel()
    offsets, targets = np.arange(states + 1) * k, rng.integers(0, states, states * k)
    return TokenAutomaton(0, rng.random(states) < 0.1, offsets, read, targets)


def _words(n: int) -> list[str]:
    return [f"{k * k:x}word" for k in range(_FIRST_WORD, _FIRST_WORD + n)]


def _file(folder: Path, doublings: int, pairs: int, words: int) -> Path:
    """A tokenizer.json with a token of 2 ** doublings letters, pairs of letters, added tokens; one
    of them is new each time, so that nothing made of it is found on the disk."""
    powers = ["a" * 2**k for k in range(doublings)]
    two = itertools.islice(itertools.product(_LETTERS, repeat=2), pairs)
    merges = [*zip(powers, powers, strict=True), *two]
    vocabulary = [*dict.fromkeys([*_LETTERS, *map("".join, merges)])]
    added = [f"<{word}>" for word in [*_words(words), uuid4().hex]]
    parts = {"vocabulary": vocabulary, "merges": merges, "added": added}
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(make(PLAIN, pretokenizer=byte_level(), **parts)), encoding="utf-8")
    return path


def _written_out(_: Path) -> Call:
    constraint = constrain(_tokenizer(), _tangle(300_000), budget=ROOM)
    return lambda: constraint.automaton(max_edges=10**8)


def _ban(_: Path) -> Call:
    words = _words(20_000)
    return lambda: Ban(words, whole_word=True, ignore_case=True, budget=ROOM).allowed


def _schema(_: Path) -> Call:
    """Nothing is twice in it, so that nothing made for one part serves another."""
    words = _words(100_000)
    lists = [{"items": {"enum": words[at : at + 200]}} for at in range(0, len(words), 200)]
    schema = {"type": "object", "properties": dict(zip(words, lists, strict=False))}
    return lambda: json_schema(schema, budget=Budget(2 * 10**6, 1000, 8 * 10**9)).to_dfa(ROOM)


def _canonical(folder: Path) -> Call:
    tokenizer = Tokenizer.load(_file(folder, 19, 0, 3000))
    return lambda: canonical_automaton(tokenizer, ROOM)


LONG: dict[str, Callable[[Path], Call]] = {
    "compile": lambda _: lambda: compile_regex(HARD, ROOM),
    "mask": lambda _: _hopeless().matcher,  # the first mask is made with it
    "within": lambda _: _hopeless().within(3000).matcher,
    "automaton": _written_out,
    "ban": _ban,
    "schema": _schema,
    "load": lambda folder: partial(Tokenizer.load, _file(folder, 10, 256**2, 10_000)),
    "canonical automaton": _canonical,
    "minimised": lambda _: _automaton(0).minimised,
    "intersection": lambda _: lambda: _automaton(0).intersection(_automaton(1)),
    "equivalent": lambda _: lambda: [_automaton(k).equivalent(_automaton(0)) for k in (0, 1)],
}


def test_inside_the_earlier_end_counts_and_is_named_and_nothing_is_spent_outside():
    with spending(Budget(max_seconds=0)):
        with pytest.raises(BudgetExceededError, match="budget of 0 seconds"):
            check()
        with spending(Budget(max_seconds=50)), pytest.raises(BudgetExceededError, match="of 0 s"):
            check()
    left: list[float] = []
    with spending(Budget(max_seconds=50, max_bytes=100)):
        with spending(Budget(max_seconds=2)):
            assert 1 < seconds_left() <= 2
        with spending(None):
            assert 40 < seconds_left() <= 50
        check_bytes(100, "a table")
        with pytest.raises(BudgetExceededError, match="100 bytes exceeded: a table would take 101"):
            check_bytes(101, "a table")
        other = threading.Thread(target=lambda: left.append(seconds_left()))  # has none
        other.start()
        other.join()
    check()
    check_bytes(10**15, "a table")
    assert [*left, seconds_left()] == [inf, inf]


@pytest.fixture
def default_sigint() -> Iterator[None]:
    """A shell may ignore it. And nothing is collected meanwhile, as what is raised in a callback is
    lost (hypothesis has one, and weak dictionaries have them for what other tests left)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", LONG)
def test_every_kind_of_call_ends_by_its_budget_and_by_ctrl_c(name, tmp_path, default_sigint):
    """Each of these calls would take minutes."""
    call = LONG[name](tmp_path)
    with pytest.raises(BudgetExceededError, match="seconds"), spending(Budget(max_seconds=0.1)):
        call()
    ctrl_c = called_after(0.2, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    with ctrl_c, pytest.raises(KeyboardInterrupt):
        call()
    # No lock is left held, and nothing half made is taken for whole: the same call begins anew.
    with pytest.raises(BudgetExceededError, match="seconds"), spending(Budget(max_seconds=0.02)):
        call()


def test_a_signal_handler_that_returns_ends_nothing():
    seen: list[bool] = []
    handled = called_after(0.1, lambda *_: seen.append(True))
    with handled, pytest.raises(BudgetExceededError, match="seconds"):
        compile_regex(HARD, Budget(10**7, 1.0, 8 * 10**9))
    assert len(seen) == 1


def test_a_deep_caller_spends_of_its_own_budget():
    def below(calls, find):
        return below(calls - 1, find) if calls else with_room(find)

    def spend():
        with pytest.raises(BudgetExceededError) as caught:
            check_bytes(1001, "the table")
        assert caught.value.limit == 1000
        with pytest.raises(BudgetExceededError) as caught:
            all(check() is None for _ in itertools.count())
        assert (caught.value.resource, caught.value.limit) == ("seconds", 0.05)
        return threading.get_ident()

    with spending(Budget(max_seconds=0.05, max_bytes=1000)):
        assert below(300, spend) != threading.get_ident()
        with pytest.raises(BudgetExceededError):  # no time is left to the caller either
            check()
