"""Schemas with instances, as cases that are the same for every engine.

The config names the files (`--schemas`, `--yaml-schemas`); by default they are in the folder that
the environment variable BPE_AUTOMATA_DATA names, or else in `shared/data` next to the checkout.
Nothing is downloaded. Files are JSON lines, gzipped or not, one object a line.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata.errors import ArgumentError, MissingFileError
from bpe_automata.schemas import _yaml_style
from bpe_automata.schemas._yaml_style import INDENT
from experiments.files import ROOT, lines_of

Row = dict[str, Any]
FOLDER = "BPE_AUTOMATA_DATA"
"""The environment variable that names the folder of the data."""
DATA = Path(os.environ.get(FOLDER) or ROOT.parent / "shared" / "data")
SCHEMAS = DATA / "maskbench"
YAML_SCHEMAS = DATA / "schemastore_yaml.jsonl.gz"
SMOKE_SCHEMAS = Path(__file__).with_name("smoke_schemas.jsonl")
SMOKE_YAML = Path(__file__).with_name("smoke_yaml.jsonl")
"""A few small cases, which are part of the repository."""
SCHEMA_LINES = f"""give --schemas FILE_OR_FOLDER, or {FOLDER}=FOLDER with the files in \
FOLDER/{SCHEMAS.name}. The data: MaskBench, from https://github.com/guidance-ai/jsonschemabench \
(folder maskbench), as JSON lines, each \
{{"id": text, "schema": value, "tests": [{{"valid": bool, "data": value}}, ...]}}"""
YAML_LINES = f"""give --yaml-schemas FILE, or {FOLDER}=FOLDER with the file \
FOLDER/{YAML_SCHEMAS.name}. The data: the catalog of https://www.schemastore.org, with YAML files \
that its schemas are for, as JSON lines, each \
{{"id": text, "schema": value, "yaml": [text, ...]}}"""
"""How to point to the data, where it comes from, and the form of its lines."""
WRITERS = {
    "compact": partial(json.dumps, separators=(",", ":"), ensure_ascii=False),
    "spaced": partial(json.dumps, ensure_ascii=False),
}
"""How `json.dumps` writes an instance, by style."""


@dataclass(frozen=True)
class Case:
    """source: {"schema": ...} or {"regex": ...}; texts: instances as text; labels: does the data
    call each valid?"""

    id: str
    group: str
    source: Row
    texts: tuple[str, ...]
    labels: tuple[bool, ...]

    @property
    def valid(self) -> tuple[str, ...]:
        """The texts that the data calls valid."""
        return tuple(text for text, good in zip(self.texts, self.labels, strict=True) if good)


def schema_cases(source: Path, style: str) -> list[Case]:
    """The cases of a file of `SCHEMA_LINES`, gzipped or not, or of a folder's files in order of
    their names; a case's group is the name of its file. Raises MissingFileError."""
    write = WRITERS[style]

    def case(row: Row, group: str) -> Case:
        texts = tuple(write(test["data"]) for test in row["tests"])
        labels = tuple(bool(test["valid"]) for test in row["tests"])
        return Case(str(row["id"]), group, {"schema": row["schema"]}, texts, labels)

    try:
        return [case(row, group) for group, path in groups_of(source) for row in lines_of(path)]
    except (LookupError, TypeError, AttributeError) as error:
        message = f"{source} has a line that lacks something: {type(error).__name__}: {error}"
        raise MissingFileError(message) from error


def groups_of(source: Path) -> list[tuple[str, Path]]:
    """(name without endings, path) of the file itself, or of a folder's files of JSON lines. Raises
    MissingFileError."""
    every = [source] if source.is_file() else sorted(source.glob("*"))
    found = [path for path in every if path == source or ".jsonl" in path.suffixes]
    if not found:
        message = f"{source} is no file, and has no files *.jsonl or *.jsonl.gz; {SCHEMA_LINES}"
        raise MissingFileError(message)
    return [(path.name.split(".")[0], path) for path in found]


def yaml_cases(path: Path) -> list[Row]:
    """The cases of a file of `YAML_LINES`. Raises MissingFileError."""
    if not path.is_file():
        raise MissingFileError(f"{path} is not there; {YAML_LINES}")
    return list(lines_of(path))


@cache
def tokenizer_of(name: str) -> Tokenizer:
    """`Tokenizer.load`, cached for the process."""
    return Tokenizer.load(name)


def spelled(tokenizer: Tokenizer, text: str) -> list[int] | None:
    """The ids of `encode` if they decode to the text, else None."""
    ids = tokenizer.encode(text)
    return ids if tokenizer.text_bytes(ids) == text.encode() else None


def shuffled(cases: Sequence[Case], n: int | None, seed: int) -> list[Case]:
    """All cases, or `n`, in an order that the seed alone decides, so that the cases that an engine
    reaches in its time are a random sample, and the same order for all engines."""
    order = list(cases)
    random.Random(seed).shuffle(order)
    return order if n is None else order[:n]


def yaml_text(value: Any) -> str:
    """A JSON value in the style of `yaml_schema`, with keys in the order of the value.

        yaml.safe_load(yaml_text(value)) == value

    As with `yaml.safe_dump`, integers have no fraction, and only floats from 1e16 on have an
    exponent. Raises ArgumentError for values that are not JSON: other types, keys other than
    strings, NaN and infinities."""
    return "".join(_lines(value, 0, after_key=False))


def _lines(value: Any, level: int, after_key: bool) -> list[str]:
    """Pieces of the text of a value, without the margin before its first line."""
    if not isinstance(value, dict | list) or not value:
        return [" " * after_key, _scalar(value), "\n"]
    margin = " " * (INDENT * level)
    found = ["\n", margin] if after_key else []
    for number, member in enumerate(value.items() if isinstance(value, dict) else value):
        found += [margin] if number else []
        if isinstance(value, dict):
            found += [f"{_key(member[0])}:", *_lines(member[1], level + 1, after_key=True)]
        else:
            found += ["- ", *_lines(member, level + 1, after_key=False)]
    return found


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ArgumentError(f"{key!r} is a key of JSON only if it is a string")
    return _yaml_style.spelled(key)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _yaml_style.spelled(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and value - value == 0:
        mantissa, _, exponent = repr(value).partition("e+")
        if exponent:
            return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}e+{exponent}"
        text = f"{Decimal(repr(value)):f}"
        return text if "." in text else f"{text}.0"
    raise ArgumentError(f"{value!r} is no value of JSON")
