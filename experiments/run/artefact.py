"""An artefact: a table or a figure that can be made again, in a module of its own; where it has a
folder, that is the module `artefact` in it.

The module has

    VERSION: int                                   goes up when its rows mean something else
    @dataclass(frozen=True) class Config(config.Config)    what determines its numbers
    SMOKE: Config                                  the same, so small that it takes seconds
    LONG = True                                    (optional) `all` renders it from the rows that
                                                   exist, and measures it with `--long` alone
    ON_GPU: Config                                 (optional) that of the artefact `NAME-gpu`; `all`
                                                   renders it where there are rows, and `run` alone
                                                   measures it
    def measure(run: Run[Config]) -> None          says what rows there are, and adds them
    TITLE: str                                     of its page
    def tables(rows, manifest) -> list[Table]      from the rows alone, as are all that follow; rows
                                                   is a data frame without failures
    def figures(rows, manifest) -> list[Figure]    (optional)
    def facts(rows, manifest) -> dict              (optional) numbers by name, for the README
    def wrong(rows, manifest) -> list[str]         (optional) what must not be
    def complete(rows, manifest) -> bool           (optional) False: the README takes nothing
    def readme(facts) -> str | dict                (optional) what the README says of it, by place
    def inputs(config) -> dict                     (optional) what else its rows are made of

An artefact whose rows are no table (a failure is a result of its own there) has, in place of all
from TITLE to `complete`, one function

    def render(rows: list of dict, manifest) -> Report
"""

from __future__ import annotations

import ast
import hashlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.run.config import Config, differences
from experiments.run.executors import Row
from experiments.run.files import ROOT
from experiments.run.measuring import NAME, Run, Settings, alone, read_run
from experiments.run.report import Report, labelled, publish, read_published, write
from experiments.run.tables import frame

ROWS = "rows"
"""The folder, in that of the tables, of the rows behind them."""
LONGEST = 40
"""Characters of a value in the name of a folder; of a longer one, its digest tells it apart."""


@dataclass(frozen=True)
class Artefact:
    """name: of the command line; module: where it is; on_gpu: with the config `ON_GPU`."""

    name: str
    module: str
    on_gpu: bool = False

    def summary(self) -> str:
        """The first line of the module's docstring; the module is not imported for it."""
        path = ROOT.joinpath(*self.module.split(".")).with_suffix(".py")
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        return text.partition("\n")[0] + (" (on a GPU)" if self.on_gpu else "")

    def load(self) -> Any:
        """The module."""
        return importlib.import_module(self.module)

    def default(self) -> Config:
        """The config of the paper."""
        module = self.load()
        found: Config = module.ON_GPU if self.on_gpu else module.Config()
        return found

    def smoke(self) -> Config:
        """The config of a run of seconds."""
        found: Config = self.load().SMOKE
        return found

    def is_long(self) -> bool:
        """Does `all` leave it unmeasured unless `--long` is given?"""
        return bool(getattr(self.load(), "LONG", False))

    def folder(self, config: Config, results: Path) -> Path:
        """Where the rows of a config are: `results/NAME`, or `results/NAME-FIELD=VALUE...`."""
        changed = differences(config, self.default())
        if changed == differences(self.smoke(), self.default()) and changed:
            return results / "smoke" / self.name
        parts = [f"{name}={_short(value)}" for name, value in changed.items()]
        return results / "-".join([self.name, *parts])

    def home(self, config: Config, settings: Settings) -> Path:
        """Where tables and figures go: the paper shows the default config, others stay beside their
        rows."""
        is_default = config == self.default()
        return settings.paper if is_default else self.folder(config, settings.results)

    def measure(self, config: Config, settings: Settings) -> None:
        """All rows that are missing."""
        module = self.load()
        folder = self.folder(config, settings.results)
        more: Callable[[Config], Row] | None = getattr(module, "inputs", None)
        inputs = more(config) if more else {}
        with alone(folder):
            run = Run(self.name, module.VERSION, config, folder, settings, inputs)
            if run.store.aside:
                print(f"{self.name}: rows of an earlier state are kept in {run.store.aside.name}")
            module.measure(run)
            run.finish()

    def rows(self, config: Config, settings: Settings) -> tuple[list[Row], Row]:
        """(rows, manifest) of an earlier run: those in `results`, or else, of the default config,
        those in the repository. Raises MissingFileError where there are neither."""
        folder = self.folder(config, settings.results)
        if (folder / NAME).exists() or not self._are_published(config, settings):
            return read_run(folder)
        return read_published(self._published(settings))

    def has_rows(self, config: Config, settings: Settings) -> bool:
        """Would `rows` find any?"""
        measured = self.folder(config, settings.results) / NAME
        return measured.exists() or self._are_published(config, settings)

    def _published(self, settings: Settings) -> Path:
        return settings.paper / ROWS / f"{self.name}.jsonl.gz"

    def _are_published(self, config: Config, settings: Settings) -> bool:
        return config == self.default() and self._published(settings).exists()

    def render(self, config: Config, settings: Settings) -> tuple[Report, list[Path]]:
        """Write what the rows say, and the rows of the default config beside it."""
        rows, manifest = self.rows(config, settings)
        made = labelled(self.report(rows, manifest), rows, manifest)
        home = self.home(config, settings)
        written = write(self.name, made, home)
        if config == self.default():
            written.append(home / ROWS / f"{self.name}.jsonl.gz")
            publish(rows, manifest, written[-1])
        return made, written

    def report(self, rows: Sequence[Row], manifest: Row) -> Report:
        """What the module says of rows."""
        module = self.load()
        if hasattr(module, "render"):
            made: Report = module.render(rows, manifest)
            return made
        good = frame(rows)
        if good.empty:
            return Report(module.TITLE)

        def said(name: str, otherwise: Any) -> Any:
            found = getattr(module, name, None)
            return found(good, manifest) if found else otherwise

        figures = said("figures", ())
        if self.on_gpu:
            figures = [replace(figure, name=f"{figure.name}_gpu") for figure in figures]
        return Report(
            module.TITLE,
            module.tables(good, manifest),
            *(figures, said("facts", {}), said("wrong", ()), said("complete", True)),
        )


def _short(value: Any) -> str:
    """Of a value, for the name of a folder."""
    parts = [str(part) for part in (value if isinstance(value, tuple) else (value,))]
    text = ",".join(parts)
    name = ",".join(Path(part).name if "/" in part else part for part in parts)
    plain = "".join(c if c.isalnum() or c in ".,_" else "_" for c in name)
    if len(plain) <= LONGEST:
        return plain
    return f"{plain[:LONGEST]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


MODULES = {
}
"""Modules by name, in the order in which `all` makes them."""
GPU = "-gpu"
ARTEFACTS = {
    name: Artefact(name, f"experiments.{module}", name.endswith(GPU))
    for name, module in MODULES.items()
}
