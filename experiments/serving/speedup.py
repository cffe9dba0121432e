"""What exactness saves while a model writes: passes, runs and wall time, canonical against lift.

A model writes under schemas of several families, with the canonical constraint and with the lift,
each with and without feeding forced ids in one pass, and with the lift and the published heuristic
for forced ids (`chop`). All ways of a cell (a schema and a seed) begin after the same prompt, with
the same seed, one after the other in one warm process, in an order that rotates from cell to cell;
each has a constraint of its own, so that its masks are made on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.measuring import Run
from experiments.run.report import Report
from experiments.serving import speedup_report
from experiments.serving.forced_walks import SCHEMAS
from experiments.serving.speed_model import MODEL_HELP, Device, Dtype
from experiments.serving.speedup_cell import (
    FUNCTIONS,
    Terms,
    compared,
    families_of,
    passed_over,
    warmed,
)
from experiments.shared import models

VERSION = 1


@dataclass(frozen=True)
class Config(config.Config):
    """What determines the texts. The default takes about 8 minutes on two CPU cores."""

    model: str = option(models.SMOLLM2, MODEL_HELP)
    device: Device = option("auto", "where the model runs")
    dtype: Dtype = option("float32", "the model's numbers, as torch names them")
    schemas: Path = option(SCHEMAS, "folder of JSON lines of schemas, a family a file")
    families: tuple[str, ...] = option((), "some of the families; none: all")
    each: int = option(6, "schemas of each family, drawn with the seed")
    seeds: int = option(1, "texts of each schema")
    temperature: float = option(0.7, "of the drawing; 0: the likeliest id")
    most_ids: int = option(40, "of each text, end of sequence included")
    whitespace: Literal["compact", "spaced", "flexible"] = option("compact", "style of the texts")
    closed: bool = option(True, "has an object no properties that its schema does not name?")
    most_states: int = option(5_000, "schemas with a larger automaton are passed over")

    def terms(self) -> Terms:
        """What a cell needs to know of it."""
        compiled = (self.whitespace, self.closed, self.most_states)
        return Terms(*compiled, self.temperature, self.most_ids)


SMOKE = Config(families=(FUNCTIONS,), each=1, most_ids=6)


def measure(run: Run[Config]) -> None:
    """A row per schema and seed."""
    made = run.config
    named, terms = (made.model, made.device, made.dtype), made.terms()
    loaded = models.opened(*named)
    run.note(**loaded.provenance())
    chosen, over = [], {}
    for name, tasks in families_of(made.schemas, made.families).items():
        found, over[name] = passed_over(tasks, terms, made.each, f"{made.seed} {name}")
        chosen += found
    run.note(passed_over=over)
    warmed(loaded)
    asked = [(task, made.seed + k) for task in chosen for k in range(made.seeds)]
    cells = [
        Cell(f"{task.family} {task.id} {seed}", compared, (named, task, terms, seed, turn))
        for turn, (task, seed) in enumerate(asked)
    ]
    run.cells(cells, alone=True)


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Tables by family, and the figure. Wrong: a text under the canonical constraint whose ids are
    not those of `encode`."""
    done = [row for row in rows if not row.get(FAILURE)]
    return Report(
        f"Speed-up while writing under schemas: {manifest.get('model', 'no model')}",
        speedup_report.tables(done, manifest),
        speedup_report.figures(done, manifest),
        speedup_report.facts(done, manifest),
        speedup_report.wrong(done),
    )


def readme(facts: Row) -> str:
    """What forced ids save by each constraint."""
    return speedup_report.sentence(facts)
