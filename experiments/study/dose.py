"""Dose: do the study's numbers move when noise is added to the weights?

The weights of the packaged models are quantized: in each block of 32, or of 16, they lie on a grid,
whose step is the least distance of two of them. Each weight gets noise that is uniform over plus or
minus `dose` steps. At a dose of one half the noise is what rounding to the grid would make. Cases
of the distortion study are asked again under such weights, and each is compared with itself at dose
0.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from experiments import models
from experiments.answers.asked import Opened
from experiments.answers.cases import CASES, StudyCase
from experiments.answers.distributions import Aims, distributions, tv_between
from experiments.answers.methods import OUR_METHODS, Poser
from experiments.logprobs import PROBE, pick_reader
from experiments.models import Device, Dtype, labels, models_there
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.files import require
from experiments.run.measuring import Run
from experiments.run.report import Figure, panels
from experiments.run.tables import (
    Column,
    Group,
    Table,
    count,
    fixed,
    interval,
    small,
    table,
    whole,
)
from experiments.shared.shown import CANONICAL, LIFT, Estimate, estimate, label, model_notes
from experiments.statistics import weighted_mean

VERSION = 2
LONG = True
BLOCKS = (32, 16)
"""How many weights, side by side in a row of a matrix, have a grid of their own: 32 in most
formats, 16 in others, which is taken where 32 lie on none."""
OFF_GRID = 0.1
"""How far a weight may lie from its grid, in steps."""
TOLERANCE = 0.01
"""Cases of which a distance may be farther from exact are left out."""


@dataclass(frozen=True)
class Config(config.Config):
    """Which cases under which models, and how much noise."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    doses: tuple[float, ...] = option((0.5, 1.0, 2.0), "noise, in steps of the weights' grid")
    cases: int = option(160, "of the distortion study, drawn by lot, each family its share")
    slack: float = option(1e-3, "most probability of a distribution that may stay unassigned")
    most_nodes: int = option(1500, "most forward positions per case")
    device: Device = option("auto", "where the models run")
    dtype: Dtype = option("float32", "of the arithmetic")


SMOKE = Config(models=(models.SMOLLM2,), doses=(1.0,), cases=3, most_nodes=100)


def measure(run: Run[Config]) -> None:
    """A row for each model, then one for each model, dose and case; dose 0 first."""
    chosen, cases = run.config, drawn(run.config.cases, run.config.seed)
    there = models_there(run, chosen.models, chosen.device, chosen.dtype)
    for name in there:
        for dose in (0.0, *chosen.doses):
            keys = {f"{name}/{dose:g}/{case.name}": case for case in cases}
            run.cells(
                [Cell(key, case_row, (chosen, name, dose, case)) for key, case in keys.items()],
                what=f"{name}, dose {dose:g}",
            )


def drawn(n: int, seed: int) -> list[StudyCase]:
    """So many cases whose answers are enumerated: of each family the same share, at random; in the
    order of the study."""
    rng, every = np.random.default_rng(seed), [case for case in CASES if case.is_enumerated()]
    order = rng.permutation(len(every))
    size = pd.Series([case.family for case in every]).value_counts()
    rank = dict.fromkeys(size.index, 0)
    place = {}
    for k in order.tolist():
        family = every[k].family
        rank[family] += 1
        place[k] = (rank[family] - 0.5) / size[family]
    return [every[k] for k in sorted(sorted(place, key=place.__getitem__)[:n])]


@lru_cache(maxsize=1)
def opened(name: str, device: str, dtype: str, dose: float, seed: int) -> Opened:
    """The model with noise on its weights."""
    loaded = models.opened(name, device, dtype)
    if dose:
        loaded = replace(loaded, model=copy.deepcopy(loaded.model))
        add_noise(loaded.model, dose, zlib.crc32(f"{seed} {name} {dose:g}".encode()))
    reader = pick_reader(loaded.model, loaded.prompt_ids("The"), PROBE)
    return Opened(loaded, Poser(loaded.tokenizer, loaded.eos_ids), reader)


def add_noise(model: Any, dose: float, seed: int) -> None:
    """To the matrices of a model, in place. Vectors, which no format quantizes, stay."""
    torch = require("torch")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2:
                noise = 2 * torch.rand(weight.shape, generator=generator) - 1
                noise = noise * dose * steps_of(weight.cpu())
                weight.add_(noise.to(weight.device, weight.dtype))


def steps_of(weight: Any) -> Any:
    """float32 of the shape of a matrix: the step of the grid that each weight lies on; 0 in blocks
    where all weights are equal."""
    torch = require("torch")
    (wide, is_wide), (narrow, is_narrow) = (_steps(weight, size) for size in BLOCKS)
    # Two grids side by side may happen to lie on one that is finer than both.
    halves = is_narrow & ~torch.isclose(wide, narrow, rtol=0.01, atol=0.0)
    return torch.where(is_wide & ~_in_block(halves), wide, narrow)


def _in_block(halves: Any) -> Any:
    """bool of the same shape: does it hold anywhere in the wide block?"""
    torch, (rows, width) = require("torch"), halves.shape
    padded = torch.nn.functional.pad(halves, (0, -width % BLOCKS[0]))
    return padded.reshape(rows, -1, BLOCKS[0]).any(-1).repeat_interleave(BLOCKS[0], 1)[:, :width]


def _steps(weight: Any, size: int) -> tuple[Any, Any]:
    """For blocks of so many weights: (the least distance of two in each block, bool: are all its
    distances multiples of that?), both of the shape of the matrix."""
    torch, (rows, width) = require("torch"), weight.shape
    padded = torch.nn.functional.pad(weight.float(), (0, -width % size), value=torch.nan)
    blocks = padded.reshape(rows, -1, size).sort(dim=-1).values
    gaps = blocks.diff(dim=-1)
    # What is equal on the grid may differ in the last bits.
    scale = blocks.nan_to_num().abs().amax(dim=-1, keepdim=True)
    steps = torch.where(gaps > 1e-4 * scale, gaps, torch.inf).amin(dim=-1)
    steps = torch.where(steps.isinf(), 0.0, steps)
    levels = (blocks - blocks[..., :1]) / steps[..., None]
    off = (levels - levels.round()).abs().nan_to_num(0.0).amax(dim=-1)
    each = (part.repeat_interleave(size, dim=1)[:, :width] for part in (steps, off < OFF_GRID))
    return next(each), next(each)


def case_row(chosen: Config, name: str, dose: float, case: StudyCase) -> Row:
    """The free distribution, and the distances of lift and canonical from it. rest: of canonical
    with weights; slack: how far a distance may be from exact, at most."""
    ready = opened(name, chosen.device, chosen.dtype, dose, chosen.seed)
    aims = Aims(chosen.slack, 1.0, chosen.most_nodes)
    at, slack = ours(ready, ready.prompt_ids(case), case.answers, aims)
    lift, canonical = (at["methods"][method] for method in OUR_METHODS)
    return {
        "model": name,
        "dose": dose,
        "name": case.name,
        "base": case.base,
        "free": at["free"],
        "log10_mass": at["log10_mass"],
        "lift": lift["tv"],
        "canonical": canonical["tv"],
        "rest": canonical["weighted_tv"],
        "slack": slack,
    }


def ours(
    ready: Opened, prompt_ids: Sequence[int], answers: Sequence[str], aims: Aims
) -> tuple[Row, float]:
    """(the `distributions` of lift and canonical over the answers at temperature 1, how far a
    distance of theirs may be from exact, at most)."""
    posed = ready.poser.posed(prompt_ids, answers)
    found = ready.explored(posed, (1.0,), aims, OUR_METHODS)
    at = distributions(found, 0, OUR_METHODS, len(answers), ())
    lift, canonical = (at["methods"][method] for method in OUR_METHODS)
    slacks = lift["slack"] / 2, canonical["slack"] / 2, canonical["weighted_slack"]
    return at, at["free_slack"] + max(slacks)


# ---------------------------------------------------------------- tables

TITLE = "How far the study's numbers move with noise on the weights"


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each model, dose and case that is within `TOLERANCE` of exact at every dose,
    beside dose 0: lift_change, canonical_change, advantage_change of what the lift is farther off;
    moved: TV between the two free distributions; same: is the likeliest answer the same one?"""
    if "dose" not in rows:
        return pd.DataFrame(columns=["model", "dose"])
    good = rows[rows["dose"].notna() & rows["slack"].le(TOLERANCE)].copy()
    keys = ["model", "name"]
    good["advantage"] = good["lift"] - good["canonical"]
    there = good.groupby(keys)["dose"].transform("count")
    good = good[there == good.groupby("model")["dose"].transform("nunique")]
    parts = ["lift", "canonical", "advantage", "rest", "free"]
    plain = good.loc[good["dose"] == 0, [*keys, *parts]]
    both = good.merge(plain, on=keys, suffixes=("", "_before"))
    for part in ("lift", "canonical", "advantage"):
        both[f"{part}_change"] = (both[part] - both[f"{part}_before"]).astype(float)
    pairs = list(zip(both["free"], both["free_before"], strict=True))
    both["moved"] = [tv_between(one, other) for one, other in pairs]
    both["same"] = [int(np.argmax(one)) == int(np.argmax(other)) for one, other in pairs]
    return both


def _mean(field: str) -> Callable[[Group], Estimate | None]:
    return estimate(weighted_mean, field, "base")


def _tokenization(group: Group) -> float | None:
    """Its Shapley share in the error of the lift, as in the study."""
    total = group["lift"].sum()
    parts = group["lift"] - group["canonical"] - group["rest"]
    return float(parts.sum() / 2 / total) if total else None


def _rank(group: Group) -> float | None:
    if group["lift"].nunique() < 2 or group["lift_before"].nunique() < 2:
        return None
    return float(spearmanr(group["lift"], group["lift_before"]).statistic)


THREE, CHANGE = interval(fixed(3)), interval(lambda value: f"{value:+.3f}")


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """A line for each model and dose."""
    found, names = compared(rows), labels(manifest)
    columns = [
        Column("model", lambda one: names[one["model"].iloc[0]].partition(" ")[0]),
        Column("dose\nsteps", "dose", fixed(1)),
        Column("cases", count, whole),
        Column("TV between\nfree, median", lambda one: one["moved"].median(), small),
        Column("likeliest\nthe same", lambda one: int(one["same"].sum()), whole),
        Column("TV lift\nmean", _mean("lift"), THREE),
        Column("change", _mean("lift_change"), CHANGE),
        Column("TV canonical\nmean", _mean("canonical"), THREE),
        Column("change", _mean("canonical_change"), CHANGE),
        Column("lift - canonical\nchange", _mean("advantage_change"), CHANGE),
        Column("tokenization\nShapley", _tokenization, _shown),
        Column("TV lift, rank\ncorrelation", _rank, fixed(2)),
    ]
    notes = [
        "noise: uniform over plus or minus so many steps of the grid that the weights of a block "
        f"of {BLOCKS[0]}, or {BLOCKS[1]}, lie on, as it is found from the weights (in "
        "formats whose scales have a divisor in common, Q6_K, it can rarely come out too small); "
        "half a step is what rounding to the grid makes",
        "TV: total variation distance to the model's own distribution of ids that spell an answer "
        "exactly, whatever follows (sequence), under the same weights; change: against dose 0, "
        "case by case; rank correlation: of TV lift with itself at dose 0; one draw of the noise "
        "for each model and dose",
        f"cases: of {manifest['config']['cases']} drawn by lot from the study, those within "
        f"{TOLERANCE} of exact at every dose; [ ]: 95 % intervals by drawing questions with "
        "replacement, each for itself",
        *model_notes(manifest, set(names.values())),
    ]
    return [table(TITLE, found.groupby(["model", "dose"], sort=False), columns, notes)]


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """By model and dose: means of both distances, the mean change of their difference, and the
    Shapley share of tokenization."""
    return {
        "doses": [
            {
                "model": model,
                "dose": dose,
                "cases": len(group),
                "lift": float(group["lift"].mean()),
                "canonical": float(group["canonical"].mean()),
                "moved": float(group["moved"].median()),
                "advantage_change": _mean("advantage_change")(group),
                "tokenization_shapley": _tokenization(group),
            }
            for (model, dose), group in compared(rows).groupby(["model", "dose"], sort=False)
        ]
    }


def readme(facts: Row) -> str:
    """What the report says of it."""
    told = []
    for model in dict.fromkeys(found["model"] for found in facts.get("doses", ())):
        plain, *noisy = (found for found in facts["doses"] if found["model"] == model)
        if not noisy:
            continue
        each = "; ".join(
            f"{found['lift']:.3f} and {found['canonical']:.3f} at {found['dose']:g} (the free "
            f"distribution moves by {found['moved']:.3f} in the median)"
            for found in noisy
        )
        told.append(
            f"- *{label(model)}*, {plain['cases']} cases: the lift and canonical are "
            f"{plain['lift']:.3f} and {plain['canonical']:.3f} off without noise, {each}. The "
            "Shapley value of tokenization is "
            f"{_shown(plain['tokenization_shapley'])} without noise, "
            f"{_shown(noisy[-1]['tokenization_shapley'])} at {noisy[-1]['dose']:g}."
        )
    return "\n".join(told)


def _shown(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """Both distances by dose; a panel for each model."""
    found, names = compared(rows), labels(manifest)
    groups = list(found.groupby("model", sort=False)) if len(found) else []
    if not groups:
        return []
    drawn_, axes = panels(1, len(groups), (4.5 * max(2, len(groups)), 4), "y", sharey=True)
    for axis, (model, some) in zip(axes[0], groups, strict=True):
        by_dose = list(some.groupby("dose", sort=True))
        for method, color in zip(OUR_METHODS, (LIFT, CANONICAL), strict=True):
            each: Sequence[Estimate] = [e for _, g in by_dose if (e := _mean(method)(g))]
            x = np.arange(len(each)) + (0.05 if method == "lift" else -0.05)
            means, lows, highs = np.array(each).T
            axis.vlines(x, lows, highs, color=color, linewidth=1.2)
            axis.plot(x, means, "o-", color=color, label=method, markersize=5)
        axis.set_xticks(range(len(by_dose)), [f"{dose:g}" for dose, _ in by_dose])
        axis.set_xlabel("noise, in steps of the grid of the weights")
        told = f"{names[model].partition(' ')[0]}, {some['name'].nunique()} cases"
        axis.set_title(told, loc="left", fontsize=10)
        axis.set_ylim(bottom=0)
    axes[0][0].set_ylabel("TV to the model's own distribution, mean")
    axes[0][0].legend(frameon=False, fontsize=9)
    note = "One draw of the noise for each dose; bars: 95 % intervals by drawing questions again."
    return [Figure("dose", drawn_, "The two distances at each dose of noise", note)]
