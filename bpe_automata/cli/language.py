"""The constraint of a command: --regex R, or --schema FILE with how it is to be written."""

from __future__ import annotations

import argparse
from pathlib import Path

from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import Budget
from bpe_automata.errors import ArgumentError, MissingFileError

_WHITESPACE = ("compact", "spaced", "flexible")
_FORMATS = ("draft", "all")


def add_language(parser: argparse.ArgumentParser) -> None:
    """--regex or --schema, one of them, and the options of the second."""
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--regex", help="Python syntax plus \\p{...}; the whole text must match")
    one.add_argument(
        "--schema",
        type=Path,
        metavar="FILE",
        help="a JSON Schema; the text must be JSON that is valid under it",
    )
    schema = parser.add_argument_group("with --schema")
    schema.add_argument("--yaml", action="store_true", help="write YAML, in block style")
    schema.add_argument(
        "--whitespace", choices=_WHITESPACE, help="of JSON: a:1, a: 1, or any (default: compact)"
    )
    schema.add_argument("--depth", type=int, default=3, help="of nesting (default: %(default)s)")
    schema.add_argument(
        "--closed", action="store_true", help="no properties but those that the schema names"
    )
    formats = "hold texts to the formats that the schema's draft defines, or also to the others "
    schema.add_argument("--formats", choices=_FORMATS, help=formats + "(default: draft)")


def language_of(arguments: argparse.Namespace, budget: Budget | None = None) -> str | ByteDFA:
    """The regex itself, or the automaton of the schema. Raises ArgumentError, MissingFileError,
    SchemaError."""
    if arguments.schema is None:
        if any((arguments.yaml, arguments.whitespace, arguments.closed, arguments.formats)):
            raise ArgumentError("--yaml, --whitespace, --closed and --formats need --schema FILE")
        return str(arguments.regex)
    if arguments.yaml and arguments.whitespace:
        raise ArgumentError("--whitespace is of JSON: leave it out, or leave out --yaml")
    text = _read(arguments.schema)
    from bpe_automata.schemas import compile_json_schema, compile_yaml_schema

    options = {
        "depth": arguments.depth,
        "closed": arguments.closed,
        "formats": arguments.formats or "draft",
        "budget": budget or Budget(),
    }
    if arguments.yaml:
        return compile_yaml_schema(text, **options)
    return compile_json_schema(text, whitespace=arguments.whitespace or "compact", **options)


def automaton_of(arguments: argparse.Namespace, budget: Budget) -> ByteDFA:
    """The automaton of either. Raises RegexError and BudgetExceededError besides."""
    found = language_of(arguments, budget)
    return compile_regex(found, budget) if isinstance(found, str) else found


def named(arguments: argparse.Namespace) -> dict[str, str]:
    """What was given, for a report."""
    if arguments.schema is None:
        return {"regex": arguments.regex}
    return {"schema": str(arguments.schema)}


def _read(path: Path) -> str:
    try:
        return path.expanduser().read_text("utf-8")
    except OSError as error:
        raise MissingFileError(f"cannot read the schema {path}: {error.strerror}") from None
