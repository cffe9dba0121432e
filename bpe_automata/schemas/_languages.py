"""The languages of a JSON Schema: the texts of its valid instances, in one style.

    L(json_schema(S)) = { text of v : v is valid under S }

The steps: schema (a dict, JSON text, a pydantic model, a function) -> document -> set of values ->
automaton. Every accepted text is that of a valid instance. The only texts of valid instances that
are not accepted have other white space, or other spellings of numbers and characters; other orders
of members, where the schema's order is asked for; numbers with a fraction of more than 15 digits,
unless any number may come; or, where a string must *not* be of a format, strings for which that is
not decided (see `_formats`).

Numbers are compared by their exact decimal values, integers of any length. Some validators differ:
`jsonschema` divides doubles and so denies that 0.3 is a multiple of 0.1; Python's `json.loads`
reads no integer of more than 4,300 digits. Such numbers are accepted if the schema allows them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from bpe_automata._arguments import short
from bpe_automata._budget import Budget, spending, with_room
from bpe_automata._sharing import Lock
from bpe_automata.automata.linked import LinkedDFA
from bpe_automata.automata.rounds import beginning
from bpe_automata.errors import ArgumentError, LoosenedSchemaWarning, UnsatisfiableSchemaError

if TYPE_CHECKING:
    from referencing import Registry

    from bpe_automata.schemas._style import Style
    from bpe_automata.schemas._values import Values

_DEFAULT = Budget()
_NO_VALUE = "no value is valid under this schema"
_NO_TEXT = (
    "no value that is valid under this schema can be written: it would be nested too deeply, has "
    "no spelling in this style, or is too close to one that is not valid (a rounded number, or a "
    "text of which it is not decided whether it is of a format)"
)
_LOOSENABLE = ("uniqueItems",)  # keywords that `loosen` may leave out


class _Options(NamedTuple):
    """How a schema is read and written, see `json_schema`. whitespace: "yaml" for block YAML,
    "call" for `call_arguments`."""

    whitespace: Any
    escapes: Any
    order: Any
    closed: bool
    formats: str
    unique_names: bool
    loosen: Sequence[str]
    registry: Registry[Any] | None
    budget: Budget


def json_schema(
    schema: Any,
    *,
    order: Literal["open", "schema", "any"] = "open",
    whitespace: Literal["compact", "spaced", "flexible"] = "compact",
    escapes: Literal["minimal", "any"] = "minimal",
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    unique_names: bool = False,
    loosen: Sequence[str] = (),
    registry: Registry[Any] | None = None,
    budget: Budget = _DEFAULT,
) -> LinkedDFA:
    """The automaton of the JSON texts that are valid under a schema, whose states are made only
    when a text leads there.

    The call takes milliseconds, whatever the schema: values may be nested without limit, and counts
    may be of any size. What needs all states at once (a ban, segments) takes the automaton that
    `to_dfa` of the result returns, with a `depth` if values may be nested without limit.

    schema: a dict or boolean, JSON text, a pydantic model or type adapter, or a function (the
    schema of its arguments). order: in which order the members that a schema names may come:
    "schema" for its own order, "any" for any, "open" for any where the schema also allows members
    that it does not name, else for its own. whitespace: "compact", "spaced" (as `json.dumps` writes
    by default), or "flexible" (both, and line breaks with indents of at most 2 spaces a level).
    escapes: "minimal" for the required ones only, "any" for all. closed: whether an object schema
    that does not mention additional properties forbids them. formats: "draft" asserts the formats
    that the draft of the schema defines; "all" asserts also those of other drafts and uuid1 to
    uuid8, and refuses all other names. unique_names: whether no name may come twice in an object;
    each pattern of names (or "any other name") then allows at most one property beyond those that
    the schema names. If false, a name that the schema does not list may be repeated, each time with
    a valid value; readers of YAML other than PyYAML reject that. loosen: keywords to leave out
    wherever that allows more texts and not fewer, with a LoosenedSchemaWarning; only
    ("uniqueItems",) may be given, which is otherwise refused unless the items are out of at most 64
    values, or out of a list of strings. registry: a `referencing.Registry` of other documents that
    the schema refers to; the metaschemas of JSON Schema need not be in it. Only the registry may
    fetch anything. budget: for reading the schema; texts may then make six times its states, some
    hundred for each value of a text.

    Raises InvalidSchemaError, UnsupportedSchemaError, UnsatisfiableSchemaError and
    SchemaTooLargeError, all with the JSON pointer; ArgumentError, MissingDependencyError. Warns of
    a name that looks like a misspelled keyword; other names that are no keywords are ignored. If
    something is found to be too large only when a text leads there, that call raises
    BudgetExceededError.
    """
    if whitespace in ("yaml", "call"):
        raise ArgumentError(f"whitespace is {whitespace!r}: give 'compact', 'spaced' or 'flexible'")
    given = whitespace, escapes, order, closed, formats, unique_names, loosen, registry, budget
    return _language(schema, _Options(*given))


def yaml_schema(
    schema: Any,
    *,
    order: Literal["open", "schema", "any"] = "open",
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    unique_names: bool = False,
    loosen: Sequence[str] = (),
    registry: Registry[Any] | None = None,
    budget: Budget = _DEFAULT,
) -> LinkedDFA:
    """The automaton of the YAML texts, in block style, that are valid under a schema, whose states
    are made only when a text leads there.

    Each item and property begins a line, indented by two spaces a level; scalars are plain where
    readers of YAML 1.1 and 1.2 agree on the value, and otherwise quoted. Arguments and errors are
    those of `json_schema`. The characters of a string whose length is bounded are counted by
    states. `far` leaves out the spaces that depend on the nesting, so it is a lower bound, and
    `shortest` returns a short text, not always a shortest one.
    """
    given = "yaml", "minimal", order, closed, formats, unique_names, loosen, registry, budget
    return _language(schema, _Options(*given))


def call_arguments(
    schema: Any,
    *,
    order: Literal["open", "schema", "any"] = "open",
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    loosen: Sequence[str] = (),
    registry: Registry[Any] | None = None,
    budget: Budget = _DEFAULT,
) -> LinkedDFA:
    """The automaton of the objects that are valid under a schema, each written as the arguments of
    a call in Python, `(city="Paris", days=3)`, in parentheses. Values other than objects are left
    out. No argument comes twice, so each pattern of names (or "any other name") allows at most one.
    Arguments and errors are those of `json_schema`; raises also UnsupportedSchemaError for an
    argument whose name is no ASCII identifier."""
    given = "call", "minimal", order, closed, formats, False, loosen, registry, budget
    return _language(schema, _Options(*given))


def _language(schema: Any, options: _Options) -> LinkedDFA:
    from bpe_automata.schemas._nets import Order

    _check(options)
    if options.order not in get_args(Order):
        raise ArgumentError(f"order is {short(options.order)}: give 'open', 'schema' or 'any'")
    style = _style(options)
    found, told = _read(schema, options, style)
    for warning in told:
        warnings.warn(warning, stacklevel=3)
    return found


def _read(schema: Any, options: _Options, style: Style) -> tuple[LinkedDFA, list[Warning]]:
    """(the automaton, warnings about keywords that are left out or look misspelled)."""
    from bpe_automata.schemas._call_style import arguments
    from bpe_automata.schemas._documents import Document, check_reached
    from bpe_automata.schemas._limits import as_too_large, limited_steps
    from bpe_automata.schemas._reader import Reader
    from bpe_automata.schemas._regularity import check_regular
    from bpe_automata.schemas._sources import as_json, schema_of
    from bpe_automata.schemas._values import is_empty

    def find() -> tuple[LinkedDFA, list[Warning]]:
        with _compiling, spending(options.budget), limited_steps(), as_too_large("#"):
            read = as_json(schema_of(schema))
            document = Document(read, options.formats == "all", options.registry)
            told: list[Warning] = [UserWarning(text) for text in check_reached(document)]
            reader = Reader(document, options.closed, tuple(options.loosen))
            values = reader.values("#")
            if options.whitespace == "call":
                values = arguments(values)
            check_regular(values)
            found = _linked(values, options, style, read)
            if found is None:
                raise UnsatisfiableSchemaError("#", _NO_VALUE if is_empty(values) else _NO_TEXT)
            for keyword, pointer in reader.left_out.items():
                text = f"{keyword} is left out of the schema, first at {pointer}"
                told.append(LoosenedSchemaWarning(f"{text}: texts may break it"))
            return found, told

    return with_room(find)


def _again(schema: Any, options: _Options) -> LinkedDFA:
    """The same automaton made anew, perhaps in another process."""
    return _read(schema, options, _style(options))[0]


def _linked(
    values: Values, options: _Options, style: Style, read: Any, depth: int | None = None
) -> LinkedDFA | None:
    """The automaton of a set; None where the set has no text. depth: see `Linker`."""
    from bpe_automata.schemas._linking import Linker

    def nested(depth: int) -> LinkedDFA:
        with _compiling:
            found = _linked(values, options, style, read, depth)
        if found is None:
            raise ArgumentError("a language that is not empty has no text")
        return found

    rule = Linker(style, options.order, options.unique_names, depth).texts(values)
    if rule is None:
        return None
    again = _again, (read, options)
    columns = np.arange(256, dtype=np.uint8)
    given = beginning(rule, False), columns, options.budget
    found = LinkedDFA(*given, lock=_compiling, origin=again, rule=rule)
    found.nested = nested
    return found


def _style(options: _Options) -> Style:
    """Raises ArgumentError."""
    from bpe_automata.schemas._call_style import CallStyle
    from bpe_automata.schemas._json_style import JsonStyle  # builds automata when imported
    from bpe_automata.schemas._yaml_style import YamlStyle

    if options.whitespace == "yaml":
        return YamlStyle(options.budget)
    if options.whitespace == "call":
        return CallStyle(options.budget)
    return JsonStyle(options.whitespace, options.escapes, options.budget)


def _check(options: _Options) -> None:
    """Raise ArgumentError for a wrong value of an option that nothing else checks."""
    formats, loosen, registry = options.formats, options.loosen, options.registry
    if formats not in ("draft", "all"):
        raise ArgumentError(f"formats is {short(formats)}: give 'draft' or 'all'")
    if not (registry is None or hasattr(registry, "get_or_retrieve")):
        raise ArgumentError(f"registry is {short(registry)}: give a referencing.Registry")
    if not isinstance(loosen, list | tuple) or not all(one in _LOOSENABLE for one in loosen):
        raise ArgumentError(f"loosen is {short(loosen)}: only {_LOOSENABLE} may be left out")


_compiling = Lock()
_compiling.is_global = True
"""Sets of values keep memos, some of which all schemas share, so only one thread at a time compiles
a schema or enters new states of its automaton."""
