"""Masks of a batch are those of its matchers, one by one, whichever threads make them.

batch_masks(matchers)[k]  =  matchers[k].mask()
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from support.drawn import listings

from bpe_automata import Matcher, constrain
from bpe_automata._budget import Budget, check, spending
from bpe_automata.decoding import batches
from bpe_automata.decoding.batches import batch_masks
from bpe_automata.decoding.matcher import matcher_of
from bpe_automata.errors import ArgumentError, BudgetExceededError, BufferShapeError
from bpe_automata.testing import small_tokenizer

TOKENIZER = small_tokenizer(["a", "b", "c", "ab"], [("a", "b")], None, ["<end>"])
CONSTRAINTS = [constrain(TOKENIZER, "[a-c]{2,5}", m, [4]) for m in ("canonical", "lift")]
LONGEST = 3600  # seconds that threads wait for one another: only a deadlock takes so long


@st.composite
def moved(draw):
    """A matcher of a constraint or a random automaton, on its way, perhaps at its end."""
    listing, rng = draw(st.none() | listings()), draw(st.randoms(use_true_random=False))
    matcher = draw(st.sampled_from(CONSTRAINTS)).matcher()
    if listing is not None:
        matcher = matcher_of(listing.automaton, listing.eos_ids, listing.n_ids)
    for _ in range(draw(st.integers(0, 6))):
        ids = matcher.allowed_ids().tolist()
        if not ids:
            break
        matcher.advance(rng.choice(ids))
    return matcher


@pytest.fixture
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share the work once the first mask is found; or never."""
    for name in ("_NEW", "_LONG"):
        monkeypatch.setattr(batches, name, getattr(request, "param", -1.0))


shared_or_not = pytest.mark.parametrize("shared", [-1.0, float(LONGEST)], indirect=True)


@pytest.mark.usefixtures("shared")
def test_masks_are_those_of_the_matchers() -> None:
    @examples(100)
    @given(st.lists(moved(), max_size=12), st.integers(0, 3), st.integers(0, 2), st.data())
    def law(matchers: list[Matcher], spare: int, wider: int, data: st.DataObject) -> None:
        threads = data.draw(st.sampled_from([None, 1, 2, 9]))
        matchers += [matcher.copy() for matcher in matchers[:3]]
        states = [(m.ids, m.is_accepting) for m in matchers]
        words = max(((m._engine.n_ids + 31) // 32 for m in matchers), default=1) + wider
        out = np.full((len(matchers) + spare, words), 12345, dtype=np.int32)
        rows = data.draw(st.permutations(range(len(out))))[: len(matchers)]
        assert batch_masks(matchers, out, rows, threads=threads) is out
        for row, matcher in zip(rows, matchers, strict=True):
            want = matcher.mask(np.zeros((1, words), dtype=np.int32))[0]
            assert np.array_equal(out[row], want)
        for row in set(range(len(out))) - {*rows}:
            assert (out[row] == 12345).all()
        assert [(m.ids, m.is_accepting) for m in matchers] == states
        fresh = batch_masks(matchers)
        widest = max(((m._engine.n_ids + 31) // 32 for m in matchers), default=0)
        assert fresh.shape == (len(matchers), widest)
        assert np.array_equal(fresh, out[rows, :widest].reshape(fresh.shape))

    law()


# ---------------------------------------------------------------- threads


@dataclass(eq=False)
class ByHand:
    """One state, whose mask comes after a call that a test says."""

    call: Callable[[], None]
    n_ids, eos_ids = 5, ()

    def initial(self, prefix: Sequence[int] = ()) -> int:
        return 0

    def mask(self, state: int) -> np.ndarray:
        self.call()
        return np.array([6], dtype=np.int32)


def known() -> None:
    """Found at once."""


def by_hand(*masks: Callable[[], None]) -> list[Matcher]:
    return [Matcher(ByHand(mask)) for mask in masks]


@pytest.mark.usefixtures("shared")
def test_constraints_are_asked_at_the_same_time() -> None:
    """Each waits for the other one."""
    met = threading.Barrier(2)
    found = batch_masks(by_hand(known, *2 * [lambda: met.wait(LONGEST)]), threads=2)
    assert found.tolist() == [[6]] * 3


# ---------------------------------------------------------------- errors


def too_much() -> None:
    raise BudgetExceededError("seconds", 3, "ask for less")


@shared_or_not
def test_an_error_says_its_row_and_nothing_is_written(shared: None) -> None:
    bad = True
    matchers = by_hand(*3 * [known], lambda: too_much() if bad else None, known)
    out = np.full((9, 1), 7, dtype=np.int32)
    with pytest.raises(BudgetExceededError, match=r"^row 5: budget of 3 seconds .* less$") as error:
        batch_masks(matchers, out, rows=[0, 1, 2, 5, 6])
    assert (error.value.resource, error.value.limit) == ("seconds", 3)
    assert (out == 7).all()
    bad = False
    batch_masks(matchers, out, rows=[0, 1, 2, 5, 6])
    assert np.flatnonzero(out[:, 0] == 6).tolist() == [0, 1, 2, 5, 6]


@pytest.mark.usefixtures("shared")
def test_an_interrupt_leaves_all_usable() -> None:
    """It comes while another thread is at work, which goes on."""
    over, signals = threading.Event(), iter([signal.SIGINT])

    def interrupted() -> None:
        for number in signals:  # a real signal, which wakes a thread that waits
            signal.pthread_kill(threading.main_thread().ident, number)
        assert over.wait(LONGEST)

    matchers, out = by_hand(known, *3 * [interrupted]), np.zeros((4, 1), dtype=np.int32)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            batch_masks(matchers, out, threads=2)
    finally:
        over.set()
        signal.signal(signal.SIGINT, before)
    assert not out.any()
    assert batch_masks(matchers, threads=2).tolist() == [[6]] * 4


def endless() -> None:
    while True:
        check()


@shared_or_not
def test_the_budget_is_that_of_the_call(shared: None) -> None:
    """Of the call around it, also in the threads that share the work."""
    for threads in (1, 2):
        said = r"^row 0: budget of 0\.05 seconds"
        with spending(Budget(max_seconds=0.05)), pytest.raises(BudgetExceededError, match=said):
            batch_masks(by_hand(*4 * [endless]), threads=threads)


@pytest.mark.parametrize(
    ("out", "rows", "options", "kind", "said"),
    [
        (np.zeros((2, 1), dtype=np.int64), None, {}, BufferShapeError, "int32"),
        (np.zeros((1, 1), dtype=np.int32), None, {}, BufferShapeError, "rows 0 to 1"),
        (np.zeros((2, 0), dtype=np.int32), None, {}, BufferShapeError, "1 words"),
        (np.zeros((2, 1), dtype=np.int32), [0, -1], {}, BufferShapeError, "rows -1 to 0"),
        (np.broadcast_to(np.int32(0), (2, 1)), None, {}, BufferShapeError, "written"),
        (None, [0], {}, ArgumentError, "one integer for each of 2"),
        (None, [0.0, 1.0], {}, ArgumentError, "one integer for each of 2"),
        (None, None, {"threads": 0}, ArgumentError, "threads"),
    ],
)
def test_arguments_are_refused_before_anything_is_written(out, rows, options, kind, said) -> None:
    matchers = by_hand(known, known)
    with pytest.raises(kind, match=said):
        batch_masks(matchers, out, rows, **options)
    assert out is None or not np.any(out)
    for wrong in ("x", constrain(small_tokenizer("a"), "a")):
        with pytest.raises(ArgumentError, match="matcher 1 is"):
            batch_masks([matchers[0], wrong])
