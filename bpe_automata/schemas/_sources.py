"""Turns a schema that a caller gives (a dict, JSON text, pydantic model or function) into JSON.

pydantic makes the schemas of its models and of annotations; it is imported only for those.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, get_origin

from bpe_automata._arguments import short
from bpe_automata._budget import check
from bpe_automata._optional import require
from bpe_automata.errors import ArgumentError, InvalidSchemaError, SchemaTooLargeError

MAX_NESTING = 400  # nested schemas; those for one instance (allOf, not) are limited further
MAX_LEVELS = 801  # nested values: two for each nested schema
_KNOWN = (
    "give a schema as a dict, a boolean or JSON text, a pydantic model or TypeAdapter, a type, "
    "or a function with annotations"
)


class OfModel(dict[str, Any]):
    """A schema that pydantic made, whose patterns may be of Python's or Rust's dialect."""


def schema_of(source: Any) -> Any:
    """The JSON schema that `source` is or describes; that of a function describes its arguments by
    name, as one object. It is an OfModel if pydantic made it.

    Raises InvalidSchemaError for text that is no JSON, ArgumentError for a source without a schema,
    MissingDependencyError for one that needs pydantic.
    """
    if isinstance(source, bool | dict):
        return source
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, str | bytes | bytearray):
        return _parsed(source)
    if hasattr(source, "model_json_schema"):  # a pydantic model
        return _from_pydantic(source, lambda: source.model_json_schema)
    if hasattr(source, "json_schema"):  # a TypeAdapter
        return _from_pydantic(source, lambda: source.json_schema)
    if _is_function(source):
        return _of_function(source)
    if source is None or isinstance(source, int | float | list | tuple):
        raise ArgumentError(f"{short(source)} is no schema: {_KNOWN}")
    return _of_type(source)


def is_source(source: object) -> bool:
    """Is `source`, by its type, certainly something that has a schema? (Text is not: it may also be
    a regex.)"""
    has_schema = any(hasattr(source, name) for name in ("model_json_schema", "json_schema"))
    is_type = isinstance(source, type) or get_origin(source) is not None
    return has_schema or is_type or isinstance(source, Mapping | bool) or _is_function(source)


def _is_function(source: object) -> bool:
    return inspect.isfunction(source) or inspect.ismethod(source) or inspect.isbuiltin(source)


def _parsed(text: str | bytes | bytearray) -> Any:
    """A schema from JSON text. Raises InvalidSchemaError."""
    try:
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise ArgumentError(f"the schema is no UTF-8 text: {error}") from None
    except ValueError as error:  # also a number too long for Python
        raise InvalidSchemaError("#", f"the text is no JSON that can be read: {error}") from None
    except RecursionError:
        raise too_deep("#") from None


def _of_type(annotation: Any, of: Any = None) -> Any:
    """The schema of any type that pydantic supports: a dataclass, a TypedDict, list[int], ... of:
    what messages name instead of the annotation."""
    adapter = require("pydantic", "pip install pydantic").TypeAdapter
    return _from_pydantic(of or annotation, lambda: adapter(annotation).json_schema)


def _from_pydantic(source: Any, find: Callable[[], Callable[..., Any]]) -> OfModel:
    """The schema that a method of pydantic returns; find() returns that method. Pydantic's errors
    (no schema for a type, an incomplete model, an unknown name) have only Python's own classes in
    common."""
    require("pydantic", "pip install pydantic")
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):  # type: ignore[misc]
        def str_schema(self, schema: Any) -> Any:
            pattern = schema.get("pattern")
            flags = re.RegexFlag(getattr(pattern, "flags", 0)) & ~(re.UNICODE | re.ASCII)
            if flags:
                why = f"JSON Schema has no {flags!r}, a flag of the pattern {pattern.pattern!r}"
                raise ArgumentError(f"{why}: write the pattern without flags")
            return super().str_schema(schema)

    try:
        method = find()
        taken = inspect.signature(method).parameters.values()  # a model's own may take nothing
        takes_it = any(p.name == "schema_generator" or p.kind is p.VAR_KEYWORD for p in taken)
        return OfModel(method(schema_generator=Generator) if takes_it else method())
    except (RuntimeError, TypeError, NameError, ValueError, AttributeError) as error:
        first = str(error).partition("\n")[0]
        raise ArgumentError(f"{short(source)} has no schema: {first}; {_KNOWN}") from error


def _of_function(function: Callable[..., Any]) -> Any:
    """An object with a property for each parameter, required if it has no default; `**name` allows
    additional properties."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, ValueError) as error:
        raise ArgumentError(f"the signature of {short(function)} cannot be read: {error}") from None
    named = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            why = "an object holds arguments by name, and these have none"
            raise ArgumentError(f"*{parameter.name} of {short(function)} has no schema: {why}")
        if parameter.kind is not parameter.VAR_KEYWORD:
            parameter = parameter.replace(kind=parameter.KEYWORD_ONLY)
        if parameter.default is not parameter.empty:  # of any type, perhaps without JSON
            parameter = parameter.replace(default=None)
        named.append(parameter)

    def by_name(**_: Any) -> None: ...

    by_name.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    by_name.__annotations__ = {p.name: p.annotation for p in named if p.annotation is not p.empty}
    found = {"title": getattr(function, "__name__", "arguments"), **_of_type(by_name, of=function)}
    return OfModel({"additionalProperties": True} | found)  # which pydantic leaves out for `**name`


def as_json(schema: Any) -> Any:
    """The schema as it is read from the text that `json.dumps` writes.

    Raises InvalidSchemaError for what JSON does not have: a set, a NaN, half a surrogate pair, a
    list that contains itself; SchemaTooLargeError for more than MAX_LEVELS nested values."""
    levels, here = 0, list[Any]([schema] if isinstance(schema, dict) else [])
    while here:
        check()
        inner = (value.values() if isinstance(value, dict) else value for value in here)
        here = [one for some in inner for one in some if isinstance(one, dict | list | tuple)]
        levels += 1
        if levels > MAX_LEVELS:
            raise too_deep("#")
    try:
        text = _spelled(schema)
        text.encode()
        read = json.loads(text)
    except (TypeError, ValueError) as error:
        raise InvalidSchemaError("#", f"the schema is no JSON: {error}") from None
    return OfModel(read) if isinstance(schema, OfModel) else read


_spelled = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode


def too_deep(pointer: str) -> SchemaTooLargeError:
    """The error for schemas that are nested too deeply."""
    advice = "schemas are nested more deeply; use $defs and $ref"
    return SchemaTooLargeError(pointer, "levels", MAX_NESTING, advice)
