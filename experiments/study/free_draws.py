"""Free draws: does a model's own `generate` write what the exact numbers say?

For each prompt of the distortion table whose answers a model writes often enough, texts are drawn
by `transformers`' `generate`: at temperature 1, from the whole vocabulary, with no mask. The
model's cache of the prompt is the only thing that they share. A draw goes on until it is decided:

- *complete*: the ids spelled an answer exactly, then the sequence ended;
- *goes on*: they spelled an answer exactly, and something else came next;
- *past*: the text began with an answer, but the last id went past its end;
- *other*: the text began with no answer.

Beside the counts stand the probabilities that `answers.distributions` sums up over all
tokenizations, and a chi-squared test of the counts of all outcomes of all answers. What rejection
sampling costs comes from the same draws: ids until a draw is decided, over the share of draws that
are accepted.
"""

from __future__ import annotations

import copy
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from bpe_automata import Tokenizer
from experiments.answers.cases import PROMPTS, Case
from experiments.answers.distributions import Aims, distributions, explore, per_leaf
from experiments.answers.logprobs import PROBE, pick_reader
from experiments.answers.methods import OUR_METHODS, Posed, Poser
from experiments.answers.targets import COMPLETE, PREFIX, SEQUENCE
from experiments.answers.trie import along_paths
from experiments.engines.named import check_known
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.files import cache_name, require
from experiments.run.measuring import Run
from experiments.run.report import Figure, panels
from experiments.run.statistics import clopper_pearson
from experiments.run.tables import Column, Table, fixed, percent, records, small, table, whole
from experiments.shared import models
from experiments.shared.models import Device, Dtype, labels, models_there
from experiments.shared.shown import model_notes

VERSION = 1
OUTCOMES = ("complete", "goes on", "past")
"""Of a draw whose text begins with an answer."""
ACCEPTED = {SEQUENCE: ("complete", "goes on"), PREFIX: OUTCOMES, COMPLETE: ("complete",)}
"""By target, the draws that rejection sampling keeps."""
LEAST_EXPECTED = 5.0
"""Outcomes that are expected less often are counted together."""
ALPHA = 1e-3
"""A corrected p below it is wrong: of a thousand runs of right numbers, one at most has any."""


@dataclass(frozen=True)
class Config(config.Config):
    """Which prompts, of which models, and how many draws of each."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    prompts: tuple[str, ...] = option((), "names of prompts of the distortion table, all if empty")
    least_mass: float = option(0.01, "a prompt whose answers have less is not drawn from")
    draws: int = option(2000, "of each prompt")
    batch: int = option(100, "draws at a time")
    slack: float = option(1e-4, "most probability of answers that may stay unread, of theirs")
    most_nodes: int = option(6000, "most forward positions for the exact numbers of a prompt")
    device: Device = option("auto", "where the models run")
    dtype: Dtype = option("float32", "of the arithmetic")


SMOKE = Config(models=(models.SMOLLM2,), prompts=("yes_no", "digit"), draws=40, batch=20)


def measure(run: Run[Config]) -> None:
    """A row for each model, then one for each model and prompt. A model that is not there is one
    failure, and has no prompts."""
    chosen = run.config
    named = {case.name: case for case in PROMPTS}
    check_known("prompts", chosen.prompts, named)
    there = models_there(run, chosen.models, chosen.device, chosen.dtype)
    run.cells(
        [
            Cell(f"{name}/{prompt}", prompt_row, (name, named[prompt], chosen))
            for name in there
            for prompt in chosen.prompts or named
        ]
    )


@lru_cache(maxsize=1)
def _asked(name: str, device: str, dtype: str) -> tuple[models.LoadedModel, Poser, Any]:
    loaded = models.opened(name, device, dtype)
    reader = pick_reader(loaded.model, loaded.prompt_ids("The"), PROBE)
    return loaded, Poser(loaded.tokenizer, loaded.eos_ids), reader


def prompt_row(name: str, case: Case, chosen: Config) -> Row:
    """Exact numbers, and draws where the answers have `least_mass`."""
    loaded, poser, reader = _asked(name, chosen.device, chosen.dtype)
    posed = poser.posed(loaded.prompt_ids(case.prompt), case.answers)
    exact = exact_row(posed, poser, loaded, reader, chosen)
    row: Row = {"model": name, "prompt": case.name, "answers": list(case.answers), "exact": exact}
    if 10 ** exact["log10_mass"][PREFIX] < chosen.least_mass:
        return row
    drawn = draws(loaded, posed, f"{chosen.seed} {name} {case.name}", chosen)
    counts = Counter((one.outcome, one.answer) for one in drawn)
    own = [
        loaded.prompt_ids(case.prompt + answer)[len(posed.prompt_ids) :] for answer in case.answers
    ]
    return row | {
        "draws": len(drawn),
        "counts": {o: [counts[o, k] for k in range(len(own))] for o in OUTCOMES},
        "canonical": sum(one.ids != () and [*one.ids] == own[one.answer] for one in drawn),
        "read": sum(one.read for one in drawn),
    }


def exact_row(
    posed: Posed, poser: Poser, loaded: models.LoadedModel, reader: Any, chosen: Config
) -> Row:
    """The probability of each outcome and answer; of all answers by target; of canonical ids among
    those that spell an answer; and the distance of each method from each target. slack: what may be
    missing of each target's mass, relative to it, at most."""
    found = explore(
        reader(loaded.model, posed.prompt_ids),
        [posed.walkers[method] for method in OUR_METHODS],
        posed.answers,
        lambda token, before: loaded.tokenizer.text_bytes((token,), (before,) if before else ()),
        posed.prompt_ids[-1],
        np.array([1.0]),
        Aims(chosen.slack, chosen.slack, chosen.most_nodes),
        poser.vocabulary,
    )
    n = len(posed.answers)
    each = distributions(found, 0, OUR_METHODS, n, ())
    own = along_paths(found.trie, found.scores[0])
    spelled = np.exp(per_leaf(found, found.complete, own, n))
    ended, past = np.exp(found.targets.ended[0]), np.exp(found.targets.past[0])
    targets = {SEQUENCE: {"free": each["free"]}, **each["targets"]}
    return {
        "probability": dict(zip(OUTCOMES, ([*ended], [*(spelled - ended)], [*past]), strict=True)),
        "log10_mass": {SEQUENCE: each["log10_mass"]}
        | {target: each["targets"][target]["log10_mass"] for target in (PREFIX, COMPLETE)},
        "slack": {SEQUENCE: each["free_slack"]}
        | {target: each["targets"][target]["slack"] for target in (PREFIX, COMPLETE)},
        "canonical": each["methods"]["canonical"]["share"],
        "tv": {
            target: {
                method: float(
                    np.abs(np.subtract(each["methods"][method]["law"], of["free"])).sum() / 2
                )
                for method in OUR_METHODS
            }
            for target, of in targets.items()
        },
        "given_back": 0 if posed.healing is None else len(posed.healing.given_back),
    }


# ---------------------------------------------------------------- draws


@dataclass(frozen=True)
class Draw:
    """outcome: one of `OUTCOMES`, or "other"; answer: its number, -1 for "other"; ids: those that
    spelled the answer, () where none did exactly; read: ids until it was decided."""

    outcome: str
    answer: int
    ids: tuple[int, ...]
    read: int


def decided(
    ids: Sequence[int], answers: Sequence[bytes], tokenizer: Tokenizer, eos_ids: Sequence[int]
) -> Draw | None:
    """What ids are a draw of; None where that is not decided yet. answers: prefix-free."""
    text = b""
    for k, token in enumerate(ids):
        spelled = tokenizer.token_bytes(int(token))
        whole = answers.index(text) if text in answers else -1
        if whole >= 0:
            outcome = "complete" if token in eos_ids else "goes on"
            return Draw(outcome, whole, tuple(ids[:k]), k + 1)
        if token in eos_ids or not spelled:
            return Draw("other", -1, (), k + 1)
        text += spelled
        begun = [j for j, answer in enumerate(answers) if text.startswith(answer)]
        if begun and answers[begun[0]] != text:
            return Draw("past", begun[0], (), k + 1)
        if not begun and not any(answer.startswith(text) for answer in answers):
            return Draw("other", -1, (), k + 1)
    return None


def draws(loaded: models.LoadedModel, posed: Posed, seed: str, chosen: Config) -> list[Draw]:
    """`chosen.draws` continuations of the prompt, each until it is decided: at the latest with the
    id behind as many as the longest answer has bytes."""
    torch, transformers = require("torch"), require("transformers")
    torch.manual_seed(zlib.crc32(seed.encode()))

    def judged(ids: Sequence[int]) -> Draw | None:
        return decided(ids, posed.answers, loaded.tokenizer, loaded.eos_ids)

    rows = torch.tensor([posed.prompt_ids], device=loaded.model.device)
    with torch.inference_mode():
        first = transformers.DynamicCache(config=loaded.model.config)
        loaded.model(input_ids=rows[:, :-1], **{cache_name(): first}, use_cache=True)
    options = transformers.GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=1 + max(map(len, posed.answers)),
        eos_token_id=list(loaded.eos_ids),
        pad_token_id=loaded.eos_ids[0],
    )

    def stop(input_ids: Any, scores: Any, **more: Any) -> Any:
        """Row by row: it looks at what was written, and changes nothing of what is drawn."""
        del scores, more
        written = input_ids[:, len(posed.prompt_ids) :].tolist()
        return torch.tensor([judged(ids) is not None for ids in written], device=rows.device)

    found: list[Draw | None] = []
    while len(found) < chosen.draws:
        count = min(chosen.batch, chosen.draws - len(found))
        cache = copy.deepcopy(first)
        cache.batch_repeat_interleave(count)
        many = rows.repeat(count, 1)
        made = loaded.model.generate(
            many,
            attention_mask=torch.ones_like(many),
            generation_config=options,
            stopping_criteria=[stop],
            **{cache_name(): cache},
        )
        found += map(judged, made[:, len(posed.prompt_ids) :].tolist())
    return [one for one in found if one is not None]


# ---------------------------------------------------------------- tables

TITLE = "What the models' own `generate` writes, and what the exact numbers say"


def points(rows: pd.DataFrame) -> list[Row]:
    """A line for each model and prompt that was drawn from. p: of the test of fit."""
    drawn = [row for row in records(rows) if row.get("draws")]
    return [point | _cost(point) for point in map(_point, drawn)]


def _point(row: Row) -> Row:
    n, exact = row["draws"], row["exact"]
    counts = {target: _accepted(row, target) for target in ACCEPTED}
    spelled = counts[SEQUENCE]
    return {
        "model": row["model"],
        "prompt": row["prompt"],
        "draws": n,
        "mass": {target: 10**log for target, log in exact["log10_mass"].items()},
        "drawn": {target: [k / n, *clopper_pearson(k, n, 0.05)] for target, k in counts.items()},
        "canonical": exact["canonical"],
        "drawn_canonical": row["canonical"] / spelled if spelled else None,
        "tv": exact["tv"],
        "slack": exact["slack"],
        "read": row["read"] / n,
        "p": fit(row),
    }


def _accepted(row: Row, target: str) -> int:
    return sum(sum(row["counts"][outcome]) for outcome in ACCEPTED[target])


def _cost(point: Row) -> Row:
    """Ids that are read for one accepted text, by target; None where none was accepted."""
    drawn = {target: found[0] for target, found in point["drawn"].items()}
    return {"cost": {t: point["read"] / share if share else None for t, share in drawn.items()}}


def fit(row: Row) -> float | None:
    """p of the chi-squared test that the counts of all outcomes come from the exact probabilities;
    None where all are expected together."""
    n = row["draws"]
    counts = np.concatenate([row["counts"][outcome] for outcome in OUTCOMES])
    shares = np.concatenate([row["exact"]["probability"][outcome] for outcome in OUTCOMES])
    counts = np.append(counts, n - counts.sum())
    shares = np.append(shares, 1 - shares.sum()).clip(0)
    often = n * shares >= LEAST_EXPECTED
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(shares[often], shares[~often].sum()) * n
    if expected[-1] < LEAST_EXPECTED and len(expected) > 1:
        observed = np.append(observed[:-2], observed[-2:].sum())
        expected = np.append(expected[:-2], expected[-2:].sum())
    if len(expected) < 2:
        return None
    return float(stats.chisquare(observed, expected * n / expected.sum()).pvalue)


def corrected(found: Sequence[Row]) -> float | None:
    """The least p, times how many there are (Bonferroni)."""
    each = [point["p"] for point in found if point["p"] is not None]
    return min(1.0, min(each) * len(each)) if each else None


def _of(field: str, *path: str) -> Callable[[pd.DataFrame], Any]:
    def of(group: pd.DataFrame) -> Any:
        value = group[field].iloc[0]
        for name in path:
            value = value[name]
        return value

    return of


def _drawn(target: str) -> Callable[[pd.DataFrame], str]:
    def of(group: pd.DataFrame) -> str:
        return "{:.4f} [{:.4f}, {:.4f}]".format(*group["drawn"].iloc[0][target])

    return of


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """Masses, canonical ids and costs; distances of the methods from each target."""
    found, names = pd.DataFrame(points(rows)), labels(manifest)
    head = [
        Column("model", lambda one: names[one["model"].iloc[0]].partition(" ")[0]),
        Column("prompt", "prompt"),
    ]
    masses = [
        *head,
        Column("draws", "draws", whole),
        *(
            column
            for target in ACCEPTED
            for column in (
                Column(f"{target}\nexact", _of("mass", target), fixed(4)),
                Column(f"{target}\ndrawn", _drawn(target)),
            )
        ),
        Column("canonical\nexact", "canonical", percent(2)),
        Column("canonical\ndrawn", "drawn_canonical", percent(2)),
        Column("p", "p", small),
    ]
    costs = [
        *head,
        Column("ids read\na draw", "read", fixed(2)),
        *(Column(f"ids for one\n{t}", _of("cost", t), fixed(1)) for t in ACCEPTED),
    ]
    distances = [
        *head,
        *(
            Column(f"{method}\n{target}", _of("tv", target, method), fixed(4))
            for method in OUR_METHODS
            for target in ACCEPTED
        ),
        Column("slack of\ncomplete", _of("slack", COMPLETE), small),
    ]
    least = manifest["config"]["least_mass"]
    out = [row for row in records(rows) if row.get("exact") and not row.get("draws")]
    said = [
        "sequence: ids that spell an answer exactly; prefix: texts that begin with one; complete: "
        "an answer, then the end; intervals: 95 %, Clopper-Pearson",
        "canonical: of draws that spelled an answer exactly, those by the tokenizer's own ids",
        "p: chi-squared, of the counts of every answer as complete, gone on from or gone past, and "
        f"of none; the least of {len(found)}, times their number: "
        f"{_shown(corrected(points(rows)))}",
        f"not drawn from, for their answers have less than {least:g}: {_left_out(out, names)}",
        *model_notes(manifest, set(names.values())),
    ]
    return [
        table(TITLE, found, masses, said),
        table(
            "What rejection sampling costs",
            found,
            costs,
            ["a draw is read until it can begin with no answer any more, or has ended one"],
        ),
        table(
            "Total variation distance to each target",
            found,
            distances,
            [
                "complete: over the tokenizations that were read; slack: what the others might be "
                "of it, at most"
            ],
        ),
    ]


def _shown(p: float | None) -> str:
    return "-" if p is None else small(p)


def _left_out(rows: Sequence[Row], names: dict[str, str]) -> str:
    model = {name: label.partition(" ")[0] for name, label in names.items()}
    return ", ".join(f"{row['prompt']} ({model[row['model']]})" for row in rows) or "none"


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """points: models and prompts; least_p: corrected for their number; the furthest that a drawn
    share of texts that begin with an answer is from the exact one."""
    found = points(rows)
    gaps = [abs(p["drawn"][PREFIX][0] - p["mass"][PREFIX]) for p in found]
    return {
        "points": len(found),
        "prompts": len({point["prompt"] for point in found}),
        "draws": sum(point["draws"] for point in found),
        "least_p": corrected(found),
        "largest_gap": max(gaps, default=None),
        "cost": {
            target: [c for p in found if (c := p["cost"][target]) is not None]
            for target in ACCEPTED
        },
    }


def wrong(rows: pd.DataFrame, manifest: Row) -> list[str]:
    """Where the draws contradict the exact numbers."""
    least = corrected(points(rows))
    if least is None or least >= ALPHA:
        return []
    return [f"the draws do not fit the exact probabilities: corrected p = {least:.1e}"]


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """Drawn against exact, of each answer and outcome."""
    each = [row for row in records(rows) if row.get("draws")]
    if not each:
        return []
    drawn, axes = panels(1, len(OUTCOMES), (11, 4.2), "both", sharex=True, sharey=True)
    for axis, outcome in zip(axes[0], OUTCOMES, strict=True):
        axis.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1, zorder=0)
        for name, color in zip(manifest["config"]["models"], ("#1f77b4", "#d95f02"), strict=False):
            some = [row for row in each if row["model"] == name]
            exact = [p for row in some for p in row["exact"]["probability"][outcome]]
            shares = [k / row["draws"] for row in some for k in row["counts"][outcome]]
            label = labels(manifest)[name].partition(" ")[0]
            axis.scatter(exact, shares, s=14, color=color, label=label, alpha=0.8)
        axis.set_xscale("symlog", linthresh=1e-3)
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.set_xlim(0, 1)
        axis.set_ylim(0, 1)
        axis.set_title(outcome, loc="left", fontsize=10)
        axis.set_xlabel("exact probability")
    axes[0][0].set_ylabel("share of the draws")
    axes[0][0].legend(fontsize=8, frameon=False)
    draws = sum(row["draws"] for row in each)
    note = (
        f"{draws:,} draws of {len(each)} prompts and models; each point an answer. Axes are linear "
        "below 0.001."
    )
    return [Figure("free_draws", drawn, "Free draws fall where the exact numbers are", note)]
