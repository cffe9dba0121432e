"""`generate`: a batch of prompts, each completed with a text that matches its regex."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, overload

import torch
from transformers import LogitsProcessorList

from bpe_automata._budget import Budget
from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.decoding.healing import Healed
from bpe_automata.decoding.healing import heal as give_back
from bpe_automata.decoding.matcher import Generation
from bpe_automata.errors import ArgumentError, DecodingError, PromptError
from bpe_automata.integrations.transformers._forced import ForcedDecoding
from bpe_automata.integrations.transformers._model import check_decoder
from bpe_automata.integrations.transformers._processor import ConstraintLogitsProcessor
from bpe_automata.integrations.transformers._prompts import Prompt, listed, prompt_ids
from bpe_automata.integrations.transformers._rows import (
    continuous_batching,
    naming,
    padded,
    same_ids,
)
from bpe_automata.tokenizer.tokenizer import Tokenizer


@overload
def generate(
    model: Any, tokenizer: Any, prompts: Prompt, regexes: Any, **options: Any
) -> Generation: ...
@overload
def generate(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    regexes: Any,
    **options: Any,
) -> list[Generation]: ...
def generate(
    model: Any,
    tokenizer: Any,
    prompts: Prompt | Sequence[Prompt],
    regexes: Any,
    *,
    method: Method = "canonical",
    prefix: bool = True,
    max_new_tokens: int = 128,
    eos_ids: Sequence[int] | None = None,
    seed: int | None = None,
    heal: int = 0,
    close: bool = False,
    forced: bool = False,
    hf_tokenizer: Any = None,
    budget: Budget | None = None,
    **options: Any,
) -> Generation | list[Generation]:
    """Complete each prompt with a text that matches its regex; one batch.

    `model`: a decoder-only model of transformers. `tokenizer`: a `Tokenizer`, or anything that
    `Tokenizer.load` reads.
    `prompts`: one or a list of them, each a text, its ids (a list, or a tensor [length]; a tensor
    [prompts, length] is a batch) without padding, or chat messages (a list of {"role", "content"}).
    A text is read with the ids that the tokenizer puts around it (`Tokenizer.encode_prompt`); ids
    are read as they are; messages by the chat template of a tokenizer of transformers, `tokenizer`
    or `hf_tokenizer`, with the beginning of the answer.
    `regexes`: one for all prompts, or a list of one each; a regex, or whatever else `constrain`
    takes for a language (a schema, an automaton, a list of texts), or a `Constraint` over the same
    tokenizer, which is taken as it is, `method` and all.
    `eos_ids`: by default those of the first Constraint, else of the generation config, else the
    tokenizer's.
    `seed`: for sampling; the global state of torch is left as it was.
    `heal`: how many of a prompt's last ids may be given back (see `decoding.heal`).
    `close`: allow only what can be complete within `max_new_tokens` (see `Constraint.within`).
    `forced`: do not ask the model where only one id is possible (see `ForcedDecoding`); the texts
    are the same, and each result says how many `passes` its batch took and what was `forced`.
    `hf_tokenizer`: that of transformers, which chat messages need; by default `tokenizer`, if it is
    one.
    `budget`: of the constraints that are made here (see `constrain`).
    `options`: for `model.generate` (do_sample, temperature, num_beams, ...); `logits_processor`s
    come after the mask.

    A list for a list of prompts. Raises `ArgumentError` for options that the results have no room
    for, or that are set here; `PromptError` and, with `close`, `BudgetTooSmallError`, which name
    the prompt, before anything is generated; the errors of `constrain`; and UnsupportedFeatureError
    for encoder-decoder models, continuous batching and what `ForcedDecoding` refuses; LogitsError
    where options such as min_new_tokens forbid all that the mask allows.
    """
    check_decoder(model)
    check_options(model, options, max_new_tokens)
    host = hf_tokenizer or tokenizer
    asked, alone = listed(prompts)
    each = patterns(regexes, len(asked))
    if not asked:
        return []
    tokenizer = Tokenizer.load(tokenizer)
    ends = end_ids(model, tokenizer, each, eos_ids, options)
    constraints = _constraints(tokenizer, each, method, ends, budget)
    given = [prompt_ids(tokenizer, host, *numbered) for numbered in enumerate(asked)]
    healed = _healed(constraints, given, heal)
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
    return results[0] if alone else results


def _completed(
    model: Any,
    processor: ConstraintLogitsProcessor,
    batch: dict[str, torch.Tensor],
    ends: tuple[int, ...],
    seed: int | None,
    options: dict[str, Any],
) -> list[list[int]]:
    """The ids after each prompt, with what follows the end of sequence."""
    own = {name: options[name] for name in options if name not in ("logits_processor", *SET_HERE)}
    after = options.get("logits_processor") or []
    with _seeded(seed, model.device):
        output = model.generate(
            **{name: tensor.to(model.device) for name, tensor in batch.items()},
            logits_processor=LogitsProcessorList([processor, *after]),
            eos_token_id=list(ends),
            pad_token_id=ends[0],
            **own,
        )
    completed: list[list[int]] = output[:, batch["input_ids"].shape[1] :].tolist()
    return completed


def _after_healing(tokenizer: Tokenizer, result: Generation, healed: Healed) -> Generation:
    """The text without what was given back."""
    if healed.healing is None:
        return result
    written = tokenizer.text_bytes(result.ids, healed.prefix)[len(healed.healing.text) :]
    return replace(result, text=written.decode("utf-8", "replace"), healing=healed.healing)


def _constraints(
    tokenizer: Tokenizer,
    each: list[Any],
    method: Method,
    eos_ids: tuple[int, ...],
    budget: Budget | None,
) -> list[Constraint]:
    """One per prompt; equal regexes share theirs."""
    built: dict[int | str, Constraint] = {}
    found = []
    for regex in each:
        key = regex if isinstance(regex, str) else id(regex)
        if isinstance(regex, Constraint):
            built[key] = regex
        elif key not in built:
            built[key] = constrain(tokenizer, regex, method, eos_ids, budget=budget)
        found.append(built[key])
    return found


def _healed(constraints: list[Constraint], given: list[list[int]], heal: int) -> list[Healed]:
    """Raises PromptError, naming the prompt."""
    found = []
    for number, (constraint, ids) in enumerate(zip(constraints, given, strict=True)):
        if not heal:
            found.append(Healed(constraint, tuple(ids), None))
            continue
        with naming(number):
            one = give_back(constraint, ids, heal)
            if ids and not one.prefix:
                raise PromptError(
                    f"healing would give back all of its ids ({one.healing}), and the model needs "
                    "at least one: begin the prompt with more text, or lower heal"
                )
        found.append(one)
    return found


@contextmanager
def _seeded(seed: int | None, device: torch.device) -> Iterator[None]:
    """Seed torch inside, and give its global state back after."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


# The arguments of `generate`, checked before anything is built.

_OWN = {
    "custom_generate": "use forced=True, or model.generate with a ConstraintLogitsProcessor",
    "eos_token_id": "give eos_ids",
    "pad_token_id": "the results hold no padding",
    "max_length": "give max_new_tokens",
    "input_ids": "give prompts",
    "inputs": "give prompts",
    "inputs_embeds": "give prompts",
    "attention_mask": "it is made from the prompts",
    "return_dict_in_generate": "use model.generate with a ConstraintLogitsProcessor",
}
"""What the caller of `generate` cannot give, and what to do instead."""
SET_HERE = [name for name in _OWN if name not in ("custom_generate", "return_dict_in_generate")]
"""Names that may come as None or False, and are not handed on twice."""


def check_options(model: Any, options: dict[str, Any], max_new_tokens: int) -> None:
    """Raises ArgumentError that names the option, UnsupportedFeatureError."""
    setting = settings(model, options)
    if setting("cache_implementation") == "paged":
        raise continuous_batching()
    for name, instead in _OWN.items():
        if options.get(name) is not None and options[name] is not False:
            raise ArgumentError(f"{name} cannot be given to generate: {instead}")
    if setting("return_dict_in_generate"):
        raise ArgumentError("return_dict_in_generate is on: give return_dict_in_generate=False")
    if setting("stop_strings"):
        raise ArgumentError("stop_strings: let the regex end where the text is to end")
    if (setting("num_return_sequences") or 1) != 1:
        raise ArgumentError("num_return_sequences: to have several, repeat the prompt")
    if type(max_new_tokens) is not int or max_new_tokens < 1:
        raise ArgumentError(f"max_new_tokens is {max_new_tokens!r}: give a whole number over 0")
    other = getattr(options.get("generation_config"), "max_new_tokens", None)
    if other not in (None, max_new_tokens):
        raise ArgumentError(
            f"max_new_tokens is {max_new_tokens}, that of generation_config {other}: "
            "give it to generate alone"
        )


def settings(model: Any, options: dict[str, Any]) -> Callable[[str], Any]:
    """What `model.generate` goes by: the option, else that of the configuration given, else the
    model's."""
    configs = (options.get("generation_config"), model.generation_config)

    def setting(name: str) -> Any:
        found = (options.get(name), *(getattr(config, name, None) for config in configs))
        return next((value for value in found if value is not None), None)

    return setting


def patterns(regexes: Any, count: int) -> list[Any]:
    """One per prompt. Raises ArgumentError."""
    each = list(regexes) if isinstance(regexes, list | tuple) else [regexes] * count
    if len(each) != count:
        raise ArgumentError(
            f"{len(each)} regexes for {count} prompts: give one, or one each; a list of texts for "
            "one prompt is [texts]"
        )
    return each


def end_ids(
    model: Any,
    tokenizer: Tokenizer,
    each: Sequence[Any],
    given: Sequence[int] | None,
    options: dict[str, Any],
) -> tuple[int, ...]:
    """The end-of-sequence ids: those given, else of the first Constraint, else of the model, else
    of the tokenizer. Raises ArgumentError for a Constraint that does not fit, DecodingError."""
    made = {number: one for number, one in enumerate(each) if isinstance(one, Constraint)}
    found: Any = given
    if found is None:
        found = next((one.eos_ids for one in made.values()), None)
    if found is None:
        found = settings(model, options)("eos_token_id")
    if found is None:
        found = tokenizer.eos_ids
    ids = (found,) if isinstance(found, int) else tuple(found)
    if not ids:
        raise DecodingError("neither model nor tokenizer names an end-of-sequence id: pass eos_ids")
    for number, one in made.items():
        if not same_ids(one.tokenizer, tokenizer):
            raise ArgumentError(f"constraint {number} is over another tokenizer than was given")
        if set(one.eos_ids) != set(ids):
            raise ArgumentError(
                f"constraint {number} ends with ids {one.eos_ids}, others with {ids}: make all of "
                "them with the same eos_ids"
            )
    return ids
