"""Hugging Face transformers: a logits processor, and a `generate` that says how it ended.

    processor = ConstraintLogitsProcessor(constraint, inputs.input_ids, inputs.attention_mask)
    model.generate(**inputs, logits_processor=[processor])

The processor keeps no counter of steps. `generate` reorders rows (beam search), pads prompts on the
left, and goes on calling after a row has ended, so the state of a row is always derived from the
ids of that row; a memo of the last step makes that one transition instead of many.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias, overload

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions.engine import Engine
from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.decoding.generation import Generation, Reason
from bpe_automata.decoding.healing import Healed
from bpe_automata.decoding.healing import heal as give_back
from bpe_automata.errors import (
    BufferShapeError,
    DecodingError,
    MissingDependencyError,
    PromptError,
)
from bpe_automata.kernels.bits import has
from bpe_automata.tokenizer.tokenizer import Tokenizer

try:
    import torch
    from transformers import LogitsProcessor, LogitsProcessorList
except ImportError as error:
    message = f"{error.name} is missing; install it with: pip install 'bpe-automata[torch]'"
    raise MissingDependencyError(message) from error

Pattern: TypeAlias = str | ByteDFA
State: TypeAlias = Hashable
ENDED: State = ("ended",)
"""A row that has read an end-of-sequence id, or an id that no constraint allowed (see below)."""


class ConstraintLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """Masks the logits of each row by the constraint of its prompt.

    `constraints`: one for all prompts, or one per prompt, all over the same tokenizer.
    `input_ids`: int[prompts, width] as given to `model.generate`, padded on the left;
    `attention_mask`: int[prompts, width], 0 on padding (None: no padding).
    `prefix`: start from the state after the prompt, so that prompt and completion together are
    canonical; False: as if the completion stood alone.
    `pad_id`: allowed, beside the end-of-sequence ids, once a row has ended.

    `model.generate` may hold several rows per prompt (beams, return sequences), next to each other.
    A row with an id that was not allowed comes up in beam search only, with score -inf, when fewer
    continuations exist than beams. It counts as ended: masking all of it would make softmax NaN.

    Raises `PromptError` if a prompt makes its constraint impossible, `BufferShapeError` if the
    number of constraints, rows or logits does not fit.
    """

    def __init__(
        self,
        constraints: Constraint | Sequence[Constraint],
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        *,
        prefix: bool = True,
        pad_id: int | None = None,
    ) -> None:
        prompts = unpadded(input_ids, attention_mask)
        if isinstance(constraints, Constraint):
            constraints = [constraints] * len(prompts)
        if len(constraints) != len(prompts):
            raise BufferShapeError(f"{len(constraints)} constraints for {len(prompts)} prompts")
        self._engines = [constraint.engine for constraint in constraints]
        self._width = int(input_ids.shape[1])
        self._starts: list[State] = [
            engine.initial(prompt if prefix else ())
            for engine, prompt in zip(self._engines, prompts, strict=True)
        ]
        self._memo: dict[tuple[int, bytes], State] = {}
        ends = [*self._engines[0].eos_ids, *([] if pad_id is None else [pad_id])]
        if not ends:
            raise DecodingError("no end-of-sequence id: pass eos_ids to constrain(...)")
        self._ended_row = packed(ends, self.n_ids)

    @property
    def n_ids(self) -> int:
        """Ids of the tokenizer; logits may be wider (padding), never narrower."""
        return self._engines[0].n_ids

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """`scores`: float[rows, V]; a new tensor with -inf where an id is not allowed."""
        if scores.shape[1] < self.n_ids:
            raise BufferShapeError(f"{scores.shape[1]} logits for a tokenizer of {self.n_ids} ids")
        generated = np.ascontiguousarray(input_ids[:, self._width :].cpu().numpy())
        rows = self._masks(generated.astype(np.int64, copy=False))
        allowed = unpacked(torch.from_numpy(rows).to(scores.device), scores.shape[1])
        return scores.masked_fill(~allowed, -torch.inf)

    def result(
        self, tokenizer: Tokenizer, row: int, ids: Sequence[int], prompt: Sequence[int] = ()
    ) -> Generation:
        """How the completion `ids` of prompt number `row` ended; `ids` may end with padding.
        `prompt`: the ids that the text comes after (where it would begin a space may be dropped).
        """
        engine = self._engines[row]
        state, kept, ended = self._starts[row], [], False
        for token_id in ids:
            if ended := token_id in engine.eos_ids:
                break
            state = engine.step(state, token_id)
            kept.append(token_id)
        complete = engine.accepting(state)
        ended = ended or not goes_on(engine, state)
        reason: Reason = "complete" if ended else "truncated"
        return Generation(tokenizer.decode(kept, prompt), tuple(kept), complete, reason)

    def _masks(self, generated: np.ndarray) -> np.ndarray:
        """int32[rows, words]: the packed mask of each row of `generated`, int64[rows, length]."""
        per_prompt, rest = divmod(len(generated), len(self._engines))
        if rest:
            prompts = len(self._engines)
            raise BufferShapeError(f"{len(generated)} rows are no multiple of {prompts} prompts")
        masks, memo = [], {}
        for row, ids in enumerate(generated):
            prompt = row // per_prompt
            state = self._state(prompt, ids)
            memo[prompt, ids.tobytes()] = state
            ended = state is ENDED
            masks.append(self._ended_row if ended else self._engines[prompt].mask(state))
        self._memo = memo
        return np.stack(masks)

    def _state(self, prompt: int, ids: np.ndarray) -> State:
        """From the memo of the last call where it knows all ids but the last; else id by id."""
        key = (prompt, ids[:-1].tobytes())
        if len(ids) and key in self._memo:
            return self._step(prompt, self._memo[key], int(ids[-1]))
        state = self._starts[prompt]
        for token_id in ids:
            state = self._step(prompt, state, int(token_id))
        return state

    def _step(self, prompt: int, state: State, token_id: int) -> State:
        engine = self._engines[prompt]
        if state is ENDED or token_id in engine.eos_ids:
            return ENDED
        if token_id >= engine.n_ids or not has(engine.mask(state), token_id):
            return ENDED
        return engine.step(state, token_id)


@overload
def generate(
    model: Any, tokenizer: Any, prompts: str, regexes: Pattern, **options: Any
) -> Generation: ...
@overload
def generate(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str],
    regexes: Pattern | Sequence[Pattern],
    **options: Any,
) -> list[Generation]: ...
def generate(
    model: Any,
    tokenizer: Any,
    prompts: str | Sequence[str],
    regexes: Pattern | Sequence[Pattern],
    *,
    method: Method = "canonical",
    prefix: bool = True,
    max_new_tokens: int = 128,
    eos_ids: Sequence[int] | None = None,
    seed: int | None = None,
    heal: int = 0,
    **options: Any,
) -> Generation | list[Generation]:
    """Complete each prompt with a text that matches its regex; one batch.

    `model`: a decoder-only model of transformers. `tokenizer`: a `Tokenizer`, or anything that
    `Tokenizer.load` reads. `regexes`: one for all prompts or one each; a regex or a `ByteDFA`.
    `eos_ids`: by default those of the model's generation config, else the tokenizer's.
    `seed`: for sampling; the global state of torch is left as it was.
    `heal`: how many of a prompt's last ids may be given back (see `decoding.heal`).
    `options`: for `model.generate` (do_sample, temperature, num_beams, ...).

    A list for a list of prompts. Raises `PromptError` and the errors of `constrain`.
    """
    if options.get("num_return_sequences", 1) != 1:
        raise DecodingError("one sequence per prompt: to have several, repeat the prompt")
    tokenizer = Tokenizer.load(tokenizer)
    texts = [prompts] if isinstance(prompts, str) else list(prompts)
    ends = _eos_ids(model, tokenizer, eos_ids)
    constraints = _constraints(tokenizer, regexes, len(texts), method, ends)
    given = [tokenizer.encode(text) for text in texts]
    healed = [
        give_back(constraint, ids, heal) if heal else Healed(constraint, tuple(ids), None)
        for constraint, ids in zip(constraints, given, strict=True)
    ]
    batch = _padded([list(one.prefix) for one in healed], ends[0])
    batch = {name: tensor.to(model.device) for name, tensor in batch.items()}
    processor = ConstraintLogitsProcessor(
        [one.constraint for one in healed], **batch, prefix=prefix
    )
    with _seeded(seed, model.device):
        output = model.generate(
            **batch,
            logits_processor=LogitsProcessorList([processor]),
            max_new_tokens=max_new_tokens,
            eos_token_id=list(ends),
            pad_token_id=ends[0],
            **options,
        )
    width = batch["input_ids"].shape[1]
    written = [ids[width:].tolist() for ids in output]
    results = []
    for row, (ids, one) in enumerate(zip(written, healed, strict=True)):
        result = processor.result(tokenizer, row, ids, one.prefix)
        results.append(_after_healing(tokenizer, result, one))
    return results[0] if isinstance(prompts, str) else results


def _after_healing(tokenizer: Tokenizer, result: Generation, healed: Healed) -> Generation:
    """The text without what was given back."""
    if healed.healing is None:
        return result
    written = tokenizer.text_bytes(result.ids, healed.prefix)[len(healed.healing.text) :]
    return replace(result, text=written.decode("utf-8", "replace"), healing=healed.healing)


def _eos_ids(model: Any, tokenizer: Tokenizer, given: Sequence[int] | None) -> tuple[int, ...]:
    found = given if given is not None else model.generation_config.eos_token_id
    if found is None:
        found = tokenizer.eos_ids
    ids = (found,) if isinstance(found, int) else tuple(found)
    if not ids:
        raise DecodingError("neither model nor tokenizer names an end-of-sequence id: pass eos_ids")
    return ids


def _constraints(
    tokenizer: Tokenizer, regexes: Any, count: int, method: Method, eos_ids: tuple[int, ...]
) -> list[Constraint]:
    """One per prompt; equal regexes share theirs."""
    each = list(regexes) if isinstance(regexes, list | tuple) else [regexes] * count
    built: dict[int | str, Constraint] = {}
    for regex in each:
        key = regex if isinstance(regex, str) else id(regex)
        if key not in built:
            built[key] = constrain(tokenizer, regex, method=method, eos_ids=eos_ids)
    return [built[regex if isinstance(regex, str) else id(regex)] for regex in each]


def _padded(prompts: list[list[int]], pad_id: int) -> dict[str, torch.Tensor]:
    """`input_ids` and `attention_mask`, int64[prompts, width], padded on the left."""
    if not all(prompts):
        raise PromptError(f"prompt {prompts.index([])} is empty: the model needs at least one id")
    width = max(map(len, prompts))
    ids = [[pad_id] * (width - len(prompt)) + prompt for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


@contextmanager
def _seeded(seed: int | None, device: torch.device) -> Iterator[None]:
    """Seed torch inside, and give its global state back after."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def goes_on(engine: Engine[Any], state: State) -> bool:
    """Can any id follow, besides the end of sequence?"""
    ends = packed(engine.eos_ids, engine.n_ids)
    return bool(np.any(engine.mask(state) & ~ends))


def unpadded(input_ids: torch.Tensor, attention_mask: torch.Tensor | None) -> list[list[int]]:
    """The ids of each prompt without its padding."""
    if attention_mask is None:
        return [row.tolist() for row in input_ids]
    rows = zip(input_ids, attention_mask, strict=True)
    return [ids[mask.bool()].tolist() for ids, mask in rows]


def packed(ids: Iterable[int], n_ids: int) -> np.ndarray:
    """int32[ceil(n_ids / 32)]: a packed little-endian mask of `ids`; others are left out."""
    bits = np.zeros((n_ids + 31) // 32 * 32, dtype=np.uint8)
    bits[[i for i in ids if i < n_ids]] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def unpacked(rows: torch.Tensor, width: int) -> torch.Tensor:
    """bool[r, width] of int32[r, words]; False beyond the packed bits. Any device."""
    shifts = torch.arange(32, dtype=torch.int32, device=rows.device)
    bits = (rows[:, :, None] >> shifts & 1).bool().flatten(1)[:, :width]
    return torch.nn.functional.pad(bits, (0, width - bits.shape[1]))
