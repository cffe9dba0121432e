"""Batches as tensors: prompts padded on the left."""

from __future__ import annotations

import torch

from bpe_automata.errors import BufferShapeError, PromptError


def padded(prompts: list[list[int]], pad_id: int) -> dict[str, torch.Tensor]:
    """`input_ids` and `attention_mask`, int64[prompts, width], padded on the left."""
    if not all(prompts):
        raise PromptError(f"prompt {prompts.index([])} is empty: the model needs at least one id")
    width = max(map(len, prompts))
    ids = [[pad_id] * (width - len(prompt)) + prompt for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


def check_prompts(
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    pad_id: int | None = None,
) -> None:
    """Raises BufferShapeError for what is not int [prompts, width], at least one prompt, and
    PromptError for padding on the right, after which no model goes on with the prompt.

    Without a mask, that is where one prompt of several ends with `pad_id`."""
    shape, kind = tuple(input_ids.shape), input_ids.dtype
    if input_ids.ndim != 2 or not shape[0] or kind.is_floating_point or kind == torch.bool:
        raise BufferShapeError(
            f"input_ids are {kind} of shape {shape}: integers [prompts, width] are needed"
        )
    advice = 'pad on the left (padding_side="left")'
    if attention_mask is None:
        if pad_id is not None and len(input_ids) > 1 and shape[1]:
            advice += ", or give the attention_mask if the id belongs to the prompt"
            _refuse(input_ids[:, -1] == pad_id, f"ends with pad_id {pad_id}: {advice}")
        return
    if attention_mask.shape != input_ids.shape:
        raise BufferShapeError(
            f"attention_mask of shape {tuple(attention_mask.shape)} for input_ids of {shape}"
        )
    read = attention_mask.bool()
    padded_after = (read[:, :-1] & ~read[:, 1:]).any(1)
    _refuse(padded_after, f"has padding after ids, says its attention_mask: {advice}")


def _refuse(rows: torch.Tensor, why: str) -> None:
    """Raises PromptError where any of `rows`, bool[prompts], is True."""
    if rows.any():
        raise PromptError(f"prompt {int(rows.nonzero()[0])} {why}")


def unpadded(
    input_ids: torch.Tensor, attention_mask: torch.Tensor | None, pad_id: int | None
) -> list[list[int]]:
    """The ids of each prompt without its padding. Raises as `check_prompts` does."""
    check_prompts(input_ids, attention_mask, pad_id)
    if attention_mask is None:
        return [row.tolist() for row in input_ids]
    rows = zip(input_ids, attention_mask, strict=True)
    return [ids[mask.bool()].tolist() for ids, mask in rows]
