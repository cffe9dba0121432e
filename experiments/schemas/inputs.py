"""Schemas with instances, or regexes with texts, as cases that every engine is given alike."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bpe_automata.errors import MissingFileError
from experiments.run.executors import Row
from experiments.run.files import ROOT, lines_of

DATA = ROOT.parent / "shared" / "data"
SCHEMAS = DATA / "maskbench"
YAML_SCHEMAS = DATA / "schemastore_yaml.jsonl.gz"
SMOKE_SCHEMAS = Path(__file__).with_name("smoke_schemas.jsonl")
SMOKE_YAML = Path(__file__).with_name("smoke_yaml.jsonl")
"""A few small ones, which are part of the repository."""
WRITERS = {
    "compact": partial(json.dumps, separators=(",", ":"), ensure_ascii=False),
    "spaced": partial(json.dumps, ensure_ascii=False),
    "flexible": partial(json.dumps, indent=2, ensure_ascii=False),
}
"""How `json.dumps` writes an instance, by style."""


@dataclass(frozen=True)
class Case:
    """source: {"schema": ...} or {"regex": ...}; texts: instances as they are written; labels: what
    the data says of each, is it valid?"""

    id: str
    group: str
    source: Row
    texts: tuple[str, ...]
    labels: tuple[bool, ...]


def schema_cases(place: Path, whitespace: str) -> list[Case]:
    """From JSON lines {"id", "schema", "tests": [{"valid", "data"}]}, gzipped or not: a file, or
    those of a folder in order of their names. Raises MissingFileError."""
    write = WRITERS[whitespace]
    found = []
    for path in files_of(place):
        for row in lines_of(path):
            texts = tuple(write(test["data"]) for test in row["tests"])
            labels = tuple(bool(test["valid"]) for test in row["tests"])
            group = path.name.split(".")[0]
            found.append(Case(row["id"], group, {"schema": row["schema"]}, texts, labels))
    return found


def files_of(place: Path) -> list[Path]:
    """The file itself, or a folder's files of JSON lines. Raises MissingFileError."""
    if place.is_file():
        return [place]
    found = sorted(path for path in place.glob("*") if ".jsonl" in path.suffixes)
    if not found:
        message = f"{place} is no file, and has no files *.jsonl or *.jsonl.gz"
        raise MissingFileError(f"{message}; give --schemas DIR")
    return found


def yaml_cases(path: Path) -> list[Row]:
    """From a file of JSON lines {"id", "schema", "yaml": [text]}. Raises MissingFileError."""
    if not path.is_file():
        raise MissingFileError(f"{path} is not there; give --yaml-schemas FILE")
    return list(lines_of(path))


def regex_cases(path: Path) -> list[Case]:
    """From a file of JSON lines {"id", "group", "regex", "valid": [text]}. Raises
    MissingFileError."""
    return [
        Case(
            str(row.get("id", number)),
            str(row.get("group", "")),
            {"regex": row["regex"]},
            tuple(row["valid"]),
            (True,) * len(row["valid"]),
        )
        for number, row in enumerate(lines_of(path))
    ]


def shuffled(cases: Sequence[Case], n: int | None, seed: int) -> list[Case]:
    """All of them, or `n`, in an order that the seed alone decides: what an engine did until its
    time was up is a fair sample, and the same one as another's."""
    order = list(cases)
    random.Random(seed).shuffle(order)
    return order if n is None else order[:n]
