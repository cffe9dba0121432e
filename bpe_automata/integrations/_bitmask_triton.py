"""The kernel of `bitmask` for GPUs. Imported only when it is used; needs triton and torch."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from bpe_automata._optional import require
from bpe_automata.integrations._transfer import to_device

torch: Any = require("torch", "pip install torch")
triton: Any = require("triton", "pip install triton")
tl: Any = require("triton.language", "pip install triton")

BLOCK = 1024


@triton.jit
def _kernel(  # type: ignore[no-untyped-def]
    logits,
    bitmask,
    targets,
    sources,
    n_ids,
    n_words,
    row_stride,
    id_stride,
    mask_row_stride,
    mask_word_stride,
    BLOCK: tl.constexpr,
):
    """One program per row and block of ids. Nothing is stored where the bit is 1."""
    ids = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    target = tl.load(targets + tl.program_id(0))
    source = tl.load(sources + tl.program_id(0))
    words = bitmask + source * mask_row_stride + (ids // 32) * mask_word_stride
    word = tl.load(words, mask=ids // 32 < n_words, other=0)
    refused = ((word >> (ids % 32)) & 1) == 0
    place = logits + target * row_stride + ids.to(tl.int64) * id_stride
    tl.store(place, float("-inf"), mask=refused & (ids < n_ids))


def apply(logits: Any, bitmask: Any, targets: np.ndarray, sources: np.ndarray) -> None:
    """logits: torch [batch, V]; bitmask: torch int32 [m, words] on the same device; targets,
    sources: int64 [n], rows of the logits and of the mask."""
    rows: Any = to_device(np.stack([targets, sources]), logits.device)
    grid = (len(targets), triton.cdiv(logits.shape[1], BLOCK))
    # Triton launches on the current GPU, which need not be the one where the logits are.
    on_gpu = logits.device.type == "cuda"
    with torch.cuda.device(logits.device) if on_gpu else nullcontext():
        _kernel[grid](
            logits.detach(),
            bitmask,
            rows[0],
            rows[1],
            logits.shape[1],
            bitmask.shape[1],
            *logits.stride(),
            *bitmask.stride(),
            BLOCK=BLOCK,
        )
