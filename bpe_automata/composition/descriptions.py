"""Languages as data, as the command line and the requests of servers give them.

A description is a mapping with one of these keys, and with options of that one:

    regex            a text in Python's syntax
    choices          a list of texts
    schema           of JSON: an object, a boolean or JSON text; options of `json_schema`
    grammar          a text; format
    tools            functions, as OpenAI's interface takes them; format, choice, parallel, and
                     options of `json_schema`
    structural_tag   {"structures": [{"begin", "schema", "end"}], "triggers": [one text]}, a form
                     that servers take: free text, in which the trigger begins a structure;
                     options of `json_schema`

Options are called as the arguments of `json_schema`, `compile_grammar` and `tools` are, and mean
the same. Tools and structural tags may be given as JSON text, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from bpe_automata._arguments import short
from bpe_automata._budget import Budget
from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.composition.calls import STYLE, tools
from bpe_automata.composition.free import text_until, text_without
from bpe_automata.composition.joining import either, join, repeat
from bpe_automata.composition.language import automaton_of
from bpe_automata.errors import ArgumentError

_DEFAULT = Budget()
OPTIONS = {
    "regex": (),
    "choices": (),
    "schema": STYLE,
    "grammar": ("format",),
    "tools": ("format", "choice", "parallel", *STYLE),
    "structural_tag": STYLE,
}
"""The options that go with each kind of language."""

KEYS = frozenset({*OPTIONS, *(name for names in OPTIONS.values() for name in names)})
FLAGS = frozenset({"closed", "unique_names", "parallel"})
_TAG = '{"structures": [{"begin": "<f>", "schema": {}, "end": "</f>"}], "triggers": ["<f"]}'


def _is_text(given: object) -> bool:
    return isinstance(given, str)


def _are_texts(given: object) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)


_WANTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "regex": (_is_text, "a text"),
    "grammar": (_is_text, "a text"),
    "choices": (_are_texts, "a list of texts"),
    "schema": (lambda given: isinstance(given, str | bool | Mapping), "an object, or JSON text"),
    "tools": (lambda given: isinstance(given, str | list | tuple), "a list, or JSON text"),
    "structural_tag": (lambda given: isinstance(given, str | Mapping), _TAG),
    "loosen": (_are_texts, "a list of texts"),
    **dict.fromkeys(FLAGS, (lambda given: isinstance(given, bool), "True or False")),
}
"""A test of each value, and its words in a message; all other options are texts."""


def kind_of(description: Mapping[str, Any], where: str) -> str:
    """Which kind of language it is. where: what messages call the description. Raises ArgumentError
    for none, for several, for options that do not go with it, and for values of the wrong type."""
    if not isinstance(description, Mapping):
        raise ArgumentError(f'{where} is {short(description)}: give {{"regex": "..."}}')
    for name, value in description.items():
        if name not in KEYS:
            raise ArgumentError(f"{where} has no option {str(name)!r}, only {sorted(KEYS)}")
        holds, wanted = _WANTED.get(name, (_is_text, "a text"))
        if not holds(value):
            raise ArgumentError(f"{name} of {where} is {short(value)}: give {wanted}")
    kinds = [name for name in OPTIONS if name in description]
    if len(kinds) != 1:
        raise ArgumentError(
            f'{where} is {short(dict(description))}; give {{"regex": "..."}}, or in place of the '
            f"regex one of {', '.join(list(OPTIONS)[1:])}"
        )
    for name in description:
        if name != kinds[0] and name not in OPTIONS[kinds[0]]:
            raise ArgumentError(f"{name} of {where} is no option of a {kinds[0]}: leave it out")
    return kinds[0]


def described(
    description: Mapping[str, Any], budget: Budget = _DEFAULT, where: str = "the description"
) -> ByteAutomaton:
    """The automaton of a description: a mapping with one of the keys regex, choices, schema,
    grammar, tools and structural_tag, and its options, called as the arguments of
    `json_schema`, `compile_grammar` and `tools` are. Raises ArgumentError, and what these and
    `join` raise.

        constrain(tokenizer, described({"grammar": text, "format": "gbnf"}))
    """
    kind = kind_of(description, where)
    options = {name: value for name, value in description.items() if name != kind}
    given = description[kind]
    if kind == "schema":
        from bpe_automata.schemas import json_schema

        return json_schema(given, budget=budget, **options)
    if kind == "grammar":
        from bpe_automata.grammars.linking import compile_grammar

        return compile_grammar(given, budget=budget, **options)
    if kind == "tools":
        functions = _read(given, f"tools of {where}")
        if not isinstance(functions, list | tuple):
            raise ArgumentError(f"tools of {where} is {short(given)}: give a list of functions")
        return tools(functions, budget=budget, **options)
    if kind == "structural_tag":
        return _tagged(_read(given, f"structural_tag of {where}"), budget, options, where)
    return automaton_of(given, budget)


def _read(given: Any, where: str) -> Any:
    """The value of a JSON text; what is no text is taken as it is."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{where} is no JSON: {error}") from error


def _tagged(given: Any, budget: Budget, options: dict[str, Any], where: str) -> ByteAutomaton:
    from bpe_automata.schemas import json_schema

    message = f"structural_tag of {where} is {short(given)}: give {_TAG}, with one trigger"
    try:
        (trigger,) = given["triggers"]
        found = [(one["begin"], one["schema"], one["end"]) for one in given["structures"]]
        texts = [text for begin, _, end in found for text in (begin, end)]
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ArgumentError(message) from error
    if not found or not _are_texts(given["triggers"]) or not _are_texts(texts):
        raise ArgumentError(message)
    if not trigger or not all(begin.startswith(trigger) for begin, _, _ in found):
        raise ArgumentError(f"{message}, with which each structure begins")
    structures = [
        join(
            [begin[len(trigger) :]], json_schema(schema, budget=budget, **options), [end],
            budget=budget,
        )
        for begin, schema, end in found
    ]  # fmt: skip
    block = join(
        text_until(trigger, budget=budget), either(*structures, budget=budget), budget=budget
    )
    return join(repeat(block, budget=budget), text_without(trigger, budget=budget), budget=budget)
