"""Calls of tools, in the formats that models are trained on.

A format is a few texts: what is around all calls, around each call, and between its name and its
arguments. The arguments are JSON by the schema of the function.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal, get_args

from bpe_automata._arguments import short
from bpe_automata._budget import Budget
from bpe_automata.automata.algebra import complement
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.linked import LinkedDFA
from bpe_automata.composition.free import text_until, text_without
from bpe_automata.composition.joining import either, join, part, perhaps_special, repeat, special
from bpe_automata.errors import ArgumentError

_DEFAULT = Budget()
_MARKED = "\0"  # before the text of a special token
Arguments = Literal["json", "python"]
STYLE = ("order", "closed", "formats", "loosen", "whitespace", "escapes", "unique_names")
"""Options of `json_schema`; the last three are of JSON alone."""


@dataclass(frozen=True)
class ToolFormat:
    """How calls are written: `begin`, the calls with `separator` between two of them, `end`. A call
    is `before`, the name, `between`, the arguments, `after`. A text that begins with NUL stands for
    the special token that the rest spells; any other one stands for the special token that it
    spells, if the tokenizer has one.

    has_trigger: does the first of these texts occur in calls alone? Otherwise only an answer that
    begins with it is read as calls. arguments: "json", or "python" for those of a call in Python.
    """

    before: tuple[str, ...]
    between: tuple[str, ...]
    after: tuple[str, ...]
    separator: tuple[str, ...] = ()
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    has_trigger: bool = True
    arguments: Arguments = "json"


TOOL_FORMATS = {
    "json": ToolFormat(
        ('{"name": "',), ('", "arguments": ',), ("}",), (", ",), ("[",), ("]",), has_trigger=False
    ),
    "hermes": ToolFormat(
        ("<tool_call>", '\n{"name": "'), ('", "arguments": ',), ("}\n", "</tool_call>"), ("\n",)
    ),
    "llama-3": ToolFormat(
        ('{"name": "',), ('", "parameters": ',), ("}",), ("; ",), has_trigger=False
    ),
    "llama-python": ToolFormat(
        (), (), (), (", ",), ("[",), ("]",), has_trigger=False, arguments="python"
    ),
    "mistral-v3": ToolFormat(
        ('{"name": "',), ('", "arguments": ',), ("}",), (", ",), ("\0[TOOL_CALLS]", " ["), ("]",)
    ),
    "mistral-tekken": ToolFormat(
        ('{"name": "',), ('", "arguments": ',), ("}",), (", ",), ("\0[TOOL_CALLS]", "["), ("]",)
    ),
    "mistral-v13": ToolFormat(("\0[TOOL_CALLS]",), ("\0[ARGS]",), ()),
}
"""Those of any reader of JSON lists; of Hermes and Qwen; of Llama 3.1 to 3.3; of Llama 3.2 and
later; of Mistral with SentencePiece, with Tekken, and from version 13 of its tokenizers on."""


def tools(
    functions: Iterable[Any],
    format: str | ToolFormat = "hermes",
    choice: str = "auto",
    *,
    parallel: bool = True,
    budget: Budget = _DEFAULT,
    **options: Any,
) -> LinkedDFA:
    """Answers that call tools.

    functions: Python functions, pydantic models, or dicts as OpenAI's interface takes them, with
    "name" and "parameters", perhaps inside of "function". format: a name of `TOOL_FORMATS`, or one
    of your own. choice: "required", calls alone, at least one; "auto", any text, and calls wherever
    the format begins them (a text that begins as a call does is one, in a format without a
    trigger); or the name of a function, which is called once. parallel: may there be several
    calls? options: those of `schemas.json_schema` for the arguments; white space is "spaced" by
    default, as models are trained on it, and always in calls of Python. Raises ArgumentError, and
    what `join` and `json_schema` raise. The arguments of each call are a `part` that is called as
    its function.

        constrain(tokenizer, tools([get_weather, search], "hermes"))
    """
    made = _format(format)
    _check_options(made, options)
    if isinstance(functions, dict | str) or not isinstance(functions, Iterable):
        raise ArgumentError(f"the functions are {short(functions)}: give a list of them")
    named = dict[str, Any]()
    for name, source in map(_named, functions):
        if name in ("auto", "required"):
            raise ArgumentError(f"a function is called {name!r}, which is a choice: rename it")
        if name in named:
            raise ArgumentError(f"two functions are called {short(name)}: give each name once")
        named[name] = source
    if not named:
        raise ArgumentError("there are no functions: give at least one")
    if choice not in ("auto", "required", *named):
        choices = ", ".join(map(repr, named))
        raise ArgumentError(
            f"choice is {short(choice)}: give 'auto', 'required' or one of {choices}"
        )
    chosen = {choice: named[choice]} if choice in named else named
    parallel = parallel and choice not in named
    call = _call(made, chosen, budget, options)
    first, *others = (*_texts(made.begin), *_texts(made.before))
    several, end = list[LinkedDFA](), _texts(made.end)
    alone = (
        not made.begin and not made.end
    )  # each call begins with the trigger, and is all there is
    if parallel and not (choice == "auto" and made.has_trigger and alone):
        other = join(*_texts(made.separator), *_texts(made.before), call, budget=budget)
        several = [repeat(other, budget=budget)]
    if choice != "auto" or not made.has_trigger:
        calls = join(first, *others, call, *several, *end, budget=budget)
        if choice != "auto":
            return calls
        (begin,) = first.marks.special | first.marks.perhaps
        others_begin = compile_regex(f"{re.escape(begin)}(?s:.*)", budget)
        return either(calls, complement(others_begin, budget), budget=budget)
    block = join(text_until(first, budget=budget), *others, call, *several, *end, budget=budget)
    blocks = repeat(block, 0, None if parallel else 1, budget=budget)
    return join(blocks, text_without(first, budget=budget), budget=budget)


def _check_options(made: ToolFormat, options: dict[str, Any]) -> None:
    allowed = (*(STYLE if made.arguments == "json" else STYLE[:4]), "registry")
    if unknown := set(options) - set(allowed):
        what = "calls of Python" if made.arguments == "python" else "tools"
        raise ArgumentError(f"{what} have no option {min(unknown)!r}, only {', '.join(allowed)}")


def _format(given: str | ToolFormat) -> ToolFormat:
    if isinstance(given, ToolFormat):
        every = given.begin, given.before, given.between, given.after, given.separator, given.end
        for one in every:
            if not isinstance(one, tuple) or not all(isinstance(text, str) for text in one):
                raise ArgumentError(
                    f"a field of the ToolFormat is {short(one)}: give a tuple of texts"
                )
        if given.arguments not in get_args(Arguments):
            raise ArgumentError(f"arguments is {short(given.arguments)}: give 'json' or 'python'")
        if not _texts((*given.begin, *given.before)):
            raise ArgumentError("the ToolFormat has no text before a call: give begin or before")
        return given
    if not isinstance(given, str) or given not in TOOL_FORMATS:
        formats = ", ".join(map(repr, TOOL_FORMATS))
        raise ArgumentError(f"format is {short(given)}: give one of {formats}, or a ToolFormat")
    return TOOL_FORMATS[given]


def _texts(pieces: Iterable[str]) -> list[Any]:
    """The languages of some texts of a format."""
    return [
        special(text[1:]) if text[0] == _MARKED else perhaps_special(text)
        for text in pieces
        if text not in ("", _MARKED)
    ]


def _call(
    made: ToolFormat, named: dict[str, Any], budget: Budget, options: dict[str, Any]
) -> LinkedDFA:
    """What comes behind `before`: names, arguments, and `after`."""
    from bpe_automata.schemas import json_schema
    from bpe_automata.schemas._call_style import is_name
    from bpe_automata.schemas._languages import call_arguments

    arguments: Callable[..., LinkedDFA] = json_schema
    if made.arguments == "python":
        arguments = call_arguments
        for name in named:
            if not is_name(name):
                raise ArgumentError(f"no function of Python can be called {short(name)}: rename it")
            _check_named(name, named[name])
    else:
        options = {"whitespace": "spaced", **options}
    calls = [
        join(
            [json.dumps(name, ensure_ascii=False)[1:-1]],
            *_texts(made.between),
            part(name, arguments(schema, budget=budget, **options), budget=budget),
            budget=budget,
        )
        for name, schema in named.items()
    ]
    return join(either(*calls, budget=budget), *_texts(made.after), budget=budget)


def _check_named(name: str, function: Any) -> None:
    """Raises ArgumentError for a function with arguments that cannot be given by name."""
    if isinstance(function, FunctionType):
        given = inspect.signature(function).parameters.values()
        if any(one.kind is one.POSITIONAL_ONLY for one in given):
            raise ArgumentError(f"{name} has arguments that cannot be given by name")


def _named(function: Any) -> tuple[str, Any]:
    """(name, what its arguments' schema is made of)."""
    if not isinstance(function, dict):
        name = getattr(function, "__name__", None)
        if not isinstance(name, str):
            raise ArgumentError(f"{short(function)} has no name: give a function, or a dict")
        return name, function
    inner = function.get("function", function)
    name = inner.get("name") if isinstance(inner, dict) else None
    if not isinstance(name, str) or not name:
        raise ArgumentError(f'{short(function)} has no "name": give OpenAI\'s form of a tool')
    given = inner.get("parameters")
    return name, {"type": "object", "additionalProperties": False} if given is None else given
