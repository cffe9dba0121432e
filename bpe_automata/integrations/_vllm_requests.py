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

from bpe_automata._decoding.batches import Asked, Found, found_masks
from bpe_automata._decoding.constraint import Constraint
from bpe_automata._kernels.bits import packed
from bpe_automata._optional import require
from bpe_automata._tokenizer.tokenizer import Tokenizer
from bpe_automata.errors import ArgumentError, BpeAutomataError, TokenizerError
from bpe_automata.integrations._follow import Follower
from bpe_automata.integrations._requests import (
    KEY,
    Constraints,
    Options,
    check_language,
    is_asked,
    listed_ids,
    read_options,
)
from bpe_automata.integrations.bitmask import apply_bitmask

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
