"""What is said of answers to requests: how many are right and what they cost, by method, and the
differences of methods on the same requests, with a correction for their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.models import labels
from experiments.run.executors import Row
from experiments.run.report import Figure, panels
from experiments.run.tables import (
    Column,
    Group,
    Table,
    count,
    interval,
    markdown,
    records,
    share,
    table,
)
from experiments.shared.shown import CANONICAL as BLUE
from experiments.shared.shown import LIFT as RED
from experiments.shared.shown import Estimate, estimate, mark, model_notes
from experiments.show import fixed, is_missing, percent, small, whole
from experiments.statistics import weighted_mean

FREE, LIFT, CHOP, CANONICAL, SMC = METHODS = ("free", "lift", "chop", "canonical", "canonical SMC")
LIKELIEST, DRAWN = IDS = ("likeliest", "drawn")
TITLE = "How often the arguments of a function call are right"
ALPHA = 0.05
FLIPS = 20_000
"""Of the signs of the differences, for a p-value."""


def answers_of(rows: pd.DataFrame, manifest: Row) -> pd.DataFrame:
    """A line for each answer: model (what it is called), request, method, style, ids ("likeliest"
    or "drawn") and, as numbers, ended, valid, right, own (nan where it was cut off), passes,
    positions, seconds, attempts; in the order of the keys of `rows`."""
    called = {name: label.partition(" ")[0] for name, label in labels(manifest).items()}
    found = [
        text | {"model": called[row["model"]], "ids": DRAWN if text["seed"] is not None else IDS[0]}
        for row in sorted(records(rows), key=lambda row: str(row["key"]))
        if not is_missing(row.get("texts"))
        for text in row["texts"]
    ]
    names = ["model", "style", "ids", "method", "request"]
    numbers = ["ended", "valid", "right", "own", "passes", "positions", "seconds", "attempts"]
    answers = pd.DataFrame(found, columns=[*names, *numbers])
    orders = {"model": [*dict.fromkeys(called.values())], "method": METHODS, "ids": IDS}
    orders["style"] = [manifest["config"][name] for name in ("style", "other_style")]
    for name, order in orders.items():
        answers[name] = pd.Categorical(answers[name], [*dict.fromkeys(order)], ordered=True)
    return answers.astype(dict.fromkeys(numbers, float)).sort_values(names[:4], kind="stable")


def grouped(answers: pd.DataFrame, *by: str) -> Any:
    """The groups that are there, in the order of their categories."""
    return answers.groupby([*by], observed=True)


SETTING = ("model", "style", "ids")


# ---------------------------------------------------------------- differences


class Difference(NamedTuple):
    """The share of right answers of a method less that of the one that it is compared `to`, over
    the requests that both answered. value: with its interval, which comes from drawing requests
    again; p: that the signs of the requests' differences are of chance; holm: p, corrected."""

    model: str
    style: str
    ids: str
    method: str
    to: str
    value: Estimate
    p: float
    holm: float = 1.0

    @property
    def clear(self) -> bool:
        """Of 0, once corrected."""
        return self.holm < ALPHA


def differences(answers: pd.DataFrame) -> list[Difference]:
    """Of each method to lift, and of each but lift to free, in each setting; all are one family of
    tests."""
    found = list[Difference]()
    for setting, group in grouped(answers, *SETTING):
        shares = grouped(group, "request", "method")["right"].mean().unstack("method")
        for to in (LIFT, FREE):
            for method in METHODS:
                has_both = {method, to} <= {*shares.columns}
                if method == to or (method, to) == (LIFT, FREE) or not has_both:
                    continue
                each = (shares[method] - shares[to]).dropna().rename("difference").reset_index()
                value = estimate(weighted_mean, "difference", "request")(each)
                if value is not None:
                    p = sign_flips(each["difference"].to_numpy())
                    model, style, ids = setting
                    found.append(Difference(model, style, ids, method, to, value, p))
    corrected = holm([one.p for one in found])
    return [one._replace(holm=p) for one, p in zip(found, corrected, strict=True)]


def sign_flips(each: np.ndarray) -> float:
    """The p-value, two-sided, that differences are as likely as their negatives: the share of
    random signs with which their sum is as far from 0. Source: Fisher, *The Design of
    Experiments*, 1935, section 21."""
    there = each[each != 0]
    if not len(there):
        return 1.0
    signs = np.random.default_rng(0).integers(0, 2, (FLIPS, len(there))) * 2 - 1
    as_far = np.abs(signs @ there) >= abs(there.sum()) - 1e-9
    return float((1 + as_far.sum()) / (1 + FLIPS))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction: the k-th smallest of n, from 0 on, times n - k, and none below a smaller
    one's. Source: Holm, Scandinavian Journal of Statistics, 1979."""
    order, highest = np.argsort(p, kind="stable").tolist(), 0.0
    found = [1.0] * len(p)
    for k, place in enumerate(order):
        highest = max(highest, min(1.0, p[place] * (len(p) - k)))
        found[place] = highest
    return found


def headline(found: Sequence[Difference]) -> str:
    """Which differences are clear of 0 in which settings, and which in none, in one sentence."""
    if not found:
        return "No methods were compared."
    pairs: dict[str, list[Difference]] = {}
    for one in found:
        pairs.setdefault(f"{one.method} to {one.to}", []).append(one)
    clear = {pair: [one for one in of if one.clear] for pair, of in pairs.items()}
    said = [
        f"{pair} in {len(kept)} of {len(pairs[pair])} settings ({_span(kept)})"
        for pair, kept in clear.items()
        if kept
    ]
    none = [pair for pair, kept in clear.items() if not kept]
    said += [f"in no setting {', '.join(none)}"] if none else []
    total = sum(map(len, clear.values()))
    return (
        f"Of {len(found)} differences in the share of right answers {total} are clear of 0 once "
        f"corrected for their number: {'; '.join(said)}."
    )


def _span(kept: Sequence[Difference]) -> str:
    """Of several, the least and the greatest; of one, its setting too."""
    values = [100 * one.value[0] for one in kept]
    if len(kept) > 1:
        return f"{min(values):+.1f} to {max(values):+.1f} points"
    (one,) = kept
    return f"{one.model}, {one.style}, {one.ids}: {values[0]:+.1f} points"


# ---------------------------------------------------------------- tables


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """Shares and costs by method; differences."""
    answers, chosen = answers_of(rows, manifest), manifest["config"]
    found = differences(answers)
    head = [Column(name, name) for name in (*SETTING, "method")]
    ends = interval(fixed(1))
    by = [
        *head,
        Column("answers", count, whole),
        *(Column(f"{name}, %", _share(name), ends) for name in ("right", "valid")),
        *(Column(name, share(name), percent(0)) for name in ("ended", "own")),
        *(Column(f"{name}\na request", _mean(name), fixed(1)) for name in ("passes", "positions")),
        Column("CPU seconds\na request", _mean("seconds"), fixed(2)),
    ]
    lines = pd.DataFrame(found, columns=Difference._fields)
    compared = [
        *(Column(name, name) for name in (*SETTING, "method", "to")),
        Column("right, points", lambda g: [100 * x for x in g["value"].iloc[0]], _signed),
        Column("p", "p", small),
        Column("p, Holm", "holm", small),
    ]
    return [
        table(
            TITLE,
            grouped(answers, *SETTING, "method"),
            by,
            [
                headline(found),
                *_requests(rows, answers),
                "right: as BFCL's checker judges it; valid: JSON under the function's schema; "
                f"ended: whole within {chosen['ids']} ids; own: of those, answers in the "
                "tokenizer's own ids; intervals: 95 %, bootstrap of requests",
                f"drawn: at temperature {chosen['temperature']:g}, {chosen['seeds']} of each "
                f"request, which count as one in intervals; a population has {chosen['particles']} "
                "texts; a drawn free answer that is not valid is asked for again, "
                f"{chosen['retries']} times at most, and all attempts count",
                "style: of the JSON that is allowed; the example in the prompt is "
                f"{chosen['style']} in all settings",
                "passes: nodes at which more than one id is allowed; positions: ids that the "
                "model reads, the prompt among them; CPU seconds: with requests side by side",
                *model_notes(manifest, set(labels(manifest).values())),
            ],
        ),
        table(
            "Differences on the same requests",
            lines,
            compared,
            [
                "the share of right answers of a method less that of another, in percentage points;"
                " intervals: 95 %, bootstrap of requests",
                f"p: of the signs of the requests' differences ({FLIPS:,} flips); Holm: corrected "
                f"for all {len(found)}",
            ],
        ),
    ]


def _share(field: str) -> Callable[[Group], list[float] | None]:
    """-> in per cent, with an interval."""
    made = estimate(weighted_mean, field, "request")

    def of(group: Group) -> list[float] | None:
        found = made(group)
        return found and [100 * value for value in found]

    return of


def _mean(field: str) -> Callable[[Group], float]:
    return lambda group: float(group[field].mean())


def _signed(found: Sequence[float]) -> str:
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*found)


def _requests(rows: pd.DataFrame, answers: pd.DataFrame) -> list[str]:
    """Which requests there are, and why others are not."""
    asked = [row for row in records(rows) if not is_missing(row.get("refused"))]
    return [
        f"{answers['request'].nunique()} requests of BFCL, drawn from {row['of']}; on the way "
        f"{sum(row['refused'].values())} were refused: "
        + (", ".join(f"{why} ({n})" for why, n in sorted(row["refused"].items())) or "none")
        for row in asked
    ]


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """requests; answers; by model, style, ids and method the shares of right and valid answers with
    intervals, and passes; the differences; the headline."""
    answers = answers_of(rows, manifest)
    found = differences(answers)
    return {
        "requests": int(answers["request"].nunique()),
        "answers": len(answers),
        "temperature": manifest["config"]["temperature"],
        "styles": [manifest["config"][name] for name in ("style", "other_style")],
        "shares": [
            dict(zip((*SETTING, "method"), names, strict=True))
            | {name: estimate(weighted_mean, name, "request")(group) for name in ("right", "valid")}
            | {name: float(group[name].mean()) for name in ("passes", "positions", "seconds")}
            for names, group in grouped(answers, *SETTING, "method")
        ],
        "differences": [one._asdict() for one in found],
        "headline": headline(found),
    }


def readme(said: Row) -> dict[str, str]:
    """What the pages say of it: a table of the right answers in per cent, a line for each model and
    setting, then what is clear of 0; in short, the latter alone."""
    if not said.get("answers"):
        return {}
    settings: dict[str, dict[str, str]] = {}
    passes: dict[str, list[str]] = {}
    for one in said["shares"]:
        setting = ", ".join(one[name] for name in SETTING)
        settings.setdefault(setting, {})[one["method"]] = f"{100 * one['right'][0]:.1f}"
        if one["style"] == said["styles"][0]:
            asked = f"{one['model']}, {one['ids']}"
            passes.setdefault(asked, []).append(f"{one['method']} {one['passes']:.1f}")
    cost = "; ".join(f"{', '.join(of)} ({asked})" for asked, of in passes.items())
    lines = [
        [setting, *(of.get(method, "-") for method in METHODS)] for setting, of in settings.items()
    ]
    short = f"{said['requests']} requests of BFCL. {said['headline']}"
    told = [
        markdown(["right, %", *METHODS], lines),
        short,
        f"Forward passes a request, in {said['styles'][0]} JSON, where a run of ids that are "
        f"certain takes none of its own: {cost}.",
    ]
    return {"accuracy": "\n\n".join(told), "accuracy in short": short}


# ---------------------------------------------------------------- figure


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """Differences to lift, a panel for each model."""
    answers = answers_of(rows, manifest)
    found = [one for one in differences(answers) if one.to == LIFT]
    if not found:
        return []
    names = [*dict.fromkeys(one.model for one in found)]
    methods = [method for method in METHODS if any(one.method == method for one in found)]
    settings = [*dict.fromkeys((one.style, one.ids) for one in found)]
    figure, axes = panels(1, len(names), (4.5 * len(names), 3.8), "x", sharex=True, sharey=True)
    for axis, name in zip(axes[0], names, strict=True):
        axis.axvline(0, color="#888888", linewidth=1, zorder=0)
        axis.set_title(name, loc="left", fontsize=10)
        axis.set_xlabel("right answers, method less lift, points")
        for one in (one for one in found if one.model == name):
            k = settings.index((one.style, one.ids))
            place = methods.index(one.method) + 0.22 * (k - (len(settings) - 1) / 2)
            value = [100 * end for end in one.value]
            mark(axis, place, value, COLORS[k], "os^"[k], is_flat=True)
    for k, setting in enumerate(settings):
        axes[0][0].scatter([], [], color=COLORS[k], marker="os^"[k], label=", ".join(setting))
    axes[0][0].set_yticks(range(len(methods)), methods)
    axes[0][0].set_ylim(len(methods) - 0.5, -0.5)
    axes[0][0].legend(fontsize=8, frameon=False)
    note = (
        f"{answers['request'].nunique()} requests of BFCL, {manifest['config']['seeds']} drawn "
        "answers of each method to each; intervals: 95 %, bootstrap of requests with all their "
        "answers, each by itself (the table corrects for their number)."
    )
    return [Figure("accuracy", figure, "Right function calls under each method", note)]


COLORS = (BLUE, "#7aa95c", RED)
"""By style and ids."""
