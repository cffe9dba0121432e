"""Packed masks applied to logits in place: by a kernel on CPUs, by torch elsewhere.

    logits[row, i] = -inf   wherever   bitmask[row, i // 32] >> (i % 32) & 1 = 0

The packing is that of xgrammar and llguidance. Ids beyond the mask are not allowed, as in
llguidance (xgrammar does not mask them). Logits of allowed ids keep their bits, NaN included. Both
ways give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from bpe_automata._kernels.bits import apply_bitmask as apply_kernel
from bpe_automata._optional import require
from bpe_automata.errors import ArgumentError, BufferShapeError

Rows: TypeAlias = Sequence[int] | np.ndarray

MINUS_INFINITY: dict[str, np.unsignedinteger[Any]] = {
    "float16": np.uint16(0xFC00),
    "bfloat16": np.uint16(0xFF80),
    "float32": np.uint32(0xFF80_0000),
    "float64": np.uint64(0xFFF0_0000_0000_0000),
}
"""The bit pattern of -inf in each dtype that logits may have."""


def apply_bitmask(logits: Any, bitmask: Any, *, rows: Rows | None = None) -> None:
    """Mask `logits` in place.

    logits: float16, bfloat16, float32 or float64 [batch, V] or [V], numpy or torch, any strides.
    bitmask: int32 [m, words] or [words], numpy or torch, moved to the device of the logits.
    Row i is masked by row i. With `rows`, bitmask row k masks logits row rows[k], each at most
    once: a mask for some rows of a large batch.

    Raises BufferShapeError (shape, dtype, a row that does not exist) and ArgumentError (a row twice
    in `rows` too). Nothing is masked in these cases.
    """
    logits, bitmask = _two_dimensional(logits), _two_dimensional(bitmask)
    dtype = _check_dtypes(logits, bitmask)
    targets = _targets(logits, bitmask, rows)
    if not len(targets):
        return
    if isinstance(logits, np.ndarray) or logits.device.type == "cpu":
        pattern = MINUS_INFINITY[dtype]
        bits = np.ascontiguousarray(_as_numpy(bitmask))
        apply_kernel(_patterns(logits, pattern), bits, targets, pattern)
    else:
        apply_torch(logits, bitmask, targets)


def apply_torch(logits: Any, bitmask: Any, targets: np.ndarray) -> None:
    """The same on any device. logits, bitmask: tensors of two dimensions; targets: int64 [m].

    A copy from ordinary memory to a GPU waits until the device has done all that was queued before;
    a copy from pinned memory is queued, too."""
    torch, device = require("torch", "pip install torch"), logits.device
    at = torch.from_numpy(targets)
    at = at.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else at.to(device)
    # `where` takes the bits of what is kept as they are; adding a mask of -inf would not keep NaN.
    lowest, allowed = logits.new_full((), -torch.inf), unpacked(bitmask.to(device), logits.shape[1])
    with torch.no_grad():
        logits[at] = torch.where(allowed, logits[at], lowest)


def unpacked(bitmask: Any, width: int) -> Any:
    """torch bool [m, width] of a torch int32 [m, words]; False beyond the words. Any device."""
    torch = require("torch", "pip install torch")
    shifts = torch.arange(32, dtype=torch.int32, device=bitmask.device)
    bits = (bitmask[:, :, None] >> shifts & 1).bool().flatten(1)[:, :width]
    return torch.nn.functional.pad(bits, (0, width - bits.shape[1]))


def _two_dimensional(array: Any) -> Any:
    if not hasattr(array, "ndim") or array.ndim not in (1, 2):
        raise BufferShapeError(
            "logits and masks are numpy arrays or torch tensors of one or two dimensions, not "
            f"{getattr(array, 'shape', type(array).__name__)}"
        )
    return array[None] if array.ndim == 1 else array


def _check_dtypes(logits: Any, bitmask: Any) -> str:
    if isinstance(logits, np.ndarray) and not isinstance(bitmask, np.ndarray):
        raise ArgumentError("numpy logits need a numpy mask, torch logits a torch mask")
    if isinstance(bitmask, np.ndarray) and not isinstance(logits, np.ndarray):
        raise ArgumentError("torch logits need a torch mask: torch.from_numpy(mask)")
    if _dtype_name(bitmask) != "int32":
        words = f"({len(bitmask)}, {-(-logits.shape[1] // 32)})"
        raise BufferShapeError(
            f"a packed mask is int32, not {bitmask.dtype}: matcher.mask(out, row) writes one into "
            f"out = numpy.empty({words}, numpy.int32)"
        )
    dtype = _dtype_name(logits)
    if dtype not in MINUS_INFINITY:
        raise BufferShapeError(f"logits are {', '.join(MINUS_INFINITY)}, not {logits.dtype}")
    if isinstance(logits, np.ndarray) and not logits.flags.writeable:
        raise BufferShapeError("the logits cannot be written to: pass a copy")
    return dtype


def _dtype_name(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _targets(logits: Any, bitmask: Any, rows: Rows | None) -> np.ndarray:
    """int64 [m]: the row of the logits that each row of the mask is for."""
    found = np.arange(len(logits)) if rows is None else np.asarray(rows)
    if found.ndim != 1 or not (np.issubdtype(found.dtype, np.integer) or not len(found)):
        raise ArgumentError(f"rows are a sequence of integers, not {rows!r}")
    if len(found) != len(bitmask):
        raise BufferShapeError(
            f"{len(bitmask)} rows of the mask for {len(found)} rows of the logits"
        )
    if len(found) and not 0 <= found.min() <= found.max() < len(logits):
        raise BufferShapeError(f"there are only {len(logits)} rows of the logits: {rows!r}")
    if len(np.unique(found)) < len(found):
        raise ArgumentError(
            f"a row is there twice in rows {found.tolist()}: intersect its masks with & first"
        )
    return np.ascontiguousarray(found, dtype=np.int64)


def _patterns(logits: Any, pattern: np.unsignedinteger[Any]) -> np.ndarray:
    """The memory of the logits as unsigned integers."""
    if isinstance(logits, np.ndarray):
        return logits.view(pattern.dtype)
    torch = require("torch", "pip install torch")
    width = {2: torch.int16, 4: torch.int32, 8: torch.int64}[pattern.dtype.itemsize]
    found: np.ndarray = logits.detach().view(width).numpy()
    return found.view(pattern.dtype)


def _as_numpy(bitmask: Any) -> np.ndarray:
    return bitmask if isinstance(bitmask, np.ndarray) else bitmask.detach().cpu().numpy()
