"""What in Python stands for a schema: a dict, JSON text, a pydantic model, a function.

pydantic is asked for the schemas of its own models, and for those of annotations; it is imported
only then.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from bpe_automata.arguments import short
from bpe_automata.errors import ArgumentError, MissingDependencyError
from bpe_automata.schemas.documents import parsed

_KNOWN = (
    "give a schema as a dict, a boolean or JSON text, a pydantic model or TypeAdapter, a type, "
    "or a function with annotations"
)
_OTHERS = "**"  # no parameter can have this name


def schema_of(source: Any) -> Any:
    """The JSON schema that `source` is or stands for: of a function, that of its arguments by
    name, as one object.

    Raises InvalidSchemaError for text that is no JSON, ArgumentError for what stands for none,
    MissingDependencyError where it takes pydantic.
    """
    if isinstance(source, bool | dict):
        return source
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, str | bytes | bytearray):
        return parsed(_decoded(source))
    if hasattr(source, "model_json_schema"):  # a pydantic model
        return _asked(source, lambda: source.model_json_schema())
    if hasattr(source, "json_schema"):  # a TypeAdapter
        return _asked(source, lambda: source.json_schema())
    if inspect.isfunction(source) or inspect.ismethod(source) or inspect.isbuiltin(source):
        return _of_function(source)
    if source is None or isinstance(source, int | float | list | tuple):
        raise ArgumentError(f"{short(source)} is no schema: {_KNOWN}")
    return _of_type(source)


def _decoded(text: str | bytes | bytearray) -> str:
    if isinstance(text, str):
        return text
    try:
        return bytes(text).decode()
    except UnicodeDecodeError as error:
        raise ArgumentError(f"the schema is no UTF-8 text: {error}") from None


def _pydantic() -> Any:
    try:
        import pydantic
    except ImportError as error:
        raise MissingDependencyError(
            "the schema of an annotation takes pydantic: pip install pydantic"
        ) from error
    return pydantic


def _of_type(annotation: Any) -> Any:
    """The schema of any type that pydantic knows: a dataclass, a TypedDict, list[int], ..."""
    pydantic = _pydantic()
    return _asked(annotation, lambda: pydantic.TypeAdapter(annotation).json_schema())


def _asked(source: Any, schema: Callable[[], Any]) -> Any:
    """What pydantic answers. Its errors have no common class but those of Python: no schema for a
    type, a model that is not complete, a name that is not known."""
    try:
        return schema()
    except (RuntimeError, TypeError, NameError, ValueError, AttributeError) as error:
        first = str(error).partition("\n")[0]
        raise ArgumentError(f"{short(source)} has no schema: {first}; {_KNOWN}") from error


def _of_function(function: Callable[..., Any]) -> Any:
    """An object with a property for each parameter, required if it has no default; what `**name`
    takes in are other properties."""
    pydantic = _pydantic()
    fields: dict[str, Any] = {}
    extra = "forbid"
    try:
        parameters = inspect.signature(function, eval_str=True).parameters.values()
    except (NameError, ValueError) as error:
        raise ArgumentError(f"the signature of {short(function)} cannot be read: {error}") from None
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            why = "its place in an object of arguments is not known"
            raise ArgumentError(f"*{parameter.name} of {short(function)} has no schema: {why}")
        name = parameter.name
        if parameter.kind is parameter.VAR_KEYWORD:
            extra, name = "allow", _OTHERS
        fields[f"field_{len(fields)}"] = _field(pydantic, parameter, name)
    settings = {"extra": extra, "arbitrary_types_allowed": False}
    title = getattr(function, "__name__", "arguments")
    found = _asked(
        function,
        lambda: pydantic.create_model(title, __config__=settings, **fields).model_json_schema(),
    )
    return _with_others(found)


def _with_others(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of the one field that stands for all others, where it belongs."""
    if _OTHERS in schema.get("properties", {}):
        schema["additionalProperties"] = schema["properties"].pop(_OTHERS)
        schema["required"] = [name for name in schema["required"] if name != _OTHERS]
    return schema


def _field(pydantic: Any, parameter: inspect.Parameter, name: str) -> tuple[Any, Any]:
    """(annotation, default) as pydantic takes them. The name goes in as an alias: as a field some
    names, such as `_x` or `copy`, are not free."""
    empty = inspect.Parameter.empty
    annotation = Any if parameter.annotation is empty else parameter.annotation
    default = ... if parameter.default is empty else None
    return annotation, pydantic.Field(default, alias=name)
