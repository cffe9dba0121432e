"""The arguments of `generate`, looked at before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from transformers import PreTrainedTokenizerBase, StoppingCriteriaList, StopStringCriteria

from bpe_automata.arguments import short
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.errors import ArgumentError, DecodingError
from bpe_automata.integrations.transformers.rows import continuous_batching, same_ids
from bpe_automata.tokenizer.tokenizer import Tokenizer

Pattern: TypeAlias = str | ByteDFA | Constraint

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


def stopping(model: Any, options: dict[str, Any], tokenizer: Any, forced: bool) -> dict[str, Any]:
    """The options of `model.generate` that make `stop_strings` work, which need a tokenizer of
    transformers; empty where there are none. Raises ArgumentError."""
    strings = settings(model, options)("stop_strings")
    if strings is None:
        return {}
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise ArgumentError(
            f"stop_strings need a tokenizer of transformers, not a {type(tokenizer).__name__}: "
            "give it as hf_tokenizer"
        )
    if not forced:
        return {"tokenizer": tokenizer}
    # Beside a `custom_generate` transformers loses the tokenizer, so the criterion is made here.
    for config in (options.get("generation_config"), model.generation_config):
        if getattr(config, "stop_strings", None) is not None:
            raise ArgumentError(
                "stop_strings of a generation configuration do not go with forced=True: give them "
                "to generate alone"
            )
    criteria = [*(options.get("stopping_criteria") or []), StopStringCriteria(tokenizer, strings)]
    return {"stop_strings": None, "stopping_criteria": StoppingCriteriaList(criteria)}


def patterns(regexes: Pattern | Sequence[Pattern], count: int) -> list[Pattern]:
    """One per prompt. Raises ArgumentError."""
    given: list[object] = list(regexes) if isinstance(regexes, list | tuple) else [regexes] * count
    each: list[Pattern] = []
    for number, one in enumerate(given):
        if not isinstance(one, str | ByteDFA | Constraint):
            raise ArgumentError(
                f"regex {number} is {short(one)}: give a str, ByteDFA or Constraint"
            )
        each.append(one)
    if len(each) != count:
        raise ArgumentError(f"{len(each)} regexes for {count} prompts: give one, or one each")
    return each


def texts(prompts: str | Sequence[str]) -> list[str]:
    """The prompts as a list. Raises ArgumentError."""
    each = [prompts] if isinstance(prompts, str) else list(prompts)
    for number, one in enumerate(each):
        if not isinstance(one, str):
            raise ArgumentError(f"prompt {number} is {short(one)}: give a str")
    return each


def end_ids(
    model: Any,
    tokenizer: Tokenizer,
    each: Sequence[Pattern],
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
