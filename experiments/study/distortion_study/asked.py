"""What the distortion study asks: its config, an opened model, and what every row says."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bpe_automata._decoding.matcher import Healing
from experiments.answers.cases import StudyCase, chat_format, prompt_text
from experiments.answers.distributions import Aims, Explored, explore
from experiments.answers.logprobs import PROBE, pick_reader
from experiments.answers.methods import Posed, Poser
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.shared import models
from experiments.shared.models import Device, Dtype

ENUMERATED, SAMPLED = "finite", "large"
"""What a case's row says under "kind", in the words of the rows that are published."""


@dataclass(frozen=True)
class Config(config.Config):
    """Which cases under which models, how exactly, and how many samples."""

    models: tuple[str, ...] = option(
        ("smollm2", "gemma-3-270m"), "smollm2, gemma-3-270m, local folders, hub ids"
    )
    cases: tuple[str, ...] = option((), "names or families of cases, all if empty")
    temperatures: tuple[float, ...] = option((0.5, 1.0, 1.5), "what logits are divided by")
    slack: float = option(1e-3, "most probability of a distribution that may stay unassigned")
    unread: float = option(0.05, "most probability of paths that are not followed to their end")
    most_nodes: int = option(1500, "most forward positions per case")
    populations: int = option(1000, "weighted populations per estimate")
    large: int | None = option(1, "larger languages, which are sampled, of each family; none: all")
    samples: int = option(64, "samples per method of a larger language")
    longest: int = option(64, "ids of such a sample")
    batch: int = option(64, "such samples at a time")
    device: Device = option("auto", "where the models run")
    dtype: Dtype = option("float32", "of the weights")

    def draws(self) -> int:
        """The number of the temperature at which anything is sampled: the one nearest to 1."""
        return min(range(len(self.temperatures)), key=lambda k: abs(self.temperatures[k] - 1))


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


def model_row(config: Config, source: str) -> Row:
    """Which model it is, by hash."""
    ready = opened(source, config.device, config.dtype)
    return {
        "kind": "model",
        "source": source,
        **ready.loaded.provenance(),
        "dtype": config.dtype,
        "reader": ready.reader.__name__,
        "chat_format": ready.chat_format,
    }


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


def row_seed(config: Config, source: str, case: StudyCase) -> list[int]:
    """Of all that is drawn for one row, whatever was drawn before it."""
    return [config.seed, zlib.crc32(f"{source}/{case.name}".encode())]
