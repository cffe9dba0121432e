"""Requests of the Berkeley Function Calling Leaderboard: questions, the arguments that functions
take, and those that are right.

The data is in the package `bfcl-eval` (Apache-2.0), which is not imported, as it needs some forty
other packages. Requests and answers are JSON lines with the same ids:

    {"id", "question": [[{"role", "content"}, ...]], "function": [{"name", "description",
     "parameters": {"type": "dict", "properties": {NAME: {"type", ...}}, "required": [NAME]}}]}
    {"id", "ground_truth": [{FUNCTION: {NAME: [every value that is accepted]}}]}

`""` among the accepted values says that the argument may be omitted; an accepted `dict` has lists
of accepted values itself. `is_right` judges as the package's `ast_checker` does for Python. Source:
Patil et al., *The Berkeley Function Calling Leaderboard*, ICML 2025.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import BpeAutomataError
from bpe_automata.schemas import json_schema
from experiments.files import lines_of, package_file

Row = dict[str, Any]
CATEGORIES = ("simple_python", "live_simple")
"""The categories whose requests have one function."""
INSTALL = "pip install --no-deps bfcl-eval==2026.3.23"
LONGEST, MOST = 60, 8
"""The most characters of a string and items of an array, so that each text of the language ends."""
ANSWER, ASKED, STATES = 80, 1100, 20_000
"""Requests with more are skipped: bytes of an answer, characters of a prompt, states of an
automaton."""
SEPARATORS = {"compact": (",", ":"), "spaced": (", ", ": ")}
"""The separators of JSON, by style."""
EXAMPLE = (
    'Function: {"name": "book_table", "description": "Book a table in a restaurant.", "parameters":'
    ' {"type": "dict", "properties": {"guests": {"type": "integer"}, "day": {"type": "string"}, '
    '"terrace": {"type": "boolean"}}, "required": ["guests", "day"]}}\n'
    "Request: Please get us a table for four on Friday.\n"
    'Arguments, as one JSON object:\n{"guests": 4, "day": "Friday"}\n\n'
)
"""The text before every request: only an example tells a base model what is wanted."""


@dataclass(frozen=True, eq=False)
class Request:
    """question: what the user says; function: its description; accepted: the values of each
    argument."""

    id: str
    question: str
    function: Row
    accepted: Row

    @property
    def parameters(self) -> Row:
        """The parameters as BFCL describes them."""
        found: Row = self.function["parameters"]
        return found

    def prompt(self) -> str:
        """What a model is asked."""
        return (
            f"{EXAMPLE}Function: {json.dumps(self.function)}\nRequest: {self.question.strip()}\n"
            "Arguments, as one JSON object:\n"
        )

    def language(self, style: str) -> ByteDFA:
        """The automaton of the texts of all valid arguments. Raises DescriptionError, and what
        `json_schema` raises."""
        schema = schema_of(self.parameters, is_bounded=True)
        made = json_schema(schema, whitespace=style, closed=True, order="schema")  # type: ignore[arg-type]
        return made.to_dfa(depth=3)

    def is_valid(self, arguments: Any) -> bool:
        """Are they valid by their schema, with strings and arrays of any length?"""
        return bool(Draft202012Validator(schema_of(self.parameters)).is_valid(arguments))

    def is_right(self, arguments: Any) -> bool:
        """Is this an accepted call?"""
        return is_right(self.parameters, self.accepted, arguments)


def requests_of(category: str) -> Iterator[Request]:
    """The requests of the installed package. Raises MissingDependencyError, MissingFileError."""
    name = f"BFCL_v4_{category}.json"
    asked, answers = (
        package_file("bfcl_eval", f"{folder}/{name}", INSTALL)
        for folder in ("data", "data/possible_answer")
    )
    yield from read(asked, answers)


def read(asked: Path, answers: Path) -> Iterator[Request]:
    """The requests of two files of JSON lines. Raises MissingFileError."""
    accepted = {row["id"]: row["ground_truth"] for row in lines_of(answers)}
    for row in lines_of(asked):
        (turn,), (function,), (answer,) = row["question"], row["function"], accepted[row["id"]]
        question = "\n".join(message["content"].strip() for message in turn)
        (values,) = answer.values()
        yield Request(row["id"], question, function, values)


@lru_cache(maxsize=2)
def chosen(n: int, seed: int, file: Path | None = None) -> dict[str, Request]:
    """Requests by id: `n` at random of those that can be asked in each style, or all if there are
    fewer. file: requests with their answers that replace those of BFCL."""
    every = [read(file, file)] if file else map(requests_of, CATEGORIES)
    found = [request for some in every for request in some]
    random.Random(seed).shuffle(found)
    return {request.id: request for request in islice(filter(is_fit, found), n)}


def is_fit(request: Request) -> bool:
    """Is the request short, and its accepted answer valid by its own schema and in the language?"""
    if len(request.prompt()) > ASKED:
        return False
    try:
        languages = {style: request.language(style) for style in SEPARATORS}
    except BpeAutomataError:
        return False
    wanted = example(request.accepted)
    if not request.is_right(wanted) or not request.is_valid(wanted):
        return False
    value = in_order(wanted, schema_of(request.parameters))
    for style, dfa in languages.items():
        text = json.dumps(value, separators=SEPARATORS[style], ensure_ascii=False).encode()
        if dfa.n_states > STATES or len(text) > ANSWER or not dfa.accepts(text):
            return False
    return True


# Schemas.

KINDS: dict[str, tuple[str, type]] = {
    "string": ("string", str),
    "integer": ("integer", int),
    "float": ("number", float),
    "boolean": ("boolean", bool),
    "array": ("array", list),
    "tuple": ("array", list),
    "dict": ("object", dict),
    "any": ("string", str),
}
"""By BFCL's type: the type of JSON Schema, and the Python type that BFCL's checker asks for."""


class DescriptionError(BpeAutomataError):
    """A description says too little of what an argument may be."""


def schema_of(described: Mapping[str, Any], is_bounded: bool = False) -> Row:
    """The JSON Schema of an argument as BFCL describes it; objects hold no other properties.
    is_bounded: with the limits `LONGEST` and `MOST`? Raises DescriptionError."""
    kind, _ = KINDS.get(described.get("type", ""), ("", None))
    needed = {"object": "properties", "array": "items"}.get(kind)
    if not kind or (needed and needed not in described):
        raise DescriptionError(f"{described} says too little")
    kept = ("enum", "minimum", "maximum")
    made: Row = {"type": kind, **{name: described[name] for name in kept if name in described}}
    if kind == "object":
        every = described["properties"].items()
        made["properties"] = {name: schema_of(one, is_bounded) for name, one in every}
        made["required"] = list(described.get("required", ()))
        made["additionalProperties"] = False
    if kind == "array":
        made["items"] = schema_of(described["items"], is_bounded)
        made |= {"maxItems": MOST} if is_bounded else {}
    if kind == "string" and is_bounded and "enum" not in made:
        made["maxLength"] = LONGEST
    return made


def example(accepted: Mapping[str, Sequence[Any]]) -> Row:
    """The first accepted value of each argument that may not be omitted; None if it accepts no
    value."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return example(value)
        return [plain(one) for one in value] if isinstance(value, list) else value

    return {
        name: plain(next(iter(values), None))
        for name, values in accepted.items()
        if "" not in values
    }


def in_order(value: Any, schema: Mapping[str, Any]) -> Any:
    """The same value with its properties in the order of the schema."""
    if schema["type"] == "object":
        every = schema["properties"].items()
        return {name: in_order(value[name], one) for name, one in every if name in value}
    if schema["type"] == "array":
        return [in_order(one, schema["items"]) for one in value]
    return value


# What is right.


def is_right(
    parameters: Mapping[str, Any], accepted: Mapping[str, Sequence[Any]], arguments: Any
) -> bool:
    """Are all required arguments there, none that is not described, and each with an accepted
    value? parameters: as BFCL describes them; accepted: by argument, see the module."""
    if not isinstance(arguments, dict):
        return False
    described = parameters["properties"]
    needed = {*parameters.get("required", ())}
    needed |= {name for name, values in accepted.items() if "" not in values}
    if needed - arguments.keys() or arguments.keys() - (described.keys() & accepted.keys()):
        return False
    return all(
        is_accepted(described[name], accepted[name], value) for name, value in arguments.items()
    )


def is_accepted(described: Mapping[str, Any], accepted: Sequence[Any], value: Any) -> bool:
    """Is the value of one argument accepted? Its type may differ from the described one if all the
    accepted values have it (as where a variable's name stands for a list); then it must equal one
    of them. An integer counts as a float, but not inside an array."""
    (_, kind), items = KINDS[described["type"]], described.get("items", {}).get("type")
    inner = KINDS[items][1] if kind is list else None
    if described["type"] == "float" and type(value) is int:
        value = float(value)
    theirs, own = _type(accepted), type(value)
    if own is not kind:
        return own is theirs and value in accepted
    if inner is not None and not any(_same_types(value, one, inner) for one in accepted):
        return False
    if theirs not in (None, kind):
        return value in accepted
    if kind is dict:
        return any(_same_object(value, one) for one in accepted if one != "")
    if inner is dict:
        return any(
            len(value) == len(one) and all(map(_same_object, value, one)) for one in accepted
        )
    if kind is list:
        return [*map(_normal, value)] in [[*map(_normal, one)] for one in accepted]
    return _normal(value) in map(_normal, accepted)


def _type(accepted: Iterable[Any]) -> type | None:
    """The type of the first value that does not stand for an omitted argument; None if none is."""
    return next((type(one) for one in accepted if one != ""), None)


def _same_types(value: list[Any], accepted: Any, inner: type) -> bool:
    """Has each item the described type, or that of an accepted value's first item?"""
    if not isinstance(accepted, list):
        return True
    return all(type(item) in (inner, _type(accepted)) for item in value)


def _same_object(value: Mapping[str, Any], accepted: Mapping[str, Sequence[Any]]) -> bool:
    missing = accepted.keys() - value.keys()
    return all("" in accepted[name] for name in missing) and all(
        name in accepted and _normal(one) in map(_normal, accepted[name])
        for name, one in value.items()
    )


def _normal(value: Any) -> Any:
    """The value for comparison: in strings, case, blanks and some punctuation are ignored, and all
    quotes are the same."""
    if not isinstance(value, str):
        return value
    return re.sub(r"[ ,./\-_*^]", "", value).lower().replace("'", '"')
