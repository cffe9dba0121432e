"""A call that was stopped, by its budget or by Ctrl-C, leaves nothing behind that is wrong.

It is stopped at many points in turn: at the k-th poll of the kernels, the k-th look at the clock
in Python, or the k-th line of Python. Then the same constraint must say what a fresh one says."""

from __future__ import annotations

import linecache
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import bpe_automata
from bpe_automata import Budget, Tokenizer, constrain
from bpe_automata import _budget as budgets
from bpe_automata._constructions import lift, product_tables
from bpe_automata._decoding.constraint import Constraint
from bpe_automata._kernels import watch
from bpe_automata.errors import BpeAutomataError, BudgetExceededError
from bpe_automata.testing import byte_level, byte_spelling, sequence, small_tokenizer, split

PACKAGE = str(Path(bpe_automata.__file__).parent)
FREED = "Lock.__init__.<locals>.<lambda>"
LONGEST = 5
REGEXES = (
    r"[ab]{2,30}c?|ab(ab)*",
    r"((the|ab+|ba|1?2|é)[ \n]?){1,4}(A|\.)?",
    r"[^a]{1,3}(é|日|1){2}",
    r"(?:ab|a\n|<x>| b){0,6}",
)
MERGES = (
    (" ", "b"), ("a", "b"), ("b", "a"), ("ab", "a"), ("ab", "ab"), ("t", "h"), ("th", "e"),
    (" ", "the"), ("Ã", "©"), ("1", "2"), ("\n", "\n"),
)  # fmt: skip
SPLIT = {"Regex": r" ?[a-z]+|\s+(?!\S)|\s|[^a-z\s]{1,2}"}
Trace = list[object]


@cache
def tokenizer(pieces: bool) -> Tokenizer:
    """With a pretokenizer, or with none, where most is left to what is dead after an id."""
    spelled = [tuple(byte_spelling(p.encode("latin-1")) for p in pair) for pair in MERGES]
    steps = [split(SPLIT)] if pieces else []
    letters = [byte_spelling(bytes([byte])) for byte in range(256)]
    vocabulary = [*letters, *("".join(pair) for pair in spelled)]
    return small_tokenizer(
        list(dict.fromkeys(vocabulary)),
        spelled,
        sequence(*steps, byte_level()),
        ["<x>", "<end>"],
        decoder=byte_level(),
    )


def made(feature: str, regex: str, pieces: bool) -> Constraint:
    found = constrain(
        tokenizer(pieces),
        regex,
        "lift" if feature == "lift" else "canonical",
        [tokenizer(pieces).n_ids - 1],
        budget=Budget(max_seconds=1000),
    )
    return found.within(7) if feature == "within" else found


def asked(feature: str, regex: str, pieces: bool) -> Callable[[int], Trace]:
    """What a constraint, always the same, says along the random way of a seed."""
    return partial(walked, made(feature, regex, pieces))


def walked(constraint: Constraint, seed: int) -> Trace:
    """What is said along a random way, as far as it can be compared."""
    rng, found = random.Random(seed), list[object]()
    try:
        matcher = constraint.matcher()
        for _ in range(LONGEST):
            ids = matcher.allowed_ids().tolist()
            found.append((ids, matcher.is_accepting))
            found.append((matcher.min_tokens_to_accept(), matcher.forced_tokens(3)))
            if not ids or matcher.is_finished:
                break
            matcher.advance(ids[rng.randrange(len(ids))])
    except BudgetExceededError:
        raise
    except BpeAutomataError as error:
        found.append(type(error).__name__)
    return found


# ---------------------------------------------------------------- where it stops


@contextmanager
def stopped_at_poll(k: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """Inside, the k-th poll of all kernels together says that the time is up."""
    left, array = [k], budgets.watch()

    def armed() -> Any:
        if left[0] < k or array[watch._COUNTDOWN] < left[0]:
            left[0] = int(array[watch._COUNTDOWN])
        real()
        if left[0] > 0:
            array[0], array[watch._COUNTDOWN] = 0, left[0]
        return array

    real = watch.armed
    array[watch._COUNTDOWN] = k
    with monkeypatch.context() as patch, budgets.spending(Budget(max_seconds=1000)):
        patch.setattr(watch, "armed", armed)
        for module in (lift, product_tables):
            patch.setattr(module, "armed", armed)
        yield lambda: int(array[watch._COUNTDOWN]) <= 0


@contextmanager
def stopped_at_check(k: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """Inside, it is late from the k-th look at the clock on."""
    looks = [0]

    class Clock:
        @staticmethod
        def thread_time_ns() -> int:
            looks[0] += 1
            return 0 if looks[0] < k else 10**18

        perf_counter_ns = thread_time_ns

    with monkeypatch.context() as patch, budgets.spending(Budget(max_seconds=1000)):
        budgets._local.thread.inner.deadline = 10**12
        patch.setattr(budgets, "time", Clock)
        yield lambda: looks[0] >= k


@contextmanager
def stopped_at_line(k: int, _: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """Inside, KeyboardInterrupt is raised at the k-th line of the package. Not at a `with`: its
    line is met again on the way out, and between the body and `__exit__` CPython looks for no
    signal. Nor in what is called when a lock is freed: what is raised there stops nobody."""
    lines = [0]

    def trace(frame: FrameType, event: str, _arg: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_qualname == FREED:
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not line.lstrip().startswith("with "):
            lines[0] += 1
            if lines[0] == k:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lambda: lines[0] >= k
    finally:
        sys.settrace(before)


WAYS = {"poll": stopped_at_poll, "check": stopped_at_check, "line": stopped_at_line}
FEATURES = ("canonical", "lift", "within")


@cache
def right(feature: str, regex: str, pieces: bool) -> list[Trace]:
    return [asked(feature, regex, pieces)(seed) for seed in (1, 2)]


def check(way: str, feature: str, regex: str, pieces: bool, k: int, monkeypatch: Any) -> bool:
    """Stop a walk at point k, and look at what comes after; False once the walk ends before."""
    ask = asked(feature, regex, pieces)
    with WAYS[way](k, monkeypatch) as reached:
        with suppress(BudgetExceededError, KeyboardInterrupt):
            ask(1)
        stopped = reached()
    assert budgets.seconds_left() == inf
    assert [ask(seed) for seed in (1, 2)] == right(feature, regex, pieces), (way, feature, regex, k)
    return stopped


@pytest.mark.parametrize("pieces", [True, False])
@pytest.mark.parametrize("regex", REGEXES)
@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("way", WAYS)
def test_what_was_stopped_goes_on_right(way, feature, regex, pieces, monkeypatch, pytestconfig):
    right(feature, regex, pieces)  # nothing is compiled from here on
    growth = 1.05 if pytestconfig.getoption("--long") else 3.0
    k = 1
    while check(way, feature, regex, pieces, k, monkeypatch):
        k = max(k + 1, int(k * growth) + REGEXES.index(regex))
    assert k > 1 or (way, feature) == ("poll", "lift")


def test_a_matcher_past_its_budget_goes_on(monkeypatch):
    """The same matcher, the same call: with more time the mask is that of a fresh one."""
    ways = range(1, 60)
    for k in ways:
        right = made("canonical", REGEXES[1], True).matcher()
        matcher = made("canonical", REGEXES[1], True).matcher()
        token = int(right.allowed_ids()[-1])
        right.advance(token)
        matcher.advance(token)
        with stopped_at_poll(k, monkeypatch) as reached:
            try:
                matcher.mask()
            except BudgetExceededError:
                assert matcher.ids == (token,)
            stopped = reached()
        assert (matcher.mask() == right.mask()).all()
        if not stopped:
            break
    assert k > 1
