"""The automaton of all texts, of the Mistral-7B merge table, made in two ways in one run.

The reference is Algorithm 3 of the article in plain Python, with its last step, the fusion of equal
states; the article's own time stands beside it. The rectangles are the package's: every token's
derivation, and one rectangle per merge. Both are then compared on the complete table, row by row.
Last, DirectMerge itself on `.*` is compared with Algorithm 3 for growing beginnings of the table. A
difference is wrong.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.article import geometry_report
from experiments.article.mistral import MERGES_HELP, bpe_alone_of_mistral
from experiments.article.server import Server
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.run.files import write_atomically
from experiments.run.measuring import Run, progress
from experiments.run.report import Report

VERSION = 1
SERVER = "experiments.article.geometry_server"


@dataclass(frozen=True)
class Config(config.Config):
    """Of which table, how often, and how much is compared."""

    merges: int | None = option(None, MERGES_HELP)
    repeats: int = option(7, "how often the rectangles are made, before and after the reference")
    sampled: int = option(100_000, "random pairs of tokens that are compared merge by merge")
    budget: float = option(
        200, "seconds for growing beginnings of the table; the last may take as long again"
    )


SMOKE = Config(merges=300, repeats=2, sampled=1000, budget=0.5)


def measure(run: Run[Config]) -> None:
    """One row per part, each from a process of its own."""
    measure_on(run, json.dumps(bpe_alone_of_mistral(run.config.merges)))


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Three tables."""
    return geometry_report.report(rows, manifest)


def readme(facts: Row) -> str:
    """Both times, and what was compared."""
    return geometry_report.readme(facts)


def measure_on(run: Run[Config], table: str) -> None:
    """table: a tokenizer.json, BPE alone."""
    config = run.config
    # The rectangles first and last, so that the reference is between them on a busy machine too.
    parts: dict[str, tuple[str, list[float]]] = {
        "rectangles": ("rectangles", [config.repeats]),
        "reference": ("reference", [config.seed, config.sampled]),
        "rectangles again": ("rectangles", [config.repeats]),
        "beginnings": ("beginnings", [config.budget]),
    }
    todo = run.expect(parts)
    if not todo:
        return
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "tokenizer.json"
        write_atomically(file, table)
        with Server(SERVER, file) as server, progress() as bar:
            for key in bar.track(todo, description="geometry"):
                part, arguments = parts[key]
                run.add(key, {"kind": part} | server.ask({"part": part, "arguments": arguments}))
