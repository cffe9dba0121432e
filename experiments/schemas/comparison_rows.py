"""The rows of a run, joined with what the judge said: what was wrong, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from experiments.laws.exact_measure import shown
from experiments.run.executors import Row
from experiments.schemas.engines import JUDGE, OURS
from experiments.schemas.histogram import Histogram, of_rows
from experiments.schemas.reasons import GAVE_UP, UNEXPLAINED

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
        return f"{self.engine}, {self.tokenizer}"

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
            known = self.verdicts.get(row["id"], [])
            pairs = zip(row.get("accepted", ()), known, strict=False)
            for k, (accepted, verdict) in enumerate(pairs):
                if verdict is valid:
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


def judged_of(rows: Sequence[Row]) -> list[Row]:
    """What the judge said of each case, beside what the data says (`labels`)."""
    return [row for row in rows if row.get("engine") == JUDGE]


def units_of(rows: Sequence[Row], manifest: Row) -> list[Unit]:
    """What there is of each engine and tokenizer, in the order of the config."""
    verdicts = {row["id"]: row.get("accepted", []) for row in judged_of(rows)}
    own: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if "status" in row:
            own.setdefault((row["engine"], row["tokenizer"]), []).append(row)
    config = manifest["config"]
    order = [(e, shown(t)) for e in config["engines"] for t in config["tokenizers"]]
    return [Unit(*pair, own[pair], verdicts) for pair in order if pair in own]


def disagreements(rows: Sequence[Row]) -> list[tuple[str, int, bool, bool | None]]:
    """(case, text, what the data says, what the judge says) where these differ."""
    return [
        (row["id"], k, label, verdict)
        for row in judged_of(rows)
        for k, (label, verdict) in enumerate(
            zip(row["labels"], row.get("accepted", ()), strict=False)
        )
        if label is not verdict
    ]


def wrongs(units: Sequence[Unit]) -> list[str]:
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
