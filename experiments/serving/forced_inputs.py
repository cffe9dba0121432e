"""Schemas with valid instances, as regexes with texts.

A schema becomes the regexes that outlines-core makes of it, one without white space, one with the
optional spaces of its own default; an instance becomes `json.dumps` of it, without spaces for the
one and with for the other, and counts if the regex matches that. What cannot be had (a schema that
outlines-core refuses, a regex that is too long or too large) says why.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bpe_automata.automata.compile import Budget, compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import BpeAutomataError, MissingFileError
from experiments.engines.interface import INSTALL
from experiments.run.files import ROOT, lines_of, require

SCHEMAS = ROOT.parent / "shared" / "data" / "maskbench"
"""MaskBench, where it lies: its licence is not known, so it is no part of the repository."""
LONGEST = 20_000
"""Characters of a regex. outlines-core makes up to 27 million of one schema of MaskBench."""
BUDGET = Budget(max_states=5_000, max_seconds=20)
"""For one regex; 1 in 100 of MaskBench's is larger."""


@dataclass(frozen=True)
class Style:
    """pattern: what outlines-core puts where white space may be (None: its default, `[ ]?`);
    separators: for `json.dumps`."""

    pattern: str | None
    separators: tuple[str, str]


STYLES = {"compact": Style("", (",", ":")), "spaced": Style(None, (", ", ": "))}
GIVEN = "as given"
"""The style of regexes that come with their texts."""


@dataclass(frozen=True)
class Source:
    """id, group; schema with valid instances, or regex with texts: of one pair there is nothing."""

    id: str
    group: str
    schema: Any = None
    instances: tuple[Any, ...] = ()
    regex: str | None = None
    texts: tuple[str, ...] = ()

    @property
    def styles(self) -> tuple[str, ...]:
        """Those that it can be had in."""
        return tuple(STYLES) if self.regex is None else (GIVEN,)

    def regex_in(self, style: str) -> str:
        """Raises MissingDependencyError, and ValueError for what outlines-core refuses."""
        if self.regex is not None:
            return self.regex
        build = require("outlines_core.json_schema", INSTALL).build_regex_from_schema
        regex: str = build(json.dumps(self.schema), STYLES[style].pattern)
        return regex

    def texts_in(self, style: str) -> tuple[str, ...]:
        """Its instances, written out."""
        if self.regex is not None:
            return self.texts
        given = STYLES[style].separators
        dump = partial(json.dumps, separators=given, ensure_ascii=False)
        return tuple(map(dump, self.instances))


@dataclass(frozen=True)
class Item:
    """dfa: of the regex, None where there is none, for the reason `refused`; texts: those that it
    accepts; other: how many it does not."""

    source: Source
    style: str
    regex: str = ""
    dfa: ByteDFA | None = None
    texts: tuple[str, ...] = ()
    other: int = 0
    refused: str | None = None


def schemas_of(folder: Path) -> list[Source]:
    """From files of JSON lines {"id", "schema", "tests": [{"valid", "data"}]}, gzipped or not, in
    order of their names. Raises MissingFileError."""
    paths = sorted(path for path in folder.glob("*") if ".jsonl" in path.suffixes)
    if not paths:
        raise MissingFileError(f"{folder} has no files *.jsonl or *.jsonl.gz; give --schemas")
    return [_schema(path, row) for path in paths for row in lines_of(path)]


def _schema(path: Path, row: Any) -> Source:
    try:
        valid = tuple(test["data"] for test in row["tests"] if test["valid"])
        return Source(str(row["id"]), path.name.split(".")[0], row["schema"], valid)
    except (LookupError, TypeError) as error:
        message = f'{path} has a line without "id", "schema" or "tests": {error}'
        raise MissingFileError(message) from error


def regexes_of(path: Path) -> list[Source]:
    """From a file of JSON lines {"regex", "valid", "id", "group"}. Raises MissingFileError."""
    found = []
    for number, row in enumerate(lines_of(path)):
        try:
            texts, name = tuple(row["valid"]), str(row.get("id", number))
            group = str(row.get("group", ""))
            found.append(Source(name, group, regex=row["regex"], texts=texts))
        except (LookupError, TypeError, AttributeError) as error:
            message = f'{path} has a line without "regex" or "valid": {error}'
            raise MissingFileError(message) from error
    return found


def sampled(sources: Sequence[Source], count: int, seed: int) -> list[Source]:
    """A random `count` of them (0: all), in their order."""
    if not 0 < count < len(sources):
        return list(sources)
    chosen = random.Random(seed).sample(range(len(sources)), count)
    return [sources[i] for i in sorted(chosen)]


def item_of(source: Source, style: str) -> Item:
    """With its regex compiled, and the texts that match. Raises MissingDependencyError."""
    try:
        regex = source.regex_in(style)
    except (ValueError, RecursionError) as error:
        return Item(source, style, refused=f"outlines-core: {_short(error)}")
    if len(regex) > LONGEST:
        return Item(source, style, refused=f"a regex of more than {LONGEST:,} characters")
    try:
        dfa = compile_regex(regex, BUDGET)
    except BpeAutomataError as error:
        return Item(source, style, regex, refused=f"{type(error).__name__}: {_short(error)}")
    texts = source.texts_in(style)
    # What `re.fullmatch` says too; but that takes exponential time on some of these regexes.
    fit = tuple(text for text in texts if dfa.accepts(text.encode("utf-8", "replace")))
    return Item(source, style, regex, dfa, fit, len(texts) - len(fit))


def _short(error: Exception) -> str:
    """The beginning of a message: some hold the whole schema."""
    return str(error).split("\n")[0][:60]
