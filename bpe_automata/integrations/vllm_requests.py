"""What both runners of vLLM share: options, checks, the tokenizer, the mask of a request.

Written against vLLM 0.33.0. A worker serves many requests, so a request that cannot be served is
never an exception there: it is logged, and may only end. What can be checked before, is (see
`validate`), and the server then answers with an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata.decoding.batches import Asked, Found, found_masks
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.errors import ArgumentError, BpeAutomataError, TokenizerError
from bpe_automata.integrations.bitmask import apply_bitmask
from bpe_automata.integrations.follow import Follower
from bpe_automata.integrations.optional import require
from bpe_automata.integrations.requests import (
    KEY,
    Constraints,
    Options,
    check_language,
    is_asked,
    listed_ids,
    read_options,
)
from bpe_automata.kernels.bits import packed
from bpe_automata.tokenizer import Tokenizer

INSTALL = "pip install vllm"
logger = logging.getLogger(__name__)

CLASHING = ("structured_outputs", "allowed_token_ids", "bad_words", "thinking_token_budget")
"""Parameters that also forbid or force ids: together with a constraint nothing may be left."""


def validate(params: Any) -> None:
    """Check a request in the front end, before it is queued. params: SamplingParams. Raises
    ArgumentError, a ValueError (for a regex or schema that does not compile too)."""
    options = read_options(params.extra_args)
    if options is None:
        return
    for name in CLASHING:
        if getattr(params, name, None):
            raise ArgumentError(f"{name} and {KEY} cannot be used together: drop one of them")
    if getattr(params, "min_tokens", 0):
        raise ArgumentError(
            f"min_tokens forbids the end that {KEY} may require: write the length in the regex"
        )
    check_language(options)


def is_constrained(params: Any) -> bool:
    """Does the request have a constraint? Whether it is a good one, `RequestRow` finds out."""
    return is_asked(params.extra_args)


class RequestRow:
    """The masks of one request, from its ids. Never raises an error of this package.

    params: SamplingParams with a constraint, see `is_constrained`. Here everything is looked at
    that does not depend on ids; with `begin` the prompt is known.
    """

    def __init__(self, constraints: Constraints, params: Any) -> None:
        self._constraint: Constraint | None = None
        self._follower: Follower | None = None
        self._logged = False
        self._ended_row = packed(constraints.eos_ids, constraints.tokenizer.n_ids)
        self.after_prompt = False
        """Does the text begin after the prompt's ids?"""
        try:
            options = read_options(params.extra_args) or Options("")
            ends = constraints.ends_of(options)
            self._ended_row = packed(ends, constraints.tokenizer.n_ids)
            self._constraint = constraints.of(options)
            self.after_prompt = options.prefix
        except BpeAutomataError as error:
            self._log(error)

    def begin(self, prompt: Sequence[int] | None) -> None:
        """The ids of the prompt; None where they are not known (it was given as embeddings)."""
        if self._constraint is None:
            return
        try:
            if prompt is None and self.after_prompt:
                raise ArgumentError('the prompt\'s ids are not known: give {"prefix": False}')
            after = prompt if self.after_prompt and prompt is not None else ()
            self._follower = Follower(self._constraint, after)
        except BpeAutomataError as error:
            self._log(error)

    def asked(self, ids: Sequence[int], committed: bool = True) -> Asked:
        """For `masks_of`: what may follow the generated `ids`. committed: False for drafts, which
        may hold what is not allowed: then no matter what follows, the draft is not taken."""
        if self._follower is None:
            return self._ended_row
        try:
            asked = self._follower.asked(ids)
        except BpeAutomataError as error:  # a budget that a mask went over, say
            self._log(error)
            return self._ended_row
        if self._follower.refused and committed:
            self._log(self._follower.refused)
        return asked

    def row(self, found: Found) -> np.ndarray:
        """int32 [words]: what was found."""
        if isinstance(found, BpeAutomataError):
            self._log(found)
            return self._ended_row
        return found if self._follower is None else self._follower.row(found)

    def _log(self, error: BpeAutomataError) -> None:
        if not self._logged:
            logger.error("%s: %s; from here the request may only end", KEY, error)
            self._logged = True


def masks_of(asked: Sequence[tuple[RequestRow, Asked]]) -> list[np.ndarray]:
    """int32 [words] each: the masks of a batch, in one call."""
    found = found_masks([one for _, one in asked])
    return [row.row(mask) for (row, _), mask in zip(asked, found, strict=True)]


def mask_rows(logits: Any, masks: Sequence[np.ndarray], rows: Iterable[int]) -> None:
    """Mask in place the rows of `logits`, torch [batch, V], each by one of `masks`."""
    torch = require("torch", "pip install torch")
    packed = torch.from_numpy(np.stack(masks)).to(logits.device)
    apply_bitmask(logits, packed, rows=list(rows))


def constraints_of(vllm_config: Any) -> Constraints:
    """For the tokenizer of the served model; its end-of-sequence ids are those of vLLM, of the
    tokenizer and of the generation config together.

    Raises TokenizerError, ArgumentError, and what `Tokenizer.load` raises: at the start, not at the
    first request.
    """
    model = vllm_config.model_config
    hosted = require("vllm.tokenizers", INSTALL).cached_tokenizer_from_config(model)
    if hosted is None:
        raise TokenizerError("vLLM runs without a tokenizer (skip_tokenizer_init)")
    tokenizer = _load(hosted, model.tokenizer)
    named = model.try_get_generation_config().get("eos_token_id")
    own = listed_ids(getattr(hosted, "eos_token_id", None))
    eos_ids = [*own, *listed_ids(named), *tokenizer.eos_ids]
    if model.get_vocab_size() < tokenizer.n_ids:
        raise ArgumentError(
            f"the model gives {model.get_vocab_size()} logits, the tokenizer has "
            f"{tokenizer.n_ids} ids"
        )
    return Constraints(tokenizer, eos_ids)


def _load(hosted: Any, name: str) -> Tokenizer:
    """The tokenizer that vLLM itself uses; tokenizers without a fast backend by their folder."""
    if hasattr(hosted, "backend_tokenizer") or not Path(name).exists():
        return Tokenizer.load(hosted)
    return Tokenizer.load(name)


# vLLM's V2 model runner, speculative decoding included.
#
#     name = "bpe_automata.integrations.vllm_requests:ConstraintLogitsProcessor"
#     llm = LLM(model, logits_processors=[name])
#     llm.generate(prompt, SamplingParams(extra_args={"bpe_automata": {"regex": "(yes|no)"}}))
#
# Written against the interface of vLLM 0.33.0, whose default this runner is (where Triton is).
# There a request lives in a slot until it ends or is preempted; its ids are in a table on the
# device. Each row of the logits belongs to a slot and sees the ids up to its position: committed
# ones out of the table, draft ids out of the input of this step. Reading them waits for the device.
#
# The front end imports this module too, to check requests, so it imports no torch by itself.

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
        """Raises ArgumentError, a ValueError, which vLLM answers a request with."""
        validate(sampling_params)

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Forget the slot's last request; True if the new one has a constraint."""
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
        """What was committed since the last step; the prompt at the first. A slot's committed ids
        never change: a preempted request is added again."""
        table = states.all_token_ids.gpu
        if not self._begun:
            self._prompt_length = int(states.prompt_len.np[slot])
            self._row.begin(table[slot, : self._prompt_length].tolist())
            self._begun = True
        known = self._prompt_length + len(self._ids)
        if total > known:
            self._ids += table[slot, known:total].tolist()

    def asked(self, inputs: Sequence[tuple[int, int]]) -> list[tuple[RequestRow, Asked]]:
        """For the mask after each of the rows (position, id at that position), in order."""
        committed = self._prompt_length + len(self._ids)
        drafts = [token for at, token in sorted(inputs) if at >= committed]
        found = []
        for at, _ in inputs:
            ids = (self._ids + drafts)[: max(0, at + 1 - self._prompt_length)]
            found.append((self._row, self._row.asked(ids, at < committed)))
        return found


def _rows_of_slots(ctx: Any) -> dict[int, list[tuple[int, int, int]]]:
    """slot -> (row of the logits, position, id fed there) of each of its rows, by row."""
    slots, places = ctx.expanded_idx_mapping.tolist(), ctx.pos.tolist()
    found: dict[int, list[tuple[int, int, int]]] = {}
    for row, (slot, at, token) in enumerate(
        zip(slots, places, ctx.input_ids.tolist(), strict=True)
    ):
        found.setdefault(slot, []).append((row, at, token))
    return found
