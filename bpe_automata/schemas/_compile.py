"""Compiles a JSON Schema to the byte DFA of the texts of its valid instances, in one style.

    L(compile_json_schema(S)) = { text of v : v is valid under S, nested to a bounded depth }

The steps: schema (a dict, JSON text, a pydantic model, a function) -> document -> set of values ->
those of bounded nesting -> automaton. Every accepted text is that of a valid instance. Not accepted
are other orders of properties, other white space, deeper nesting, and other spellings of numbers
and characters; decimals that a parser of doubles would round to an invalid number (such as
9.99999999999999999 where it must be below 10; see `decimals`); and, where a string must *not* be of
a format, strings for which that is not decided (see `formats`). All other valid instances are.

Numbers are compared by their exact decimal values, of any length. Some validators differ:
`jsonschema` divides doubles and so denies that 0.3 is a multiple of 0.1; Python's `json.loads`
reads no integer of more than 4,300 digits (`sys.set_int_max_str_digits`). Such numbers are accepted
if the schema allows them; bounds in the schema exclude them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from bpe_automata._arguments import at_least, short
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._budget import Budget, spending, with_room
from bpe_automata._sharing import Lock
from bpe_automata.errors import ArgumentError, LoosenedSchemaWarning, SchemaError

if TYPE_CHECKING:
    from referencing import Registry

    from bpe_automata.schemas._style import Style


T = TypeVar("T")
_DEFAULT = Budget()
_DEPTH = 3
_LOOSE = ("uniqueItems",)  # keywords that may be left out


class _Options(NamedTuple):
    """How a schema is read, see `compile_json_schema`."""

    closed: bool
    formats: str
    unique_names: bool
    loosen: Sequence[str]
    registry: Registry[Any] | None
    budget: Budget


def compile_json_schema(
    schema: Any,
    *,
    whitespace: Literal["compact", "spaced", "flexible"] = "compact",
    escapes: Literal["minimal", "any"] = "minimal",
    depth: int = _DEPTH,
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    unique_names: bool = False,
    loosen: Sequence[str] = (),
    registry: Registry[Any] | None = None,
    budget: Budget = _DEFAULT,
) -> ByteDFA:
    """The automaton of the JSON texts that are valid under a schema.

    schema: a dict or boolean, JSON text, a pydantic model or type adapter, or a function (the
    schema of its arguments). whitespace: "compact", "spaced" (as `json.dumps` writes by default),
    or "flexible" (both, and line breaks with indents of at most 2 spaces a level). escapes:
    "minimal", or "any" for those that are not needed, too. depth: how often a schema may contain
    itself, and how deeply a value may be nested that no schema describes. closed: an object schema
    that does not mention additional properties forbids them. formats: "draft" asserts the formats
    that the draft of the schema defines, "all" also those of other drafts and uuid1 to uuid8, and
    refuses what it does not know. unique_names: no name comes twice
    in an object; as a consequence, each pattern of names (or "any other name") allows at most one
    property beyond those named by the schema. Otherwise a name that the schema does not list may be
    repeated, each time with a valid value; readers of YAML other than PyYAML reject that. loosen:
    keywords that are left out, wherever that allows more texts and not fewer, and a
    LoosenedSchemaWarning says so; ("uniqueItems",) is all that may be given, for only items out of
    at most 64 values can be told apart. registry: a `referencing.Registry` of other documents that
    the schema refers to, or names as its metaschema; the metaschemas of JSON Schema are known. Only
    the registry may fetch anything.

    Raises InvalidSchemaError, UnsupportedSchemaError, UnsatisfiableSchemaError and
    SchemaTooLargeError, all with the JSON pointer; ArgumentError, MissingDependencyError.
    """
    from bpe_automata.schemas._json_style import JsonStyle  # builds automata when imported

    options = _Options(closed, formats, unique_names, loosen, registry, budget)
    return _compiled(schema, JsonStyle(whitespace, escapes, budget), depth, options)


def compile_yaml_schema(
    schema: Any,
    *,
    depth: int = _DEPTH,
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    unique_names: bool = False,
    loosen: Sequence[str] = (),
    registry: Registry[Any] | None = None,
    budget: Budget = _DEFAULT,
) -> ByteDFA:
    """The automaton of the YAML texts, in block style, that are valid under a schema.

    Each item and property begins a line, indented by two spaces a level; scalars are plain where
    readers of YAML 1.1 and 1.2 agree on the value, and otherwise quoted. Arguments and errors are
    those of `compile_json_schema`.
    """
    from bpe_automata.schemas._yaml_style import YamlStyle

    options = _Options(closed, formats, unique_names, loosen, registry, budget)
    return _compiled(schema, YamlStyle(budget), depth, options)


def link_json_schema(
    schema: Any,
    *,
    order: Literal["schema", "any"] = "schema",
    whitespace: Literal["compact", "spaced", "flexible"] = "compact",
    escapes: Literal["minimal", "any"] = "minimal",
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    unique_names: bool = False,
    loosen: Sequence[str] = (),
    registry: Registry[Any] | None = None,
    budget: Budget = _DEFAULT,
) -> LinkedDFA:
    """The automaton of the JSON texts that are valid under a schema, written down where texts lead.

    It takes milliseconds, whatever the schema: values are nested without limit, counts may be as
    large as they like, and members may come in any order. What is asked of all states at once
    (`within`, a ban, `explain` of what a normalizer removes) takes `to_dfa` of it instead. Items
    that must differ (`uniqueItems`) may be strings of a longer list (`enum`), too.

    order: of the members that a schema names, "schema" for its own, "any" for all. budget: of
    reading the schema; six times its states may be written down, some hundred for each value of a
    text. The other arguments, and the errors, are those of `compile_json_schema`; what is too large
    may show only when a text leads there, as BudgetExceededError of that call.
    """
    from bpe_automata.schemas._json_style import JsonStyle  # builds automata when imported

    options = _Options(closed, formats, unique_names, loosen, registry, budget)
    style = partial(JsonStyle, whitespace, escapes, budget)
    return _linked(schema, style, whitespace == "flexible", order, options)


def link_yaml_schema(
    schema: Any,
    *,
    order: Literal["schema", "any"] = "schema",
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    unique_names: bool = False,
    loosen: Sequence[str] = (),
    registry: Registry[Any] | None = None,
    budget: Budget = _DEFAULT,
) -> LinkedDFA:
    """The automaton of the YAML texts, in block style, that are valid under a schema, written down
    where texts lead.

    Texts are those of `compile_yaml_schema`, nested without limit; arguments and errors are those
    of `link_json_schema`. The length of a string is counted by states. `far` leaves out the spaces
    that depend on the nesting: it is a lower bound, and `shortest` is a short text.
    """
    from bpe_automata.schemas._yaml_style import YamlStyle

    options = _Options(closed, formats, unique_names, loosen, registry, budget)
    return _linked(schema, partial(YamlStyle, budget), None, order, options)


def _linked(
    schema: Any,
    style: Callable[[], Style],
    breaks: bool | None,
    order: Literal["schema", "any"],
    options: _Options,
    tells: bool = True,
) -> LinkedDFA:
    """breaks: may there be line feeds between tokens of JSON? None for YAML. tells: is what is left
    out warned of? (Not where the automaton is made anew, here or in another process.)"""
    from bpe_automata.schemas._documents import Document
    from bpe_automata.schemas._frames import Order
    from bpe_automata.schemas._limits import as_too_large, limited_steps
    from bpe_automata.schemas._linking import Linker, columns
    from bpe_automata.schemas._reader import Reader
    from bpe_automata.schemas._regularity import check_regular, unsatisfiable
    from bpe_automata.schemas._sources import schema_of

    written = style()
    closed, formats, unique_names, given, registry, budget = options
    loosen = _checked(formats, given, registry)
    if order not in get_args(Order):
        raise ArgumentError(f"order is {short(order)}: give 'schema' or 'any'")
    _load_kernels()

    def find() -> tuple[LinkedDFA, Reader]:
        with _compiling, spending(budget), limited_steps(), as_too_large("#"):
            read = schema_of(schema)
            reader = Reader(Document(read, formats == "all", registry), closed, loosen)
            values = reader.values("#")
            check_regular(values, may_list=breaks is not None)
            begin = Linker(written, order, unique_names).begin(values)
            if not begin:
                raise unsatisfiable(reader)
            every = np.arange(256, dtype=np.uint8)
            told_apart = every if breaks is None else columns(read, breaks)
            origin = _linked, (read, style, breaks, order, options, False)
            return LinkedDFA(begin, told_apart, budget, lock=_compiling, origin=origin), reader

    found, reader = _with_pointers(find)
    if tells:
        _tell(reader.left_out)
    return found


def _compiled(schema: Any, style: Style, depth: int, options: _Options) -> ByteDFA:
    from bpe_automata.schemas._documents import Document
    from bpe_automata.schemas._limits import as_too_large, limited_steps
    from bpe_automata.schemas._reader import Reader
    from bpe_automata.schemas._regularity import check_regular, unsatisfiable
    from bpe_automata.schemas._sources import schema_of
    from bpe_automata.schemas._values import limit_recursion
    from bpe_automata.schemas._writing import write

    closed, formats, unique_names, given, registry, budget = options
    loosen = _checked(formats, given, registry)
    rounds = at_least(0, depth, "depth")
    if schema is not _SMALL:
        _load_kernels()

    def find() -> tuple[ByteDFA, Reader]:
        with _compiling, spending(budget), limited_steps(), as_too_large("#"):
            document = Document(schema_of(schema), formats == "all", registry)
            reader = Reader(document, closed, loosen)
            values = limit_recursion(reader.values("#"), rounds)
            check_regular(values)
            found = write(values, style, budget, unique_names=unique_names)
            if not found.start:  # trimmed, so empty: `is_empty` would measure all of it
                raise unsatisfiable(reader)
        return found, reader

    found, reader = _with_pointers(find)
    _tell(reader.left_out)
    return found


def _tell(left_out: Mapping[str, str]) -> None:
    """Warn the caller of the caller's caller. left_out: where keywords were met first."""
    from bpe_automata.schemas._documents import without_scope

    for keyword, pointer in left_out.items():
        told = f"{keyword} is left out of the schema, first at {without_scope(pointer)}"
        warnings.warn(f"{told}: texts may break it", LoosenedSchemaWarning, stacklevel=4)


def _with_pointers(find: Callable[[], T]) -> T:
    """find(), with room for its calls; pointers of errors as people read them."""
    from bpe_automata.schemas._documents import without_scope

    try:
        return with_room(find)
    except SchemaError as error:
        pointer, found = error.pointer, without_scope(error.pointer)
        error.args, error.pointer = (str(error).replace(pointer, found),), found
        raise


def _checked(formats: str, loosen: Sequence[str], registry: object) -> tuple[str, ...]:
    """The keywords that are left out. Raises ArgumentError, also for the other options."""
    if formats not in ("draft", "all"):
        raise ArgumentError(f"formats is {short(formats)}: give 'draft' or 'all'")
    if not (registry is None or hasattr(registry, "get_or_retrieve")):
        raise ArgumentError(f"registry is {short(registry)}: give a referencing.Registry")
    if not isinstance(loosen, list | tuple) or not all(one in _LOOSE for one in loosen):
        raise ArgumentError(f"loosen is {short(loosen)}: only {_LOOSE} may be left out")
    return tuple(loosen)


_compiling = Lock()
"""Sets of values keep memos, and all schemas share some of them: one thread compiles at a time, and
enters what is linked."""

_SMALL: dict[str, Any] = {
    "properties": {
        "a": {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^x"},
        "b": {"type": "number", "minimum": 0, "multipleOf": 0.5},
    },
    "oneOf": [{"required": ["a"]}, {"required": ["b"], "additionalProperties": False}],
}


@lru_cache(maxsize=1)
def _load_kernels() -> None:
    """Compile a small schema without a limit of seconds: the first use of the kernels may take
    longer than the budget of a schema."""
    compile_json_schema(_SMALL, budget=Budget(max_seconds=inf))
