"""What both runners of vLLM share: options, checks, the tokenizer, the mask of a request.

Written against vLLM 0.33.0. Where `validate` finds a fault, the server answers with an error. But
vLLM gives `validate` no prompt. In a worker, which sees the prompt, an exception would end all
requests, and a processor cannot fail one alone. So a request that cannot begin is logged, and its
answer is the reason: ordinary text, which begins with "bpe_automata: " and is followed by the end
(HTTP 200, finish_reason "stop"; `max_tokens` may cut it). A request that gets stuck later may only
end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata._kernels.bits import packed
from bpe_automata._optional import require
from bpe_automata.decoding.batches import Asked, Found, found_masks
from bpe_automata.decoding.constraint import Constraint
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
    text_of,
    told,
)
from bpe_automata.integrations.bitmask import apply_bitmask
from bpe_automata.tokenizer.tokenizer import Tokenizer

INSTALL = "pip install vllm"
logger = logging.getLogger(__name__)

CLASHING = ("structured_outputs", "allowed_token_ids", "bad_words", "thinking_token_budget")
"""Parameters that also forbid or force ids: together with a constraint they may forbid all."""


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
    """Does the request have a constraint? Whether it is valid is checked by `RequestRow`."""
    return is_asked(params.extra_args)


class RequestRow:
    """The masks of one request, from its ids. Never raises an error of this package.

    params: SamplingParams with a constraint, see `is_constrained`. The constructor checks all that
    needs no ids; `begin` adds the prompt.
    """

    def __init__(self, constraints: Constraints, params: Any) -> None:
        self._constraint: Constraint | None = None
        self._follower: Follower | None = None
        self._logged = False
        self._reason: list[int] = []  # the ids of the answer where the request cannot begin
        self._committed: Sequence[int] = ()  # ids of the last `asked` that was no draft
        self._tokenizer = constraints.tokenizer
        self._ended_row = packed(constraints.eos_ids, constraints.tokenizer.n_ids)
        try:
            self._options = read_options(params.extra_args) or Options(text_of({"regex": ""}))
            ends = constraints.ends_of(self._options)
            self._ended_row = packed(ends, constraints.tokenizer.n_ids)
            self._constraint = constraints.of(self._options)
        except BpeAutomataError as error:
            self._refuse(error, ())

    def begin(self, prompt: Sequence[int] | None) -> None:
        """Begin after the ids of the prompt; None if it was given as embeddings, without ids."""
        if self._constraint is None:
            return
        try:
            if prompt is None and self._options.prefix is True:
                raise ArgumentError("the prompt's ids are not known: give prefix 'if possible'")
            after = self._options.followed(self._constraint, prompt or ())
            self._follower = Follower(self._constraint, after)
        except BpeAutomataError as error:
            self._refuse(error, ())

    def asked(self, ids: Sequence[int], committed: bool = True) -> Asked:
        """For `masks_of`: what may follow the generated `ids`. committed: False for drafts, which
        may hold ids that are not allowed: vLLM rejects these, whatever the mask after them is."""
        if committed:
            self._committed = ids
        if self._follower is None:
            return self._refused_row(ids)
        try:
            asked = self._follower.asked(ids)
        except BpeAutomataError as error:  # a budget that a mask went over, say
            return self._refuse(error, ids)
        if self._follower.refused and committed:
            self._log(self._follower.refused)
        return asked

    def row(self, found: Found) -> np.ndarray:
        """int32 [words]: the row for what `found_masks` found."""
        if isinstance(found, BpeAutomataError):
            return self._refuse(found, self._committed)
        return found if self._follower is None else self._follower.row(found)

    def _refuse(self, error: BpeAutomataError, ids: Sequence[int]) -> np.ndarray:
        """int32 [words]: what may follow `ids` after an error; its text, if there are no ids."""
        self._log(error)
        if not len(ids):
            self._follower = self._constraint = None
            with suppress(BpeAutomataError):
                spelled = self._tokenizer.encode(f"{KEY}: {told(error)}")
                added = self._tokenizer.added_ids  # one may end the text, or hide in it
                self._reason = [token for token in spelled if token not in added]
        return self._refused_row(ids)

    def _refused_row(self, ids: Sequence[int]) -> np.ndarray:
        """The next id of the reason, if `ids` are its beginning; else only the end."""
        n, reason = len(ids), self._reason
        if n < len(reason) and list(ids) == reason[:n]:
            return packed(reason[n : n + 1], self._tokenizer.n_ids)
        return self._ended_row

    def _log(self, error: BpeAutomataError) -> None:
        if not self._logged:
            what = "the request ends here, with this as its answer if it had none"
            logger.error("%s: %s; %s", KEY, error, what)
            self._logged = True


def masks_of(asked: Sequence[tuple[RequestRow, Asked]]) -> list[np.ndarray]:
    """int32 [words] each: the masks of a batch, in one call."""
    found = found_masks([one for _, one in asked])
    return [row.row(mask) for (row, _), mask in zip(asked, found, strict=True)]


def mask_rows(logits: Any, masks: Sequence[np.ndarray], rows: Iterable[int]) -> None:
    """Mask in place the rows of `logits`, torch [batch, V], each by one of `masks`."""
    torch = require("torch", "pip install torch")
    apply_bitmask(logits, torch.from_numpy(np.stack(masks)), rows=list(rows))


def constraints_of(vllm_config: Any) -> Constraints:
    """The constraints for the tokenizer of the served model. Their end-of-sequence ids are those of
    vLLM, of the tokenizer and of the generation config together.

    Raises TokenizerError, ArgumentError, and what `Tokenizer.load` raises, when the server starts,
    not at the first request.
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
    """The tokenizer that vLLM itself uses; one without a fast backend is loaded from its folder."""
    if hasattr(hosted, "backend_tokenizer") or not Path(name).exists():
        return Tokenizer.load(hosted)
    return Tokenizer.load(name)
