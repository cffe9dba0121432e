"""An artefact: a table or a figure that can be made again, in a module of its own.

The module has

    VERSION: int                                   goes up when its rows mean something else
    @dataclass(frozen=True) class Config(config.Config)    what determines its numbers
    SMOKE: Config                                  the same, so small that it takes seconds
    def measure(run: Run[Config]) -> None          says what rows there are, and adds them
    def render(rows, manifest) -> Report           from the rows alone; measures nothing
    def readme(facts) -> str | dict                (optional) what the README says of it, by place
    def inputs(config) -> dict                     (optional) what else its rows are made of
    PAGE: Path                                     (optional) where its Markdown stands besides
"""

from __future__ import annotations

import ast
import hashlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.run import report
from experiments.run.cells import Row
from experiments.run.config import Config, differences
from experiments.run.files import PAPER, ROOT, write_atomically
from experiments.run.measuring import Run, Settings, read_run
from experiments.run.report import Report
from experiments.run.store import alone

LONGEST = 40
"""Characters of a value in the name of a folder; of a longer one, its digest tells it apart."""


@dataclass(frozen=True)
class Artefact:
    """name: of the command line; module: where it is."""

    name: str
    module: str

    def summary(self) -> str:
        """The first line of the module's docstring; the module is not imported for it."""
        path = ROOT.joinpath(*self.module.split(".")).with_suffix(".py")
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        return text.partition("\n")[0]

    def load(self) -> Any:
        """The module."""
        return importlib.import_module(self.module)

    def default(self) -> Config:
        """The config of the paper."""
        found: Config = self.load().Config()
        return found

    def smoke(self) -> Config:
        """The config of a run of seconds."""
        found: Config = self.load().SMOKE
        return found

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

    def render(self, config: Config, settings: Settings) -> tuple[Report, list[Path]]:
        """Write what the rows on disk say."""
        rows, manifest = read_run(self.folder(config, settings.results))
        render: Callable[[Sequence[Row], Row], Report] = self.load().render
        made = report.labelled(render(rows, manifest), rows, manifest)
        home = self.home(config, settings)
        written = report.write(self.name, made, manifest, home)
        page: Path | None = getattr(self.load(), "PAGE", None)
        if page is not None and home == PAPER:
            write_atomically(page, written[0].read_text(encoding="utf-8"))
            written.append(page)
        return made, written


def _short(value: Any) -> str:
    """Of a value, for the name of a folder."""
    parts = [str(part) for part in (value if isinstance(value, tuple) else (value,))]
    text = ",".join(parts)
    name = ",".join(Path(part).name if "/" in part else part for part in parts)
    plain = "".join(c if c.isalnum() or c in ".,_" else "_" for c in name)
    if len(plain) <= LONGEST:
        return plain
    return f"{plain[:LONGEST]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
