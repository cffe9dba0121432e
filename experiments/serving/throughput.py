"""Throughput: tokens per second of batched sampling under masks, beside the same loop without.

One loop (`shared.batched`), one model, one process: in each round the batch is sampled once without
a constraint and once under each, so that slow drift of the machine hits all alike; what counts is
the ratio within a round. The languages never end, and nothing else does, so all samples have the
same length. Masks are packed by the host while the model reads the last ids, and applied where the
logits are.

`throughput-gpu` is the same on a GPU, with longer rounds and larger batches, and with passes of the
model of two kinds (`passes`): launched kernel by kernel, as transformers has it, and as one graph,
as inference engines have it (`shared.graphed`).
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from bpe_automata import Constraint, constrain
from bpe_automata._decoding.constraint import Method
from bpe_automata.errors import ArgumentError
from experiments.engines.named import check_known
from experiments.models import Device, Dtype, LoadedModel, load_model, use_threads
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.run.measuring import Run, progress
from experiments.run.report import Figure, panels
from experiments.run.tables import (
    Column,
    Table,
    fixed,
    markdown,
    percent,
    records,
    scaled,
    table,
    values,
)
from experiments.shared.batched import Drawn, Masked, is_queued, sample_batch
from experiments.shared.graphed import Graphed
from experiments.shared.resources import timed
from experiments.statistics import median, median_interval

VERSION = 3
PROMPT = "Here is what was asked for, line by line.\n"
LANGUAGES = {
    "records": r'(\{"name": "[A-Z][a-z]{1,12}", "age": [1-9][0-9]?, "ok": (true|false)\}\n)*',
    "prose": r"([A-Z][a-z]*(,? [a-z]+){1,15}[.?!]\n)*",
}
THROWAWAY = r"(\w+[ \n])*"
"""What the first to sample under a mask does for all (kernels are loaded or compiled) is done under
this one."""
METHODS: dict[str, Method] = {"canonical": "canonical", "lift": "lift"}
PASSES = ("launched", "graph")
LENGTH = {"cpu": 6, "cuda": 128}
SEEDS = 1000
"""Between two seeds of the config, for the rounds."""


@dataclass(frozen=True)
class Config(config.Config):
    """device, dtypes, model: see `models`; length: of each sample."""

    model: str = option("smollm2", "smollm2, gemma-3-270m, a folder or a hub id")
    device: Device = option("auto", "where the model runs")
    dtypes: tuple[Dtype, ...] = option(("bfloat16", "float32"), "of the model")
    batches: tuple[int, ...] = option((1, 8, 64), "samples at a time")
    languages: tuple[str, ...] = option(tuple(LANGUAGES), "kinds of constraints")
    methods: tuple[str, ...] = option(tuple(METHODS), "canonical, lift")
    passes: tuple[str, ...] = option(("launched",), "of the model: launched, graph")
    length: int | None = option(None, "ids of each sample (none: 6 on a CPU, 128 on a GPU)")
    repeats: int = option(6, "rounds")


ON_GPU = Config(
    device="cuda",
    dtypes=("bfloat16",),
    batches=(1, 8, 64, 256),
    passes=PASSES,
    length=64,
    repeats=8,
)
SMOKE = Config(dtypes=("bfloat16",), batches=(2,), languages=("records",), length=2, repeats=1)


class Setup(NamedTuple):
    """Where a block of rows is measured."""

    loaded: LoadedModel
    dtype: str
    passes: str
    batch: int
    length: int
    model: Any


def measure(run: Run[Config]) -> None:
    """A row for each dtype, kind of passes, batch, language and method."""
    given = run.config
    _check(given)
    use_threads()
    kinds = [(passes, batch) for batch in given.batches for passes in given.passes]
    blocks = {
        dtype: {kind: run.expect(_keys(given, dtype, *kind)) for kind in kinds}
        for dtype in given.dtypes
    }
    with progress() as bar:
        task = bar.add_task("", total=len(given.dtypes) * len(kinds))
        for dtype, todo in blocks.items():
            if not any(todo.values()):
                bar.advance(task, len(todo))
                continue
            loaded = load_model(given.model, given.device, dtype)
            length = given.length or LENGTH[loaded.device]
            run.note(**{f"model_{dtype}": loaded.provenance()}, device=loaded.device, length=length)
            for (passes, batch), keys in todo.items():
                bar.update(task, description=f"{dtype}, {passes}, batch {batch}")
                if keys:
                    model = loaded.model
                    if passes == "graph":
                        model = Graphed(model, len(loaded.prompt_ids(PROMPT)) + length)
                    _block(run, Setup(loaded, dtype, passes, batch, length, model), keys)
                bar.advance(task)
            del loaded
            gc.collect()


def _check(given: Config) -> None:
    check_known("languages", given.languages, LANGUAGES)
    check_known("methods", given.methods, METHODS)
    check_known("passes", given.passes, PASSES)
    if min(given.repeats, *given.batches, given.length or 1) < 1:
        raise ArgumentError("--repeats, --batches and --length are at least 1")


def _keys(given: Config, dtype: str, passes: str, batch: int) -> list[str]:
    pairs = [(language, method) for language in given.languages for method in given.methods]
    return [f"{dtype} {passes} {batch} {language} {method}" for language, method in pairs]


def _block(run: Run[Config], setup: Setup, keys: Sequence[str]) -> None:
    """The rows of one dtype, kind of passes and batch, in turns."""
    _warm_up(setup, run.config)
    named = {key: key.split(" ")[3:] for key in keys}
    made = {
        key: _constrained(setup.loaded, LANGUAGES[language], method)
        for key, (language, method) in named.items()
    }
    seconds: dict[str | None, list[float]] = {key: [] for key in (None, *keys)}
    first = SEEDS * run.config.seed
    for round_ in range(run.config.repeats + 1):  # in the first one the constraints are new
        for key in list(seconds)[:: -1 if round_ % 2 else 1]:
            drawing = partial(_drawn, setup, None if key is None else made[key], first + round_)
            seconds[key].append(timed(drawing)[0])
    for key, (language, method) in named.items():
        row: Row = {"dtype": setup.dtype, "passes": setup.passes, "batch": setup.batch}
        row |= {"language": language, "method": method}
        row |= {"length": setup.length, "device": setup.loaded.device}
        row |= {
            "thread": not is_queued(setup.loaded.model),
            "free": seconds[None][1:],
            "constrained": seconds[key][1:],
        }
        row |= {"cold": [seconds[None][0], seconds[key][0]]}
        row["masks"] = masks(setup, made[key], first)
        run.add(key, row)


def _warm_up(setup: Setup, given: Config) -> None:
    """What is done once for a batch of this size is nobody's, under masks too."""
    seed = SEEDS * given.seed
    _drawn(setup, None, seed)
    for method in given.methods:
        _drawn(setup, _constrained(setup.loaded, THROWAWAY, method), seed)


def _constrained(loaded: LoadedModel, regex: str, method: str) -> Constraint:
    """Without end-of-sequence ids: a text of these languages can always go on."""
    return constrain(loaded.tokenizer, regex, METHODS[method], eos_ids=())


def _drawn(setup: Setup, constraint: Constraint | None, seed: int) -> list[Drawn]:
    return sample_batch(
        setup.model,
        setup.loaded.prompt_ids(PROMPT),
        constraint,
        setup.batch,
        max_new_tokens=setup.length,
        seed=seed,
        batch=setup.batch,
        weights=False,
    )


def masks(setup: Setup, constraint: Constraint, seed: int) -> list[float]:
    """Seconds of each step of moving the matchers of a batch on and packing their masks, along a
    sample that was just drawn, by a host that does nothing else."""
    drawn = _drawn(setup, constraint, seed)
    rows = Masked(constraint, setup.loaded.prompt_ids(PROMPT), setup.batch, pinned=False)
    columns = zip(*(text.ids for text in drawn), strict=True)
    return [timed(partial(rows.read, column))[0] for column in columns]


# What is said of the rows.

TITLE = "Throughput of sampling under masks"
GOAL, GOAL_BATCH = 0.97, 64
"""The least ratio of the throughput under masks to that without, and the batch it is asked of."""
COLORS = {"canonical": "#00798c", "lift": "#d1495b"}
MARKERS = "os^Dv"
DEVICES = {"cpu": "CPU", "cuda": "GPU"}


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what is shown of each: the median `ratio` of the throughput under masks to that
    without in the same round, its `interval`, and the median tokens per second of both loops. The
    interval is the exact one of 95 %; of less than six rounds it is their whole range. Passes that
    are a graph are named with the dtype."""
    ids = rows["batch"] * rows["length"]
    ratios = [
        [free / own for free, own in zip(row["free"], row["constrained"], strict=True)]
        for row in records(rows)
    ]
    passes = rows["passes"] if "passes" in rows else pd.Series("launched", rows.index)
    return rows.assign(
        dtype=rows["dtype"].where(passes == "launched", rows["dtype"] + ", " + passes),
        ratio=[median(each) for each in ratios],
        interval=[list(median_interval(each) or (min(each), max(each))) for each in ratios],
        free=ids / rows["free"].map(median),
        constrained=ids / rows["constrained"].map(median),
        rounds=rows["free"].map(len),
        first=rows["cold"].map(lambda seconds: seconds[0] / seconds[1]),
    )


def where(rows: pd.DataFrame, between: str) -> str:
    """The devices of the rows."""
    return between.join(DEVICES[device] for device in rows["device"].unique())


def _goal(group: pd.DataFrame) -> str | None:
    row = group.iloc[0]
    if row["batch"] != GOAL_BATCH:
        return None
    return "yes" if row["ratio"] >= GOAL else "NO"


COLUMNS = [
    Column("device, dtype", lambda one: f"{where(one, '')}, {one['dtype'].iloc[0]}"),
    Column("batch", "batch"),
    Column("language", "language"),
    Column("method", "method"),
    Column("free\ntokens/s", "free", fixed(1)),
    Column("constrained\ntokens/s", "constrained", fixed(1)),
    Column("ratio", "ratio", percent(1)),
    Column("from", lambda one: one["interval"].iloc[0][0], percent(1)),
    Column("to", lambda one: one["interval"].iloc[0][1], percent(1)),
    Column(f"at least {GOAL:.0%}\nat batch {GOAL_BATCH}", _goal, missing=""),
    Column("first time\nratio", "first", percent(1)),
    Column(
        "masks of a step\nms", lambda one: median(values(one, "masks")), scaled(1e3), missing=""
    ),
]


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """A line for each dtype, batch, language and method."""
    title = f"{TITLE}, on a {where(rows, ' and ')}"
    return [table(title, summary(rows), COLUMNS, _notes(summary(rows), manifest))]


def _notes(rows: pd.DataFrame, manifest: Row) -> list[str]:
    rounds = ", ".join(map(str, sorted(rows["rounds"].unique())))
    models = [value for name, value in manifest.items() if name.startswith("model_")]
    said = dict.fromkeys(f"{made['model']} on {made['device']}. {made['note']}" for made in models)
    return [
        f"{rows['length'].iloc[0]} ids of each sample after one prompt, which is read once; n = "
        f"{rounds} rounds",
        "ratio: the median over rounds of the ratio within a round; from, to: its exact 95 % "
        "interval (all rounds, where there are less than six)",
        "the time of a batch begins before the model reads the prompt, under masks and without",
        "first time: in a round before these, with new constraints, when the kernels are loaded "
        "already; in later rounds a constraint has seen the texts of earlier ones",
        "masks of a step: moving all matchers of the batch on and packing their masks, alone; the "
        f"loop does this while the model reads, {_by_whom(rows)}",
        *said,
    ]


def _by_whom(rows: pd.DataFrame) -> str:
    """The thread that makes the masks; rows from before there was a choice do not say."""
    if "thread" in rows and not rows["thread"].all():
        return "in the thread that has queued the model's work"
    return "in another thread"


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """rows: what is shown of each; where: the devices; goal: the least ratio."""
    names = ["device", "dtype", "batch", "language", "method"]
    names += ["free", "constrained", "ratio", "interval", "rounds"]
    return {
        "rows": records(summary(rows)[names]),
        "where": where(rows, " and "),
        "goal": GOAL,
    }


def readme(facts: Row) -> str:
    """What the README says of the largest batch."""
    if not facts:
        return ""
    batch = max(row["batch"] for row in facts["rows"])
    said = (
        f"Sampling {batch} texts at a time on a {facts['where']}, tokens per second under masks "
        "beside the same loop without (`python -m experiments throughput`):"
    )
    shown = percent(1)
    lines = [
        [
            *(row[name] for name in ("dtype", "language", "method")),
            "{} ({:.1f} to {:.1f})".format(
                shown(row["ratio"]), *(100 * end for end in row["interval"])
            ),
        ]
        for row in facts["rows"]
        if row["batch"] == batch
    ]
    columns = "dtype", "language", "method", "of the throughput without"
    return f"{said}\n\n{markdown(columns, lines)}"


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """The ratio by batch; a panel for each dtype."""
    rows, devices = summary(rows), where(rows, ", ")
    by_dtype = [(dtype, some) for dtype, some in rows.groupby("dtype", sort=False)]
    size = (4 + 3 * max(2, len(by_dtype)), 4.6)
    figure, axes = panels(1, len(by_dtype), size, "y", sharey=True)
    for axis, (dtype, some) in zip(axes[0], by_dtype, strict=True):
        _panel(axis, some)
        axis.set_title(dtype, loc="left", fontsize=10)
    axes[0][0].set_ylabel("throughput under masks, of that without (%)")
    axes[0][-1].legend(fontsize=8, frameon=False)
    batch = rows["batch"].max()
    largest = rows[rows["batch"] == batch]
    ends = largest.groupby("dtype", sort=False)["ratio"].agg(["min", "max"])
    kept = [
        f"{100 * low:.1f} to {100 * high:.1f} % in {dtype}"
        for dtype, low, high in ends.itertuples()
    ]
    headline = f"Throughput that masks leave at batch {batch} ({devices}):\n{', '.join(kept)}"
    note = (
        f"{devices}; {manifest['config']['model']}; n = {rows['rounds'].max()} rounds: medians of "
        "the ratio within a round, lines: 95 % intervals. Dashed: the goal, at batch "
        f"{GOAL_BATCH}."
    )
    return [Figure("throughput", figure, headline, note)]


def _panel(axes: Any, rows: pd.DataFrame) -> None:
    batches = sorted(rows["batch"].unique())
    markers = dict(zip(rows["language"].unique(), MARKERS, strict=False))
    groups = list(rows.groupby(["language", "method"], sort=False))
    for number, ((language, method), some) in enumerate(groups):
        x = [batches.index(b) + 0.12 * (number - (len(groups) - 1) / 2) for b in some["batch"]]
        low, high = (100 * some["interval"].str[end] for end in (0, 1))
        color = COLORS[method]
        axes.vlines(x, low, high, color=color, linewidth=1)
        style = {"color": color, "marker": markers[language], "zorder": 3}
        axes.scatter(x, 100 * some["ratio"], s=30, label=f"{language}, {method}", **style)
    if GOAL_BATCH in batches:
        at = batches.index(GOAL_BATCH)
        axes.hlines(100 * GOAL, at - 0.5, at + 0.5, color="#888888", linewidth=1, linestyle="--")
    axes.set_xticks(range(len(batches)), batches)
    axes.set_xlim(-0.5, len(batches) - 0.5)
    axes.set_xlabel("samples at a time")
