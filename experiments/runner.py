"""One run of one experiment: its options, and its rows kept beside a manifest.

`results/NAME/rows.jsonl` (`results/NAME-MODEL/` with `--model`) holds the rows, `manifest.json`
what they came from. Both are replaced whole, after each row: an interrupted run leaves the rows
that it had and a manifest that says so.
"""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from bpe_automata.errors import MissingFileError

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("numpy", "numba", "tokenizers", "torch", "transformers", "gguf")


@dataclass(frozen=True)
class Options:
    """What the command line chose. `n` None: the experiment's own default."""

    name: str
    model: str | None = None
    device: str = "auto"
    seed: int = 0
    n: int | None = None
    render_only: bool = False
    results: Path = ROOT / "results"

    @property
    def folder(self) -> Path:
        """Where the rows go; other models than the default one have a folder of their own."""
        if self.model is None:
            return self.results / self.name
        return self.results / f"{self.name}-{Path(self.model).name}"

    @property
    def figures(self) -> Path:
        """The paper shows the default model; figures of any other stay beside their rows."""
        return ROOT / "paper_figures" if self.model is None else self.folder


@dataclass
class Run:
    """Rows and manifest of a run that is going on.

    `config`: whatever else determines the numbers; `provenance`: hashes, device, model;
    `expected`: how many rows there will be; `started`: reading of `time.perf_counter`.
    """

    options: Options
    config: dict[str, Any]
    provenance: dict[str, Any]
    expected: int
    started: float
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row, at once."""
        self.rows.append(row)
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)
        write_atomically(self.options.folder / "rows.jsonl", "".join(lines))
        text = json.dumps(self.manifest(), indent=2, ensure_ascii=False) + "\n"
        write_atomically(self.options.folder / "manifest.json", text)

    def manifest(self) -> dict[str, Any]:
        """Where the rows came from; `complete` is false until the last one is in."""
        return {
            "experiment": self.options.name,
            "complete": len(self.rows) == self.expected,
            "rows": len(self.rows),
            "rows_expected": self.expected,
            "seed": self.options.seed,
            "config": self.config,
            **self.provenance,
            "versions": versions(),
            "wall_seconds": round(time.perf_counter() - self.started, 2),
        }


def read_run(options: Options) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows and the manifest of an earlier run. Raises `MissingFileError`."""
    try:
        rows = (options.folder / "rows.jsonl").read_text(encoding="utf-8").split("\n")
        manifest = (options.folder / "manifest.json").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        message = f"{error.filename} is not there; run without --render first"
        raise MissingFileError(message) from error
    return [json.loads(row) for row in rows if row], json.loads(manifest)


def versions() -> dict[str, str]:
    """Python, platform, and each installed package that the numbers depend on."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def write_atomically(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)
