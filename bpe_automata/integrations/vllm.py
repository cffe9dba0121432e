"""vLLM's V1 model runner: a processor that masks the rows of its batch.

    name = "bpe_automata.integrations.vllm:ConstraintLogitsProcessor"
    llm = LLM(model, logits_processors=[name])
    llm.generate(prompt, SamplingParams(extra_args={"bpe_automata": {"regex": "(yes|no)"}}))

vLLM lets no processor fail a request. So a request whose prompt no answer can follow is answered
with the reason, a text that begins with "bpe_automata: "; with {"prefix": "if possible"} its answer
begins as if it stood alone.

Written against the interface of vLLM 0.33.0, whose V1 runner is chosen by
VLLM_USE_V2_MODEL_RUNNER=0; its V2 runner takes the class of `vllm_runner`. Nothing is registered:
only a server that is given one of these names uses it.

vLLM shares the list of a request's output ids and lets it grow (with a placeholder -1 that is
replaced before `apply`), moves rows, and adds a preempted request again with the ids it had. So a
row keeps that list, not a count, and derives its state from it. Speculative decoding is refused
by vLLM itself, and here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_automata._optional import require
from bpe_automata.errors import UnsupportedFeatureError
from bpe_automata.integrations._vllm_requests import (
    INSTALL,
    RequestRow,
    constraints_of,
    is_constrained,
    mask_rows,
    masks_of,
    validate,
)

_host: Any = require("vllm.v1.sample.logits_processor", INSTALL)


class ConstraintLogitsProcessor(_host.LogitsProcessor):  # type: ignore[misc]
    """Masks the rows of a batch whose requests have a constraint; all other rows are untouched."""

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        """Raises UnsupportedFeatureError, and what `constraints_of` raises."""
        _refuse_drafts(vllm_config)
        self._constraints = constraints_of(vllm_config)
        self._rows: dict[int, tuple[RequestRow, Sequence[int]]] = {}

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raises ArgumentError, a ValueError, with which vLLM answers the request."""
        validate(sampling_params)

    def is_argmax_invariant(self) -> bool:
        """A mask may take the most likely id away."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow rows as they are removed, added and moved, in that order."""
        if batch_update is None:
            return
        for index in batch_update.removed:
            self._rows.pop(index, None)
        for index, params, prompt_ids, output_ids in batch_update.added:
            self._rows.pop(index, None)
            if is_constrained(params):
                row = RequestRow(self._constraints, params)
                row.begin(prompt_ids)
                self._rows[index] = (row, output_ids)
        for one, other, direction in batch_update.moved:
            self._move(one, other, direction is _host.MoveDirectionality.SWAP)

    def _move(self, one: int, other: int, swap: bool) -> None:
        """Row `one` becomes row `other`; what was there is dropped, or becomes row `one`."""
        moved, replaced = self._rows.pop(one, None), self._rows.pop(other, None)
        if moved is not None:
            self._rows[other] = moved
        if swap and replaced is not None:
            self._rows[one] = replaced

    def apply(self, logits: Any) -> Any:
        """logits: [batch, V], masked in place and returned."""
        if self._rows:
            asked = [(row, row.asked(ids)) for row, ids in self._rows.values()]
            mask_rows(logits, masks_of(asked), self._rows)
        return logits


def _refuse_drafts(vllm_config: Any) -> None:
    if getattr(vllm_config, "speculative_config", None):
        raise UnsupportedFeatureError(
            "speculative decoding in vLLM's V1 runner",
            "it gives processors no draft ids; use the V2 runner and "
            "bpe_automata.integrations.vllm_runner:ConstraintLogitsProcessor",
        )
