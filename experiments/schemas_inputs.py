"""Schemas with instances, or regexes with texts, as cases that every engine is given alike."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bpe_automata.errors import MissingFileError

Row = dict[str, Any]

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


def schema_cases(folder: Path, whitespace: str) -> list[Case]:
    """From files of JSON lines {"id", "schema", "tests": [{"valid", "data"}]}, gzipped or not, in
    order of their names. Raises MissingFileError."""
    paths = sorted(path for path in folder.glob("*") if ".jsonl" in path.suffixes)
    if not paths:
        raise MissingFileError(f"{folder} has no files *.jsonl or *.jsonl.gz; give --schemas")
    write = WRITERS[whitespace]
    found = []
    for path in paths:
        for row in lines_of(path):
            texts = tuple(write(test["data"]) for test in row["tests"])
            labels = tuple(bool(test["valid"]) for test in row["tests"])
            group = path.name.split(".")[0]
            found.append(Case(row["id"], group, {"schema": row["schema"]}, texts, labels))
    return found


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


def lines_of(path: Path) -> Iterator[Row]:
    """The JSON objects of a file, one a line. Raises MissingFileError."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())
    except (OSError, ValueError) as error:
        raise MissingFileError(f"{path} cannot be read as JSON lines: {error}") from error


def shuffled(cases: Sequence[Case], n: int | None, seed: int) -> list[Case]:
    """All of them, or `n`, in an order that the seed alone decides: what an engine did until its
    time was up is a fair sample, and the same one as another's."""
    order = list(cases)
    random.Random(seed).shuffle(order)
    return order[:n] if n else order


def digest(cases: Sequence[Case]) -> str:
    """Names the cases and their texts."""
    made = hashlib.sha256()
    for case in sorted(cases, key=lambda case: case.id):
        made.update(json.dumps([case.id, case.source, case.texts]).encode())
    return made.hexdigest()[:16]
