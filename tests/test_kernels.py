"""Kernels are compiled once, and again when any source has changed; those that are long end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import called_after, process

from bpe_automata import Budget
from bpe_automata import _kernels as kernels
from bpe_automata._budget import spending
from bpe_automata._kernels import bits, jit
from bpe_automata._kernels.hashing import EMPTY, build_table, look_up, table_size, with_room
from bpe_automata._kernels.watch import poll, watched
from bpe_automata._storage import UntrustedCacheWarning
from bpe_automata.errors import BudgetExceededError


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 600, 5000])
def test_tables_of_all_sizes_hold_their_keys(n):
    slots, values = build_table(np.arange(n) ** 2)
    for entries in (n, n + 1, 3 * n + 7, 8 * n):
        slots, values = with_room(slots, values, max(n, entries))
        assert len(slots) == table_size(max(n, entries)) >= 2 * n
        assert len(slots) & (len(slots) - 1) == 0  # a power of two, which the probes count on
        assert [look_up(slots, values, key * key) for key in range(n)] == [*range(n)]
        assert look_up(slots, values, 2) == EMPTY


INDEX = """
import sys
import numpy as np
from bpe_automata._kernels import compiled
from bpe_automata._kernels.bits import set_bits
set_bits(np.zeros(2, np.int32), np.array([int(sys.argv[1])]))
print(compiled() > 0)
"""


def test_what_is_compiled_is_kept_and_told_of_once_and_apart_from_what_checks_indices(tmp_path):
    """By a logger, which can be silenced; not where kernels are loaded from the disk."""

    def run(index, check):
        names = {"NUMBA_CACHE_DIR": tmp_path, "NUMBA_BOUNDSCHECK": check}
        done = process(INDEX, index, check=False, **names)
        return done.returncode, done.stdout.split(), done.stderr

    code, compiled, said = run(63, 0)
    assert (code, compiled, said.count("compiling kernels, once")) == (0, ["True"], 1)
    assert run(63, 0) == (0, ["False"], "")
    code, _, said = run(64, 1)
    assert code == 1
    assert "IndexError" in said
    assert run(63, 1)[:2] == (0, ["False"])


def test_a_changed_source_has_a_folder_of_its_own(tmp_path, monkeypatch):
    """numba does not notice that what a kernel calls has changed. The folder of before is gone."""
    for name in ("_kernels", "_core"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.py").write_text("")
    monkeypatch.setattr(kernels, "_PACKAGE", tmp_path)
    monkeypatch.setattr(kernels.numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    before = Path(kernels._folder())
    assert Path(kernels._folder()) == before
    assert before.is_dir()
    (tmp_path / "_core" / "one.py").write_text("# changed")
    after = Path(kernels._folder())
    assert after != before
    assert [*(tmp_path / "kept").iterdir()] == [after]


def test_code_is_not_loaded_from_a_folder_that_others_may_write_to(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setattr(kernels.numba.config, "CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path / "shared"))
    with pytest.warns() as said:
        folder = Path(kernels._folder())
    assert tmp_path / "shared" not in folder.parents
    kinds = {type(warning.message) for warning in said}
    assert kinds == {UntrustedCacheWarning, kernels.KernelCacheWarning}


# ---------------------------------------------------------------- an end to long kernels


@jit
def endless(step, watch):
    """Nothing is stored in the loop but what `poll` stores: LLVM must not take the look at what
    another thread may write out of it."""
    total = 0
    while not poll(watch):
        total ^= step
    return total


@jit
def counting(counts, n, watch):
    for _ in range(n):
        if poll(watch):
            break
        counts[0] += 1
    return counts[0]


class EnoughError(Exception):
    """What a signal handler raises."""


def enough(*_: object) -> None:
    raise EnoughError


def test_an_endless_kernel_ends_by_its_budget_or_a_signal():
    with spending(Budget(max_seconds=0.2)), pytest.raises(BudgetExceededError, match=r"0\.2 sec"):
        watched(endless, 3)
    with called_after(0.2, enough), pytest.raises(EnoughError):
        watched(endless, 3)


def test_a_kernel_that_is_begun_anew_finds_its_arrays_as_they_were():
    for n in (0, 100, 100_000):
        counts = np.array([7])
        assert watched(counting, counts, n) == counts[0] == 7 + n


ids_of_words = st.sets(st.integers(0, 127) | st.sampled_from([31, 63, 95]), max_size=20)


@given(ids_of_words, ids_of_words)
def test_packed_sets_are_sets(ids, others):
    """Bit 31 is the sign of its word."""
    packed = bits.packed(ids, 128)
    unpacked = np.unpackbits(packed.view(np.uint8), bitorder="little")
    assert bits.members(packed).tolist() == np.flatnonzero(unpacked).tolist() == sorted(ids)
    assert bits.only(packed) == (next(iter(ids)) if len(ids) == 1 else -1)
    assert all(bits.has(packed, k) == (k in ids) for k in range(128))
    taken = np.array(sorted(others), np.int64)
    assert bits.without(taken, packed).tolist() == sorted(others - ids)
    bits.clear_bits(packed, taken)
    assert bits.members(packed).tolist() == sorted(ids - others)
