"""The rows of a run, joined with what the judge said: what was wrong, and why."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bpe_automata.errors import MissingFileError
from experiments.schemas_histogram import Histogram, of_rows
from experiments.schemas_options import JUDGE, OURS, SchemasOptions, folder_name
from experiments.schemas_reasons import GAVE_UP, UNEXPLAINED
from experiments.schemas_store import read

Row = dict[str, Any]
Text = tuple[str, int]
"""A case's id, and which of its texts."""


@dataclass(frozen=True)
class Unit:
    """One engine with one tokenizer. rows: of the cases that it got to; verdicts: of each text of a
    case, valid, not valid, or None where the judge cannot say."""

    engine: str
    tokenizer: str
    rows: list[Row]
    verdicts: dict[str, list[bool | None]]

    @property
    def name(self) -> str:
        """For a table."""
        return f"{self.engine}, {folder_name(self.tokenizer)}"

    @cached_property
    def compiled(self) -> list[Row]:
        """The rows of cases that are compiled and whose texts were tried."""
        return [row for row in self.rows if row["status"] == "compiled"]

    def count(self, *statuses: str) -> int:
        """Cases that ended so."""
        return sum(row["status"] in statuses for row in self.rows)

    def texts(self, valid: bool) -> Iterator[tuple[Row, int, bool]]:
        """(row, which text, was it accepted) of those that are (not) valid. A schema that is said
        to be unsatisfiable accepts none."""
        for row in self.rows:
            for k, accepted in enumerate(row.get("accepted", ())):
                if self.verdicts[row["id"]][k] is valid:
                    yield row, k, accepted

    def rejected(self) -> list[Text]:
        """Valid ones that are not accepted."""
        return [(row["id"], k) for row, k, accepted in self.texts(True) if not accepted]

    def let_through(self) -> list[Text]:
        """Invalid ones that are accepted."""
        return [(row["id"], k) for row, k, accepted in self.texts(False) if accepted]

    def reasons(self) -> Counter[str]:
        """Why valid ones are rejected, how often."""
        return Counter(reason for row in self.rows for reason in row.get("reasons", {}).values())

    def unexplained(self) -> list[Text]:
        """Rejected, and no reason was found."""
        return [
            (row["id"], int(k))
            for row in self.rows
            for k, reason in row.get("reasons", {}).items()
            if reason in (UNEXPLAINED, GAVE_UP)
        ]

    def refusals(self) -> Counter[str]:
        """By keyword, or by what the message begins with; how often."""
        return Counter(_refusal(row) for row in self.rows if row["status"] != "compiled")

    def seconds(self, *parts: str) -> Histogram:
        """Of the cases that compiled: the sum of `parts` of each ("compile", "first")."""
        made = Histogram()
        for row in self.compiled:
            made.add(sum(row[part] for part in parts))
        return made

    def masks(self) -> Histogram:
        """Of all masks along valid texts."""
        return of_rows(row["masks"] for row in self.compiled if "masks" in row)

    def peak_mb(self) -> float:
        """Of the process, its tokenizer included; nan where it is not known."""
        found = [row.get(name) for row in self.rows for name in ("peak_mb", "compiling_mb")]
        return max((mb for mb in found if mb), default=float("nan"))


def _refusal(row: Row) -> str:
    if row["status"] == "refused":
        return row["keyword"] or _gist(row["message"])
    return f"({row['status']})"


def _gist(message: str) -> str:
    """A message without what is of one case only."""
    short = re.sub(r"[\"'`{\[(].*", "", message.split("\n")[0]).strip(" :,.")
    keys = re.search(r"Unimplemented keys: (.*)", message)
    return f"{short} {keys[1]}" if keys else short or message[:40]


def read_units(options: SchemasOptions) -> tuple[list[Unit], Row]:
    """(what there is of each engine and tokenizer, the manifest). Raises MissingFileError."""
    from experiments.schemas import path_of

    try:
        text = (options.folder / "manifest.json").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise MissingFileError(f"{error.filename} is not there; run without --render") from error
    manifest: Row = json.loads(text)
    chosen = dict.fromkeys(manifest["chosen"])
    verdicts = manifest["labels"]
    if not manifest["regexes"]:
        _, judged = read(path_of(options, JUDGE, "-"))
        verdicts = {row["id"]: row.get("accepted", []) for row in judged}
    units = []
    for engine in manifest["engines"]:
        for tokenizer in manifest["tokenizers"]:
            _, rows = read(path_of(options, engine, tokenizer))
            here = [row for row in rows if row["id"] in chosen and row["id"] in verdicts]
            if here:
                units.append(Unit(engine, tokenizer, here, verdicts))
    if not units:
        why = "; ".join(f"{name}: {reason}" for name, reason in manifest.get("missing", {}).items())
        raise MissingFileError(f"no engine has rows in {options.folder}; {why or 'run it anew'}")
    return units, manifest | {"verdicts": verdicts}


def disagreements(manifest: Row) -> list[tuple[str, int, bool, bool | None]]:
    """(case, text, what the data says, what the judge says) where these differ."""
    verdicts = manifest["verdicts"]
    return [
        (case, k, label, verdicts[case][k])
        for case, labels in manifest["labels"].items()
        for k, label in enumerate(labels)
        if case in verdicts and verdicts[case] and verdicts[case][k] is not label
    ]


def wrongs(units: list[Unit]) -> list[str]:
    """Of this package: whatever must not be."""
    found = []
    for unit in units:
        if unit.engine == OURS:
            found += [f"{unit.name}: invalid accepted: {i} #{k}" for i, k in unit.let_through()]
            found += [f"{unit.name}: unexplained: {i} #{k}" for i, k in unit.unexplained()]
            for row in unit.rows:
                if row.get("wrong_masks"):
                    found.append(f"{unit.name}: masks: {row['id']} {row['wrong_masks'][0]}")
                if row["status"] in ("failed", "crashed"):
                    found.append(f"{unit.name}: {row['status']}: {row['id']} {row['message']}")
    return found
