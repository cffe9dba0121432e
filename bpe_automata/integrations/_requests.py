"""Reads what a request of a server asks for, and keeps constraints between requests."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from bpe_automata._arguments import short
from bpe_automata._budget import Budget
from bpe_automata._sharing import Lock, locked
from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.composition.descriptions import FLAGS, KEYS, described, kind_of
from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.errors import (
    ArgumentError,
    BpeAutomataError,
    BudgetExceededError,
    PromptError,
)
from bpe_automata.tokenizer.tokenizer import AddedTokens, Tokenizer

KEY = "bpe_automata"
"""The key of a request's extra arguments under which its constraint is."""

STRUCTURED = "structured_outputs"
"""The option that holds vLLM's own fields of that name, where they mean the same here."""

VLLM_NAMES = {n: n for n in ("regex", "structural_tag")} | {"json": "schema", "choice": "choices"}
"""What vLLM calls a language, and what a description calls it."""

VLLM_FLAGS = "json_object", "disable_any_whitespace", "disable_additional_properties"

METHODS: tuple[Method, ...] = ("canonical", "lift")
Prefix = bool | Literal["if possible"]
MOST = 64
"""How many constraints are kept. One may hold a few times 64 MB of visited rows."""

SECONDS = "BPE_AUTOMATA_MAX_SECONDS"
"""The environment variable by which a server bounds each call of a constraint, in seconds."""


@dataclass(frozen=True)
class Options:
    """The constraint of one request.

    language: JSON text of a description, see `composition.descriptions`. method: "canonical" or
    "lift". prefix: begin after the prompt's own ids; False: as if the text stood alone; "if
    possible": after the prompt if an answer can follow it, else alone. added_tokens, after: as for
    `constrain`. eos_ids: None for those of the model. within: the most ids that an answer may have,
    see `Constraint.within`. max_seconds: for each call (see `Budget`), at most what the server
    allows.
    """

    language: str
    method: Method = "canonical"
    prefix: Prefix = True
    added_tokens: AddedTokens = "plain"
    eos_ids: tuple[int, ...] | None = None
    max_seconds: float | None = None
    after: str | None = None
    within: int | None = None

    @property
    def budget(self) -> Budget:
        """The budget of each call. Raises ArgumentError if the server's own setting is invalid."""
        budget = Budget()
        most = _read_seconds(os.environ.get(SECONDS, budget.max_seconds), SECONDS)
        return replace(budget, max_seconds=min(most, self.max_seconds or most))

    def followed(self, constraint: Constraint, prompt: Sequence[int]) -> Sequence[int]:
        """The ids that the answer begins after: the prompt's, or none. With prefix True they may be
        ids that no answer can follow; `Constraint.matcher` then raises PromptError."""
        if self.prefix == "if possible":
            try:
                constraint.matcher(prompt)
            except PromptError:
                return ()
        return prompt if self.prefix else ()

    def compiled(self) -> ByteAutomaton:
        """The language. Raises what `described` raises."""
        return described(json.loads(self.language), self.budget, KEY)


def is_asked(extra_args: Mapping[str, Any] | None) -> bool:
    """Does a request have a constraint, valid or not?"""
    return bool(_given(extra_args or {}))


def _given(extra_args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments under the keys of this package that are not None."""
    return {
        key: value
        for key, value in extra_args.items()
        if value is not None and (key == KEY or str(key).startswith(f"{KEY}_"))
    }


def read_options(extra_args: Mapping[str, Any] | None) -> Options | None:
    """The options under `KEY`, a mapping or the JSON text of one, or else under keys of their own
    (`bpe_automata_regex`, ...), for servers that take only flat values; None if the request has no
    constraint. Raises ArgumentError."""
    if not isinstance(extra_args, Mapping | None):
        raise ArgumentError(f"the extra arguments are {short(extra_args)}: give a mapping")
    found = _given(extra_args or {})
    if not found:
        return None
    given = _nested(found[KEY]) if KEY in found else _flat(found)
    if KEY in found and len(found) > 1:
        raise ArgumentError(f"give either {KEY} or {max(found)}, not both")
    given = {name: value for name, value in given.items() if value is not None}
    own = {name: given.pop(name) for name in WANTED if name in given}
    if unknown := {str(name) for name in given if name not in (*KEYS, STRUCTURED)}:
        names = sorted({*KEYS, *WANTED, STRUCTURED})
        raise ArgumentError(f"{KEY} has no option {min(unknown)!r}, only {names}")
    check_options(own)
    if STRUCTURED in given:
        found_there = _structured(given.pop(STRUCTURED))
        if twice := found_there.keys() & given.keys():
            raise ArgumentError(f"{KEY} has {min(twice)} and {STRUCTURED} has it too: give it once")
        given = {**found_there, **given}
    for name in ("eos_ids", "added_tokens"):
        if isinstance(own.get(name), list):
            own[name] = tuple(own[name])
    if "max_seconds" in own:
        own["max_seconds"] = _read_seconds(own["max_seconds"], "max_seconds")
    return Options(text_of(given), **own)


def text_of(description: Mapping[str, Any]) -> str:
    """The JSON text of a description, once its keys are checked. Raises ArgumentError."""
    kind = kind_of(description, KEY)
    try:
        return json.dumps(description)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"{kind} of {KEY} is no JSON: {error}") from error


def _structured(given: Any) -> dict[str, Any]:
    """The description of vLLM's own fields. White space in JSON is free there by default, and so it
    is here, as far as "flexible" goes."""
    if not isinstance(given, Mapping):
        raise ArgumentError(f'{STRUCTURED} of {KEY} is {short(given)}: give {{"json": schema}}')
    fields = {name: value for name, value in given.items() if value is not None}
    flags = {name: fields.pop(name, False) for name in VLLM_FLAGS}
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ArgumentError(f"{name} of {STRUCTURED} is {short(value)}: give True or False")
    any_object, compact, closed = flags.values()
    if any_object:
        if "json" in fields:
            raise ArgumentError(f"{STRUCTURED} of {KEY} has json and json_object: give one of them")
        fields["json"] = {"type": "object"}
    if unknown := {str(name) for name in fields if name not in VLLM_NAMES}:
        raise ArgumentError(
            f"{STRUCTURED} of {KEY}: {min(unknown)} is not supported, only {sorted(VLLM_NAMES)}, "
            f'{", ".join(VLLM_FLAGS)} (a grammar is given as "grammar", with its "format")'
        )
    found = {VLLM_NAMES[name]: value for name, value in fields.items()}
    if found.keys() & {"schema", "structural_tag"}:
        found |= {"whitespace": "compact" if compact else "flexible", "closed": closed}
    return found


def _is_list(given: object, holds: Callable[[Any], bool]) -> bool:
    return isinstance(given, list | tuple) and all(map(holds, given))


WANTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "method": (lambda given: given in METHODS, f"one of {METHODS}"),
    "prefix": (
        lambda given: isinstance(given, bool) or given == "if possible",
        "True, False or 'if possible'",
    ),
    "added_tokens": (
        lambda given: (
            given == "plain"
            or isinstance(given, bool)
            or _is_list(given, lambda one: isinstance(one, str))
        ),
        "'plain', True, False or a list of texts",
    ),
    "after": (
        lambda given: given is None or (isinstance(given, str) and given != ""),
        "a text, such as '</think>'",
    ),
    "eos_ids": (
        lambda given: bool(given) and _is_list(given, lambda one: type(one) is int and one >= 0),
        "a list of ids",
    ),
    "within": (lambda given: type(given) is int and given > 0, "a number of ids over 0"),
    "max_seconds": (lambda given: True, ""),
}
"""For each option a test of its value, and in words what the value may be."""


def check_options(given: Mapping[str, Any]) -> None:
    """Raise ArgumentError for a value that the option cannot have."""
    for name, (holds, wanted) in WANTED.items():
        if name in given and not holds(given[name]):
            raise ArgumentError(f"{name} of {KEY} is {short(given[name])}: give {wanted}")


def _nested(given: Any) -> Mapping[str, Any]:
    if isinstance(given, str):
        with suppress(ValueError, RecursionError):
            given = json.loads(given)
    if not isinstance(given, Mapping):
        raise ArgumentError(f'{KEY} is {short(given)}; give {{"regex": "...", "method": "lift"}}')
    return given


def _flat(found: Mapping[str, Any]) -> dict[str, Any]:
    """Flat values have no True and False: 1 and 0, "true" and "false" are taken for them."""
    given = {key.removeprefix(f"{KEY}_"): value for key, value in found.items()}
    for name in ("prefix", "added_tokens", *FLAGS):
        value = given.get(name)
        word = str(value).lower() if value in (0, 1) or isinstance(value, str) else ""
        if word in ("1", "true", "0", "false"):
            given[name] = word in ("1", "true")
    return given


def _read_seconds(given: object, name: str) -> float:
    try:
        seconds = float(given) if isinstance(given, str | int | float) else 0.0
    except (ValueError, OverflowError):
        seconds = 0.0
    if isinstance(given, bool) or not 0 < seconds < math.inf:
        raise ArgumentError(f"{name} is {short(given)}: give a number of seconds over 0")
    return seconds


def listed_ids(found: Iterable[int] | int | None) -> list[int]:
    """End-of-sequence ids as configurations name them: one, several, or None."""
    if found is None:
        return []
    return [found] if isinstance(found, int) else sorted(found)


def check_language(options: Options) -> None:
    """Refuse, before a request is queued, a regex or a schema that does not compile or that nothing
    matches. Raises ArgumentError."""
    try:
        if _is_empty(options):
            raise ArgumentError(f"no text matches {short(options.language)}")
    except BpeAutomataError as error:
        raise ArgumentError(f"{KEY}: {told(error)}") from error


@lru_cache(MOST)
def _is_empty(options: Options) -> bool:
    """Is the language empty? The answer is cached, so that a repeated regex is compiled once."""
    return options.compiled().is_empty


def told(error: BpeAutomataError) -> str:
    """The message for the client of a server; of budgets, which the server sets, it says only the
    limit."""
    if isinstance(error, PromptError):
        return f'{error}; the option prefix "if possible" asks to begin the answer afresh'
    if not isinstance(error, BudgetExceededError):
        return str(error)
    return (
        f"the constraint takes more than {error.limit:g} {error.resource}: use smaller repeat "
        "counts, or a shorter regex or schema"
    )


class Constraints:
    """The constraints of one tokenizer, made when first asked for; the `MOST` last used are kept.
    Any number of threads may use it. eos_ids: those of a request that names none; by default the
    tokenizer's. Raises ArgumentError."""

    def __init__(self, tokenizer: Tokenizer, eos_ids: Sequence[int] = ()) -> None:
        self.tokenizer = tokenizer
        self.eos_ids = tuple(dict.fromkeys(eos_ids)) or tokenizer.eos_ids
        in_range = all(0 <= token < tokenizer.n_ids for token in self.eos_ids)
        if not self.eos_ids or not in_range:
            raise ArgumentError(
                f"end-of-sequence ids {self.eos_ids} of {tokenizer!r}: at least one is needed, and "
                "each in its range"
            )
        self.lock = Lock()
        self._kept: dict[tuple[object, ...], Constraint] = {}

    def ends_of(self, options: Options) -> tuple[int, ...]:
        """The end-of-sequence ids of a request. Raises ArgumentError for one out of range."""
        if options.eos_ids is None:
            return self.eos_ids
        if max(options.eos_ids) >= self.tokenizer.n_ids:
            raise ArgumentError(
                f"eos_ids of {KEY} is {list(options.eos_ids)}; the last id of the tokenizer is "
                f"{self.tokenizer.n_ids - 1}"
            )
        return options.eos_ids

    def of(self, options: Options) -> Constraint:
        """The constraint of a request. Raises what `ends_of` and `constrain` raise."""
        eos_ids = self.ends_of(options)
        budget = options.budget
        asked = options.language, options.method, options.added_tokens, options.after
        key = (*asked, eos_ids, budget.max_seconds)
        found = self._kept.get(key)
        if found is None:
            if options.method == "canonical":
                canonical_automaton(self.tokenizer)  # at the server's expense, not the request's
            found = constrain(
                self.tokenizer,
                options.compiled(),
                method=options.method,
                eos_ids=eos_ids,
                added_tokens=options.added_tokens,
                after=options.after,
                budget=budget,
            )
        kept = self._used(key, found)
        return kept if options.within is None else kept.within(options.within)

    @locked
    def _used(self, key: tuple[object, ...], made: Constraint) -> Constraint:
        """The constraint that is kept, which another thread may have made meanwhile."""
        kept = self._kept.pop(key, made)
        self._kept[key] = kept
        if len(self._kept) > MOST:
            del self._kept[next(iter(self._kept))]
        return kept
