"""vLLM's V1 model runner: a processor for the batch, and one per request.

    name = "bpe_automata.integrations.vllm:ConstraintLogitsProcessor"
    llm = LLM(model, logits_processors=[name])
    llm.generate(prompt, SamplingParams(extra_args={"bpe_automata": {"regex": "(yes|no)"}}))

Written against the interface of vLLM 0.33.0, whose V1 runner is chosen by
VLLM_USE_V2_MODEL_RUNNER=0; its V2 runner takes the class of `vllm_runner`. Nothing is registered:
only a server that is given one of these names uses it.

vLLM shares the list of a request's output ids and lets it grow (with a placeholder -1 that is
replaced before `apply`), moves rows, and adds a preempted request again with the ids it had. So a
row keeps that list, not a count, and derives its state from it. Speculative decoding is refused
by vLLM itself, and here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bpe_automata.decoding.constraint import Constraint
from bpe_automata.errors import UnsupportedFeatureError
from bpe_automata.integrations.follow import Follower
from bpe_automata.integrations.vllm_requests import (
    INSTALL,
    RequestRow,
    constraints_of,
    is_constrained,
    mask_rows,
    masks_of,
    validate,
)
from bpe_automata.optional import require

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
        """Raises ArgumentError, a ValueError, which vLLM answers a request with."""
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


class PerRequestLogitsProcessor(_host.AdapterLogitsProcessor):  # type: ignore[misc]
    """The same by vLLM's adapter, which asks for one callable per request and keeps the rows."""

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        """Raises as `ConstraintLogitsProcessor`."""
        super().__init__(vllm_config, device, is_pin_memory)
        _refuse_drafts(vllm_config)
        self._constraints = constraints_of(vllm_config)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raises ArgumentError, a ValueError, which vLLM answers a request with."""
        validate(sampling_params)

    def is_argmax_invariant(self) -> bool:
        """A mask may take the most likely id away."""
        return False

    def new_req_logits_processor(self, params: Any) -> Callable[..., Any] | None:
        """(prompt ids, output ids, logits [V]) -> logits, masked in place; None if the request has
        no constraint."""
        if not is_constrained(params):
            return None
        row = RequestRow(self._constraints, params)
        begun = False

        def with_prompt(prompt_ids: Sequence[int], ids: Sequence[int], logits: Any) -> Any:
            nonlocal begun
            if not begun:
                row.begin(prompt_ids)
                begun = True
            mask_rows(logits[None], masks_of([(row, row.asked(ids))]), [0])
            return logits

        def alone(ids: Sequence[int], logits: Any) -> Any:
            return with_prompt((), ids, logits)

        # The adapter looks at the number of parameters, and refuses prompts without ids if three.
        return with_prompt if row.after_prompt else alone


class RequestLogitsProcessor:
    """The callable of vLLM's older engines, in `SamplingParams(logits_processors=[...])`:

    (prompt ids, past ids, logits [V]) -> logits, masked in place.

    One may serve several sequences in turn: both states are derived from the ids that it is given.
    constraint: over the tokenizer of the model. Raises PromptError when it is called after a prompt
    that makes the constraint impossible, DecodingError for an id that was not allowed.
    """

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self._prompt: list[int] | None = None
        self._follower: Follower | None = None

    def __call__(self, prompt_ids: Sequence[int], past_ids: Sequence[int], logits: Any) -> Any:
        prompt = list(prompt_ids)
        if self._follower is None or prompt != self._prompt:
            self._follower, self._prompt = Follower(self._constraint, prompt), prompt
        mask = self._follower.mask(past_ids)
        if self._follower.refused:
            raise self._follower.refused
        mask_rows(logits[None], [mask], [0])
        return logits


def _refuse_drafts(vllm_config: Any) -> None:
    if getattr(vllm_config, "speculative_config", None):
        raise UnsupportedFeatureError(
            "speculative decoding in vLLM's V1 runner",
            "it gives processors no draft ids; use the V2 runner and "
            "bpe_automata.integrations.vllm_runner:ConstraintLogitsProcessor",
        )
