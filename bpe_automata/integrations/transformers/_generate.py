"""`generate`: a batch of prompts, each completed with a text of its constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, overload

import torch
from transformers import LogitsProcessorList

from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.healing import Healed
from bpe_automata.decoding.healing import heal as give_back
from bpe_automata.decoding.matcher import Generation
from bpe_automata.decoding.token_table import TokenTable
from bpe_automata.errors import ArgumentError, DecodingError, PromptError
from bpe_automata.integrations.transformers._forced import ForcedDecoding
from bpe_automata.integrations.transformers._model import check_decoder
from bpe_automata.integrations.transformers._processor import ConstraintLogitsProcessor
from bpe_automata.integrations.transformers._prompts import Prompt, listed, prompt_ids
from bpe_automata.integrations.transformers._rows import (
    continuous_batching,
    naming,
    one_each,
    padded,
)
from bpe_automata.tokenizer.tokenizer import Tokenizer


@overload
def generate(
    model: Any,
    prompts: Prompt,
    constraints: Constraint | Sequence[Constraint],
    **options: Any,
) -> Generation: ...
@overload
def generate(
    model: Any,
    prompts: Sequence[Prompt],
    constraints: Constraint | Sequence[Constraint],
    **options: Any,
) -> list[Generation]: ...
def generate(
    model: Any,
    prompts: Prompt | Sequence[Prompt],
    constraints: Constraint | Sequence[Constraint],
    *,
    max_new_tokens: int = 128,
    seed: int | None = None,
    heal: int = 0,
    close: bool = False,
    forced: bool = False,
    **options: Any,
) -> Generation | list[Generation]:
    """Complete each prompt with a text of its constraint; one batch.

    `model`: a decoder-only model of transformers.
    `prompts`: one or a list of them, each a text or its ids (a list, or a tensor [length]; a tensor
    [prompts, length] is a batch) without padding. A text is read with the ids that the tokenizer
    of its constraint puts around it (`Tokenizer.encode_prompt`); ids are read as they are: those of
    chat messages are what `apply_chat_template` of a tokenizer of transformers makes.
    `constraints`: one for all prompts, or a list of one each, over one tokenizer and with the same
    end-of-sequence ids. `constrain` takes those of the tokenizer; if the model names others, pass
    them to it as `eos_ids`.
    `max_new_tokens`: ids of each text, end-of-sequence included.
    `seed`: for sampling; the global state of torch is left as it was.
    `heal`: how many of a prompt's last ids may be given back (see `decoding.heal`).
    `close`: allow only what can be complete within `max_new_tokens` (see `Constraint.within`).
    `forced`: do not ask the model where only one id is possible (see `ForcedDecoding`); the texts
    are the same, and each result says how many `passes` its batch took and what was `forced`.
    `options`: for `model.generate` (do_sample, temperature, num_beams, ...); `logits_processor`s
    come after the mask.

    Returns a list for a list of prompts. Raises `ArgumentError` for options that the results have
    no room for, or that are set here, and for constraints that do not go together; `DecodingError`
    if they have no end-of-sequence id; `PromptError` and, with `close`, `BudgetTooSmallError`,
    which name the prompt, before anything is generated; `BudgetExceededError`;
    `UnsupportedFeatureError` for encoder-decoder models, continuous batching and what
    `ForcedDecoding` refuses; `LogitsError` where options such as min_new_tokens forbid all that the
    mask allows.
    """
    check_decoder(model)
    check_options(model, options, max_new_tokens)
    asked, alone = listed(prompts)
    if not asked:
        return []
    each = fitting(constraints, len(asked))
    ends = each[0].eos_ids
    healed = _healed(each, asked, heal)
    if close:
        healed = [replace(o, constraint=o.constraint.within(max_new_tokens)) for o in healed]
    batch = padded([list(one.prefix) for one in healed], ends[0])
    processor = ConstraintLogitsProcessor([one.constraint for one in healed], **batch)
    loop = ForcedDecoding(processor, streamer=options.pop("streamer", None)) if forced else None
    options |= {"max_new_tokens": max_new_tokens, "custom_generate": loop}
    results = []
    for row, ids in enumerate(_completed(model, processor, batch, ends, seed, options)):
        tokenizer = each[row].tokenizer
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
    """The ids after each prompt, with the padding behind the end of sequence."""
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
    """The result, with a text that lacks what the prompt gave back."""
    if healed.healing is None:
        return result
    written = tokenizer.text_bytes(result.ids, healed.prefix)[len(healed.healing.text) :]
    return replace(result, text=written.decode("utf-8", "replace"), healing=healed.healing)


def _healed(constraints: list[Constraint], prompts: list[Any], heal: int) -> list[Healed]:
    """Each prompt with its constraint, healed. Raises PromptError, naming the prompt."""
    found = []
    for number, (constraint, prompt) in enumerate(zip(constraints, prompts, strict=True)):
        ids = prompt_ids(constraint.tokenizer, prompt)
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
    "eos_token_id": "make the constraints with eos_ids",
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
    """A function from a name to the value that `model.generate` uses: that of the options, else of
    the configuration among them, else of the model's configuration."""
    configs = (options.get("generation_config"), model.generation_config)

    def setting(name: str) -> Any:
        found = (options.get(name), *(getattr(config, name, None) for config in configs))
        return next((value for value in found if value is not None), None)

    return setting


def fitting(constraints: Any, count: int) -> list[Constraint]:
    """The constraint of each prompt, if all have the same end-of-sequence ids. Raises
    ArgumentError, DecodingError."""
    found: list[Constraint] = []
    for number, one in enumerate(one_each(constraints, count)):
        if isinstance(one, TokenTable):
            raise ArgumentError(
                f"constraint {number} is a TokenTable, which knows no tokenizer: use "
                "model.generate with a ConstraintLogitsProcessor"
            )
        found.append(one)
        if not one.eos_ids:
            raise DecodingError(
                f"constraint {number} has no end-of-sequence id: make it with eos_ids"
            )
        if set(one.eos_ids) != set(found[0].eos_ids):
            raise ArgumentError(
                f"constraint {number} ends with ids {one.eos_ids}, constraint 0 with "
                f"{found[0].eos_ids}: make all of them with the same eos_ids"
            )
    return found
