"""llama-cpp-python: a logits processor, and a stopping criterion that raises its errors.

    constraint = constrain(Tokenizer.load(llm.model_path), "(yes|no)")
    llm.create_completion(prompt, **options(llm, constraint))

Written against llama-cpp-python 0.3.36. It calls processors from C, where an exception is printed
and then ignored, and the logits stay as they were. So `ConstraintProcessor` raises nothing: on an
error it allows only the end of the text, and keeps the error, which the stopping criterion raises
at the next id.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from bpe_automata._kernels.bits import packed
from bpe_automata._optional import require
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.errors import (
    BufferShapeError,
    DecodingError,
    UnsupportedFeatureError,
)
from bpe_automata.integrations._follow import Follower
from bpe_automata.integrations.bitmask import apply_bitmask

INSTALL = "pip install llama-cpp-python"
logger = logging.getLogger(__name__)


class ConstraintProcessor:
    """(ids, scores) -> scores with -inf where an id is not allowed. For one generation.

    constraint: over the tokenizer of the model. prompt: the ids before the constrained text; None:
    all ids of the first call. prefix: begin after the prompt's ids; False: as if the text stood
    alone. `error`: what went wrong, or None.

    The constructor raises DecodingError if the constraint has no end-of-sequence ids.
    """

    def __init__(
        self, constraint: Constraint, prompt: Sequence[int] | None = None, *, prefix: bool = True
    ) -> None:
        if not constraint.eos_ids:
            raise DecodingError("no end-of-sequence id is known: pass eos_ids to constrain(...)")
        self.error: Exception | None = None
        self._constraint, self._prefix = constraint, prefix
        self._ended_row = packed(constraint.eos_ids, constraint.n_ids)
        self._prompt = None if prompt is None else [int(token) for token in prompt]
        self._follower: Follower | None = None
        self._last = 0

    def __call__(self, input_ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """input_ids: intc [n], prompt included; scores: single [V], V >= the tokenizer's ids.
        Returns a new array."""
        try:
            mask = self._mask(np.asarray(input_ids).tolist(), len(scores))
        except Exception as error:  # whatever is raised here is lost, and the mask with it
            if self.error is None:
                logger.error("bpe_automata: %s; from here the text may only end", error)
            self.error, mask = self.error or error, self._ended_row
        found = np.array(scores)
        apply_bitmask(found, mask)
        return found

    def check(self, input_ids: Any = None, logits: Any = None) -> bool:
        """A stopping criterion that never stops: False. Raises `error` if there is one."""
        if self.error is not None:
            raise self.error
        return False

    def _mask(self, ids: list[int], width: int) -> np.ndarray:
        if self.error is not None:
            return self._ended_row
        if width < self._constraint.n_ids:
            raise BufferShapeError(
                f"{width} logits for a tokenizer of {self._constraint.n_ids} ids"
            )
        if self._prompt is None:
            self._prompt = ids
        if self._follower is None:
            self._follower = Follower(self._constraint, self._prompt if self._prefix else ())
        start = len(self._prompt)
        if ids[:start] != self._prompt:
            raise DecodingError("these ids do not begin with the prompt: make a new processor")
        self._refuse_drafts(len(ids) - start)
        mask = self._follower.mask(ids[start:])
        if self._follower.refused:
            raise self._follower.refused
        return mask

    def _refuse_drafts(self, count: int) -> None:
        """With a draft model all ids of the draft are given, without saying which is drawn next."""
        if count > self._last + 1:
            raise UnsupportedFeatureError(
                "more than one new id at once",
                "with a draft model, llama-cpp-python does not say which id is to be drawn",
            )
        self._last = count


def options(llm: Any, constraint: Constraint, *, prefix: bool = True) -> dict[str, Any]:
    """Keyword arguments for one call of `llm.generate`, `llm.create_completion` or
    `llm.create_chat_completion` (the latter takes no stopping criterion: leave it out, and call
    `check` of the processor after).

    Raises UnsupportedFeatureError for a draft model, BufferShapeError for a model with fewer ids.
    """
    host = require("llama_cpp", INSTALL)
    if getattr(llm, "draft_model", None) is not None:
        raise UnsupportedFeatureError(
            "draft_model of llama-cpp-python", "it does not say which id is to be drawn"
        )
    if llm.n_vocab() < constraint.n_ids:
        raise BufferShapeError(
            f"the model has {llm.n_vocab()} ids, the tokenizer {constraint.n_ids}"
        )
    processor = ConstraintProcessor(constraint, prefix=prefix)
    return {
        "logits_processor": host.LogitsProcessorList([processor]),
        "stopping_criteria": host.StoppingCriteriaList([processor.check]),
    }
