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


def check_prompts(input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> None:
    """Raises BufferShapeError for what is not int [prompts, width], at least one prompt."""
    shape, kind = tuple(input_ids.shape), input_ids.dtype
    if input_ids.ndim != 2 or not shape[0] or kind.is_floating_point or kind == torch.bool:
        raise BufferShapeError(
            f"input_ids are {kind} of shape {shape}: integers [prompts, width] are needed"
        )
    if attention_mask is not None and attention_mask.shape != input_ids.shape:
        raise BufferShapeError(
            f"attention_mask of shape {tuple(attention_mask.shape)} for input_ids of {shape}"
        )


def unpadded(input_ids: torch.Tensor, attention_mask: torch.Tensor | None) -> list[list[int]]:
    """The ids of each prompt without its padding. Raises BufferShapeError."""
    check_prompts(input_ids, attention_mask)
    if attention_mask is None:
        return [row.tolist() for row in input_ids]
    rows = zip(input_ids, attention_mask, strict=True)
    return [ids[mask.bool()].tolist() for ids, mask in rows]
