"""Kernels alone: hash tables, packed sets, and an end to those that are long."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import called_after

from bpe_automata import Budget
from bpe_automata._budget import spending
from bpe_automata._kernels import bits
from bpe_automata._kernels.blocks import shorten
from bpe_automata._kernels.hashing import build_table, look_up, table_size, with_room
from bpe_automata.canonical.arrays import Pairs
from bpe_automata.canonical.pairs import clear_after
from bpe_automata.errors import BudgetExceededError


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 600, 5000])
def test_tables_of_all_sizes_hold_their_keys(n):
    slots, values = build_table(np.arange(n) ** 2)
    for entries in (n, n + 1, 3 * n + 7, 8 * n):
        slots, values = with_room(slots, values, max(n, entries))
        assert len(slots) == table_size(max(n, entries)) >= 2 * n
        assert len(slots) & (len(slots) - 1) == 0  # a power of two, which the probes count on
        assert [look_up(slots, values, key * key) for key in range(n)] == [*range(n)]
        assert look_up(slots, values, 2) == -1


ids_of_words = st.sets(st.integers(0, 127) | st.sampled_from([31, 63, 95]), max_size=20)


@given(ids_of_words, ids_of_words)
def test_packed_sets_are_sets(ids, others):
    """Bit 31 is the sign of its word."""
    packed = bits.packed(ids, 128)
    unpacked = np.unpackbits(packed.view(np.uint8), bitorder="little")
    assert bits.members(packed).tolist() == np.flatnonzero(unpacked).tolist() == sorted(ids)
    assert bits.only(packed) == (next(iter(ids)) if len(ids) == 1 else -1)
    assert all(bits.has(packed, k) == (k in ids) for k in range(128))
    taken = np.array(sorted(others), dtype=np.int64)
    assert taken[bits.contained(packed, taken)].tolist() == sorted(others & ids)
    bits.clear_bits(packed, taken)
    assert bits.members(packed).tolist() == sorted(ids - others)
    bits.set_bits(packed, taken)
    assert bits.members(packed).tolist() == sorted(ids | others)


class EnoughError(Exception):
    """What a signal handler raises."""


def enough(*_: object) -> None:
    raise EnoughError


def endless() -> None:
    """A way through all states in no order is found in as many turns as there are states."""
    order = np.random.default_rng(0).permutation(300_000).astype(np.int32)
    head, numbers = np.empty_like(order), np.arange(len(order), dtype=np.int32)
    head[order[:-1]], head[order[-1]] = order[1:], order[-1]
    far = np.where(numbers == order[-1], 0, 1 << 61)
    shorten(far, numbers, numbers, head, np.zeros(len(order), np.bool_), 1)


def test_a_long_kernel_ends_by_its_budget_or_a_signal():
    with spending(Budget(max_seconds=0.2)), pytest.raises(BudgetExceededError, match=r"0\.2 sec"):
        endless()
    with called_after(0.2, enough), pytest.raises(EnoughError):
        endless()


def test_arrays_that_a_kernel_cannot_read_are_refused():
    """They come as pointers, so another dtype or a gap between items would be read wrongly."""
    ids, merges, order = (
        np.zeros((2, 5), np.int32),
        np.zeros((0, 3), np.int32),
        np.zeros(1, np.int32),
    )
    table = np.full(16, -1, np.int64), np.zeros(16, np.int32)
    Pairs(ids, merges, order, *table)
    with pytest.raises(ValueError, match="i4 is needed, not of int64"):
        Pairs(ids.astype(np.int64), merges, order, *table)
    with pytest.raises(ValueError, match="contiguous"):
        Pairs(ids[:, ::-1], merges, order, *table)
    fixed = np.zeros(1, np.int32)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        clear_after(0, Pairs(ids, merges, order, *table), fixed)
