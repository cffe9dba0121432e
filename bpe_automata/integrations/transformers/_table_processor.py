"""The logits processor of a token table: all rows at once, on the device of the logits.

    table = TokenTable.from_transitions([(0, 11, 1), (1, 12, 2)], 0, n_ids=100, eos_ids=[2])
    processor = TokenTableProcessor(table, inputs.input_ids)
    model.generate(**inputs, logits_processor=[processor])

The state of a row is always derived from the ids of that row, for `generate` reorders rows and goes
on calling after a row has ended; a memo of the last step makes that one transition instead of many.
Where the loop is your own, carry the states yourself: see `TorchTable`.
"""

from __future__ import annotations

import numpy as np
import torch
from transformers import LogitsProcessor

from bpe_automata._decoding.token_table import TokenTable
from bpe_automata.errors import (
    ArgumentError,
    BufferShapeError,
    DecodingError,
    PromptError,
    TokenOutOfRangeError,
)
from bpe_automata.integrations.torch_table import TorchTable, check_shape
from bpe_automata.integrations.transformers._rows import (
    WITHOUT,
    check_prompts,
    continuous_batching,
)


class TokenTableProcessor(LogitsProcessor):  # type: ignore[misc]
    """Masks the logits of each row by one table, that of what is generated: the prompt is no part
    of it.

    input_ids: int [prompts, width] as given to `model.generate`, padded on the left. pad_id:
    allowed, beside the table's end-of-sequence ids, once a row has ended; needed where the table
    has none and a row may end. states: int [prompts], where each prompt starts; by default all in
    the table's start.
    check: look at the values of ids and logits, and raise LogitsError, PromptError (rows of other
    prompts) and TokenOutOfRangeError (negative ids) as `ConstraintLogitsProcessor` does; that waits
    for the device at each step.

    `model.generate` may hold several rows per prompt (beams, return sequences), next to each other.
    A row with an id that was not allowed (beam search has some, with score -inf) counts as ended.
    Raises DecodingError, ArgumentError for what is no table, TokenOutOfRangeError, BufferShapeError
    if shapes of ids or the number of rows or states do not fit, UnsupportedFeatureError under
    continuous batching (`only_plain_batching`).
    """

    def __init__(
        self,
        table: TokenTable,
        input_ids: torch.Tensor,
        *,
        pad_id: int | None = None,
        states: torch.Tensor | None = None,
        check: bool = True,
    ) -> None:
        if not isinstance(table, TokenTable):
            raise ArgumentError(f"table is a {type(table).__name__}: give a TokenTable")
        check_prompts(input_ids)
        self._given = input_ids.clone()
        self._prompts, self._width = input_ids.shape
        self._ends = (*table.eos_ids, *(() if pad_id is None else (pad_id,)))
        if not self._ends and table.finished[1:].any():
            raise DecodingError("no id may fill ended rows: give the table eos_ids, or pad_id")
        self._table = TorchTable.of(table, input_ids.device, self._ends)
        starts = self._table.begin(self._prompts) if states is None else states
        if starts.shape != (self._prompts,):
            raise BufferShapeError(
                f"states of shape {tuple(starts.shape)} for {self._prompts} prompts"
            )
        self._starts, self._check = starts.to(input_ids.device), check
        self._memo: tuple[torch.Tensor, torch.Tensor] | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """`scores`: float [rows, V]; a new tensor with -inf where an id is not allowed. Raises
        LogitsError."""
        self._move(scores.device)
        states = self.states(input_ids)
        check_shape(scores, len(states), self._table.table.n_ids)
        beams = len(states) > self._prompts
        return self._table.mask(states, scores, check=self._check, beams=beams)

    def forced(self, input_ids: torch.Tensor) -> np.ndarray:
        """int64 [rows]: the one id that each row of `input_ids` allows next; -1 if not one."""
        allowed = self._table.allowed(self.states(input_ids))
        only = torch.where(allowed.sum(1) == 1, allowed.byte().argmax(1), -1)
        found: np.ndarray = only.cpu().numpy()
        return found

    @property
    def supports_continuous_batching(self) -> bool:
        """What a continuous batching manager asks first. Raises UnsupportedFeatureError."""
        raise continuous_batching()

    def states(self, input_ids: torch.Tensor) -> torch.Tensor:
        """int64 [rows]: where each row is; `input_ids`: prompts with what was generated. Rows for
        which `table.accepting[state]` holds are complete."""
        if input_ids.ndim != 2:
            raise continuous_batching()
        rows, length = input_ids.shape
        per_prompt, rest = divmod(rows, self._prompts)
        if rest or not per_prompt:
            raise BufferShapeError(f"{rows} rows are no multiple of {self._prompts} prompts")
        if length < self._width:
            raise BufferShapeError(f"rows of {length} ids for prompts of {self._width}{WITHOUT}")
        if self._check and length == self._width:
            self._check_prompts(input_ids, per_prompt)
        generated = input_ids[:, self._width :].to(self._table.device)
        known = self._recalled(generated[:, :-1]) if generated.shape[1] else None
        if self._check:
            self._check_ids(generated if known is None else generated[:, -1:])
        if known is None:
            states = self._starts.repeat_interleave(per_prompt)
            for ids in generated.unbind(1):
                states = self._table.advance(states, ids)
        else:
            states = self._table.advance(known, generated[:, -1])
        self._memo = generated.clone(), states
        return states

    def _check_prompts(self, input_ids: torch.Tensor, per_prompt: int) -> None:
        given = self._given.to(input_ids.device).repeat_interleave(per_prompt, 0)
        if not (input_ids == given).all():
            raise PromptError("these are not the prompts that the processor was made for")

    def _check_ids(self, ids: torch.Tensor) -> None:
        negative = ids[ids < 0]
        if len(negative):
            last = self._table.table.n_ids - 1
            raise TokenOutOfRangeError(f"id {int(negative[0])} is not in 0 .. {last}")

    def _recalled(self, ids: torch.Tensor) -> torch.Tensor | None:
        """The states after `ids`, int64 [rows, length], if all of these rows were in the last call,
        in any order; else None."""
        if self._memo is None or self._memo[0].shape[1] != ids.shape[1]:
            return None
        before, states = self._memo
        if before.shape == ids.shape and torch.equal(before, ids):
            return states
        both = torch.cat((self._with_prompts(before), self._with_prompts(ids)))
        _, number = torch.unique(both, dim=0, return_inverse=True)
        # Rows that are equal, prompt and all, are in equal states: any of them will do.
        row = torch.full_like(number, -1)
        row[number[: len(before)]] = torch.arange(len(before), device=row.device)
        found = row[number[len(before) :]]
        return None if (found < 0).any() else states[found]

    def _with_prompts(self, ids: torch.Tensor) -> torch.Tensor:
        """`ids` with the number of the row's prompt before them."""
        prompts = torch.arange(self._prompts, device=ids.device)
        column = prompts.repeat_interleave(len(ids) // self._prompts)
        return torch.cat((column[:, None], ids), dim=1)

    def _move(self, device: torch.device) -> None:
        if self._table.device != device:
            self._table = TorchTable.of(self._table.table, device, self._ends)
            self._starts, self._memo = self._starts.to(device), None
