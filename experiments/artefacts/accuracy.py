"""Do constraints make a model's function calls right?

A model writes the arguments of a function call, for requests of the Berkeley Function Calling
Leaderboard (BFCL), which says which arguments are right (`experiments.bfcl`). Each method has the
same prompt:

- *free*: there is no mask, and the answer ends with the closing brace of the first object; an
  answer that is not valid is thrown away and asked for again;
- *lift*: the mask admits all tokenizations of the valid arguments;
- *canonical*: the mask admits the tokenizer's own tokenization alone;
- *canonical SMC*: a population of texts under the canonical mask is weighted and resampled while it
  is written, and one of those that ended is drawn by its weight.

Each method but SMC writes once with the likeliest ids; each writes several times with drawn ids (at
temperature 0.7; a free answer is asked for at most three times, and a population has 8 texts). The
likeliest ids are taken in compact JSON, too, whose tokens a model may hardly have seen. They may be
four times as many as drawn ones, to tell an answer that is long from one that does not end.
Requests are asked in plain text after an example: asked in its chat format, SmolLM2 answers most of
them with prose or with Python.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import permutation_test

from bpe_automata import Constraint, constrain
from bpe_automata.decoding.constraint import Method
from bpe_automata.sampling import normalised
from experiments import bfcl, show
from experiments.batched import Drawn, Free, sample_batch
from experiments.bfcl import Request
from experiments.lab import Row
from experiments.models import GEMMA, SMOLLM2, LoadedModel, label, opened, special_ids
from experiments.statistics import estimate, weighted_mean

TITLE, LONG = "How often the arguments of a function call are right", True
PACKAGES = ("bfcl-eval",)
COLORS = show.COLORS | {"canonical SMC": "#7fbcc6"}
METHODS, SETTING = [*COLORS], ["model", "style", "taken"]
ALPHA, FLIPS = 0.05, 20_000
"""The level of the tests once they are corrected; the random signs behind each p-value."""


@dataclass(frozen=True)
class Config:
    """requests: how many are drawn from all that can be asked; likeliest: for so many of them the
    likeliest ids are taken too, at most `room`; seeds: drawn answers of each method, at
    `temperature`; retries: of a free answer that is not valid; particles: of a population; ids:
    the most of a drawn answer; file: requests and answers that replace those of BFCL."""

    models: tuple[str, ...] = (SMOLLM2, GEMMA)
    requests: int = 200
    likeliest: int = 120
    seeds: int = 3
    temperature: float = 0.7
    retries: int = 2
    particles: int = 8
    ids: int = 32
    room: int = 128
    file: Path | None = None
    device: str = "auto"
    dtype: str = "float32"
    seed: int = 0


SMOKE = Config(
    (SMOLLM2,), requests=2, seeds=1, retries=1, particles=2, ids=9, room=12,
    file=Path(__file__).with_suffix(".jsonl"),
)  # fmt: skip


class Asked(NamedTuple):
    """take: the number of a drawn answer; None for the likeliest ids."""

    method: str
    style: str
    take: int | None


def cells(config: Config) -> list[Row]:
    """A cell is a model and a request."""
    names = bfcl.chosen(config.requests, config.seed, config.file)
    return [{"model": model, "request": name} for name in names for model in config.models]


def measure(config: Config, model: str, request: str) -> list[Row]:
    """A row for each answer."""
    loaded = opened(model, config.device, config.dtype)
    requests = bfcl.chosen(config.requests, config.seed, config.file)
    one, number = requests[request], [*requests].index(request)
    prompt = loaded.prompt_ids(one.prompt())
    kinds: tuple[Method, ...] = ("lift", "canonical")
    constraints: dict[tuple[str, str], Constraint] = {
        (kind, style): constrain(loaded.tokenizer, one.language(style), kind, eos_ids=())
        for kind in kinds
        for style in bfcl.SEPARATORS
    }
    asked = [Asked(method, "spaced", None) for method in METHODS[:3]]
    asked += [Asked(method, "compact", None) for method in METHODS[1:3]]
    asked += [Asked(method, "spaced", k) for method in METHODS for k in range(config.seeds)]
    copies = {"free": 1 + config.retries, "canonical SMC": config.particles}
    each = [k for k, of in enumerate(asked) for _ in range(copies.get(of.method, 1))]
    found: list[list[Drawn]] = [[] for _ in asked]
    alone = Free(special_ids(loaded), lambda ids: is_closed(loaded.tokenizer.decode(ids, prompt)))
    room = config.room if number < config.likeliest else 0
    for is_drawn, most in enumerate((room, config.ids)):
        numbers = [j for j, k in enumerate(each) if (asked[k].take is not None) == is_drawn]
        if not numbers or not most:
            continue
        of = [each[j] for j in numbers]
        texts = sample_batch(
            loaded.model,
            [prompt] * len(of),
            [constraints.get((asked[k].method.removesuffix(" SMC"), asked[k].style)) for k in of],
            np.stack([uniforms(config, request, asked[each[j]].take, j, most) for j in numbers]),
            temperatures=[is_drawn * config.temperature] * len(of),
            populations=[k if asked[k].method == "canonical SMC" else -1 for k in of],
            free=alone,
        )
        for k, text in zip(of, texts, strict=True):
            found[k].append(text)
    rows = list[Row]()
    for asking, own in zip(asked, found, strict=True):
        if not own:
            continue
        if asking.method == "canonical SMC":
            own = [chosen(own, uniforms(config, request, asking.take, -1, 1)[0])]
        every = [judged(loaded, one, text.ids, text.ended) for text in own]
        rows.append(asking._asdict() | next((row for row in every if row["valid"]), every[-1]))
    return rows


def uniforms(config: Config, request: str, take: int | None, copy: int, count: int) -> np.ndarray:
    """float64 [count], in [0, 1)."""
    words = [config.seed, zlib.crc32(request.encode()), take or 0, 1 + copy]
    return np.random.default_rng(words).random(count)


def chosen(texts: Sequence[Drawn], uniform: float) -> Drawn:
    """One text of a population, drawn by its weight; the first where none has any weight."""
    weights = np.array([text.log_weight for text in texts])
    shares = normalised(weights) if weights.max() > -np.inf else np.ones(len(texts))
    return texts[int(np.searchsorted(shares.cumsum(), uniform * shares.sum(), side="right"))]


def judged(loaded: LoadedModel, request: Request, ids: Sequence[int], is_whole: bool) -> Row:
    """The row of an answer. own: are its ids the tokenizer's own? None where it is cut off."""
    before = request.prompt()
    text = loaded.tokenizer.decode(ids, loaded.prompt_ids(before))
    value, own = value_in(text) if is_whole else None, loaded.prompt_ids(before + text)
    return {
        "text": text,
        "ids": len(ids),
        "ended": is_whole,
        "valid": value is not None and request.is_valid(value),
        "right": value is not None and request.is_right(value),
        "own": own == [*loaded.prompt_ids(before), *ids] if is_whole else None,
    }


def is_closed(text: str) -> bool:
    """Are all braces closed again?"""
    return 0 < text.count("{") <= text.count("}")


def value_in(text: str) -> Any:
    """The first JSON object in a text; None where there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, text.index("{"))[0]
    except ValueError:
        return None


# What the rows say.


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with `taken` ("likeliest" or "drawn"), truth values as numbers, methods in order."""
    drawn = np.where(rows["take"].isna(), "likeliest", "drawn")
    models = rows["model"].map(label)
    orders = {"model": models.unique(), "style": ["spaced", "compact"]}
    orders |= {"taken": ["likeliest", "drawn"], "method": METHODS}
    found = rows.assign(taken=drawn, model=models).astype(
        dict.fromkeys(("ended", "valid", "right", "own"), float)
    )
    return found.assign(**{c: pd.Categorical(found[c], o) for c, o in orders.items()})


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each setting and method: shares with 95 % intervals from resampling the requests;
    `less`: the share of right answers minus the lift's on the same requests; `p`: of the test that
    the signs of these differences are random, times the number of tests (Bonferroni)."""
    lines = list[Row]()
    for setting, group in in_order(rows).groupby(SETTING, observed=True):
        each = group.groupby(["request", "method"], observed=True)["right"].mean().unstack()
        for method, own in group.groupby("method", observed=True):
            line: Row = {**dict(zip(SETTING, setting, strict=True)), "method": method}
            line |= {"answers": len(own), "unfinished": 1 - own["ended"].mean()}
            line |= {c: estimate(own, weighted_mean, c, "request") for c in ("right", "valid")}
            line["of the finished"] = own[own["ended"] == 1]["right"].mean()
            line |= {"own ids": own["own"].mean(), "less": None, "p": np.nan}
            if method != "lift":
                less = (each[method] - each["lift"]).dropna().rename("less").reset_index()
                line["less"] = estimate(less, weighted_mean, "less", "request")
                line["p"] = permutation_test(
                    (less["less"],),
                    np.sum,
                    permutation_type="samples",
                    n_resamples=FLIPS,
                    rng=np.random.default_rng(0),
                ).pvalue
            lines.append(line)
    found = pd.DataFrame(lines)
    return found.assign(p=(found["p"] * found["p"].notna().sum()).clip(upper=1))


def sizes(rows: pd.DataFrame) -> str:
    """How many requests there are, and how many ids an answer may have."""
    each = rows.groupby(rows["take"].isna().map({True: "the likeliest", False: "drawn"}))
    found = each.agg({"request": "nunique", "ids": "max"}).itertuples()
    return ", ".join(f"{n} requests with {taken} ids (at most {most})" for taken, n, most in found)


def tables(rows: pd.DataFrame) -> list[show.Table]:
    """A line for each setting and method."""
    found = compared(rows).rename(columns={"less": "less the lift, points", "p": "p (corrected)"})
    shares = show.interval(lambda value: f"{100 * value:.1f}")
    formats: dict[str, show.Format] = {"right": shares, "valid": shares}
    formats["less the lift, points"] = show.interval(lambda value: f"{100 * value:+.1f}")
    formats |= {"unfinished": show.percent(1), "of the finished": show.percent(1)}
    formats["own ids"] = show.percent()
    formats["p (corrected)"] = show.small
    note = f"""{sizes(rows)}, short prompts and answers; right: as BFCL's checker judges, in
        per cent; valid: JSON under the function's schema; intervals: 95 %, bootstrap of requests

        unfinished: answers that were cut off, which count as wrong; of the finished: the share that
        is right; own ids: finished answers whose ids are the tokenizer's own

        less the lift: the difference on the same requests; p: of a test of the differences' signs
        ({FLIPS:,} random flips), times the number of tests (Bonferroni)

        drawn: {rows["take"].nunique()} answers to each request, which count as one in intervals"""
    return [show.Table(TITLE, found, formats, note)]


def figure(rows: pd.DataFrame) -> show.Figure:
    """Shares of right and of unfinished answers, a panel for each model."""
    found = compared(rows)
    names = found["model"].unique()
    settings = [*dict.fromkeys(zip(found["style"], found["taken"], strict=True))]
    canvas, axes = show.panels(1, len(names), (9, 4.2), sharey=True)
    for axis, model in zip(axes[0], names, strict=True):
        for line in found[found["model"] == model].to_dict("records"):
            k, j = settings.index((line["style"], line["taken"])), METHODS.index(line["method"])
            position, (value, *ends) = k + 0.2 * (j - 1.5), [100 * one for one in line["right"]]
            color, finished = COLORS[line["method"]], 100 * (1 - line["unfinished"])
            axis.bar(position, value, 0.18, color=color)
            axis.bar(position, finished - value, 0.18, bottom=value, color=color, alpha=0.25)
            axis.plot([position] * 2, ends, color="black", linewidth=0.8)
        ticks = [f"{style} JSON,\n{taken} ids" for style, taken in settings]
        axis.set_xticks(range(len(settings)), ticks)
        axis.set_title(model, loc="left", fontsize=11)
        axis.set(ylim=(0, 115), yticks=range(0, 101, 20))
    axes[0][0].set_ylabel("answers, %")
    for method, color in COLORS.items():
        axes[0][0].bar([0], [0], color=color, label=method)
    axes[0][0].legend(fontsize=8, frameon=False, ncols=4, loc="upper left")
    return show.Figure(
        canvas,
        "How many function calls are right, by method, style of JSON and how ids are taken",
        f"{sizes(rows)} of BFCL. Solid: right answers, with 95 % intervals "
        "by drawing requests again; pale: finished, but wrong; above: cut off.",
    )


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """A table of right answers, with the unfinished in brackets."""
    found = compared(rows)
    found["cell"] = [
        f"{100 * row['right'][0]:.1f}{' *' if row['p'] < ALPHA else ''} "
        f"({100 * row['unfinished']:.1f}, {100 * row['of the finished']:.1f})"
        for row in found.to_dict("records")
    ]
    title = "right (unfinished, right of the finished), %"
    found[title] = found[SETTING].agg(", ".join, axis=1)
    table = found.pivot(index=title, columns="method", values="cell")
    table = table.loc[found[title].unique(), METHODS].fillna("-").reset_index()
    return {
        "accuracy": f"""{show.markdown(table)}

        {sizes(rows)} of BFCL; * is clear of the lift (p below
        {ALPHA}, corrected for {found["p"].notna().sum()})."""
    }
