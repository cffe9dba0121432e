"""vLLM's V2 model runner, speculative decoding included.

    name = "bpe_automata.integrations.vllm_runner:ConstraintLogitsProcessor"
    llm = LLM(model, logits_processors=[name])
    llm.generate(prompt, SamplingParams(extra_args={"bpe_automata": {"regex": "(yes|no)"}}))

vLLM lets no processor fail a request. So a request whose prompt no answer can follow is answered
with the reason, a text that begins with "bpe_automata: "; with {"prefix": "if possible"} its answer
begins as if it stood alone.

Written against the interface of vLLM 0.33.0, which uses this runner by default where it has Triton.
A request lives in a slot until it ends or is preempted; its ids are in a table on the device. Each
row of the logits belongs to a slot and sees the ids up to its position: committed ones out of the
table, draft ids out of the input of this step. Reading them waits for the device.

The front end imports this module too, to check requests, so it imports no torch by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_automata._optional import require
from bpe_automata.decoding.batches import Asked
from bpe_automata.integrations._vllm_requests import (
    INSTALL,
    RequestRow,
    constraints_of,
    is_constrained,
    mask_rows,
    masks_of,
    validate,
)

_host: Any = require("vllm.v1.worker.gpu.sample.logits_processor", INSTALL)


class ConstraintLogitsProcessor(_host.LogitsProcessor):  # type: ignore[misc]
    """Masks the rows of slots whose requests have a constraint; all other rows are untouched."""

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        """Raises what `constraints_of` raises."""
        super().__init__(vllm_config, req_states)
        self._constraints = constraints_of(vllm_config)
        self._states = req_states
        self._slots: dict[int, _Slot] = {}

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raises ArgumentError, a ValueError, with which vLLM answers the request."""
        validate(sampling_params)

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Forget the slot's last request. Returns whether the new one has a constraint."""
        self._slots.pop(req_idx, None)
        constrained = is_constrained(sampling_params)
        if constrained:
            self._slots[req_idx] = _Slot(RequestRow(self._constraints, sampling_params))
        return constrained

    def apply(self, logits: Any, ctx: Any) -> Any:
        """logits: [rows, V], masked in place and returned."""
        present = [slot for slot in ctx.idx_mapping_np.tolist() if slot in self._slots]
        if not present:
            return logits
        totals = self._states.total_len.gpu.cpu().tolist()
        of_slot = _rows_of_slots(ctx)
        asked: list[tuple[RequestRow, Asked]] = []
        rows: list[int] = []
        for number in present:
            slot, found = self._slots[number], of_slot.get(number, [])
            slot.read(self._states, number, totals[number])
            asked += slot.asked([(at, token) for _, at, token in found])
            rows += [row for row, _, _ in found]
        if rows:
            mask_rows(logits, masks_of(asked), rows)
        return logits


class _Slot:
    """One request: its ids without the prompt, its masks."""

    def __init__(self, row: RequestRow) -> None:
        self._row, self._begun = row, False
        self._prompt_length = 0
        self._ids: list[int] = []

    def read(self, states: Any, slot: int, total: int) -> None:
        """Read what was committed since the last step, and at the first step the prompt. A slot's
        committed ids never change: a preempted request is added again."""
        table = states.all_token_ids.gpu
        if not self._begun:
            self._prompt_length = int(states.prompt_len.np[slot])
            self._row.begin(table[slot, : self._prompt_length].tolist())
            self._begun = True
        committed = self._prompt_length + len(self._ids)
        if total > committed:
            self._ids += table[slot, committed:total].tolist()

    def asked(self, inputs: Sequence[tuple[int, int]]) -> list[tuple[RequestRow, Asked]]:
        """What `masks_of` needs for the mask after each row (position, id there), in order."""
        committed = self._prompt_length + len(self._ids)
        drafts = [token for at, token in sorted(inputs) if at >= committed]
        found = []
        for at, _ in inputs:
            ids = (self._ids + drafts)[: max(0, at + 1 - self._prompt_length)]
            found.append((self._row, self._row.asked(ids, at < committed)))
        return found


def _rows_of_slots(ctx: Any) -> dict[int, list[tuple[int, int, int]]]:
    """slot -> (row of the logits, position, id fed there) of each of its rows, by row."""
    slots, positions = ctx.expanded_idx_mapping.tolist(), ctx.pos.tolist()
    found: dict[int, list[tuple[int, int, int]]] = {}
    for row, (slot, at, token) in enumerate(
        zip(slots, positions, ctx.input_ids.tolist(), strict=True)
    ):
        found.setdefault(slot, []).append((row, at, token))
    return found
