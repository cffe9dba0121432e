"""The first rows of a run on several models: which they are, and which of them are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.measuring import Run
from experiments.shared import models


def models_there(run: Run[Any], sources: Sequence[str], device: str, dtype: str) -> list[str]:
    """Measures a row `model SOURCE` of each; those that could be loaded. One that could not is one
    failure, which says what to install."""
    keys = {source: f"model {source}" for source in sources}
    cells = [Cell(key, model_row, (source, device, dtype)) for source, key in keys.items()]
    run.cells(cells, what="loading the models")
    there = [source for source, key in keys.items() if not run.store.rows[key].get(FAILURE)]
    run.note(models={source: run.store.rows[keys[source]]["provenance"] for source in there})
    return there


def model_row(source: str, device: str, dtype: str) -> Row:
    """Which model it is, by hash."""
    return {"provenance": models.opened(source, device, dtype).provenance()}


def labels(manifest: Row) -> dict[str, str]:
    """What the models of such a run are called, by the names of the config."""
    known = manifest.get("models", {})
    return {name: known.get(name, {}).get("model", name) for name in manifest["config"]["models"]}
