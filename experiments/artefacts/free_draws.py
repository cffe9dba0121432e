"""Free draws: does a model's own `generate` write what the exact numbers say?

For each prompt of the distortion table whose answers a model writes often enough, texts are drawn
by `transformers`' `generate`: at temperature 1, from the whole vocabulary, with no mask. The draws
have nothing in common but the model's cache of the prompt. A draw goes on until it is decided:

- *exact*: its ids spell an answer exactly;
- *past*: its text begins with an answer, but the last id goes past the answer's end;
- *other*: its text begins with no answer.

The counts are compared with the probabilities of `experiments.exact`, and an exact test takes the
counts of both outcomes of all answers together. The cost of rejection sampling comes from the same
draws: the ids until a draw is decided, divided by the probability that it is accepted.
"""

from __future__ import annotations

import copy
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.special import xlogy

from bpe_automata import Tokenizer
from experiments import show
from experiments.artefacts.distortion import CASES
from experiments.exact import Posed, Trie, pose
from experiments.files import cache_name, require
from experiments.lab import Row
from experiments.models import GEMMA, SMOLLM2, label, opened
from experiments.statistics import clopper_pearson

TITLE, LONG = "What the models' own `generate` writes, and what the exact numbers say", True
OUTCOMES = {"exact": "ids that spell an answer exactly", "past": "an id runs past its end"}
"""The outcomes of a draw whose text begins with an answer, and what they mean."""
SIMULATED = 100_000
"""Simulated draws of the test of fit."""


@dataclass(frozen=True)
class Config:
    """least_mass: nothing is drawn after a prompt whose answers have less; draws: of each prompt,
    `batch` at a time; slack, most_nodes: see `experiments.exact`."""

    models: tuple[str, ...] = (SMOLLM2, GEMMA)
    prompts: tuple[str, ...] = ()
    least_mass: float = 0.01
    draws: int = 2000
    batch: int = 100
    slack: float = 1e-4
    most_nodes: int = 6000
    device: str = "auto"
    dtype: str = "float32"
    seed: int = 0


ON_GPU = Config(models=(SMOLLM2,), draws=100_000, batch=2048, device="cuda")
SMOKE = Config((SMOLLM2,), ("yes_no", "digit"), draws=40, batch=20)


def cells(config: Config) -> list[Row]:
    """A cell is a model with a prompt."""
    prompts = config.prompts or CASES
    return [{"source": model, "prompt": name} for model in config.models for name in prompts]


def measure(config: Config, source: str, prompt: str) -> Row:
    """Exact numbers, and draws where the answers have `least_mass`. read: ids of all draws."""
    loaded, case = opened(source, config.device, config.dtype), CASES[prompt]
    posed = pose(loaded, case.prompt, case.answers)
    tree = Trie(posed).explore(config.slack, config.slack, config.most_nodes)
    spelled, past = np.exp(tree.summed(tree.free, tree.complete)), np.exp(tree.past)
    row: Row = {"exact": spelled.tolist(), "past": past.tolist(), "least mass": config.least_mass}
    row["draws"] = 0
    if spelled.sum() + past.sum() < config.least_mass:
        return row
    drawn = draws(posed, f"{config.seed} {source} {prompt}", config)
    counts = Counter((one.outcome, one.answer) for one in drawn)
    return row | {
        "draws": len(drawn),
        **{f"{o} drawn": [counts[o, k] for k in range(tree.n)] for o in OUTCOMES},
        "read": sum(len(one.ids) for one in drawn),
    }


# Draws.


class Draw(NamedTuple):
    """outcome: one of `OUTCOMES`, or "other"; answer: its number, -1 for "other"; ids: those that
    decided it."""

    outcome: str
    answer: int
    ids: list[int]


def decided(
    ids: Sequence[int], answers: Sequence[bytes], tokenizer: Tokenizer, eos_ids: Sequence[int]
) -> Draw | None:
    """The draw that these ids decide; None while it is undecided. answers: prefix-free."""
    text = b""
    for k, token in enumerate(ids, 1):
        spelled = tokenizer.token_bytes(int(token))
        text += spelled
        if token in eos_ids or not spelled:
            return Draw("other", -1, [*ids[:k]])
        begun = [j for j, answer in enumerate(answers) if text.startswith(answer)]
        if begun:
            outcome = "exact" if answers[begun[0]] == text else "past"
            return Draw(outcome, begun[0], [*ids[:k]])
        if not any(answer.startswith(text) for answer in answers):
            return Draw("other", -1, [*ids[:k]])
    return None


def draws(posed: Posed, seed: str, config: Config) -> list[Draw]:
    """`config.draws` continuations of the prompt, each until it is decided: at the latest with as
    many ids as the longest answer has bytes."""
    torch, transformers, loaded = require("torch"), require("transformers"), posed.loaded
    torch.manual_seed(zlib.crc32(seed.encode()))
    rows = torch.tensor([posed.prompt_ids], device=loaded.model.device)
    first = transformers.DynamicCache(config=loaded.model.config)
    if rows.shape[1] > 1:
        with torch.inference_mode():
            loaded.model(input_ids=rows[:, :-1], **{cache_name(): first}, use_cache=True)
    options = transformers.GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=max(map(len, posed.answers)),
        eos_token_id=[*loaded.eos_ids],
        pad_token_id=loaded.eos_ids[0],
    )
    found: list[Draw | None] = []
    while len(found) < config.draws:
        count = min(config.batch, config.draws - len(found))
        made = list[Draw | None]([None] * count)

        def stop(input_ids: Any, scores: Any, made: list[Draw | None] = made, **more: Any) -> Any:
            """Row by row: it looks at what was written, and changes nothing of what is drawn."""
            del scores, more
            open_rows = [k for k, one in enumerate(made) if one is None]
            written = input_ids[open_rows, len(posed.prompt_ids) :].tolist()
            for k, ids in zip(open_rows, written, strict=True):
                made[k] = decided(ids, posed.answers, loaded.tokenizer, loaded.eos_ids)
            return torch.tensor([one is not None for one in made], device=rows.device)

        cache = copy.deepcopy(first)
        cache.batch_repeat_interleave(count)
        many = rows.repeat(count, 1)
        # `generate` would take what `options` leaves out (a penalty, a least p) from the model's
        # own config: hence the patch.
        with patch.object(loaded.model, "generation_config", options):
            loaded.model.generate(
                many,
                attention_mask=torch.ones_like(many),
                generation_config=options,
                stopping_criteria=[stop],
                **({cache_name(): cache} if rows.shape[1] > 1 else {}),
            )
        found += made
    if None in found:
        raise RuntimeError(f"{found.count(None)} draws are not decided after {options}")
    return [one for one in found if one is not None]


# What the rows say.


def fit(row: Row) -> float:
    """p of the exact test that the counts (both outcomes of all answers, and no answer) come from
    the exact probabilities: the share of `SIMULATED` multinomial draws whose likelihood ratio is at
    least that of the counts. 0 where an outcome of probability 0 was drawn."""
    counts = [k for outcome in OUTCOMES for k in row[f"{outcome} drawn"]]
    shares, n = [p for outcome in OUTCOMES for p in row[outcome]], int(row["draws"])
    p = np.clip([*shares, 1 - sum(shares)], 0.0, 1.0)
    observed, there = np.array([*counts, n - sum(counts)]), p > 0
    if (observed[~there] > 0).any():
        return 0.0
    expected = n * p[there]

    def ratio(drawn: np.ndarray) -> np.ndarray:
        found: np.ndarray = xlogy(drawn, drawn / expected).sum(axis=-1)
        return found

    simulated = np.random.default_rng(0).multinomial(n, p[there] / p[there].sum(), SIMULATED)
    as_far = ratio(simulated) >= ratio(observed[there]) - 1e-9
    return float((1 + as_far.sum()) / (1 + SIMULATED))


def points(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each model and prompt with draws. exactly, begins: of texts that spell an answer,
    and that begin with one, the exact probability and the drawn share with an interval; ids for
    one: the ids that rejection sampling reads for such a text, by the exact probability."""
    lines = list[Row]()
    for row in rows[rows["draws"] > 0].to_dict("records"):
        n, mass = int(row["draws"]), {"exactly": sum(row["exact"])}
        counts = {"exactly": sum(row["exact drawn"])}
        mass["begins"] = mass["exactly"] + sum(row["past"])
        counts["begins"] = counts["exactly"] + sum(row["past drawn"])
        line = {"model": label(row["source"]), "prompt": row["prompt"], "draws": n}
        for name, k in counts.items():
            line |= {name: mass[name], f"{name}, drawn": (k / n, *clopper_pearson(k, n, 0.05))}
        line["p"] = fit(row)
        read = row["read"] / n
        lines.append(line | {f"ids for one, {name}": read / mass[name] for name in counts})
    return pd.DataFrame(lines)


def corrected(found: pd.DataFrame) -> float:
    """The least p, times the number of tests (Bonferroni)."""
    return float(min(1.0, found["p"].min() * len(found)))


def tables(rows: pd.DataFrame) -> list[show.Table]:
    """A line for each model and prompt."""
    found, out = points(rows), rows[rows["draws"] == 0]
    each = zip(out["prompt"], out["source"], strict=True)
    names = [f"{prompt} ({label(source)})" for prompt, source in each]
    formats: dict[str, show.Format] = dict.fromkeys(("p", "exactly", "begins"), show.small)
    formats |= dict.fromkeys(("exactly, drawn", "begins, drawn"), show.interval(show.fixed(4)))
    formats |= dict.fromkeys(("ids for one, exactly", "ids for one, begins"), show.fixed(1))
    note = f"""exactly, begins: texts that spell an answer, and that begin with one; intervals: 95
        %, Clopper-Pearson, not corrected for their number; p: of a test of all counts together,
        simulated; the least of {len(found)}, times their number: {show.small(corrected(found))}

        ids for one: what rejection sampling reads until it has such a text

        without draws, as their answers have a mass below {rows["least mass"].max():g}:
        {", ".join(names) or "none"}"""
    return [show.Table("Drawn and exact", found, formats, note)]


def figure(rows: pd.DataFrame) -> show.Figure:
    """Drawn shares against exact probabilities, for each answer and outcome."""
    each = rows[rows["draws"] > 0]
    canvas, axes = show.panels(1, len(OUTCOMES), (7.5, 3.9), sharex=True, sharey=True)
    for axis, (outcome, meaning) in zip(axes[0], OUTCOMES.items(), strict=True):
        axis.plot([0, 1], [0, 1], color=show.PALE, linewidth=1, zorder=0)
        for k, (source, own) in enumerate(each.groupby("source", sort=False)):
            of = zip(own[f"{outcome} drawn"], own["draws"], strict=True)
            shares = [n / draws_ for counts, draws_ in of for n in counts]
            style = {"color": show.MODELS[k % 2], "marker": "os"[k % 2]}
            exact = [p for one in own[outcome] for p in one]
            axis.scatter(exact, shares, s=14, label=label(source), **style)
        axis.set_xscale("symlog", linthresh=1e-3)
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.set(xlim=(0, 1), ylim=(0, 1), xlabel="exact probability")
        axis.set_title(meaning, loc="left", fontsize=10)
        axis.grid(color="#eeeeee")
    axes[0][0].set_ylabel("share of the draws")
    axes[0][0].legend(fontsize=8, frameon=False)
    note = (
        f"{each['draws'].sum():,.0f} draws of {len(each)} prompts and models; each point an "
        "answer. Axes are linear below 0.001."
    )
    return show.Figure(canvas, "Free draws fall where the exact numbers are", note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """The one line that the report has."""
    found = points(rows)
    pairs = zip(found["begins, drawn"], found["begins"], strict=True)
    line: Row = {
        "pairs of a prompt and a model": len(rows),
        "drawn from": len(found),
        "texts": found["draws"].sum(),
        "least p (corrected)": corrected(found),
        "largest gap": max(abs(share[0] - mass) for share, mass in pairs),
    }
    for name, said in {"exactly": "spelled exactly", "begins": "begun with"}.items():
        ids = found[f"ids for one, {name}"]
        line[f"ids for one {said}, median (most)"] = f"{ids.median():,.0f} ({ids.max():,.0f})"
    formats = {"least p (corrected)": show.small, "largest gap": show.fixed(3)}
    return {"free-draws": show.markdown(pd.DataFrame([line]), formats)}
