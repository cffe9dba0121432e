"""Packed masks applied to logits in place: numba on CPUs, Triton on GPUs, plain torch elsewhere.

    logits[row, i] = -inf   wherever   bitmask[row, i // 32] >> (i % 32) & 1 = 0

The packing is that of xgrammar and llguidance. Ids beyond the mask are not allowed, as llguidance
has it (xgrammar leaves them). What is allowed keeps its bits, NaN included. The three backends give
the same bits.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from bpe_automata._kernels.bits import apply_bitmask as apply_kernel
from bpe_automata._optional import require
from bpe_automata.errors import ArgumentError, BufferShapeError
from bpe_automata.integrations._transfer import to_device

Backend: TypeAlias = Literal["auto", "numba", "triton", "torch"]
Rows: TypeAlias = Sequence[int] | np.ndarray

MINUS_INFINITY: dict[str, np.unsignedinteger[Any]] = {
    "float16": np.uint16(0xFC00),
    "bfloat16": np.uint16(0xFF80),
    "float32": np.uint32(0xFF80_0000),
    "float64": np.uint64(0xFFF0_0000_0000_0000),
}
"""The bit pattern of -inf in each dtype that logits may have."""


def apply_bitmask(
    logits: Any,
    bitmask: Any,
    *,
    indices: Rows | None = None,
    rows: Rows | None = None,
    backend: Backend = "auto",
) -> None:
    """Mask `logits` in place.

    logits: float16, bfloat16, float32 or float64 [batch, V] or [V], numpy or torch, any strides.
    bitmask: int32 [m, words] or [words], numpy or torch, moved to the device of the logits.
    Row i is masked by row i. With `indices`, only those rows are, each by the row of the same
    number (as in xgrammar). With `rows`, bitmask row k masks logits row rows[k], each at most
    once: a mask for some rows of a large batch. backend: "auto" takes numba on the CPU; on a GPU
    triton, or torch where triton is not installed.

    Raises BufferShapeError (shape, dtype, a row that does not exist), ArgumentError (a row twice in
    `rows` too), and MissingDependencyError. Then nothing was masked.
    """
    logits, bitmask = _two_dimensional(logits), _two_dimensional(bitmask)
    dtype = _check_dtypes(logits, bitmask)
    targets, sources = _row_pairs(logits, bitmask, indices, rows)
    if not len(targets):
        return
    backend = _backend(backend, logits)
    if backend == "numba":
        pattern = MINUS_INFINITY[dtype]
        apply_kernel(_patterns(logits, pattern), _as_numpy(bitmask), targets, sources, pattern)
    elif backend == "triton":
        kernels = require("bpe_automata.integrations._bitmask_triton", "pip install triton")
        kernels.apply(logits, bitmask.to(logits.device), targets, sources)
    else:
        _apply_torch(logits, bitmask.to(logits.device), targets, sources)


def unpacked(bitmask: Any, width: int) -> Any:
    """torch bool [m, width] of a torch int32 [m, words]; False beyond the words. Any device."""
    torch = require("torch", "pip install torch")
    shifts = torch.arange(32, dtype=torch.int32, device=bitmask.device)
    bits = (bitmask[:, :, None] >> shifts & 1).bool().flatten(1)[:, :width]
    return torch.nn.functional.pad(bits, (0, width - bits.shape[1]))


def _apply_torch(logits: Any, bitmask: Any, targets: np.ndarray, sources: np.ndarray) -> None:
    torch = require("torch", "pip install torch")
    at = to_device(targets, logits.device)
    masks = bitmask[to_device(sources, logits.device)]
    # `where` takes the bits of what is kept as they are; adding a mask of -inf would not keep NaN.
    lowest = logits.new_full((), -torch.inf)
    with torch.no_grad():
        logits[at] = torch.where(unpacked(masks, logits.shape[1]), logits[at], lowest)


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


def _row_pairs(
    logits: Any, bitmask: Any, indices: Rows | None, rows: Rows | None
) -> tuple[np.ndarray, np.ndarray]:
    """int64 [n] each: rows of the logits, and the rows of the mask that they are masked by."""
    if indices is not None and rows is not None:
        raise ArgumentError("give `indices` (rows of both) or `rows` (rows of the logits)")
    if indices is not None:
        targets = sources = _int64(indices)
    else:
        sources = np.arange(len(bitmask), dtype=np.int64)
        targets = np.arange(len(logits), dtype=np.int64) if rows is None else _int64(rows)
    if len(targets) != len(sources):
        raise BufferShapeError(
            f"{len(sources)} rows of the mask for {len(targets)} rows of the logits"
        )
    for name, found, count in (("logits", targets, len(logits)), ("mask", sources, len(bitmask))):
        if len(found) and not 0 <= found.min() <= found.max() < count:
            raise BufferShapeError(f"there are only {count} rows of the {name}: {found.tolist()}")
    if rows is not None and len(np.unique(targets)) < len(targets):
        raise ArgumentError(
            f"a row is there twice in rows {targets.tolist()}: intersect its masks with & first"
        )
    return targets, sources


def _int64(rows: Rows) -> np.ndarray:
    found = np.asarray(rows)
    if found.ndim != 1 or not (np.issubdtype(found.dtype, np.integer) or not len(found)):
        raise ArgumentError(f"rows are a sequence of integers, not {rows!r}")
    return np.ascontiguousarray(found, dtype=np.int64)


def _backend(asked: Backend, logits: Any) -> Backend:
    on_cpu = isinstance(logits, np.ndarray) or logits.device.type == "cpu"
    if asked == "auto":
        if on_cpu:
            return "numba"
        on_gpu = logits.device.type == "cuda" and importlib.util.find_spec("triton")
        return "triton" if on_gpu else "torch"
    if asked not in ("numba", "triton", "torch"):
        raise ArgumentError(f"backend {asked!r} is none of auto, numba, triton, torch")
    if asked == "numba" and not on_cpu:
        raise ArgumentError(f"numba masks logits on the CPU, these are on {logits.device}")
    if asked != "numba" and isinstance(logits, np.ndarray):
        raise ArgumentError(f"{asked} masks tensors of torch, not arrays of numpy")
    return asked


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
