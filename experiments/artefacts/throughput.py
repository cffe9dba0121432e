"""Throughput: tokens per second of batched sampling under masks, as a share of that without masks.

The same loop (`experiments.batched`) samples from one model in one process: in each round the batch
is sampled once without a constraint and once under each, so that slow drift of the machine affects
all alike. The result is the ratio within a round. A text of the languages can always go on, and
nothing ends a sample early, so all samples have the same length. The host packs masks while the
model reads the last ids; they are applied on the model's device.

`throughput-gpu` is the same on a GPU, with longer rounds and larger batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata import Constraint, constrain
from bpe_automata.decoding.constraint import Method
from experiments.batched import Drawn, drawn_uniforms, is_queued, sample_batch
from experiments.lab import Row
from experiments.models import LoadedModel, opened
from experiments.resources import timed
from experiments.show import CANONICAL, LIFT, Figure, Table, fixed, markdown, panels, percent
from experiments.statistics import median_interval

TITLE, TIMED = "Throughput of sampling under masks", True
PROMPT = "Here is what was asked for, line by line.\n"
LANGUAGES = {
    "records": r'(\{"name": "[A-Z][a-z]{1,12}", "age": [1-9][0-9]?, "ok": (true|false)\}\n)*',
    "prose": r"([A-Z][a-z]*(,? [a-z]+){1,15}[.?!]\n)*",
}
THROWAWAY = r"(\w+[ \n])*"
"""A first sample under this mask does the work that is done once for all masks."""
COLORS: dict[Method, str] = {"canonical": CANONICAL, "lift": LIFT}
SEEDS = 1000  # between two seeds of the config, for the rounds


@dataclass(frozen=True)
class Config:
    """length: ids of each sample; repeats: rounds."""

    model: str = "smollm2"
    device: str = "auto"
    dtypes: tuple[str, ...] = ("bfloat16", "float32")
    batches: tuple[int, ...] = (1, 8, 64)
    languages: tuple[str, ...] = tuple(LANGUAGES)
    length: int = 6
    repeats: int = 6
    seed: int = 0


ON_GPU = Config(
    device="cuda",
    dtypes=("bfloat16",),
    batches=(1, 8, 64, 256),
    length=64,
    repeats=8,
)
SMOKE = Config(dtypes=("bfloat16",), batches=(2,), languages=("records",), length=2, repeats=1)


def cells(config: Config) -> list[Row]:
    """A cell is a dtype and a batch size; in it all languages and methods take turns."""
    return [{"dtype": d, "batch": batch} for d in config.dtypes for batch in config.batches]


def measure(config: Config, dtype: str, batch: int) -> list[Row]:
    """A row for each language and method. In the first round the constraints are new. The work that
    is done once for a batch of this size, with masks or without, is done before and not timed."""
    loaded, first = opened(config.model, config.device, dtype), SEEDS * config.seed
    draw = partial(one_batch, loaded, batch, config.length)
    pairs = [(language, method) for language in config.languages for method in COLORS]
    draw(None, first)
    for method in COLORS:
        draw(constrained(loaded, THROWAWAY, method), first)
    made = {pair: constrained(loaded, LANGUAGES[pair[0]], pair[1]) for pair in pairs}
    spent: dict[Any, list[float]] = {key: [] for key in (None, *pairs)}
    for round_ in range(config.repeats + 1):
        for key in [*spent][:: -1 if round_ % 2 else 1]:
            constraint = made[key] if key else None
            spent[key].append(timed(draw, constraint, first + round_)[0])
    said: Row = {"length": config.length, "device": loaded.device, "model": loaded.name}
    said |= {"thread": not is_queued(loaded.model), "free": spent[None][1:]}
    return [
        said | {"language": language, "method": method, "constrained": spent[language, method][1:]}
        for language, method in pairs
    ]


def constrained(loaded: LoadedModel, regex: str, method: Method) -> Constraint:
    """A constraint without end-of-sequence ids: a text of these languages can always go on."""
    return constrain(loaded.tokenizer, regex, method, eos_ids=())


def one_batch(
    loaded: LoadedModel, batch: int, length: int, constraint: Constraint | None, seed: int
) -> list[Drawn]:
    """The texts of one batch."""
    uniforms, prompts = drawn_uniforms(seed, batch, length), [loaded.prompt_ids(PROMPT)] * batch
    return sample_batch(loaded.model, prompts, [constraint] * batch, uniforms)


# What the rows say.


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """The median `ratio` of the throughput under masks to that without in the same round, its exact
    interval of 95 % (the whole range for less than six rounds), and tokens per second."""
    each = zip(rows["free"], rows["constrained"], strict=True)
    ratios = [np.divide(free, own) for free, own in each]
    ends = [median_interval([*r]) or (r.min(), r.max()) for r in ratios]
    ids = rows["batch"] * rows["length"]
    return rows.assign(
        where=rows["device"].map({"cpu": "CPU", "cuda": "GPU"}),
        ratio=[np.median(r) for r in ratios],
        low=[low for low, _ in ends],
        high=[high for _, high in ends],
        free=ids / rows["free"].map(np.median),
        constrained=ids / rows["constrained"].map(np.median),
        rounds=rows["free"].map(len),
    )


def tables(rows: pd.DataFrame) -> list[Table]:
    """A line for each dtype, batch, language and method."""
    found = summary(rows)
    names = {"where": "device", "dtype": "dtype", "batch": "batch", "language": "language"}
    names |= {"method": "method", "free": "free tokens/s", "constrained": "constrained tokens/s"}
    names |= {"ratio": "ratio", "low": "from", "high": "to"}
    data = found[[*names]].rename(columns=names)
    formats = dict.fromkeys(("ratio", "from", "to"), percent(1))
    formats |= dict.fromkeys(("free tokens/s", "constrained tokens/s"), fixed(1))
    by_whom = "another thread" if found["thread"].all() else "the thread that queues its work"
    note = f"""{found["length"].iloc[0]} ids of each sample; {found["rounds"].iloc[0]} rounds, after
        one in which the constraints are new; ratio: the median of those within a round; from, to:
        its exact 95 % interval (all rounds, where there are less than six)

        the time of a batch includes reading the prompt; masks are made by {by_whom}

        {found["model"].iloc[0]}"""
    return [Table(f"On a {' and '.join(found['where'].unique())}", data, formats, note)]


def figure(rows: pd.DataFrame) -> Figure:
    """The ratio by batch; a panel for each dtype."""
    found = summary(rows)
    dtypes = [*found.groupby("dtype", sort=False)]
    canvas, axes = panels(1, len(dtypes), (4 + 3 * max(2, len(dtypes)), 4.6), sharey=True)
    for axis, (dtype, some) in zip(axes[0], dtypes, strict=True):
        batches = sorted(some["batch"].unique())
        groups = [*some.groupby(["language", "method"], sort=False)]
        for k, ((language, method), of) in enumerate(groups):
            x = np.searchsorted(batches, of["batch"]) + 0.12 * (k - (len(groups) - 1) / 2)
            axis.vlines(x, 100 * of["low"], 100 * of["high"], color=COLORS[method], linewidth=1)
            marks = {"color": COLORS[method], "marker": "os^D"[[*LANGUAGES].index(language)]}
            axis.scatter(x, 100 * of["ratio"], s=30, label=f"{language}, {method}", **marks)
        axis.axhline(100, color="#888888", linewidth=1, linestyle="--", zorder=0)
        axis.set_xticks(range(len(batches)), batches)
        axis.set(xlim=(-0.5, len(batches) - 0.5), xlabel="samples at a time")
        axis.set_title(str(dtype), loc="left", fontsize=10)
        axis.grid(axis="y", color="#eeeeee")
    axes[0][0].set_ylabel("throughput under masks, of that without (%)")
    axes[0][-1].legend(fontsize=8, frameon=False)
    batch, devices = found["batch"].max(), ", ".join(found["where"].unique())
    ends = found[found["batch"] == batch].groupby("dtype", sort=False)["ratio"].agg(["min", "max"])
    kept = [f"{100 * lo:.1f} to {100 * hi:.1f} % in {dtype}" for dtype, lo, hi in ends.itertuples()]
    headline = f"Throughput that masks leave at batch {batch} ({devices}):\n{', '.join(kept)}"
    note = (
        f"{devices}; {found['model'].iloc[0]}; n = {found['rounds'].max()} rounds: medians of the "
        "ratio within a round, lines: 95 % intervals. Dashed: as much as without masks."
    )
    return Figure(canvas, headline, note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """The ratios of the largest batch."""
    found = summary(rows)
    largest = found[found["batch"] == found["batch"].max()]
    data = largest[["dtype", "language", "method"]].copy()
    each = largest[["ratio", "low", "high"]].values
    data["of the throughput without"] = [
        f"{100 * r:.1f} % ({100 * low:.1f} to {100 * high:.1f})" for r, low, high in each
    ]
    where = " and ".join(largest["where"].unique())
    return {
        "throughput in short": in_short(found),
        "throughput": f"""Sampling {found["batch"].max()} texts at a time on a {where}, tokens per
        second under masks, compared with the same loop without (`python -m experiments
        throughput`):

        {markdown(data)}""",
    }


def in_short(found: pd.DataFrame) -> str:
    """The throughput of large batches under canonical masks, in 16 bits, as a share."""
    some = found[(found["batch"] >= 64) & (found["method"] == "canonical")]
    some = some[some["dtype"] == "bfloat16"]
    if some.empty:
        return "No large batch was measured."
    where = some["where"].iloc[0]
    said = [
        f"{' and '.join(f'{100 * r:.0f} %' for r in of['ratio'])} with {batch} texts"
        for batch, of in some.groupby("batch")
    ]
    of_what = " and ".join(some["language"].unique())
    if some["ratio"].max() > 1.005:
        of_what += "; above 100 % is noise"
    return (
        f"Of the tokens per second that a {where} writes without masks, canonical masks leave "
        f"{', '.join(said)} at a time ({of_what})."
    )
