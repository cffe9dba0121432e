"""Provides the arguments that several commands take, loads what they name, and prints reports."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bpe_automata._arguments import short
from bpe_automata._budget import Budget
from bpe_automata._cli.progress import add_progress, step
from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.canonical.canonical import CanonicalAutomaton, canonical_automaton
from bpe_automata.composition.descriptions import described
from bpe_automata.composition.language import automaton_of
from bpe_automata.errors import ArgumentError, MissingDependencyError, MissingFileError
from bpe_automata.tokenizer.sources.named import named_encoding_origin, names
from bpe_automata.tokenizer.tokenizer import Tokenizer

REGEX = "Python syntax plus \\p{...}; the whole text must match"
Commands = Any  # what argparse's add_subparsers returns has no public name


def add_command(
    commands: Commands, name: str, summary: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """A new command, with the options of all commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for scripts")
    add_progress(parser)
    parser.set_defaults(run=run)
    return parser


def add_tokenizer(parser: argparse.ArgumentParser) -> None:
    """Add the positional TOKENIZER."""
    parser.add_argument(
        "tokenizer",
        metavar="TOKENIZER",
        help="a tokenizer file (tokenizer.json, SentencePiece .model, tekken.json, .gguf), "
        f"a folder that holds one, a name out of {', '.join(names())}, or a name on the hub",
    )


def add_seconds(parser: argparse.ArgumentParser) -> None:
    """Add --max-seconds."""
    parser.add_argument(
        "--max-seconds",
        type=positive,
        default=Budget().max_seconds,
        metavar="S",
        help="give up a step that takes more of the CPU's time, for instance making the automaton "
        "or one mask (default: %(default)g)",
    )


def positive(text: str) -> float:
    """For argparse: a number over 0."""
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{value:g} is not over 0")
    return value


def natural(text: str) -> int:
    """For argparse: an integer that is at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def ids_of(text: str) -> tuple[int, ...]:
    """For argparse: "1 2 3" or "1,2,3"."""
    try:
        return tuple(int(part) for part in text.replace(",", " ").split())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of ids such as '1 2 3'") from None


def tokenizer_of(arguments: argparse.Namespace) -> Tokenizer:
    """The TOKENIZER of a command. Raises what `load_tokenizer` raises."""
    with step(arguments, f"reading {arguments.tokenizer}"):
        return load_tokenizer(arguments.tokenizer)


def prepare(arguments: argparse.Namespace, tokenizer: Tokenizer) -> CanonicalAutomaton:
    """The automaton of a tokenizer, with a budget of its own: it is made once."""
    with step(arguments, "making its automaton"):
        return canonical_automaton(tokenizer)


def load_tokenizer(source: str) -> Tokenizer:
    """A tokenizer of the package's table, from disk, or from tiktoken or transformers by name."""
    if source in names():
        return Tokenizer.load(source)
    path = Path(source).expanduser()
    if path.exists() or path.suffix in (".json", ".gguf") or not is_hub_name(source):
        return Tokenizer.load(path)
    if "/" not in source and named_encoding_origin(source):
        return Tokenizer.load(source)
    return Tokenizer.load(from_hub("AutoTokenizer", source))


def is_hub_name(source: str) -> bool:
    """Whether this has the form `name` or `owner/name`."""
    return source.count("/") <= 1 and source[:1] not in ("/", ".", "~", "")


def from_hub(factory: str, source: str, **options: Any) -> Any:
    """`transformers.<factory>.from_pretrained(source)`, quietly: a local folder, a name in the
    local cache, or `owner/name` on the hub (no plain name, which may be a misspelled file).

    Raises MissingDependencyError, MissingFileError.
    """
    try:
        import transformers
    except ImportError as error:
        raise MissingDependencyError(
            f"{source!r} is no tokenizer on disk, and other names need transformers: "
            "pip install 'bpe-automata[torch]'"
        ) from error
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it warns of each retry
    local = Path(source).exists() or "/" not in source
    try:
        return getattr(transformers, factory).from_pretrained(
            source, local_files_only=local, **options
        )
    except (OSError, ValueError) as error:
        first = str(error).strip().partition("\n")[0]
        raise MissingFileError(
            f"cannot load {source!r}: {first}; give a path that exists, or the full name "
            "(owner/name) of a model on the hub"
        ) from error


def show(values: Mapping[str, Any], as_json: bool) -> None:
    """Print one JSON object, or aligned lines without the values that are None."""
    if as_json:
        print(json.dumps(values, ensure_ascii=False))
        return
    lines = {name.replace("_", " "): value for name, value in values.items() if value is not None}
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name:<{width}}  {value}")


def seconds(value: float) -> float:
    """Seconds, rounded to microseconds."""
    return round(value, 6)


# The constraint of a command: --regex R, --schema FILE with options for its style, or --language
# with what a request of a server would say.

_WHITESPACE = ("compact", "spaced", "flexible")
_FORMATS = ("draft", "all")
_ORDERS = ("open", "schema", "any")


def add_language(parser: argparse.ArgumentParser) -> None:
    """Add --regex, --schema and --language, of which one is required, and options of --schema."""
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--regex", help=REGEX)
    one.add_argument(
        "--schema",
        type=Path,
        metavar="FILE",
        help="a JSON Schema; the text must be JSON that is valid under it",
    )
    one.add_argument(
        "--language",
        metavar="JSON",
        help='a description as a server takes it, or a file of one: {"tools": [...], "format": '
        '"hermes"}, {"grammar": "...", "format": "gbnf"}, {"choices": [...]}',
    )
    schema = parser.add_argument_group("with --schema")
    schema.add_argument("--yaml", action="store_true", help="write YAML, in block style")
    schema.add_argument(
        "--whitespace", choices=_WHITESPACE, help="of JSON: a:1, a: 1, or any (default: compact)"
    )
    orders = "of members: the schema's, any, or any where others may come too (default: open)"
    schema.add_argument("--order", choices=_ORDERS, help=orders)
    nested = "values inside of at most so many objects and arrays (default: any, written lazily)"
    schema.add_argument("--depth", type=int, help=nested)
    schema.add_argument(
        "--closed", action="store_true", help="no properties but those that the schema names"
    )
    formats = "hold texts to the formats that the schema's draft defines, or to all that are known "
    schema.add_argument("--formats", choices=_FORMATS, help=formats + "(default: draft)")


def language_of(arguments: argparse.Namespace, budget: Budget) -> ByteAutomaton:
    """The automaton of the regex or the schema. Raises ArgumentError, MissingFileError, RegexError,
    BudgetExceededError, SchemaError."""
    given = arguments.whitespace, arguments.order, arguments.formats, arguments.depth
    if arguments.schema is None:
        if any((arguments.yaml, arguments.closed, *given)):
            raise ArgumentError(
                "--yaml, --whitespace, --order, --depth, --closed and --formats need --schema FILE"
            )
        if arguments.language is None:
            return automaton_of(str(arguments.regex), budget)
        return described(_description(arguments.language), budget, "--language")
    if arguments.yaml and arguments.whitespace:
        raise ArgumentError("--whitespace is of JSON: leave it out, or leave out --yaml")
    text = _read(arguments.schema)
    from bpe_automata.schemas import json_schema, yaml_schema

    options = {
        "order": arguments.order or "open",
        "closed": arguments.closed,
        "formats": arguments.formats or "draft",
        "budget": budget,
    }
    if arguments.yaml:
        found = yaml_schema(text, **options)
    else:
        found = json_schema(text, whitespace=arguments.whitespace or "compact", **options)
    return found if arguments.depth is None else found.to_dfa(budget, depth=arguments.depth)


def named(arguments: argparse.Namespace) -> dict[str, str]:
    """The regex, the file of the schema, or the description, for a report."""
    given = {"regex": arguments.regex, "schema": arguments.schema, "language": arguments.language}
    return {name: str(value) for name, value in given.items() if value is not None}


def _description(given: str) -> Mapping[str, Any]:
    text = given if given.lstrip().startswith("{") else _read(Path(given))
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"--language is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ArgumentError(
            f'--language is {short(found)}: give an object, such as {{"regex": "a"}}'
        )
    return found


def _read(path: Path) -> str:
    try:
        return path.expanduser().read_text("utf-8")
    except OSError as error:
        raise MissingFileError(f"cannot read {path}: {error.strerror}") from None
