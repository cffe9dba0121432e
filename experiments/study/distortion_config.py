"""What determines the numbers of the distortion study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from experiments.run import config
from experiments.run.config import option

MODELS = ("smollm2", "gemma-3-270m")
PARTICLES = (8, 32)
"""Of the populations that are weighted."""


@dataclass(frozen=True)
class Config(config.Config):
    """The defaults are what the README states."""

    models: tuple[str, ...] = option(MODELS, "smollm2, gemma-3-270m, local folders, hub ids")
    cases: tuple[str, ...] = option((), "names or families of cases, all if empty")
    temperatures: tuple[float, ...] = option((0.5, 1.0, 1.5), "what logits are divided by")
    slack: float = option(1e-3, "most probability of a law that may stay unassigned")
    unread: float = option(0.05, "most probability of paths that are not followed to their end")
    most_nodes: int = option(1500, "most forward positions per case")
    populations: int = option(1000, "weighted populations per estimate")
    large: int | None = option(1, "larger languages, which are sampled, of each family; none: all")
    samples: int = option(64, "samples per method of a larger language")
    longest: int = option(64, "ids of such a sample")
    batch: int = option(64, "such samples at a time")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "where the models run")
    dtype: Literal["float32", "bfloat16", "float64"] = option("float32", "of the weights")

    def draws(self) -> int:
        """The number of the temperature at which anything is sampled: the one nearest to 1."""
        return min(range(len(self.temperatures)), key=lambda k: abs(self.temperatures[k] - 1))
