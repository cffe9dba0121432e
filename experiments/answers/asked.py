"""Cases asked of models: a model with what is made once for it, a row for each model and for each
of its cases, and what such rows say of the question."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata._decoding.matcher import Healing
from experiments import models
from experiments.answers.cases import PLAIN, StudyCase, chat_format, prompt_text
from experiments.answers.distributions import Aims, Explored, explore
from experiments.answers.methods import Posed, Poser
from experiments.logprobs import PROBE, pick_reader
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.measuring import Run
from experiments.run.tables import records
from experiments.shared.shown import label

MODEL = "model"
"""What the row of a model says under "kind"."""


@dataclass(frozen=True)
class Opened:
    """A model with what is made once for it."""

    loaded: models.LoadedModel
    poser: Poser
    reader: Any

    def prompt_ids(self, case: StudyCase) -> list[int]:
        """What the model reads before its answer."""
        return self.loaded.prompt_ids(prompt_text(case, self.chat_format))

    def explored(
        self, posed: Posed, temperatures: Sequence[float], aims: Aims, methods: Sequence[str] = ()
    ) -> Explored:
        """The trie of a question, as far as it matters; by default under all of its methods."""

        def spelled(token: int, before: int | None) -> bytes:
            return self.loaded.tokenizer.text_bytes((token,), () if before is None else (before,))

        return explore(
            self.reader(self.loaded.model, posed.prompt_ids),
            [posed.walkers[method] for method in methods or posed.walkers],
            posed.answers,
            spelled,
            posed.prompt_ids[-1],
            np.array(temperatures),
            aims,
            self.poser.vocabulary,
        )

    @property
    def chat_format(self) -> str:
        """By name. The marks of a format are among the added tokens."""
        added = {token.content for token in self.loaded.tokenizer.description.added}
        return chat_format(self.loaded.name, added, self.loaded.instruct)


@lru_cache(maxsize=1)
def opened(source: str, device: str, dtype: str) -> Opened:
    """Raises what `load_model` raises."""
    loaded = models.opened(source, device, dtype)
    reader = pick_reader(loaded.model, loaded.prompt_ids("The"), PROBE)
    return Opened(loaded, Poser(loaded.tokenizer, loaded.eos_ids), reader)


def ask(
    run: Run[Any], cases: Sequence[StudyCase], row: Callable[[Any, str, StudyCase], Row]
) -> None:
    """Measure a row for each model of the run's config, `model SOURCE`, then one for each model and
    case, `SOURCE/CASE`. A model that is not there is one failure, and has no cases. row: of (the
    config, the model, the case). The config has `models`, `device` and `dtype`."""
    asked = run.config
    keys = {source: f"model {source}" for source in asked.models}
    models = [
        Cell(key, model_row, (source, asked.device, asked.dtype)) for source, key in keys.items()
    ]
    run.cells(models, what="loading the models")
    there = [source for source, key in keys.items() if not run.store.rows[key].get(FAILURE)]
    run.cells(
        [
            Cell(f"{source}/{case.name}", row, (asked, source, case))
            for source in there
            for case in cases
        ]
    )


def model_row(source: str, device: str, dtype: str) -> Row:
    """Which model it is, by hash."""
    ready = opened(source, device, dtype)
    return {
        "kind": MODEL,
        "source": source,
        **ready.loaded.provenance(),
        "dtype": dtype,
        "reader": ready.reader.__name__,
        "chat_format": ready.chat_format,
    }


def asked_models(rows: pd.DataFrame) -> list[str]:
    """A note on each: which it is, and how it is asked in chats."""
    notes = []
    for row in records(rows[rows["kind"] == MODEL]):
        format_ = row["chat_format"]
        chats = "in plain text" if format_ == PLAIN else f"with the marks of the format {format_}"
        notes.append(
            f"{label(row['source'])}: {row['model']}, its chats {chats}, without a system message. "
            f"{row['note']}".strip()
        )
    return notes


def described(source: str, case: StudyCase) -> Row:
    """What was asked."""
    texts = ("name", "family", "base", "style", "boundary", "prompt")
    answers = {"answers": list(case.answers), "truth": list(case.truth)}
    return {"model": source, **{name: getattr(case, name) for name in texts}, **answers}


def given_back(healing: Healing | None) -> Row | None:
    """What was given back of the prompt, if anything was."""
    if healing is None:
        return None
    text = healing.text.decode("utf-8", "replace")
    return {"given_back": len(healing.given_back), "text": text, "reason": healing.reason}


def row_seed(seed: int, source: str, case: StudyCase) -> list[int]:
    """Of all that is drawn for one row, whatever was drawn before it. seed: of the config."""
    return [seed, zlib.crc32(f"{source}/{case.name}".encode())]
