"""Writing a packed mask into an array that the caller owns."""

from __future__ import annotations

import numpy as np

from bpe_automata.arguments import short
from bpe_automata.errors import BufferShapeError


def write_mask(bits: np.ndarray, n_ids: int, out: np.ndarray, row: int) -> None:
    """Write the packed int32 `bits` to `out` (packed int32, bool or floating; see
    `Matcher.mask`). Raises BufferShapeError; then nothing was written."""
    target = _row_of(out, row)
    if out.dtype == np.int32:
        if out.ndim != 2 or len(target) < len(bits):
            raise BufferShapeError(
                f"a packed mask needs int32 (batch, at least {len(bits)}), not {out.shape}"
            )
        target[: len(bits)] = bits
        target[len(bits) :] = 0
        return
    if len(target) < n_ids:
        raise BufferShapeError(f"the mask has {n_ids} ids, the buffer's rows only {len(target)}")
    allowed = np.unpackbits(bits.view(np.uint8), count=n_ids, bitorder="little").view(bool)
    if out.dtype == np.bool_:
        target[:n_ids] = allowed
        target[n_ids:] = False
    elif np.issubdtype(out.dtype, np.floating):
        target[:n_ids] = np.where(allowed, 0.0, -np.inf)
        target[n_ids:] = -np.inf
    else:
        raise BufferShapeError(f"a mask is written as int32, bool or floating, not {out.dtype}")


def _row_of(out: np.ndarray, row: int) -> np.ndarray:
    if not isinstance(out, np.ndarray):
        raise BufferShapeError(f"out is {short(out)}: give a numpy array, or nothing for a new one")
    if out.ndim == 1 and row == 0:
        return out
    if out.ndim != 2 or not 0 <= row < out.shape[0]:
        raise BufferShapeError(f"there is no row {row} in a buffer of shape {out.shape}")
    return out[row]
