"""Does the tokenizer's own tokenization improve what a model writes freely?

For each model, temperature and prompt two texts: a free one, and a canonical one under a constraint
that allows every text, in the tokenizer's own ids alone. They are drawn with the same random
numbers, so they differ only from the first id on that the mask forbids (`shared.paired_texts`).

Prompts are beginnings of passages, and the unit of all intervals. Texts are judged by their loss
after the prompt, as each model reads them in ids of its own tokenizer's `encode`: the other model
did not write them. A byte that is no UTF-8 is read as U+FFFD, as it is shown; the first bytes of a
character that the length cut off are left out.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer
from bpe_automata.errors import ArgumentError
from experiments.engines.named import check_known
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.measuring import Run
from experiments.run.report import Figure, panels
from experiments.run.statistics import bootstrap, weighted_mean
from experiments.run.tables import (
    Column,
    Group,
    Table,
    count,
    fixed,
    interval,
    is_missing,
    percent,
    records,
    share,
    table,
    whole,
)
from experiments.shared import models
from experiments.shared.free_texts import Text
from experiments.shared.losses import losses
from experiments.shared.models import Device, Dtype, labels, models_there
from experiments.shared.paired_texts import drawn_pairs
from experiments.shared.passages import KINDS, UNSPACED, digest, divided, passages
from experiments.shared.shown import CANONICAL, LIFT, Estimate, mark, model_notes

VERSION = 1
WORDS, BYTES = 3, 8
"""How long the pieces are whose repetition is counted: words, and bytes where no space divides
words."""
FEWEST = 10
"""Prompts that an interval takes."""
LEVEL = 0.95


@dataclass(frozen=True)
class Config(config.Config):
    """Who writes what after which prompts."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    temperatures: tuple[float, ...] = option((0.7, 1.0, 1.3), "of sampling")
    kinds: tuple[str, ...] = option(KINDS, "of passages")
    prompts: int = option(50, "of each kind, at most")
    prompt_ids: int = option(30, "the fewest of a prompt")
    ids: int = option(48, "of each text, at most")
    device: Device = option("auto", "where the models run")
    dtype: Dtype = option("float32", "of the arithmetic")


SMOKE = Config(
    models=(models.SMOLLM2,), temperatures=(1.0, 1.3), kinds=("prose", "code"), prompts=4, ids=8
)


def inputs(chosen: Config) -> Row:
    """What names the passages of each kind: they are those of the system."""
    check_known("kinds", chosen.kinds, KINDS)
    return {"passages": digest(chosen.kinds, chosen.seed)}


def measure(run: Run[Config]) -> None:
    """A row for each model, then the texts of each model and kind, then what each model makes of
    them. A kind without passages is one failure for each model, and nothing is read of it."""
    chosen = run.config
    if cold := [heat for heat in chosen.temperatures if heat <= 0]:
        raise ArgumentError(f"--temperatures: {cold[0]:g} is not over 0")
    there = models_there(run, chosen.models, chosen.device, chosen.dtype)
    of = [(name, kind) for name in there for kind in chosen.kinds]
    keys = [f"{name} {kind}" for name, kind in of]
    run.cells(
        [Cell(key, written, (*one, chosen)) for key, one in zip(keys, of, strict=True)],
        what="writing",
    )
    rows = [row for key in keys if not (row := run.store.rows[key]).get(FAILURE)]
    run.cells(
        [
            Cell(f"{row['key']} read by {reader}", read, (reader, row, chosen))
            for reader in there
            for row in rows
        ],
        what="reading",
    )


# ---------------------------------------------------------------- texts


def written(name: str, kind: str, chosen: Config) -> Row:
    """The prompts of a kind with the rest of their passages, and both texts of each prompt at each
    temperature; `canonical` is None where the mask changed nothing."""
    loaded = models.opened(name, chosen.device, chosen.dtype)
    prompts = prompts_of(kind, loaded.tokenizer, chosen)
    wanted = [(heat, k) for heat in chosen.temperatures for k in range(len(prompts))]
    ids = [loaded.prompt_ids(prompt) for prompt, _ in prompts]
    seeds = [f"{chosen.seed} {name} {kind} {heat:g} {k}".encode() for heat, k in wanted]
    numbers = [np.random.default_rng(zlib.crc32(s)).random((chosen.ids, 2)) for s in seeds]
    pairs = drawn_pairs(
        loaded, ids, [k for _, k in wanted], [heat for heat, _ in wanted], np.stack(numbers)
    )

    def described(k: int, text: Text) -> Row:
        shown = shown_text(loaded.tokenizer, text.ids, ids[k])
        return {"text": shown, "ids": list(text.ids), "ended": text.ended}

    texts = [
        {"prompt": k, "temperature": heat, "fork": pair.fork, "free": described(k, pair.free)}
        | {"canonical": None if pair.fork is None else described(k, pair.canonical)}
        for (heat, k), pair in zip(wanted, pairs, strict=True)
    ]
    return {"model": name, "kind": kind, "prompts": [list(p) for p in prompts], "texts": texts}


def prompts_of(kind: str, tokenizer: Tokenizer, chosen: Config) -> list[tuple[str, str]]:
    """(prompt, as many ids of what the passage goes on with as a text has)."""
    found = list[tuple[str, str]]()
    for passage in passages(kind, chosen.seed):
        made = divided(passage, tokenizer, chosen.prompt_ids, kind not in UNSPACED)
        if made is None:
            continue
        before = tokenizer.encode(made[0])
        rest = tokenizer.encode(passage)[len(before) :][: chosen.ids]
        found.append((made[0], shown_text(tokenizer, rest, before)))
        if len(found) == chosen.prompts:
            break
    return found


def shown_text(tokenizer: Tokenizer, ids: Sequence[int], before: Sequence[int]) -> str:
    """The text of ids up to the last whole character."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(
        tokenizer.text_bytes(ids, before)
    )


# ---------------------------------------------------------------- losses


def read(reader: str, row: Row, chosen: Config) -> Row:
    """What a model makes of the texts of a row: losses in nats, of all texts in their order, and of
    the rest of each prompt's passage."""
    loaded = models.opened(reader, chosen.device, chosen.dtype)
    prompts = [prompt for prompt, _ in row["prompts"]]
    asked = [tuple(pair) for pair in row["prompts"]]
    for text in row["texts"]:
        for which in ("free", "canonical"):
            if text[which] is not None:
                asked.append((prompts[text["prompt"]], text[which]["text"]))
    every = list(dict.fromkeys(asked))
    known = dict(zip(every, losses(loaded, every), strict=True))

    def of(text: Row, which: str) -> float:
        return known[prompts[text["prompt"]], (text[which] or text["free"])["text"]]

    return {
        "model": row["model"],
        "kind": row["kind"],
        "reader": reader,
        "rest": [known[tuple(pair)] for pair in row["prompts"]],
        **{which: [of(text, which) for text in row["texts"]] for which in ("free", "canonical")},
    }


# ---------------------------------------------------------------- tables

TITLE = "Free generation with and without the tokenizer's own tokenization"


def pairs_of(rows: pd.DataFrame, manifest: Row) -> pd.DataFrame:
    """A line for each pair of texts: of whom, and after which prompt (`unit`); changed; and of both
    texts, and as the difference canonical - free, the loss in nats per byte as the other model
    reads them (`other`) and as their own does (`own`), and the share of pieces that are distinct.
    `rest`: the loss of what the passage goes on with, as the other model reads it. None where it
    is not there: a text of no character has no loss for each byte."""
    every = records(rows)
    read_by = {(r["model"], r["kind"], r["reader"]): r for r in every if has(r, "reader")}
    names = manifest["config"]["models"]
    found = []
    for row in (row for row in every if has(row, "texts")):
        writer, kind = row["model"], row["kind"]
        others = [name for name in names if name != writer]
        readers = {"own": writer} | dict(zip(["other"], others, strict=False))
        losses_by = {who: read_by.get((writer, kind, name)) for who, name in readers.items()}
        for k, text in enumerate(row["texts"]):
            both = {"free": text["free"], "canonical": text["canonical"] or text["free"]}
            line: Row = {name: row[name] for name in ("model", "kind")}
            line |= {"temperature": text["temperature"], "unit": f"{kind} {text['prompt']}"}
            line |= {"changed": text["canonical"] is not None}
            for who, losses_ in losses_by.items():
                if losses_ is not None:
                    nats = {w: per_byte(losses_[w][k], t["text"]) for w, t in both.items()}
                    line |= _both(who, nats)
            if other := losses_by.get("other"):
                number = text["prompt"]
                line["rest"] = per_byte(other["rest"][number], row["prompts"][number][1])
            line |= _both("distinct", {w: distinct(t["text"], kind) for w, t in both.items()})
            found.append(line)
    columns = ["model", "kind", "temperature", "unit", "changed", "rest"]
    columns += [f"{of} {w}" for of in ("other", "own", "distinct") for w in WHICH]
    return pd.DataFrame(found, columns=columns).astype(dict.fromkeys(columns[5:], float))


WHICH = ("free", "canonical", "difference")


def has(row: Row, field: str) -> bool:
    """Is this a row of that sort?"""
    return not is_missing(row.get(field))


def _both(of: str, each: Mapping[str, float | None]) -> Row:
    free, canonical = each["free"], each["canonical"]
    difference = None if free is None or canonical is None else canonical - free
    return dict(zip((f"{of} {w}" for w in WHICH), (free, canonical, difference), strict=True))


def per_byte(nats: float, text: str) -> float | None:
    """None of an empty text."""
    return nats / len(text.encode()) if text else None


def distinct(text: str, kind: str) -> float | None:
    """The share of its pieces that are no repetition: of three words each, or of eight bytes; None
    of a text that has no piece."""
    parts: Sequence[Any] = text.encode() if kind in UNSPACED else text.split()
    size = BYTES if kind in UNSPACED else WORDS
    pieces = [tuple(parts[k : k + size]) for k in range(len(parts) - size + 1)]
    return len(set(pieces)) / len(pieces) if pieces else None


def mean(field: str, changed: bool = False, level: float = LEVEL) -> Any:
    """-> (mean, low, high) of a group, of the changed pairs alone or of all; prompts are drawn
    again. None where they are fewer than `FEWEST`."""

    def of(group: Group) -> Estimate | None:
        some = group[group[field].notna() & (group["changed"] | (not changed))]
        if some["unit"].nunique() < FEWEST:
            return None
        values = some[field].to_numpy(dtype=np.float64)
        ends = bootstrap(values.tolist(), some["unit"].tolist(), weighted_mean, level)
        return float(values.mean()), *ends

    return of


def plain_mean(field: str) -> Any:
    """-> the mean of a group; nan of nothing."""
    return lambda group: group[field].mean()


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """Losses by model and temperature, repetition by the same, losses by kind of passage."""
    pairs, names = pairs_of(rows, manifest), labels(manifest)
    by_heat = pairs.groupby(["model", "temperature"], sort=False)
    by_kind = pairs.groupby(["model", "kind"], sort=False)
    model = Column("written by", lambda g: names[g["model"].iloc[0]].partition(" ")[0])
    heat = Column("temperature", "temperature", "{:g}".format)
    changed = [Column("texts", count, whole), Column("changed", share("changed"), percent(1))]
    ends, shares = interval(fixed(4)), interval(fixed(3))
    levels = [
        Column(f"{which}\nloss", plain_mean(f"other {which}"), fixed(4))
        for which in ("free", "canonical")
    ]
    over_changed = Column("difference,\nchanged texts", mean("other difference", True), ends)
    chosen = manifest["config"]
    return [
        table(
            TITLE,
            by_heat,
            [
                *(model, heat, *changed, *levels),
                Column("difference,\nall texts", mean("other difference"), ends),
                over_changed,
                Column(
                    "as the writer reads\nthem, changed texts", mean("own difference", True), ends
                ),
            ],
            [
                "loss: in nats per byte of text, after the prompt, as the other model reads it; "
                "difference: canonical - free, so that below 0 the canonical text is the better "
                f"predicted; texts of at most {chosen['ids']} ids",
                "changed: the mask forbade an id that was drawn; other pairs are one text, and "
                "their difference is 0",
                f"intervals: 95 %, bootstrap of prompts, where there are {FEWEST} or more",
                _multiplicity(facts(rows, manifest)),
                *model_notes(manifest, set(names.values())),
            ],
        ),
        table(
            "Repetition",
            by_heat,
            [
                *(model, heat),
                *(
                    Column(f"distinct,\n{w}", plain_mean(f"distinct {w}"), percent(1))
                    for w in ("free", "canonical")
                ),
                Column("difference,\nall texts", mean("distinct difference"), shares),
                Column("difference,\nchanged texts", mean("distinct difference", True), shares),
            ],
            [
                f"distinct: the share of runs of {WORDS} words (in Chinese of {BYTES} bytes) of a "
                "text that do not repeat an earlier one; above 0 the canonical text repeats less"
            ],
        ),
        table(
            "By kind of passage, all temperatures together",
            by_kind,
            [
                *(model, Column("kind", "kind")),
                Column("prompts", lambda g: g["unit"].nunique(), whole),
                *changed,
                Column("loss of the\npassage itself", plain_mean("rest"), fixed(4)),
                *levels,
                over_changed,
            ],
            ["the passage itself: as many ids of what it goes on with after the prompt"],
        ),
    ]


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """By writer and temperature: texts; changed, the share of them; the difference of the loss as
    the other model reads it, of all and of changed texts, with intervals; corrected: the interval
    over changed texts at Bonferroni's level for all `tests` of them."""
    pairs, names = pairs_of(rows, manifest), labels(manifest)
    groups = list(pairs.groupby(["model", "temperature"], sort=False))
    level = 1 - (1 - LEVEL) / max(1, len(groups))
    found: dict[str, Row] = {}
    for (name, heat), group in groups:
        corrected = mean("other difference", True, level)(group)
        found.setdefault(names[name], {})[f"{heat:g}"] = {
            "texts": len(group),
            "changed": float(group["changed"].mean()),
            "all": mean("other difference")(group),
            "of_changed": mean("other difference", True)(group),
            "corrected": corrected and corrected[1:],
            "distinct": mean("distinct difference")(group),
        }
    return {"tests": len(groups), "kinds": list(pairs["kind"].unique()), "models": found}


def _multiplicity(said: Row) -> str:
    """Which differences are none of chance, though several were looked at."""
    kept = [
        f"{name.partition(' ')[0]} at {heat}"
        for name, by_heat in said["models"].items()
        for heat, of in by_heat.items()
        if of["corrected"] and not of["corrected"][0] <= 0 <= of["corrected"][1]
    ]
    return (
        f"of {said['tests']} differences over changed texts, those whose interval at the corrected "
        f"level (Bonferroni) leaves 0 out: {', '.join(kept) or 'none'}"
    )


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """Differences over changed texts, by temperature: losses, and distinct pieces."""
    pairs, names = pairs_of(rows, manifest), labels(manifest)
    if pairs.empty:
        return []
    figure, axes = panels(1, 2, (10, 4.2), "y")
    for axis, field in zip(axes[0], ("other difference", "distinct difference"), strict=True):
        axis.axhline(0, color="#888888", linewidth=1, zorder=0)
        for k, (name, group) in enumerate(pairs.groupby("model", sort=False)):
            color, sign = (CANONICAL, LIFT)[k % 2], "os^D"[k % 4]
            for heat, some in group.groupby("temperature"):
                mark(axis, heat + 0.02 * k, mean(field, True)(some), color, sign)
            axis.scatter([], [], color=color, marker=sign, label=names[name].partition(" ")[0])
        axis.set_xticks(sorted(pairs["temperature"].unique()))
        axis.set_xlabel("temperature")
    axes[0][0].set_title("loss as the other model reads it, nats per byte", loc="left", fontsize=10)
    axes[0][1].set_title("share of pieces that are distinct", loc="left", fontsize=10)
    axes[0][0].set_ylabel("canonical - free, changed texts")
    axes[0][0].legend(fontsize=8, frameon=False)
    note = (
        f"{len(pairs):,} pairs of texts with the same random numbers, of which the mask changed "
        f"{int(pairs['changed'].sum()):,}; intervals: 95 %, bootstrap of prompts."
    )
    return [Figure("free_text", figure, "What the mask changes in free texts", note)]
