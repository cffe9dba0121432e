"""Throughput: tokens per second of batched sampling under masks, beside the same loop without.

One loop (`shared.batched`), one model, one process: in each round the batch is sampled once without
a constraint and once under each, so that slow drift of the machine hits all alike; what counts is
the ratio within a round. The languages never end, and nothing else does, so all samples have the
same length. Masks are packed by the host while the model reads the last ids, and applied where the
logits are.

On a GPU: `--device cuda`; there rounds are longer.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from bpe_automata import Constraint, constrain
from bpe_automata.decoding.constraint import Method
from bpe_automata.errors import ArgumentError
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.run.measuring import Run, progress
from experiments.serving.speed_model import Device, Dtype
from experiments.serving.throughput_report import readme, render
from experiments.shared.batched import Drawn, Masked, sample_batch
from experiments.shared.models import LoadedModel, load_model, use_threads
from experiments.shared.timing import timed

__all__ = ["SMOKE", "VERSION", "Config", "measure", "readme", "render"]

VERSION = 2
PROMPT = "Here is what was asked for, line by line.\n"
LANGUAGES = {
    "records": r'(\{"name": "[A-Z][a-z]{1,12}", "age": [1-9][0-9]?, "ok": (true|false)\}\n)*',
    "prose": r"([A-Z][a-z]*(,? [a-z]+){1,15}[.?!]\n)*",
}
THROWAWAY = r"(\w+[ \n])*"
"""What the first to sample under a mask does for all (kernels are loaded or compiled) is done under
this one."""
METHODS: dict[str, Method] = {"canonical": "canonical", "lift": "lift"}
LENGTH = {"cpu": 6, "cuda": 128}
SEEDS = 1000
"""Between two seeds of the config, for the rounds."""


@dataclass(frozen=True)
class Config(config.Config):
    """device, dtypes, model: see `shared.models`; length: of each sample."""

    model: str = option("smollm2", "smollm2, gemma-3-270m, a folder or a hub id")
    device: Device = option("auto", "where the model runs")
    dtypes: tuple[Dtype, ...] = option(("bfloat16", "float32"), "of the model")
    batches: tuple[int, ...] = option((1, 8, 64), "samples at a time")
    languages: tuple[str, ...] = option(tuple(LANGUAGES), "kinds of constraints")
    methods: tuple[str, ...] = option(tuple(METHODS), "canonical, lift")
    length: int | None = option(None, "ids of each sample (none: 6 on a CPU, 128 on a GPU)")
    repeats: int = option(6, "rounds")


SMOKE = Config(dtypes=("bfloat16",), batches=(2,), languages=("records",), length=2, repeats=1)


class Place(NamedTuple):
    """Where a block of rows is measured."""

    loaded: LoadedModel
    dtype: str
    batch: int
    length: int


def measure(run: Run[Config]) -> None:
    """A row for each dtype, batch, language and method."""
    given = run.config
    _check(given)
    use_threads()
    blocks = {
        dtype: {batch: run.expect(_keys(given, dtype, batch)) for batch in given.batches}
        for dtype in given.dtypes
    }
    with progress() as bar:
        task = bar.add_task("", total=len(given.dtypes) * len(given.batches))
        for dtype, todo in blocks.items():
            if not any(todo.values()):
                bar.advance(task, len(todo))
                continue
            loaded = load_model(given.model, given.device, dtype)
            length = given.length or LENGTH[loaded.device]
            run.note(**{f"model_{dtype}": loaded.provenance()}, device=loaded.device, length=length)
            for batch, keys in todo.items():
                bar.update(task, description=f"{dtype}, batch {batch}")
                if keys:
                    _block(run, Place(loaded, dtype, batch, length), keys)
                bar.advance(task)
            del loaded
            gc.collect()


def _check(given: Config) -> None:
    for name, known in (("languages", LANGUAGES), ("methods", METHODS)):
        unknown = [value for value in getattr(given, name) if value not in known]
        if unknown:
            raise ArgumentError(f"--{name} {unknown[0]!r} is none of {', '.join(known)}")
    if min(given.repeats, *given.batches, given.length or 1) < 1:
        raise ArgumentError("--repeats, --batches and --length are at least 1")


def _keys(given: Config, dtype: str, batch: int) -> list[str]:
    pairs = [(language, method) for language in given.languages for method in given.methods]
    return [f"{dtype} {batch} {language} {method}" for language, method in pairs]


def _block(run: Run[Config], place: Place, keys: Sequence[str]) -> None:
    """The rows of one dtype and batch, in turns."""
    _warm_up(place, run.config)
    made = {key: _constraint(place.loaded, key) for key in keys}
    seconds: dict[str | None, list[float]] = {key: [] for key in (None, *keys)}
    first = SEEDS * run.config.seed
    for round_ in range(run.config.repeats + 1):  # in the first one the constraints are new
        for key in list(seconds)[:: -1 if round_ % 2 else 1]:
            drawing = partial(_drawn, place, None if key is None else made[key], first + round_)
            seconds[key].append(timed(drawing)[0])
    for key in keys:
        _, _, language, method = key.split(" ")
        row: Row = {"dtype": place.dtype, "batch": place.batch, "language": language}
        row |= {"method": method, "length": place.length, "device": place.loaded.device}
        row |= {"free": seconds[None][1:], "constrained": seconds[key][1:]}
        row |= {"cold": [seconds[None][0], seconds[key][0]]}
        row["masks"] = masks(place, made[key], first)
        run.add(key, row)


def _warm_up(place: Place, given: Config) -> None:
    """What is done once for a batch of this size is nobody's, under masks too."""
    seed = SEEDS * given.seed
    _drawn(place, None, seed)
    for method in given.methods:
        _drawn(place, _constrained(place.loaded, THROWAWAY, method), seed)


def _constraint(loaded: LoadedModel, key: str) -> Constraint:
    """Of a row."""
    _, _, language, method = key.split(" ")
    return _constrained(loaded, LANGUAGES[language], method)


def _constrained(loaded: LoadedModel, regex: str, method: str) -> Constraint:
    """Without end-of-sequence ids: a text of these languages can always go on."""
    return constrain(loaded.tokenizer, regex, METHODS[method], eos_ids=())


def _drawn(place: Place, constraint: Constraint | None, seed: int) -> list[Drawn]:
    """A batch, from the prompt on."""
    return sample_batch(
        place.loaded.model,
        place.loaded.prompt_ids(PROMPT),
        constraint,
        place.batch,
        max_new_tokens=place.length,
        seed=seed,
        batch=place.batch,
        weights=False,
    )


def masks(place: Place, constraint: Constraint, seed: int) -> list[float]:
    """Seconds of each step of moving the matchers of a batch on and packing their masks, along a
    sample that was just drawn, by a host that does nothing else."""
    drawn = _drawn(place, constraint, seed)
    rows = Masked(constraint, place.loaded.prompt_ids(PROMPT), place.batch, pinned=False)
    columns = zip(*(text.ids for text in drawn), strict=True)
    return [timed(partial(rows.read, column))[0] for column in columns]
