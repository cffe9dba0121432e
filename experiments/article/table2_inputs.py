"""The schemas of Table 2, as automata with texts to decode along."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import BpeAutomataError, MissingFileError
from bpe_automata.schemas import compile_json_schema
from experiments.run.files import ROOT, lines_of, require
from experiments.shared.resources import timed

SCHEMAS = ROOT.parent / "shared" / "data" / "maskbench"
"""MaskBench, where it lies: its licence is not known, so it is no part of the repository."""
GROUP = "Glaiveai2K"
"""The file of it that is taken: function calls, as in the article."""

_INSTALL = "pip install datasets"
_ID_KEYS = ("id", "unique_id", "name")
_SCHEMA_KEYS = ("schema", "json_schema", "parameters")

write: Callable[[Any], str] = partial(json.dumps, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Source:
    """id, schema; instances: those that the data says are valid."""

    id: str
    schema: Any
    instances: tuple[Any, ...]


@dataclass(frozen=True)
class Item:
    """dfa: of the compact texts, with only the properties that the schema names; text: one of them,
    an instance's if there is one; seconds: to compile; failure: why there is no automaton."""

    source: Source
    dfa: ByteDFA | None
    text: str
    seconds: float
    failure: str | None = None


def sources_of(schemas: Path, n: int | None, seed: int) -> list[Source]:
    """The function calls of `SCHEMAS`, or everything in another folder, in a file or in a hub data
    set; `n` of them drawn by lot. Raises MissingFileError, MissingDependencyError."""
    if schemas.is_dir():
        rows = _from_folder(schemas)
    else:
        rows = [*lines_of(schemas)] if schemas.is_file() else _from_hub(str(schemas))
    found = [_source(number, row) for number, row in enumerate(rows)]
    random.Random(seed).shuffle(found)
    return found[:n]


def _from_folder(folder: Path) -> list[Mapping[str, Any]]:
    pattern = f"{GROUP}*.jsonl*" if folder == SCHEMAS else "*.jsonl*"
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise MissingFileError(f"{folder} has no files {pattern}; give --schemas")
    return [row for path in paths for row in lines_of(path)]


def _from_hub(name: str) -> list[Mapping[str, Any]]:
    """All rows of a data set, its training split if it has several."""
    if name.count("/") != 1 or name.startswith((".", "/")):
        message = f"{name} is neither a folder or file of JSON lines nor the hub id of a data set"
        raise MissingFileError(f"{message} (owner/name); give --schemas")
    load = require("datasets", _INSTALL).load_dataset
    try:
        rows: Iterable[Mapping[str, Any]] = load(name, split="train")
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise MissingFileError(f"cannot load the data set {name!r}: {reason}") from error
    return list(rows)


def _source(number: int, row: Mapping[str, Any]) -> Source:
    schema = next((row[key] for key in _SCHEMA_KEYS if row.get(key) is not None), None)
    if schema is None:
        keys = ", ".join(_SCHEMA_KEYS)
        raise MissingFileError(f"row {number} of the data has no schema: it needs one of {keys}")
    schema = json.loads(schema) if isinstance(schema, str) else schema
    valid = tuple(test["data"] for test in row.get("tests", ()) if test["valid"])
    name = next((row[key] for key in _ID_KEYS if key in row), number)
    return Source(str(name), schema, valid)


def item_of(source: Source) -> Item:
    """Compiled; what is refused says why."""
    try:
        seconds, dfa = timed(lambda: compile_json_schema(source.schema, closed=True))
    except BpeAutomataError as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return Item(source, None, "", 0.0, reason)
    texts = (write(instance) for instance in source.instances)
    fitting = (text for text in texts if dfa.accepts(text.encode("utf-8", "replace")))
    shortest = dfa.shortest() or b""
    return Item(source, dfa, next(fitting, shortest.decode()), seconds)
