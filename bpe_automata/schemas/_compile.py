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

from collections.abc import Callable
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np

from bpe_automata._arguments import at_least, short
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._budget import Budget, spending, with_room
from bpe_automata._sharing import Lock
from bpe_automata.errors import ArgumentError, SchemaError

if TYPE_CHECKING:
    from referencing import Registry

    from bpe_automata.schemas._style import Style


T = TypeVar("T")
_DEFAULT = Budget()
_DEPTH = 3


def compile_json_schema(
    schema: Any,
    *,
    whitespace: Literal["compact", "spaced", "flexible"] = "compact",
    escapes: Literal["minimal", "any"] = "minimal",
    depth: int = _DEPTH,
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    unique_names: bool = False,
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
    repeated, each time with a valid value; readers of YAML other than PyYAML reject that. registry:
    a `referencing.Registry` of other documents that the schema refers to, or names as its
    metaschema; the metaschemas of JSON Schema are known. Only the registry may fetch anything.

    Raises InvalidSchemaError, UnsupportedSchemaError, UnsatisfiableSchemaError and
    SchemaTooLargeError, all with the JSON pointer; ArgumentError, MissingDependencyError.
    """
    from bpe_automata.schemas._json_style import JsonStyle  # builds automata when imported

    style = JsonStyle(whitespace, escapes, budget)
    return _compiled(schema, style, depth, closed, formats, unique_names, registry, budget)


def compile_yaml_schema(
    schema: Any,
    *,
    depth: int = _DEPTH,
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    unique_names: bool = False,
    registry: Registry[Any] | None = None,
    budget: Budget = _DEFAULT,
) -> ByteDFA:
    """The automaton of the YAML texts, in block style, that are valid under a schema.

    Each item and property begins a line, indented by two spaces a level; scalars are plain where
    readers of YAML 1.1 and 1.2 agree on the value, and otherwise quoted. Arguments and errors are
    those of `compile_json_schema`.
    """
    from bpe_automata.schemas._yaml_style import YamlStyle

    style = YamlStyle(budget)
    return _compiled(schema, style, depth, closed, formats, unique_names, registry, budget)


def link_json_schema(
    schema: Any,
    *,
    order: Literal["schema", "any"] = "schema",
    whitespace: Literal["compact", "spaced", "flexible"] = "compact",
    escapes: Literal["minimal", "any"] = "minimal",
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    unique_names: bool = False,
    registry: Registry[Any] | None = None,
    budget: Budget = _DEFAULT,
) -> LinkedDFA:
    """The automaton of the JSON texts that are valid under a schema, written down where texts lead.

    It takes milliseconds, whatever the schema: values are nested without limit, counts may be as
    large as they like, and members may come in any order. What is asked of all states at once
    (`within`, a ban, `explain` of what a normalizer removes) takes `to_dfa` of it instead. Where
    items out of more than 64 values must differ (`uniqueItems`), other than strings that are listed
    (`enum`), it is a `ComparingDFA`, which has none: that is known of texts alone, which matchers
    follow.

    order: of the members that a schema names, "schema" for its own, "any" for all. budget: of
    reading the schema; six times its states may be written down, some hundred for each value of a
    text. The other arguments, and the errors, are those of `compile_json_schema`; what is too large
    may show only when a text leads there, as BudgetExceededError of that call.
    """
    from bpe_automata.schemas._json_style import JsonStyle  # builds automata when imported

    style = JsonStyle(whitespace, escapes, budget)
    options = (order, closed, formats, unique_names, registry, budget)
    again = {"whitespace": whitespace, "escapes": escapes}
    return _linked(schema, style, whitespace == "flexible", *options, link_json_schema, again)


def link_yaml_schema(
    schema: Any,
    *,
    order: Literal["schema", "any"] = "schema",
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    unique_names: bool = False,
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

    options = (order, closed, formats, unique_names, registry, budget)
    return _linked(schema, YamlStyle(budget), None, *options, link_yaml_schema, {})


def _linked(
    schema: Any,
    style: Style,
    breaks: bool | None,
    order: Literal["schema", "any"],
    closed: bool,
    formats: str,
    unique_names: bool,
    registry: Registry[Any] | None,
    budget: Budget,
    link: Callable[..., LinkedDFA],
    again: dict[str, Any],
) -> LinkedDFA:
    """breaks: may there be line feeds between tokens of JSON? None for YAML. link: what makes the
    automaton in another process; again: its further arguments."""
    from bpe_automata.schemas._documents import Document
    from bpe_automata.schemas._frames import Order
    from bpe_automata.schemas._limits import as_too_large, limited_steps
    from bpe_automata.schemas._linking import Linker, columns
    from bpe_automata.schemas._reader import Reader
    from bpe_automata.schemas._regularity import check_regular, unsatisfiable
    from bpe_automata.schemas._sources import schema_of
    from bpe_automata.schemas._unique_items import comparing

    _check_options(formats, registry)
    if order not in get_args(Order):
        raise ArgumentError(f"order is {short(order)}: give 'schema' or 'any'")
    _load_kernels()
    again |= {"order": order, "closed": closed, "formats": formats, "unique_names": unique_names}
    again |= {"registry": registry, "budget": budget}

    def find() -> LinkedDFA:
        with _compiling, spending(budget), limited_steps(), as_too_large("#"):
            read = schema_of(schema)
            reader = Reader(Document(read, formats == "all", registry), closed)
            values = reader.values("#")
            compares = check_regular(values, may_compare=breaks is not None)
            begin = Linker(style, order, unique_names).begin(values)
            if not begin:
                raise unsatisfiable(reader)
            told_apart = np.arange(256, dtype=np.uint8)  # any character may come in an item
            if breaks is not None and not compares:
                told_apart = columns(read, breaks)
            origin = _again, (link, read, again)
            if compares:
                return comparing(begin, told_apart, budget, _compiling, origin)
            return LinkedDFA(begin, told_apart, budget, lock=_compiling, origin=origin)

    return _with_pointers(find)


def _again(link: Callable[..., LinkedDFA], schema: Any, given: dict[str, Any]) -> LinkedDFA:
    """In another process."""
    return link(schema, **given)


def _compiled(
    schema: Any,
    style: Style,
    depth: int,
    closed: bool,
    formats: str,
    unique_names: bool,
    registry: Registry[Any] | None,
    budget: Budget,
) -> ByteDFA:
    from bpe_automata.schemas._documents import Document
    from bpe_automata.schemas._limits import as_too_large, limited_steps
    from bpe_automata.schemas._reader import Reader
    from bpe_automata.schemas._regularity import check_regular, unsatisfiable
    from bpe_automata.schemas._sources import schema_of
    from bpe_automata.schemas._values import limit_recursion
    from bpe_automata.schemas._writing import write

    _check_options(formats, registry)
    rounds = at_least(0, depth, "depth")
    if schema is not _SMALL:
        _load_kernels()

    def find() -> ByteDFA:
        with _compiling, spending(budget), limited_steps(), as_too_large("#"):
            document = Document(schema_of(schema), formats == "all", registry)
            reader = Reader(document, closed)
            values = limit_recursion(reader.values("#"), rounds)
            check_regular(values)
            found = write(values, style, budget, unique_names=unique_names)
            if not found.start:  # trimmed, so empty: `is_empty` would measure all of it
                raise unsatisfiable(reader)
        return found

    return _with_pointers(find)


def _with_pointers(find: Callable[[], T]) -> T:
    """find(), with room for its calls; pointers of errors as people read them."""
    from bpe_automata.schemas._documents import without_scope

    try:
        return with_room(find)
    except SchemaError as error:
        pointer, found = error.pointer, without_scope(error.pointer)
        error.args, error.pointer = (str(error).replace(pointer, found),), found
        raise


def _check_options(formats: str, registry: object) -> None:
    if formats not in ("draft", "all"):
        raise ArgumentError(f"formats is {short(formats)}: give 'draft' or 'all'")
    if not (registry is None or hasattr(registry, "get_or_retrieve")):
        raise ArgumentError(f"registry is {short(registry)}: give a referencing.Registry")


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
