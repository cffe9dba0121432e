"""Outlines: its generators, with this package's masks.

    model = outlines.from_transformers(hf_model, hf_tokenizer)
    generator = Generator(model, Literal["yes", "no"])       # or a regex: Regex("[0-9]+")
    generator("Is it?", max_new_tokens=20)

Written against outlines 1.3.3. Of what it calls steerable models, those with torch are supported
(transformers); for llama-cpp-python, whose C code swallows errors, there is
`bpe_automata.integrations.llama_cpp`. Its generators hand the ids of the prompt to the processor,
which derives the state of each row from the ids of that row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bpe_automata._optional import require
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import LinkedDFA
from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.errors import (
    BufferShapeError,
    DecodingError,
    UnsupportedFeatureError,
)
from bpe_automata.grammars.linking import compile_grammar
from bpe_automata.integrations._follow import Follower
from bpe_automata.integrations._requests import listed_ids
from bpe_automata.integrations.bitmask import apply_bitmask
from bpe_automata.tokenizer.tokenizer import Tokenizer

INSTALL = "pip install outlines"
_host: Any = require("outlines.processors.base_logits_processor", INSTALL)


class ConstraintLogitsProcessor(_host.OutlinesLogitsProcessor):  # type: ignore[misc]
    """Masks each row by the constraint, which begins after the row's own prompt.

    tensor_library_name: the model's, "torch". prefix: False to begin as if the texts stood alone.
    pad_id: what prompts of a batch are padded with on the left; it is no part of them.

    Raises UnsupportedFeatureError for other libraries, DecodingError without end-of-sequence ids.
    """

    def __init__(
        self,
        constraint: Constraint,
        tensor_library_name: str = "torch",
        *,
        prefix: bool = True,
        pad_id: int | None = None,
    ) -> None:
        if tensor_library_name != "torch":
            raise UnsupportedFeatureError(
                f"the tensor library {tensor_library_name!r} of outlines",
                "give a model of transformers; for llama-cpp-python use "
                "bpe_automata.integrations.llama_cpp",
            )
        if not constraint.eos_ids:
            raise DecodingError("no end-of-sequence id is known: pass eos_ids to constrain(...)")
        super().__init__(tensor_library_name)
        self._constraint, self._prefix, self._pad_id = constraint, prefix, pad_id
        self.reset()

    def reset(self) -> None:
        """Forget the last generation; outlines calls this before each generation."""
        self._width: int | None = None
        self._rows: dict[int, tuple[list[int], Follower]] = {}

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """input_ids: [rows, n], prompts included; logits: [rows, V]. Returns new logits.

        Raises PromptError, BufferShapeError."""
        if self._width is None:
            self._width = int(input_ids.shape[1])
        if logits.shape[1] < self._constraint.n_ids:
            raise BufferShapeError(
                f"{logits.shape[1]} logits for a tokenizer of {self._constraint.n_ids} ids"
            )
        rows = enumerate(input_ids.tolist())
        masks = np.stack([self._mask(row, ids, self._width) for row, ids in rows])
        found, torch = logits.clone(), require("torch", "pip install torch")
        apply_bitmask(found, torch.from_numpy(masks))
        return found

    def _mask(self, row: int, ids: list[int], width: int) -> np.ndarray:
        """What may follow in a row. After an id that was not allowed (beam search has such rows, at
        -inf) it may only end."""
        prompt = self._without_padding(ids[:width])
        kept = self._rows.get(row)
        if kept is None or kept[0] != prompt:
            follower = Follower(self._constraint, prompt if self._prefix else ())
            kept = self._rows[row] = (prompt, follower)
        return kept[1].mask(ids[width:])

    def _without_padding(self, ids: list[int]) -> list[int]:
        first = next((k for k, token in enumerate(ids) if token != self._pad_id), len(ids))
        return ids[first:]


def Generator(  # noqa: N802 - the name that outlines gives it
    model: Any,
    output_type: Any,
    *,
    method: Method = "canonical",
    tokenizer: Any = None,
    eos_ids: Sequence[int] | None = None,
    prefix: bool = True,
) -> Any:
    """`outlines.Generator(model, output_type)` with canonical masks.

    model: a steerable model of outlines. output_type: whatever outlines turns into a regex (a
    Python type, a Literal, an enum, a Regex, a JSON schema), a CFG in lark's format, or an
    automaton or a schema as `constrain` takes them. tokenizer: anything `Tokenizer.load` reads; by
    default the model's. eos_ids: by default those of the model's generation config, else the
    tokenizer's. method: as for `constrain`. prefix: as for the processor.

    Raises UnsupportedFeatureError for other models, and the errors of `constrain`.
    """
    outlines = require("outlines", INSTALL)
    constraint = constrain(
        Tokenizer.load(_tokenizer_of(model) if tokenizer is None else tokenizer),
        _language_of(output_type),
        method=method,
        eos_ids=_eos_ids_of(model) if eos_ids is None else eos_ids,
    )
    pad_id = getattr(getattr(model, "tokenizer", None), "pad_token_id", None)
    library = getattr(model, "tensor_library_name", "none")
    processor = ConstraintLogitsProcessor(constraint, library, prefix=prefix, pad_id=pad_id)
    return outlines.Generator(model, processor=processor)


def _language_of(output_type: Any) -> Any:
    if isinstance(output_type, ByteDFA | LinkedDFA | Mapping):
        return output_type
    types = require("outlines.types.dsl", INSTALL)
    term = types.python_types_to_terms(output_type)
    if isinstance(term, types.CFG):
        return compile_grammar(term.definition)
    return types.to_regex(term)


def _tokenizer_of(model: Any) -> Any:
    found = getattr(model, "hf_tokenizer", None)
    if found is None:
        raise UnsupportedFeatureError(
            type(model).__name__, "its tokenizer is not known: pass `tokenizer`"
        )
    return found


def _eos_ids_of(model: Any) -> list[int] | None:
    config = getattr(getattr(model, "model", None), "generation_config", None)
    return listed_ids(getattr(config, "eos_token_id", None)) or None
