"""Masks of a batch in one call.

Masks are found one after the other, most of them cached. Once one has taken long, a few threads
share the remaining ones, as kernels run without the interpreter's lock. For short masks, handing
that lock over may cost more than two threads gain. A constraint makes its masks in one thread at a
time, so all matchers of one constraint go to the same thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

from bpe_automata._arguments import at_least, short
from bpe_automata._budget import handed_on
from bpe_automata.constructions.engine import Engine
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.errors import ArgumentError, BpeAutomataError, BufferShapeError

Asked: TypeAlias = tuple[Engine[Any], Hashable] | np.ndarray
"""An engine and a state of it; or, where the mask is settled, that mask, packed: int32 [words]."""
Found: TypeAlias = np.ndarray | BpeAutomataError

_NEW, _LONG = 2e-5, 5e-4  # seconds that a mask takes at least: not cached, and worth threads
_MOST_THREADS = 8


def batch_masks(
    matchers: Sequence[Matcher],
    out: np.ndarray | None = None,
    rows: Sequence[int] | np.ndarray | None = None,
    *,
    threads: int | None = None,
) -> np.ndarray:
    """The masks of many matchers, of any constraints, in one packed array.

    out: int32 (batch, words), bit i % 32 of word i // 32 for id i, as inference engines have it:
    `tensor.numpy()` of a torch tensor on the CPU; by default a new one with a row for each matcher,
    as wide as the widest mask. rows: where each mask goes, by default row k for matcher k; all
    other rows stay as they are. Words beyond a tokenizer's ids become 0, as does the whole row of a
    matcher that has read an end-of-sequence id.

    threads: how many share the work after the first mask that was not cached. By default there is
    one for each processor, at most 8, and they start only after a mask that has taken half a
    millisecond. Each mask has the budget of its constraint.

    Returns the array. Raises ArgumentError, BufferShapeError, and what `Matcher.mask` raises, with
    the row; then nothing was written, and every matcher is as it was.
    """
    asked = [_checked(k, matcher).asked() for k, matcher in enumerate(matchers)]
    return written(found_masks(asked, threads), out, rows)


def found_masks(asked: Sequence[Asked], threads: int | None = None) -> list[Found]:
    """For each, its packed mask, or the error that was raised. threads: see `batch_masks`."""
    if threads is None:
        most, long = _n_threads(), _LONG
    else:
        most, long = at_least(1, threads, "threads"), _NEW
    found: list[Any] = [None] * len(asked)
    begun = time.perf_counter()
    for k in range(len(asked)):
        found[k] = _found(asked[k])
        done = time.perf_counter()
        if done - begun > long and most > 1:
            _share(range(k + 1, len(asked)), asked, found, most)
            break
        begun = done
    return found


def written(
    found: Sequence[Found],
    out: np.ndarray | None = None,
    rows: Sequence[int] | np.ndarray | None = None,
) -> np.ndarray:
    """The masks in the rows of `out`: see `batch_masks`. Raises the first error among them, which
    then names its row, ArgumentError and BufferShapeError."""
    where = range(len(found)) if rows is None else _int_rows(rows, len(found))
    masks = [_mask_of(row, one) for row, one in zip(where, found, strict=True)]
    words = max(map(len, masks), default=0)
    if out is None:
        out = np.zeros((max(where, default=-1) + 1, words), dtype=np.int32)
    _check_room(out, words, where)
    for row, bits in zip(where, masks, strict=True):
        out[row, : len(bits)] = bits
        if len(bits) < out.shape[1]:
            out[row, len(bits) :] = 0
    return out


def _checked(k: int, matcher: Matcher) -> Matcher:
    if not isinstance(matcher, Matcher):
        raise ArgumentError(f"matcher {k} is {short(matcher)}: make one with constraint.matcher()")
    return matcher


def _int_rows(rows: Sequence[int] | np.ndarray, count: int) -> list[int]:
    listed = np.asarray(rows, dtype=None if len(rows) else np.int64)
    if listed.shape != (count,) or not np.issubdtype(listed.dtype, np.integer):
        raise ArgumentError(f"rows are {short(rows)}: give one integer for each of {count} masks")
    return [int(row) for row in listed]


def _mask_of(row: int, found: Found) -> np.ndarray:
    if isinstance(found, BpeAutomataError):
        found.args = (f"row {row}: {found}",)
        raise found
    return found


def _check_room(out: np.ndarray, words: int, rows: Sequence[int]) -> None:
    if not isinstance(out, np.ndarray) or out.dtype != np.int32 or out.ndim != 2:
        kind = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else short(out)
        raise BufferShapeError(
            f"masks are written to a numpy array int32 (batch, words), not {kind}"
        )
    if len(rows) and not 0 <= min(rows) <= max(rows) < len(out):
        raise BufferShapeError(f"rows {min(rows)} to {max(rows)} of an array with {len(out)} rows")
    if out.shape[1] < words:
        raise BufferShapeError(f"masks of {words} words do not fit into {out.shape}")
    if not out.flags.writeable:
        raise BufferShapeError("the array cannot be written to: give a copy")


# ---------------------------------------------------------------- threads


def _found(asked: Asked) -> Found:
    if isinstance(asked, np.ndarray):
        return asked
    engine, state = asked
    try:
        return engine.mask(state)
    except BpeAutomataError as error:
        return error


def _share(rows: range, asked: Sequence[Asked], found: list[Any], most: int) -> None:
    """Find the masks of these rows in several threads, all masks of one constraint in one."""
    from concurrent.futures import ThreadPoolExecutor  # not before threads are wanted

    by_engine: dict[int, list[int]] = {}
    for k in rows:
        one = asked[k]
        key = -1 if isinstance(one, np.ndarray) else id(getattr(one[0], "inner", one[0]))
        by_engine.setdefault(key, []).append(k)
    within = handed_on()

    def work(some: list[int]) -> None:
        with within():
            for k in some:
                found[k] = _found(asked[k])

    pool = ThreadPoolExecutor(most, "bpe_automata")
    try:
        list(pool.map(work, by_engine.values()))
    finally:  # if interrupted: a mask that is under way is finished by its thread, and cached
        pool.shutdown(wait=False, cancel_futures=True)


def _n_threads() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return min(_MOST_THREADS, len(affinity(0)) if affinity else os.cpu_count() or 1)
