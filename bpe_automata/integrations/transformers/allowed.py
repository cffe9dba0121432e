"""The constraint in the form of `model.generate(prefix_allowed_tokens_fn=...)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from bpe_automata.decoding.constraint import Constraint
from bpe_automata.errors import PromptError, UnsupportedFeatureError
from bpe_automata.integrations.transformers.rows import Rows
from bpe_automata.kernels.bits import members


def prefix_allowed_tokens_fn(
    constraints: Constraint | Sequence[Constraint],
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    *,
    prefix: bool = True,
    pad_id: int | None = None,
) -> Callable[[int, torch.Tensor], list[int]]:
    """fn(number of a prompt, its row so far) = the ids that `ConstraintLogitsProcessor` allows.

    The arguments are those of the processor, and so are the masks, in beam search too. It is slower
    by the making of lists of ids. transformers itself refuses it under continuous batching.

    With several return sequences and one beam, transformers before 5.24 counts rows instead of
    prompts: fn then raises `UnsupportedFeatureError` (repeat the prompt instead). Raises
    `PromptError` for a row of another prompt, and the errors of the processor.
    """
    rows = Rows(constraints, input_ids, attention_mask, prefix, pad_id)
    prompts, width = rows.given.shape

    def allowed(prompt: int, row: torch.Tensor) -> list[int]:
        if prompt >= prompts:
            raise UnsupportedFeatureError(
                "num_return_sequences",
                f"row {prompt} was asked for, there are {prompts} prompts; repeat the prompt",
            )
        ids = np.ascontiguousarray(row.cpu().numpy()).astype(np.int64, copy=False)
        if not np.array_equal(ids[:width], rows.given[prompt]):
            raise PromptError(f"row {prompt} does not begin with prompt {prompt}")
        state = rows.state(prompt, ids[width:])
        found: list[int] = members(rows.mask(prompt, state)).tolist()
        return found

    return allowed
