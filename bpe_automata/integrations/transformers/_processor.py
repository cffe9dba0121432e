"""The logits processor: the mask of each row, from the ids of that row.

The processor keeps no counter of steps. `generate` reorders rows (beam search), pads prompts on the
left, and goes on calling after a row has ended, so the state of a row is always derived from the
ids of that row; a memo of the last step makes that one transition instead of many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessor

from bpe_automata._kernels.bits import has, members, only, packed
from bpe_automata.constructions.engine import Engine
from bpe_automata.decoding.matcher import Generation, Reason
from bpe_automata.errors import (
    BufferShapeError,
    LogitsError,
    PromptError,
    TokenNotAllowedError,
    UnsupportedFeatureError,
)
from bpe_automata.integrations.bitmask import unpacked
from bpe_automata.integrations.transformers._rows import (
    ENDED,
    Language,
    Rows,
    State,
    continuous_batching,
)
from bpe_automata.tokenizer.tokenizer import Tokenizer


class ConstraintLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """Masks the logits of each row by the constraint of its prompt.

    `constraints`: one for all prompts, or one per prompt, all over the same tokenizer; their
    end-of-sequence ids may differ. A `TokenTable` will do as well, but does not depend on prompts.
    `input_ids`: int[prompts, width] as given to `model.generate`, padded on the left;
    `attention_mask`: int[prompts, width], 0 on padding (None: no padding).
    `prefix`: start from the state after the prompt, so that prompt and completion together are
    canonical; False: as if the completion stood alone.
    `pad_id`: allowed once a row has ended, as are the end-of-sequence ids; needed for a table that
    names no end-of-sequence ids.

    `model.generate` may hold several rows per prompt (beams, return sequences), next to each other.
    A row with an id that was not allowed comes up in beam search only, with score -inf, when fewer
    continuations exist than beams. It counts as ended: masking all of it would make softmax NaN.

    Raises `PromptError` if a prompt makes its constraint impossible, is padded on the right (as
    `attention_mask` says, or without one, where one of several prompts ends with `pad_id`) or is
    not one that the processor was made for, `BufferShapeError` if shapes of ids, masks or the
    number of rows do not fit, `TokenOutOfRangeError` for negative ids, `ArgumentError` for what is
    no constraint, one over another tokenizer, or too few, `DecodingError` without any
    end-of-sequence id, and `UnsupportedFeatureError` under continuous batching (see
    `only_plain_batching`).
    """

    def __init__(
        self,
        constraints: Language | Sequence[Language],
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        *,
        prefix: bool = True,
        pad_id: int | None = None,
    ) -> None:
        self._rows = Rows(constraints, input_ids, attention_mask, prefix, pad_id)
        self._asked = False

    @property
    def n_ids(self) -> int:
        """Ids of the tokenizer; logits may be wider (padding), never narrower."""
        return self._rows.engines[0].n_ids

    @property
    def supports_continuous_batching(self) -> bool:
        """What a continuous batching manager asks first. Raises UnsupportedFeatureError."""
        raise continuous_batching()

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """`scores`: float[rows, V]; a new tensor with -inf where an id is not allowed.

        Raises LogitsError for what is no such tensor and, naming the row, where an allowed id has
        NaN or +inf, or all of them have -inf. The last is no error in rows that have ended, nor
        where a prompt has several rows: beam search goes on with the others.
        """
        self._asked = True
        completions, each = self._rows.completions(input_ids)
        check_shape(scores, len(completions), self.n_ids)
        states = self._rows.states(completions, each)
        masks = self._rows.masks(states)
        allowed = unpacked(torch.from_numpy(masks).to(scores.device), scores.shape[1])
        masked = scores.masked_fill(~allowed, -torch.inf)
        spared = [each > 1 or state is ENDED for _, state in states]
        check_masked(masked, torch.tensor(spared, device=masked.device))
        return masked

    def forced(self, input_ids: torch.Tensor) -> np.ndarray:
        """int64[rows]: the only id that each row of `input_ids` allows next; -1 if not just one."""
        self._asked = True
        completions, each = self._rows.completions(input_ids)
        states = self._rows.states(completions, each)
        return np.array([only(mask) for mask in self._rows.masks(states)], dtype=np.int64)

    def result(
        self, tokenizer: Tokenizer, row: int, ids: Sequence[int], prompt: Sequence[int] = ()
    ) -> Generation:
        """How the completion `ids` of prompt number `row` ended; `ids` may end with padding.
        `prompt`: the ids before them (without any, decoding may drop a space at the beginning).

        Raises `TokenNotAllowedError` for ids that the processor would not have allowed, and
        `UnsupportedFeatureError` if the processor was never called: then the host dropped it.
        """
        if len(ids) and not self._asked:
            raise UnsupportedFeatureError(
                "a host that drops logits processors",
                "these ids were written without the constraint; did cache_implementation="
                '"paged" or generate_batch turn to continuous batching?',
            )
        engine = self._rows.engines[row]
        state, kept, ended = self._rows.starts[row], list[int](), False
        for token_id in ids:
            if ended := token_id in engine.eos_ids:
                break
            if not (0 <= token_id < engine.n_ids and has(engine.mask(state), token_id)):
                raise TokenNotAllowedError(token_id, len(kept), "it is not in the mask")
            state = engine.step(state, token_id)
            kept.append(token_id)
        complete = engine.accepting(state)
        ended = complete and (ended or not goes_on(engine, state))
        reason: Reason = "complete" if ended else "truncated"
        return Generation(tokenizer.decode(kept, prompt), tuple(kept), complete, reason)


def goes_on(engine: Engine[Any], state: State) -> bool:
    """Can any id follow, besides the end of sequence?"""
    ends = packed(engine.eos_ids, engine.n_ids)
    return bool(np.any(engine.mask(state) & ~ends))


# Checks of logits, before and after they are masked. The logits of ids that are not allowed are
# never checked: whatever they are, the mask covers them.


def check_shape(logits: torch.Tensor, rows: int, n_ids: int) -> None:
    """logits: floating [rows, n_ids or more]. Waits for no device.

    Raises LogitsError for another kind or width, BufferShapeError for another number of rows."""
    shape = tuple(logits.shape)
    if logits.ndim != 2 or shape[1] < n_ids or not logits.is_floating_point():
        raise LogitsError(
            f"logits are {logits.dtype} of shape {shape}: {n_ids} ids need floating "
            f"[rows, {n_ids} or more]"
        )
    if shape[0] != rows:
        raise BufferShapeError(f"{shape[0]} rows of logits for {rows} rows of ids")


def check_masked(masked: torch.Tensor, spared: torch.Tensor) -> None:
    """masked: floating [rows, V], at least one column, -inf where an id is not allowed; spared:
    bool [rows], rows that may have no mass at all. One reduction, and a wait for the device.

    Raises LogitsError for NaN, +inf, or no mass at an allowed id, naming row and id."""
    best = masked.amax(1)  # NaN if one of them is
    wrong = ~(best < torch.inf) | ((best == -torch.inf) & ~spared)
    if not wrong.any():
        return
    row = int(wrong.nonzero()[0])
    if best[row] == -torch.inf:
        raise LogitsError(
            f"row {row}: every id that is allowed has the logit -inf: the model, or an option or "
            "logits processor before the mask (min_new_tokens, bad_words_ids, ...), forbids all "
            "that the constraint allows"
        )
    first = int((~(masked[row] < torch.inf)).nonzero()[0])
    raise LogitsError(
        f"row {row}: the logit of id {first}, which is allowed, is {float(masked[row, first])}"
    )


# The constraint in the form of `model.generate(prefix_allowed_tokens_fn=...)`.


def prefix_allowed_tokens_fn(
    constraints: Language | Sequence[Language],
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    *,
    prefix: bool = True,
    pad_id: int | None = None,
) -> Callable[[int, torch.Tensor], list[int]]:
    """fn(number of a prompt, its row so far) = the ids that `ConstraintLogitsProcessor` allows.

    The arguments are those of the processor, and so are the masks, in beam search too. It is
    slower, since it makes lists of ids. transformers itself refuses it under continuous batching.

    With several return sequences and one beam, transformers before 5.24 counts rows instead of
    prompts: fn then raises `UnsupportedFeatureError` (repeat the prompt instead). Raises
    `PromptError` for a row of another prompt, and the errors of the processor.
    """
    rows = Rows(constraints, input_ids, attention_mask, prefix, pad_id)
    prompts, width = rows.given.shape

    def allowed(prompt: int, row: torch.Tensor) -> list[int]:
        if prompt >= prompts:
            raise UnsupportedFeatureError(
                "num_return_sequences",
                f"row {prompt} was asked for, there are {prompts} prompts; repeat the prompt",
            )
        ids = np.ascontiguousarray(row.cpu().numpy()).astype(np.int64, copy=False)
        if not np.array_equal(ids[:width], rows.given[prompt]):
            raise PromptError(f"row {prompt} does not begin with prompt {prompt}")
        state = rows.state(prompt, ids[width:])
        found: list[int] = members(rows.mask(prompt, state)).tolist()
        return found

    return allowed


# Continuous batching, which honours no logits processor of a caller.
#
# In transformers 5.23 (`generation/continuous_batching/`), a manager builds its own list of
# processors from the generation config. What a caller gives is never looked at:
#
# | call | what becomes of `logits_processor=[...]` |
# |---|---|
# | `generate(cache_implementation="paged", ...)` | not handed on, without a word |
# | `generate_batch(...)` | swallowed by `**kwargs`, without a word |
# | `model._get_logits_processor` overridden | asked `supports_continuous_batching`: refused |
# | written into the manager's list | called with one id per sequence: refused |
#
# The first two cannot be refused by the processor, which nobody asks: `only_plain_batching` refuses
# them on the model, and `ConstraintLogitsProcessor.result` refuses ids it was not asked about.

_ENTRY = "init_continuous_batching"


@contextmanager
def only_plain_batching(model: Any) -> Iterator[None]:
    """Inside, every way into continuous batching of this model raises UnsupportedFeatureError.

    All of them, `generate(cache_implementation="paged")` and `generate_batch` too, go through the
    model's `init_continuous_batching`; inside, that is shadowed on this one model and, where it
    wraps another (as PEFT does), on whatever model in it generates.
    """

    def refuse(*_: object, **__: object) -> None:
        raise continuous_batching()

    shadowed = _generating(model)
    before = [vars(one).get(_ENTRY) for one in shadowed]
    for one in shadowed:
        setattr(one, _ENTRY, refuse)
    try:
        yield
    finally:
        for one, own in zip(shadowed, before, strict=True):
            delattr(one, _ENTRY)
            if own is not None:
                setattr(one, _ENTRY, own)


def _generating(model: Any) -> list[Any]:
    """The model, the model whose `generate` it borrows, and its parts that can generate."""
    parts = model.modules() if isinstance(model, torch.nn.Module) else ()
    inner = (part for part in parts if hasattr(type(part), _ENTRY))
    found = [model, getattr(model.generate, "__self__", model), *inner]
    return list({id(one): one for one in found}.values())
