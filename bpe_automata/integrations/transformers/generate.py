"""`generate`: a batch of prompts, each completed with a text that matches its regex."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias, overload

import torch
from transformers import LogitsProcessorList

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.decoding.generation import Generation
from bpe_automata.decoding.healing import Healed
from bpe_automata.decoding.healing import heal as give_back
from bpe_automata.errors import DecodingError
from bpe_automata.integrations.transformers.batches import padded
from bpe_automata.integrations.transformers.forced import ForcedDecoding
from bpe_automata.integrations.transformers.processor import ConstraintLogitsProcessor
from bpe_automata.integrations.transformers.rows import continuous_batching
from bpe_automata.tokenizer.tokenizer import Tokenizer

Pattern: TypeAlias = str | ByteDFA


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
    close: bool = False,
    forced: bool = False,
    **options: Any,
) -> Generation | list[Generation]:
    """Complete each prompt with a text that matches its regex; one batch.

    `model`: a decoder-only model of transformers. `tokenizer`: a `Tokenizer`, or anything that
    `Tokenizer.load` reads. `regexes`: one for all prompts or one each; a regex or a `ByteDFA`.
    `eos_ids`: by default those of the model's generation config, else the tokenizer's.
    `seed`: for sampling; the global state of torch is left as it was.
    `heal`: how many of a prompt's last ids may be given back (see `decoding.heal`).
    `close`: allow only what can be complete within `max_new_tokens` (see `Constraint.within`).
    `forced`: do not ask the model where only one id is possible (see `ForcedDecoding`); the texts
    are the same, and each result says how many `passes` its batch took and what was `forced`.
    `options`: for `model.generate` (do_sample, temperature, num_beams, ...).

    A list for a list of prompts. Raises `PromptError`, the errors of `constrain`, with `close`
    BudgetTooSmallError before anything is generated, and UnsupportedFeatureError for continuous
    batching and what `ForcedDecoding` refuses.
    """
    if options.get("num_return_sequences", 1) != 1:
        raise DecodingError("one sequence per prompt: to have several, repeat the prompt")
    if options.get("cache_implementation") == "paged":
        raise continuous_batching()
    tokenizer = Tokenizer.load(tokenizer)
    texts = [prompts] if isinstance(prompts, str) else list(prompts)
    ends = _eos_ids(model, tokenizer, eos_ids)
    constraints = _constraints(tokenizer, regexes, len(texts), method, ends)
    given = [tokenizer.encode(text) for text in texts]
    healed = [
        give_back(constraint, ids, heal) if heal else Healed(constraint, tuple(ids), None)
        for constraint, ids in zip(constraints, given, strict=True)
    ]
    if close:
        healed = [replace(o, constraint=o.constraint.within(max_new_tokens)) for o in healed]
    batch = padded([list(one.prefix) for one in healed], ends[0])
    processor = ConstraintLogitsProcessor(
        [one.constraint for one in healed], **batch, prefix=prefix
    )
    loop = ForcedDecoding(processor, streamer=options.pop("streamer", None)) if forced else None
    options |= {"max_new_tokens": max_new_tokens, "custom_generate": loop}
    results = []
    for row, ids in enumerate(_completed(model, processor, batch, ends, seed, options)):
        result = processor.result(tokenizer, row, ids, healed[row].prefix)
        if loop is not None:
            result = replace(result, passes=loop.passes, forced=loop.forced[row])
        results.append(_after_healing(tokenizer, result, healed[row]))
    return results[0] if isinstance(prompts, str) else results


def _completed(
    model: Any,
    processor: ConstraintLogitsProcessor,
    batch: dict[str, torch.Tensor],
    ends: tuple[int, ...],
    seed: int | None,
    options: dict[str, Any],
) -> list[list[int]]:
    """The ids after each prompt, with what follows the end of sequence."""
    with _seeded(seed, model.device):
        output = model.generate(
            **{name: tensor.to(model.device) for name, tensor in batch.items()},
            logits_processor=LogitsProcessorList([processor]),
            eos_token_id=list(ends),
            pad_token_id=ends[0],
            **options,
        )
    completed: list[list[int]] = output[:, batch["input_ids"].shape[1] :].tolist()
    return completed


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


@contextmanager
def _seeded(seed: int | None, device: torch.device) -> Iterator[None]:
    """Seed torch inside, and give its global state back after."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
