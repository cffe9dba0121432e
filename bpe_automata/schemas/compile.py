"""JSON Schema -> byte DFA of all texts, in one pinned style, of the instances that are valid.

    L(compile_json_schema(S)) = { text of v : v is valid under S, nested to a bounded depth }

The chain: schema (a dict, JSON text, a pydantic model, a function) -> document -> sets of values ->
those of bounded depth -> automaton. Every accepted text is one of a valid instance. What is left
out is other orders of properties, other white space, deeper nesting, and other spellings of numbers
and characters; decimals that a parser which reads doubles would round to a number that is not valid
(9.99999999999999999 if it must be below 10; see `rounding`); and, where a text must *not* be of a
format, those of which it is not decided (see `formats`): no other value that the schema allows.

Numbers are compared by their exact decimal values, of any length. Others do it otherwise:
`jsonschema` divides doubles and so takes 0.3 for no multiple of 0.1, which it is; and Python's
`json.loads` reads no integer of more than 4,300 digits (`sys.set_int_max_str_digits`). Texts with
such numbers are accepted if the schema allows them; bounds in the schema keep them out.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from bpe_automata.arguments import at_least, short
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import Budget, spending, with_room
from bpe_automata.errors import ArgumentError
from bpe_automata.sharing import Lock

if TYPE_CHECKING:
    from bpe_automata.schemas.style import Style


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
    budget: Budget = _DEFAULT,
) -> ByteDFA:
    """The automaton of the JSON texts that are valid under a schema.

    schema: a dict or boolean, JSON text, a pydantic model or type adapter, or a function, whose
    arguments are meant. whitespace: "compact", "spaced" (as `json.dumps` writes by default), or
    "flexible" (both, and line breaks with indents of at most 2 a level). escapes: "any" takes also
    escapes that need not be. depth: rounds of a schema through itself, and how deep a value of
    which nothing is said may be nested. closed: an object schema that says nothing of other
    properties has none. formats: "draft" holds texts to the formats that the schema's own draft
    defines, "all" also to the others. unique_names: no name comes twice in an object, at the price
    that beside the names the schema spells out, each of its patterns of names (or "any other name")
    gives at most one. (Otherwise a name that it does not spell out may come again, each time with a
    valid value, which readers of YAML other than PyYAML refuse.)

    Raises InvalidSchemaError, UnsupportedSchemaError, UnsatisfiableSchemaError and
    SchemaTooLargeError, all with the JSON pointer; ArgumentError, MissingDependencyError.
    """
    from bpe_automata.schemas.json_style import JsonStyle  # these make automata when imported

    style = JsonStyle(whitespace, escapes, budget)
    return _compiled(schema, style, depth, closed, formats, unique_names, budget)


def compile_yaml_schema(
    schema: Any,
    *,
    depth: int = _DEPTH,
    closed: bool = False,
    formats: Literal["draft", "all"] = "draft",
    unique_names: bool = False,
    budget: Budget = _DEFAULT,
) -> ByteDFA:
    """The automaton of the YAML texts, in block style, that are valid under a schema.

    Lists and mappings stand in lines, two spaces a level; scalars are plain where readers of YAML
    1.1 and 1.2 give the same value back, else quoted. The rest is as for `compile_json_schema`.
    """
    from bpe_automata.schemas.yaml_style import YamlStyle

    return _compiled(schema, YamlStyle(budget), depth, closed, formats, unique_names, budget)


def _compiled(
    schema: Any,
    style: Style,
    depth: int,
    closed: bool,
    formats: str,
    unique_names: bool,
    budget: Budget,
) -> ByteDFA:
    from bpe_automata.schemas.documents import Document
    from bpe_automata.schemas.limits import as_too_large, limited_steps
    from bpe_automata.schemas.reader import Reader
    from bpe_automata.schemas.regularity import check_writable, unsatisfiable
    from bpe_automata.schemas.sources import schema_of
    from bpe_automata.schemas.values import limited
    from bpe_automata.schemas.writing import write

    if formats not in ("draft", "all"):
        raise ArgumentError(f"formats is {short(formats)}: give 'draft' or 'all'")
    rounds = at_least(0, depth, "depth")
    if schema is not _SMALL:
        _load_kernels()

    def find() -> ByteDFA:
        with _compiling, spending(budget), limited_steps(), as_too_large("#"):
            document = Document(schema_of(schema), formats == "all")
            reader = Reader(document, closed)
            values = limited(reader.values("#"), rounds)
            check_writable(values)
            found = write(values, style, budget, unique_names=unique_names)
            if not found.start:  # trimmed, so empty: `is_empty` would measure all of it
                raise unsatisfiable(reader)
        return found

    return with_room(find)


_compiling = Lock()
"""Sets of values remember what was asked of them, and some are in every schema: one at a time."""

_SMALL: dict[str, Any] = {
    "properties": {
        "a": {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^x"},
        "b": {"type": "number", "minimum": 0, "multipleOf": 0.5},
    },
    "oneOf": [{"required": ["a"]}, {"required": ["b"], "additionalProperties": False}],
}


@lru_cache(maxsize=1)
def _load_kernels() -> None:
    """Once, on a small schema: where they are compiled for the first time this takes longer than
    any schema may."""
    compile_json_schema(_SMALL, budget=Budget(max_seconds=inf))


# Why no value is valid: the deepest schema found that has none, although one is needed there.
