"""The state of the constraint in each row of a batch, derived from the ids of that row alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch

from bpe_automata._arguments import short
from bpe_automata._kernels.bits import has, packed
from bpe_automata.constructions.engine import Engine
from bpe_automata.decoding.batches import found_masks, written
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.token_table import Listed, TokenTable
from bpe_automata.errors import (
    ArgumentError,
    BudgetTooSmallError,
    BufferShapeError,
    DecodingError,
    PromptError,
    TokenOutOfRangeError,
    UnsupportedFeatureError,
)
from bpe_automata.tokenizer.tokenizer import Tokenizer

State: TypeAlias = Hashable
Language: TypeAlias = Constraint | TokenTable
WITHOUT = " (encoder-decoder models, which give the answer alone, are not supported)"
ENDED: State = ("ended",)
"""A row that has read an end-of-sequence id, or an id that no constraint allowed."""


def continuous_batching() -> UnsupportedFeatureError:
    """The error where a host gives ids as continuous batching does."""
    return UnsupportedFeatureError(
        "continuous batching",
        "it gives logits processors one id per sequence, or drops them; use model.generate without "
        'cache_implementation="paged"',
    )


@contextmanager
def naming(prompt: int) -> Iterator[None]:
    """Inside, errors about a prompt say its number."""
    try:
        yield
    except (BudgetTooSmallError, PromptError, TokenOutOfRangeError) as error:
        error.args = (f"prompt {prompt}: {error}",)
        raise


def same_ids(one: Tokenizer, other: Tokenizer) -> bool:
    """Does each id spell the same in both?"""
    return one is other or one.description.tokens == other.description.tokens


class Rows:
    """The prompts of a batch, and the state that follows each of their completions.

    `constraints`: one for all prompts, or one per prompt; `input_ids`: int[prompts, width];
    `attention_mask`: the same shape, 0 on padding. With a memo of the last two lengths, each new id
    takes one transition; a row that is not in the memo is read from its beginning.
    """

    def __init__(
        self,
        constraints: Language | Sequence[Language],
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None,
        prefix: bool,
        pad_id: int | None,
    ) -> None:
        prompts = unpadded(input_ids, attention_mask, pad_id)
        each = one_each(constraints, len(prompts))
        made = {id(one): _engine(one) for one in each}
        self.engines = [made[id(one)] for one in each]
        self.given = input_ids.cpu().numpy().astype(np.int64)
        self.starts: list[State] = []
        for number, (engine, prompt) in enumerate(zip(self.engines, prompts, strict=True)):
            with naming(number):
                start = engine.initial(prompt if prefix else ())
                self.starts.append(start if _goes_on(engine, start) else ENDED)
        self.ended_masks = _ended_masks(self.engines, pad_id)
        self._length = -1
        self._memo: dict[tuple[int, bytes], State] = {}
        self._older: dict[tuple[int, bytes], State] = {}

    def completions(self, input_ids: torch.Tensor) -> tuple[np.ndarray, int]:
        """int64[rows, length], the ids after the prompts, and how many rows each prompt has."""
        if input_ids.ndim != 2:
            raise continuous_batching()
        ids = np.ascontiguousarray(input_ids.cpu().numpy()).astype(np.int64, copy=False)
        prompts, width = self.given.shape
        each, rest = divmod(len(ids), prompts)
        if rest or not each:
            raise BufferShapeError(f"{len(ids)} rows are no multiple of {prompts} prompts")
        if ids.shape[1] < width:
            raise BufferShapeError(f"rows of {ids.shape[1]} ids for prompts of {width}{WITHOUT}")
        if ids.shape[1] == width and not np.array_equal(ids, np.repeat(self.given, each, axis=0)):
            raise PromptError("these are not the prompts that the processor was made for")
        return ids[:, width:], each

    def state(self, prompt: int, ids: np.ndarray) -> State:
        """The state after the completion `ids`, int64[length], of prompt number `prompt`."""
        if len(ids) != self._length:
            self._length, self._older, self._memo = len(ids), self._memo, {}
        key = (prompt, ids.tobytes())
        if key not in self._memo:
            self._memo[key] = self._found(prompt, ids)
        return self._memo[key]

    def states(self, completions: np.ndarray, each: int) -> list[tuple[int, State]]:
        """(prompt, state) of each row."""
        return [(k // each, self.state(k // each, ids)) for k, ids in enumerate(completions)]

    def masks(self, states: Sequence[tuple[int, State]]) -> np.ndarray:
        """int32[rows, words]: `mask` of each row, in one call. Errors say the row."""
        ended, engines = self.ended_masks, self.engines
        asked = [ended[k] if at is ENDED else (engines[k], at) for k, at in states]
        return written(found_masks(asked))

    def mask(self, prompt: int, state: State) -> np.ndarray:
        """int32[words], packed; in a row that has ended, the end-of-sequence ids and padding."""
        return self.ended_masks[prompt] if state is ENDED else self.engines[prompt].mask(state)

    def _found(self, prompt: int, ids: np.ndarray) -> State:
        before = (prompt, ids[:-1].tobytes())
        if len(ids) and before in self._older:
            return self._step(prompt, self._older[before], int(ids[-1]))
        state = self.starts[prompt]
        for token_id in ids:
            state = self._step(prompt, state, int(token_id))
        return state

    def _step(self, prompt: int, state: State, token_id: int) -> State:
        engine = self.engines[prompt]
        if token_id < 0:
            raise TokenOutOfRangeError(f"id {token_id} is not in 0 .. {engine.n_ids - 1}")
        if state is ENDED or token_id in engine.eos_ids:
            return ENDED
        if token_id >= engine.n_ids or not has(engine.mask(state), token_id):
            return ENDED
        after = engine.step(state, token_id)
        return after if _goes_on(engine, after) else ENDED


def _engine(language: Language) -> Engine[Any]:
    return (
        Listed.over(language) if isinstance(language, TokenTable) else language.engine_with_room()
    )


def _goes_on(engine: Engine[Any], state: State) -> bool:
    """May any id follow? Only a table without end-of-sequence ids has states where none may."""
    return bool(engine.eos_ids) or bool(engine.mask(state).any())


def one_each(constraints: Language | Sequence[Language], count: int) -> Sequence[Language]:
    """The constraint of each prompt. Raises ArgumentError."""
    if isinstance(constraints, Language):
        return [constraints] * count
    are_several = isinstance(constraints, Sequence) and not isinstance(constraints, str)
    each: list[object] = [*constraints] if are_several else [constraints]
    found: list[Language] = []
    for number, one in enumerate(each):
        if not isinstance(one, Language):
            raise ArgumentError(
                f"constraint {number} is {short(one)}: make one with constrain(tokenizer, ...)"
            )
        found.append(one)
    if len(found) != count:
        raise ArgumentError(
            f"{len(found)} constraints for {count} prompts: give one for all, or one each"
        )
    first = found[0]
    for number, one in enumerate(found):
        if not _same_vocabulary(one, first):
            raise ArgumentError(
                f"constraint {number} is over {_ids_of(one)}, constraint 0 over {_ids_of(first)}: "
                "one tokenizer is needed"
            )
    return found


def _same_vocabulary(one: Language, other: Language) -> bool:
    if isinstance(one, TokenTable) or isinstance(other, TokenTable):
        return one.n_ids == other.n_ids
    return same_ids(one.tokenizer, other.tokenizer)


def _ids_of(language: Language) -> str:
    name = f"{language.tokenizer.name} of " if isinstance(language, Constraint) else ""
    return f"{name}{language.n_ids} ids"


def _ended_masks(engines: Sequence[Engine[Any]], pad_id: int | None) -> list[np.ndarray]:
    """For each prompt, what a row of it may read once it has ended. Raises DecodingError,
    TokenOutOfRangeError."""
    pads = () if pad_id is None else (pad_id,)
    if pad_id is not None and not 0 <= pad_id < engines[0].n_ids:
        raise TokenOutOfRangeError(f"pad_id {pad_id} is not in 0 .. {engines[0].n_ids - 1}")
    made: dict[tuple[int, ...], np.ndarray] = {}
    for number, engine in enumerate(engines):
        ends = (*engine.eos_ids, *pads)
        if not ends:
            raise DecodingError(
                f"constraint {number} has no end-of-sequence id: make it with eos_ids, or give "
                "pad_id"
            )
        if ends not in made:
            made[ends] = packed(ends, engine.n_ids)
    return [made[(*engine.eos_ids, *pads)] for engine in engines]


# Batches as tensors: prompts padded on the left.


def padded(prompts: list[list[int]], pad_id: int) -> dict[str, torch.Tensor]:
    """`input_ids` and `attention_mask`, int64[prompts, width], padded on the left."""
    if not all(prompts):
        raise PromptError(f"prompt {prompts.index([])} is empty: the model needs at least one id")
    width = max(map(len, prompts))
    ids = [[pad_id] * (width - len(prompt)) + prompt for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


def check_prompts(
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    pad_id: int | None = None,
) -> None:
    """Raises BufferShapeError for what is not int [prompts, width], at least one prompt, and
    PromptError for padding on the right, after which no model goes on with the prompt.

    Without a mask, one prompt of several that ends with `pad_id` counts as padded on the right."""
    shape, kind = tuple(input_ids.shape), input_ids.dtype
    if input_ids.ndim != 2 or not shape[0] or kind.is_floating_point or kind == torch.bool:
        raise BufferShapeError(
            f"input_ids are {kind} of shape {shape}: integers [prompts, width] are needed"
        )
    advice = 'pad on the left (padding_side="left")'
    if attention_mask is None:
        if pad_id is not None and len(input_ids) > 1 and shape[1]:
            advice += ", or give the attention_mask if the id belongs to the prompt"
            _refuse(input_ids[:, -1] == pad_id, f"ends with pad_id {pad_id}: {advice}")
        return
    if attention_mask.shape != input_ids.shape:
        raise BufferShapeError(
            f"attention_mask of shape {tuple(attention_mask.shape)} for input_ids of {shape}"
        )
    read = attention_mask.bool()
    padded_after = (read[:, :-1] & ~read[:, 1:]).any(1)
    _refuse(padded_after, f"has padding after ids, says its attention_mask: {advice}")


def _refuse(rows: torch.Tensor, why: str) -> None:
    """Raises PromptError where any of `rows`, bool[prompts], is True."""
    if rows.any():
        raise PromptError(f"prompt {int(rows.nonzero()[0])} {why}")


def unpadded(
    input_ids: torch.Tensor, attention_mask: torch.Tensor | None, pad_id: int | None
) -> list[list[int]]:
    """The ids of each prompt without its padding. Raises as `check_prompts` does."""
    check_prompts(input_ids, attention_mask, pad_id)
    if attention_mask is None:
        return [row.tolist() for row in input_ids]
    rows = zip(input_ids, attention_mask, strict=True)
    return [ids[mask.bool()].tolist() for ids, mask in rows]
