"""The larger languages in tables, facts and a figure, and what the README says of them.

A case is marked where something that is shown of it rests on fewer than `FEW` effective samples: it
has no intervals then, and enters no summary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.answers.asked import asked_models
from experiments.answers.cases import LEFT_OUT, SHORT
from experiments.answers.methods import OUR_METHODS
from experiments.run.executors import Row
from experiments.run.report import Figure, panels
from experiments.run.tables import (
    Column,
    Group,
    Table,
    count,
    fixed,
    highest,
    interval,
    is_missing,
    markdown,
    median,
    records,
    several,
    table,
    whole,
)
from experiments.shared.shown import (
    CANONICAL,
    LIFT,
    absent,
    by,
    in_order,
    label,
    mark,
    named,
)
from experiments.statistics import clopper_pearson

TITLE = "Larger languages: how far constraints take a model, by samples"
LANGUAGE = "language"
"""What the row of a case says under "kind"."""
METHODS = {
    "lift": "lift",
    "outlines": "outlines-core",
    "chop": "chop",
    "canonical": "canonical",
    "lift SMC": "lift, SMC",
    "canonical SMC": "canonical, SMC",
    "canonical weighted": "canonical, weighted",
}
"""In the order of the tables."""
NAMES = {"first": "first character", "length": "length", "right": "right or not"}
"""Of the features of a text."""
FEW = 10
"""Effective samples, below which a case is marked."""
MARK = "†"
ALPHA = 0.05


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """None of no rows."""
    found = languages(rows)
    if not found:
        return []
    lines, cases = feature_lines(found), pd.json_normalize(found)
    notes = [*_asked(found, manifest), *asked_models(rows)]
    made = [summary(lines, notes), distances(lines, found), in_full(cases)]
    return [one for one in made if one.rows]


def languages(rows: pd.DataFrame) -> list[Row]:
    """The rows of cases. few: is it marked? shown: its name in tables."""
    found = records(rows[rows["kind"] == LANGUAGE])
    return [row | {"few": fewest(row) < FEW, "shown": _shown(row)} for row in found]


def fewest(row: Row) -> float:
    """The least effective sample size of what is shown: of the free distribution, or of the weights
    of the lift or of canonical."""
    sizes = [row["methods"][method]["effective"] for method in OUR_METHODS]
    return float(min(row["effective"], *sizes))


def _shown(row: Row) -> str:
    marks = [mark for mark, has in (("+", row["healing"]), (MARK, fewest(row) < FEW)) if has]
    return " ".join([f"{label(row['model'])}: {row['name']}", *marks])


def feature_lines(found: Sequence[Row]) -> pd.DataFrame:
    """A line for each case, feature and method: the distance to the model's own distribution with
    its interval and its noise, nan where there are none."""
    names = ["model", "case", "shown", "few", "effective", "feature", "method"]
    fields = ["value", "noise", "low", "high"]
    made = pd.DataFrame([*_lines(found)], columns=[*names, *fields])
    made = made.astype({"few": bool} | dict.fromkeys(fields, float))
    made.loc[made["few"], ["low", "high"]] = np.nan
    for field, order in (("model", None), ("feature", tuple(NAMES)), ("method", tuple(METHODS))):
        made = in_order(made, field, order)
    return made


def _lines(found: Sequence[Row]) -> Iterator[Row]:
    for row in found:
        for feature, made in row["features"].items():
            if _has_one_value(made):
                continue
            for method, at in made["tv"].items():
                own = {name: row[name] for name in ("model", "shown", "few", "effective")}
                yield own | {"case": row["name"], "feature": feature, "method": method} | at


def _has_one_value(made: Row) -> bool:
    """Has the feature the same value in all texts, as the first character where it is forced?"""
    return sum(any(ps) for ps in zip(made["free"], *made["laws"].values(), strict=True)) < 2


def _asked(found: Sequence[Row], manifest: Row) -> list[str]:
    config = manifest["config"]
    chosen = f". The languages: {LEFT_OUT}" if tuple(config["cases"]) == SHORT else ""
    return [
        f"{found[0]['samples']:,} samples of each method in each case, at temperature "
        f"{found[0]['temperature']:g}, in {config['dtype']}{chosen}",
        f"{MARK}: fewer than {FEW} effective samples, of the model's own distribution or of the "
        "weights of the lift or of canonical. Such a case has no intervals and is in no summary",
        f"SMC: one text of a population of {found[0]['particles']}, taken by its weight; weighted: "
        "canonical's samples by their weights, so that free mass that is not canonical is left",
        "a text ends where nothing can follow it, and the model's own distribution is that of ids "
        "that spell one, whatever follows (sequence)",
    ]


NOISE = (
    "noise: the TV that samples of these sizes and weights show on average where nothing differs. "
    "TV from samples is biased upwards: it means something only well above that"
)
INTERVAL = (
    "[ ]: 95 %, TV ± the 0.95 quantile of the distance between the resampled difference of the "
    "distributions and the estimated one. It can hold a TV of 0: of cases without any difference "
    "it lies above 0 in 5 to 9 % where 30 values rest on some 400 effective samples, and in some "
    "20 % where they rest on 55 (simulated)"
)

ADDED = (
    "outlines-core: its index holds ordinary tokens alone. A newline is an added token of Gemma-3, "
    "so where a text ends in one, it is far off"
)
HEALED = "+: text of the prompt was given back, and is no part of the features"


def summary(lines: pd.DataFrame, more: Sequence[str]) -> Table:
    """By model, feature and method."""
    counted = lines[~lines["few"]]
    columns = [
        named("feature, method", "name"),
        Column("cases", count, whole),
        Column("least\nESS", lambda group: group["effective"].min(), fixed(1)),
        Column("median TV", median("value"), fixed(3)),
        Column("median\nnoise", median("noise"), fixed(3)),
        Column("interval\nabove 0", above, whole),
        Column("greatest\nlower end", highest("low"), fixed(3)),
    ]
    notes = [
        "TV: between the distribution of the first character, of the length in classes of four "
        "bytes, or of whether the answer is right, and the model's own by the weights of both "
        "methods. Values seen fewer than 5 times are one; a feature that has the same value in all "
        "texts is left out",
        f"ESS: effective sample size of the model's own distribution. {NOISE}",
        INTERVAL,
        *more,
    ]
    name = counted["feature"].astype(str) + ", " + counted["method"].astype(str).map(METHODS)
    groups = by(counted.assign(name=name), "feature", "method")
    return table("Distance to the model's own distribution", groups, columns, notes)


def above(group: Group) -> int:
    """In how many lines the interval lies above 0."""
    return int((group["low"] > 0).sum())


def distances(lines: pd.DataFrame, found: Sequence[Row]) -> Table:
    """The same case by case."""
    columns = [
        Column("case", "shown"),
        Column("of", "feature"),
        Column("ESS", "effective", fixed(1)),
        *(Column(name.replace(", ", "\n"), _distance(m), str) for m, name in METHODS.items()),
        Column("noise,\nat most", highest("noise"), fixed(3)),
    ]
    notes = [INTERVAL, NOISE, HEALED, ADDED, *absent(found)]
    groups = lines.groupby(["model", "case", "feature"], observed=True, sort=False)
    return table("Distances, case by case", groups, columns, notes)


def _distance(method: str) -> Callable[[Group], str | None]:
    def of(group: Group) -> str | None:
        for line in records(group[group["method"] == method]):
            if is_missing(line["low"]):
                return f"{line['value']:.3f} [?]"
            return interval(fixed(3))([line["value"], line["low"], line["high"]])
        return None

    return of


def stored(*paths: str) -> Callable[[Group], list[Any] | None]:
    """What the row of a line holds there; None where there is nothing at the first path."""

    def of(group: Group) -> list[Any] | None:
        found = [group[path].iloc[0] if path in group else None for path in paths]
        return None if is_missing(found[0]) else found

    return of


def proportion(*paths: str) -> Callable[[Group], list[float] | None]:
    """Of hits among samples, with its interval."""

    def of(group: Group) -> list[float] | None:
        if (found := stored(*paths)(group)) is None:
            return None
        hits, n = map(int, found)
        return [hits / n, *clopper_pearson(hits, n, ALPHA)]

    return of


def in_full(cases: pd.DataFrame) -> Table:
    """Weights and masses, one line a case."""
    columns = [
        Column("case", "shown"),
        Column("ESS\nfree", "effective", fixed(1)),
        *(Column(f"ESS\n{m}", f"methods.{m}.effective", fixed(1)) for m in OUR_METHODS),
        Column("whole", stored(*(f"methods.{m}.ended" for m in OUR_METHODS)), several(whole, ", ")),
        Column(
            "lift not\ncanonical",
            proportion("not_canonical.count", "not_canonical.of"),
            interval(fixed(3)),
        ),
        Column(
            "free mass\ncanonical",
            stored("canonical_share.value", "canonical_share.error"),
            plus_minus(3),
        ),
        *(
            Column(
                f"log Z\n{m}{end}", stored(f"{path}.log_z", f"{path}.log_z_error"), plus_minus(3)
            )
            for m in OUR_METHODS
            for path, end in ((f"methods.{m}", ""), (f"smc.{m}", " SMC"))
        ),
    ]
    notes = [
        "ESS: effective sample size, of the whole texts; free: the model's own distribution, by "
        "the weights of both methods",
        "whole: texts of either that came to their end; lift not canonical: share of its samples "
        "that the tokenizer would not write so, [ ]: 95 %, Clopper & Pearson",
        "free mass canonical: from both methods' weights; ±: standard errors; ± ?: unknown, as no "
        "sample tells of the other part",
        "Z: the model's probability of the method's sequences, its natural log with the standard "
        "error. The lift's cannot be less than canonical's: where it comes out so, its samples "
        "missed nearly all of the mass",
        HEALED,
    ]
    return table("Weights and masses, case by case", cases, columns, notes)


def plus_minus(digits: int) -> Callable[[Sequence[float | None]], str]:
    """A value with its standard error: 0.12 ± 0.03."""

    def shown(found: Sequence[float | None]) -> str:
        value, error = ("?" if is_missing(v) else f"{v:.{digits}f}" for v in found)
        return f"{value} ± {error}"

    return shown


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """What the README needs: of each model the cases, how many of them are marked, the least ESS of
    the others, and of these by feature and method the median distance and noise, and how many
    intervals lie above 0."""
    del manifest
    found = languages(rows)
    if not found:
        return {}
    lines = feature_lines(found)
    return {
        "samples": found[0]["samples"],
        "languages": len({row["name"] for row in found}),
        "models": {
            str(model): {
                "cases": int(some["case"].nunique()),
                "marked": int(some[some["few"]]["case"].nunique()),
                "least": float(some[~some["few"]]["effective"].min()),
                "features": _feature_facts(some[~some["few"]]),
            }
            for model, some in lines.groupby("model", observed=True)
        },
    }


def _feature_facts(lines: pd.DataFrame) -> Row:
    made: Row = {}
    for (feature, method), some in lines.groupby(["feature", "method"], observed=True):
        medians = {name: float(some[name].median()) for name in ("value", "noise")}
        made.setdefault(str(feature), {})[str(method)] = {
            "cases": len(some),
            "above": above(some),
        } | medians
    return made


SHOWN = {"lift": "the lift", "canonical": "canonical", "canonical SMC": "canonical, SMC"}
"""What the figure and the README compare. (The texts of SMC are others than those that the model's
own distribution is estimated from.)"""
COLORS = dict(zip(SHOWN, (LIFT, CANONICAL, "#8d6a9f"), strict=True))


def readme(facts: Row) -> str | dict[str, str]:
    """A line of a table for each model and feature; nothing of no rows."""
    if not facts:
        return {}
    columns = ["model", "feature", "cases", "ESS, at least", *SHOWN.values(), "noise, at most"]
    lines = []
    for model, found in facts["models"].items():
        for feature, made in found["features"].items():
            told = [f"{made[m]['value']:.3f} ({made[m]['above']})" for m in SHOWN]
            noise = max(made[m]["noise"] for m in SHOWN)
            each = [str(made["lift"]["cases"]), f"{found['least']:.0f}", *told, f"{noise:.3f}"]
            lines.append([label(model), NAMES[feature], *each])
    marked = sum(found["marked"] for found in facts["models"].values())
    left_out = f" {marked} cases rest on fewer than {FEW} and are left out." if marked else ""
    return "\n".join(
        [
            f"`python -m experiments run larger-languages` draws {facts['samples']:,} texts by "
            f"each method from {facts['languages']} languages that cannot be enumerated ([all "
            "tables](paper_figures/larger-languages.md)). Median distances of features of the "
            "texts to the model's own distribution, which is estimated from so many effective "
            "samples (ESS); in brackets: in how many cases the 95 % interval lies above 0; noise: "
            f"the median of what samples of these sizes show where nothing differs.{left_out}",
            "",
            markdown(columns, lines),
        ]
    )


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """None where no case is unmarked."""
    del manifest
    lines = feature_lines(languages(rows))
    shown = lines[~lines["few"] & lines["method"].isin([*SHOWN])]
    return [] if shown.empty else [distance_figure(shown)]


def distance_figure(lines: pd.DataFrame) -> Figure:
    """A mark with its interval for each case, feature and method; a tick for the noise."""
    there = {*zip(lines["case"], lines["feature"], strict=True)}
    each = [(case, feature) for case in dict.fromkeys(lines["case"]) for feature in NAMES]
    places = [place for place in reversed(each) if place in there]
    models = lines["model"].cat.remove_unused_categories().cat.categories
    size = (6.4 * max(len(models), 1.6), 1.8 + 0.5 * len(places))
    figure, axes = panels(1, len(models), size, "x", sharex=True, sharey=True)
    told = []
    for panel, model in zip(axes[0], models, strict=True):
        own = lines[lines["model"] == model]
        medians = own.groupby("method", observed=True)["value"].median().reindex([*SHOWN])
        told.append(f"{label(str(model))} {' : '.join(map('{:.3f}'.format, medians))}")
        for line in records(own):
            side = [*SHOWN].index(line["method"]) - 1
            height = places.index((line["case"], line["feature"])) - 0.25 * side
            color = COLORS[line["method"]]
            mark(panel, height, [line[n] for n in ("value", "low", "high")], color, is_flat=True)
            panel.plot([line["noise"]] * 2, [height - 0.1, height + 0.1], color="#555555")
        panel.set_title(label(str(model)), loc="left", fontsize=11)
        panel.set(xlabel="total variation distance to the model's own distribution")
    names = [f"{case.replace('_any_', ': ').replace('_', ' ')}, {of}" for case, of in places]
    axes[0][0].set_yticks(range(len(places)), names)
    for method, name in SHOWN.items():
        axes[0][-1].scatter([], [], color=COLORS[method], label=name)
    axes[0][-1].scatter([], [], color="#555555", marker="|", label="noise")
    axes[0][-1].legend(frameon=False, loc="best")
    note = (
        "first: the first character; length: in classes of four bytes; right: is the answer right? "
        "Lines: 95 % intervals by resampling; noise: the mean where nothing differs.\nEach model: "
        f"{lines.groupby('model', observed=True)['case'].nunique().max()} languages at most, all "
        f"with {FEW} effective samples or more."
    )
    headline = f"Median distances, {' : '.join(SHOWN.values())}: {', '.join(told)}"
    return Figure("larger_languages", figure, headline, note)
