"""Requests of the Berkeley Function Calling Leaderboard: what is asked, which arguments a function
takes, and which of them are right.

The data is in the package `bfcl-eval` (Apache-2.0), which is not imported: it needs some forty
others. A file of requests and one of answers are JSON lines with the same ids, in one order or
another:

    {"id", "question": [[{"role", "content"}, ...]], "function": [{"name", "description",
     "parameters": {"type": "dict", "properties": {NAME: {"type", ...}}, "required": [NAME]}}]}
    {"id", "ground_truth": [{FUNCTION: {NAME: [every value that is accepted]}}]}

`""` among the accepted values says that the argument may be left out; a `dict` that is accepted has
lists of accepted values in its turn. `is_right` judges as the package's `ast_checker` does for
Python. Source: Patil et al., *The Berkeley Function Calling Leaderboard*, ICML 2025.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata.errors import BpeAutomataError
from bpe_automata.schemas import json_schema
from experiments.run.executors import Row
from experiments.run.files import lines_of, package_file
from experiments.schemas.inputs import WRITERS
from experiments.schemas.judge import Verdicts

CATEGORIES = ("simple_python", "live_simple")
"""Of the package, those where one function is there to be called."""
Style: TypeAlias = Literal["compact", "spaced"]
INSTALL = "pip install --no-deps bfcl-eval==2026.3.23"


@dataclass(frozen=True)
class Request:
    """id; question: what the user says; function: its description, as JSON text; accepted: the
    values of each argument, as JSON text. (Texts, so that it can be hashed.)"""

    id: str
    question: str
    function: str
    accepted: str

    @property
    def described(self) -> Row:
        """The function's description."""
        found: Row = json.loads(self.function)
        return found

    def prompt(self) -> str:
        """What a model is asked."""
        return (
            f"{EXAMPLE}Function: {self.function}\nRequest: {self.question.strip()}\n"
            "Arguments, as one JSON object:\n"
        )

    def schema(self) -> Row:
        """Of the arguments: no others than those that are described."""
        return schema_of_argument(self.described["parameters"])

    def is_right(self, arguments: Any) -> bool:
        """Is this an accepted call?"""
        return is_right(self.described["parameters"], json.loads(self.accepted), arguments)


EXAMPLE = (
    'Function: {"name": "book_table", "description": "Book a table in a restaurant.", "parameters":'
    ' {"type": "dict", "properties": {"guests": {"type": "integer"}, "day": {"type": "string"}, '
    '"terrace": {"type": "boolean"}}, "required": ["guests", "day"]}}\n'
    "Request: Please get us a table for four on Friday.\n"
    'Arguments, as one JSON object:\n{"guests": 4, "day": "Friday"}\n\n'
)
"""Stands before every request: a base model knows no other way to be told what is wanted."""


def files_of(category: str) -> tuple[Path, Path]:
    """(requests, answers) of a category of the installed package. Raises MissingDependencyError,
    MissingFileError."""
    name = f"BFCL_v4_{category}.json"
    folders = ("data", "data/possible_answer")
    requests, answers = (package_file("bfcl_eval", f"{one}/{name}", INSTALL) for one in folders)
    return requests, answers


def requests_of(requests: Path, answers: Path) -> Iterator[Request]:
    """Those with one function. Raises MissingFileError for files that are no JSON lines."""
    accepted = {row["id"]: row["ground_truth"] for row in lines_of(answers)}
    for row in lines_of(requests):
        (turn,), (function,), (answer,) = row["question"], row["function"], accepted[row["id"]]
        question = "\n".join(message["content"].strip() for message in turn)
        (values,) = answer.values()
        yield Request(row["id"], question, *(json.dumps(v) for v in (function, values)))


# ---------------------------------------------------------------- schemas

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
"""By type of BFCL: that of JSON Schema, and the Python type that its checker asks for."""
KEPT = ("enum", "minimum", "maximum")


class DescriptionError(BpeAutomataError):
    """A description says too little of what an argument may be."""


def schema_of_argument(described: Mapping[str, Any]) -> Row:
    """The JSON Schema of an argument as BFCL describes it. Objects hold what is described alone.
    Raises DescriptionError for an object of unknown properties, an array of unknown items and a
    type that is none of `KINDS`."""
    if described.get("type") not in KINDS:
        raise DescriptionError(f"no type is called {described.get('type')!r}")
    kind, _ = KINDS[described["type"]]
    made: Row = {"type": kind, **{name: described[name] for name in KEPT if name in described}}
    if kind == "object":
        if "properties" not in described:
            raise DescriptionError("an object of unknown properties")
        made["properties"] = {
            name: schema_of_argument(one) for name, one in described["properties"].items()
        }
        made["required"] = list(described.get("required", ()))
        made["additionalProperties"] = False
    if kind == "array":
        if "items" not in described:
            raise DescriptionError("an array of unknown items")
        made["items"] = schema_of_argument(described["items"])
    return made


def bounded(schema: Mapping[str, Any], characters: int, items: int) -> Row:
    """The same, with strings and arrays that are no longer than this: a text under it ends."""
    made: Row = dict(schema)
    if made["type"] == "string" and "enum" not in made:
        made["maxLength"] = characters
    if made["type"] == "array":
        made |= {"items": bounded(made["items"], characters, items), "maxItems": items}
    if made["type"] == "object":
        made["properties"] = {
            name: bounded(one, characters, items) for name, one in made["properties"].items()
        }
    return made


# ---------------------------------------------------------------- which requests are asked


@dataclass(frozen=True)
class Bounds:
    """characters, items: of a string and of an array that is written, at most; answer: bytes of the
    answer that is looked for; asked: characters of a prompt; states: of the automaton."""

    characters: int = 60
    items: int = 8
    answer: int = 80
    asked: int = 1100
    states: int = 20_000


def drawn(
    requests: Iterable[Request], n: int, seed: int, bounds: Bounds, styles: Sequence[Style]
) -> tuple[list[Request], dict[str, int]]:
    """(`n` at random, or as many as there are; reasons why others, met on the way, are refused)."""
    order, found, refused = list(requests), list[Request](), Counter[str]()
    random.Random(seed).shuffle(order)
    for request in order:
        if len(found) == n:
            break
        why = unfit(request, bounds, styles)
        if why is None:
            found.append(request)
        else:
            refused[why] += 1
    return found, dict(refused)


def unfit(request: Request, bounds: Bounds, styles: Sequence[Style]) -> str | None:
    """Why a request cannot be answered in each of the styles."""
    if len(request.prompt()) > bounds.asked:
        return "a long prompt"
    try:
        dfas = [language(request, bounds, style) for style in styles]
    except BpeAutomataError as error:
        return type(error).__name__
    if max(dfa.n_states for dfa in dfas) > bounds.states:
        return "a large automaton"
    wanted = example(json.loads(request.accepted))
    if not request.is_right(wanted) or not Verdicts(request.schema()).is_valid(wanted):
        return "an answer that its own schema or judge refuses"
    value = in_order(wanted, request.schema())
    texts = [WRITERS[style](value).encode() for style in styles]
    if max(map(len, texts)) > bounds.answer:
        return "a long answer"
    is_written = all(dfa.accepts(text) for dfa, text in zip(dfas, texts, strict=True))
    return None if is_written else "an answer that is not in the language"


@lru_cache(maxsize=128)
def language(request: Request, bounds: Bounds, style: Style) -> ByteDFA:
    """The texts of all valid arguments, in a style of `json_schema`. Raises what that
    raises, and DescriptionError."""
    schema = bounded(request.schema(), bounds.characters, bounds.items)
    made = json_schema(schema, whitespace=style, closed=True, order="schema")
    return made.to_dfa(depth=3)


def example(accepted: Mapping[str, Sequence[Any]]) -> Row:
    """The first accepted value of each argument that may not be left out; None where no value is
    accepted at all."""
    return {
        name: _plain(next(iter(values), None))
        for name, values in accepted.items()
        if "" not in values
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return example(value)
    return [_plain(one) for one in value] if isinstance(value, list) else value


def in_order(value: Any, schema: Mapping[str, Any]) -> Any:
    """The same value with its properties in the order of the schema, in which they are written."""
    if schema["type"] == "object":
        every = schema["properties"].items()
        return {name: in_order(value[name], one) for name, one in every if name in value}
    if schema["type"] == "array":
        return [in_order(one, schema["items"]) for one in value]
    return value


# ---------------------------------------------------------------- what is right


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
    """Of one argument. A value of another type than is described may be right, too: one that all
    accepted values have, as where the name of a variable stands for a list; then it must be equal
    to one of them. An integer is a float, though not inside an array."""
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
        return any(_same_objects(value, one) for one in accepted)
    if kind is list:
        return [*map(_normal, value)] in [[*map(_normal, one)] for one in accepted]
    return _normal(value) in map(_normal, accepted)


def _type(accepted: Iterable[Any]) -> type | None:
    """Of the first value; None where there is none but for the one that says: leave it out."""
    return next((type(one) for one in accepted if one != ""), None)


def _same_types(value: list[Any], accepted: Any, inner: type) -> bool:
    """Is each item of the type that is described, or of that of an accepted value's first item?"""
    if not isinstance(accepted, list):
        return True
    allowed = (inner, _type(accepted))
    return all(type(item) in allowed for item in value)


def _same_object(value: Mapping[str, Any], accepted: Mapping[str, Sequence[Any]]) -> bool:
    missing = accepted.keys() - value.keys()
    return all("" in accepted[name] for name in missing) and all(
        name in accepted and _normal(one) in map(_normal, accepted[name])
        for name, one in value.items()
    )


def _same_objects(value: Sequence[Any], accepted: Sequence[Any]) -> bool:
    """One by one, in this order."""
    return len(value) == len(accepted) and all(map(_same_object, value, accepted))


def _normal(value: Any) -> Any:
    """Of strings, case, blanks and some punctuation say nothing, and all quotes are one."""
    if not isinstance(value, str):
        return value
    return re.sub(r"[ ,./\-_*^]", "", value).lower().replace("'", '"')
