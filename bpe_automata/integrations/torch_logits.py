"""What every mask over logits of torch asks of them, and the errors where it does not hold.

Ids that are not allowed are never looked at: whatever their logits are, the mask covers them.
"""

from __future__ import annotations

import torch

from bpe_automata.errors import BufferShapeError, LogitsError


def check_shape(logits: torch.Tensor, rows: int, n_ids: int) -> None:
    """logits: floating [rows, n_ids or more]. Waits for no device.

    Raises LogitsError for another kind or width, BufferShapeError for another number of rows."""
    shape = tuple(logits.shape)
    if logits.ndim != 2 or shape[1] < n_ids or not logits.is_floating_point():
        raise LogitsError(
            f"logits are {logits.dtype} of shape {shape}: {n_ids} ids need floating "
            f"[rows, {n_ids} or more]"
        )
    if shape[0] != rows:
        raise BufferShapeError(f"{shape[0]} rows of logits for {rows} rows of ids")


def check_masked(masked: torch.Tensor, spared: torch.Tensor) -> None:
    """masked: floating [rows, V], at least one column, -inf where an id is not allowed; spared:
    bool [rows], rows that may have no mass at all. One reduction, and a wait for the device.

    Raises LogitsError for NaN, +inf, or no mass at an allowed id, naming row and id."""
    best = masked.amax(1)  # NaN if one of them is
    wrong = ~(best < torch.inf) | ((best == -torch.inf) & ~spared)
    if not wrong.any():
        return
    row = int(wrong.nonzero()[0])
    if best[row] == -torch.inf:
        raise LogitsError(f"row {row}: every id that is allowed has the logit -inf")
    first = int((~(masked[row] < torch.inf)).nonzero()[0])
    raise LogitsError(
        f"row {row}: the logit of id {first}, which is allowed, is {float(masked[row, first])}"
    )
