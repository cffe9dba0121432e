"""The rows of the distortion study as points, and what groups of these are summed up to. A point is
one case under one model at one temperature.

TV: total variation distance of a method's distribution to the free one, the model's own. The
lift's is taken apart into

    TV lift = tokenization (TV lift - TV canonical)
            + myopia (TV canonical - TV of canonical with weights) + rest (the last)

Two things are taken away there, one after the other: other tokenizations, and masking step by step.
Taking masking away first gives other parts: myopia = TV lift, as the lift with weights is exact,
and tokenization = -rest. The mean of both orders is the Shapley value of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from experiments.answers.distributions import tv_between
from experiments.answers.methods import METHODS, OUR_METHODS
from experiments.answers.populations import PARTICLES
from experiments.answers.targets import COMPLETE, PREFIX, SEQUENCE
from experiments.run.executors import Row
from experiments.run.tables import Group, records
from experiments.shared.shown import Estimate, estimate, in_order
from experiments.statistics import bootstrap, weighted_mean, weighted_quantile

TITLE = "How much a constraint distorts a model, where it comes from, and what removes it"
ENUMERATED = "finite"
"""What the row of a case says under "kind", in the word of the rows that are published."""
TOLERANCE = 0.01
"""How far at most a distance may be from exact to enter a summary."""
CLEARLY = 0.01
"""A difference of two distances that is counted."""
WEIGHTED = "weighted_"
"""Before the names of what a row says of a method with weights."""
THREE = ("tokenization", "myopia", "rest")
"""What the lift's error is taken apart into, tokenization first."""
SHAPLEY = ("tokenization_shapley", "myopia_shapley")
"""The first two of these as the mean of both orders."""
MASSES = {"below 1e-4": -4.0, "1e-4 to 1e-2": -2.0, "over 1e-2": math.inf}
"""Ranges of the probability that the model writes any of the answers, by the logarithm to base 10
that ends them."""
ASKED = ("model", "name", "family", "base")
"""What points take from their row."""
SAID = ("is_drawn", "is_within_tolerance", "log10_mass", "masses", "ids", "row", "at")
FIELDS = (*ASKED, "temperature", *OUR_METHODS, *THREE, *SHAPLEY, *SAID)
"""Of points. lift, canonical: TV; is_drawn: is it the temperature of the draws, of which most is
said? is_within_tolerance: are all parts within `TOLERANCE` of exact? log10_mass: of all answers
under the model; masses: its range; ids: of the longest answer, canonically; row: of the case; at:
its part at the temperature."""
Points: TypeAlias = pd.DataFrame


def points(rows: pd.DataFrame) -> Points:
    """All of the cases whose answers are enumerated; models in the order of the rows."""
    enumerated = records(rows[rows["kind"] == ENUMERATED])
    lines = [_point(row, temperature) for row in enumerated for temperature in row["temperatures"]]
    return in_order(pd.DataFrame(lines, columns=list(FIELDS)), "model").astype(
        {"is_drawn": bool, "is_within_tolerance": bool}
    )


def _point(row: Row, temperature: str) -> Row:
    at = row["temperatures"][temperature]
    lift, canonical = at["methods"]["lift"]["tv"], at["methods"]["canonical"]["tv"]
    rest = at["methods"]["canonical"]["weighted_tv"]
    needed = (("lift", ""), ("canonical", ""), ("canonical", WEIGHTED))
    return {
        **{name: row[name] for name in ASKED},
        "temperature": float(temperature),
        "lift": lift,
        "canonical": canonical,
        "tokenization": lift - canonical,
        "myopia": canonical - rest,
        "rest": rest,
        "tokenization_shapley": (lift - canonical - rest) / 2,
        "myopia_shapley": (lift + canonical - rest) / 2,
        "log10_mass": at["log10_mass"],
        "masses": next(name for name, end in MASSES.items() if at["log10_mass"] < end),
        "is_drawn": float(temperature) == row["draws_at"],
        "is_within_tolerance": all(known(at, method, before) for method, before in needed),
        "ids": max(row["canonical_tokens"]),
        "row": row,
        "at": at,
    }


def known(at: Row, method: str, before: str = "") -> Row | None:
    """What a row says, at a temperature, of a method that is there and whose distance, masked or
    weighted, is within `TOLERANCE` of exact; else None.

    A distribution that lacks s of its probability is off by s / 2 in a distance; the free
    distribution and weighted distributions are scaled to 1, where it is s.
    """
    part: Row | None = at["methods"].get(method)
    if part is None:
        return None
    own = part["weighted_slack"] if before else part["slack"] / 2
    return part if at["free_slack"] + own <= TOLERANCE else None


TARGET_LINES = {
    SEQUENCE: "sequence",
    PREFIX: "prefix",
    "marked": "prefix, where an answer ends in a mark",
    COMPLETE: "complete",
    "read": "complete, of the ids that were read",
}
"""What is compared with what: the targets of `answers.targets`. An answer ends in a mark if its
last character is neither a letter nor a digit. What is complete is bounded in the fourth line
alone."""


def of_targets(found: Points) -> pd.DataFrame:
    """A line for each point at the temperature of the draws and each of `TARGET_LINES` that holds
    for it: lift, canonical: TV to the free distribution under that target, tokenization: their
    difference; moved: TV of that distribution to the one under the target "sequence"; mass: of all
    answers, relative to that target's; turned: does the other of lift and canonical come out
    clearly farther than under it?"""
    lines = [line for point in records(at_draws(found)) for line in _of_targets(point)]
    fields = ["model", "base", "target", "lift", "canonical", "tokenization", "moved", "mass"]
    made = pd.DataFrame(lines, columns=[*fields, "turned"])
    made["model"] = pd.Categorical(made["model"], found["model"].cat.categories)
    return in_order(made, "target", tuple(TARGET_LINES))


def _of_targets(point: Row) -> Iterator[Row]:
    at, methods = point["at"], point["at"]["methods"]
    plain = {"free": at["free"], "log10_mass": at["log10_mass"], "slack": at["free_slack"]}
    under = {SEQUENCE: plain, **at.get("targets", {})}
    marked = any(not answer[-1].isalnum() for answer in point["row"]["answers"])
    for name in TARGET_LINES:
        target = under.get({"marked": PREFIX, "read": COMPLETE}.get(name, name))
        if target is None or (name == "marked" and not marked):
            continue
        own = max(methods[method]["slack"] for method in OUR_METHODS) / 2
        if name != "read" and target["slack"] + own > TOLERANCE:
            continue
        lift, canonical = (
            tv_between(methods[method]["law"], target["free"], methods[method]["lost"])
            for method in OUR_METHODS
        )
        more = lift - canonical
        clearly = min(abs(more), abs(point["tokenization"])) > CLEARLY
        yield {
            **{field: point[field] for field in ("model", "base")},
            "target": name,
            "lift": lift,
            "canonical": canonical,
            "tokenization": more,
            "moved": tv_between(target["free"], at["free"]),
            "mass": 10 ** (target["log10_mass"] - at["log10_mass"]),
            "turned": clearly and (more > 0) != (point["tokenization"] > 0),
        }


def within_tolerance(every: Points) -> Points:
    """Those that enter summaries."""
    return every[every["is_within_tolerance"]]


def at_draws(found: Points) -> Points:
    """Those at the temperature of the draws."""
    return found[found["is_drawn"]]


def at_every_temperature(found: Points) -> Points:
    """Those of cases that are there at every temperature: others would change what is compared."""
    there = found.groupby(["model", "name"], observed=True)["temperature"].transform("count")
    return found[there == found["row"].map(lambda row: len(row["temperatures"]))]


def of_methods(found: Points) -> pd.DataFrame:
    """A line for each point at the temperature of the draws and each way to answer: the free
    distribution, each method as it is masked, what its weights converge to, and the distribution of
    one draw from weighted populations of several sizes.

    tv; kl: KL(free || distribution) in nats, inf where it lacks an answer that the model gives
    (what is not assigned counts as nothing, so it is an upper bound up to the slack of the free
    distribution), nan of populations; p_right, above_free, is_right, same_answer: where right
    answers are known.
    """
    lines = [line for point in records(at_draws(found)) for line in _lines(point)]
    fields = ["model", "base", "method", "tv", "kl", *JUDGED, "above_free"]
    made = pd.DataFrame(lines, columns=fields)
    made["model"] = pd.Categorical(made["model"], found["model"].cat.categories)
    weighted = [f"{method}, weighted" for method in METHODS[1:]]
    drawn = [_drawn_name(method, *draw) for method in METHODS for draw in DRAWS]
    names = ("free", *METHODS, *weighted, *drawn)
    return in_order(made.astype({"tv": float, "kl": float}), "method", names)


JUDGED = ("p_right", "is_right", "same_answer")
DRAWS = tuple((sampler, size) for sampler in ("importance", "smc") for size in PARTICLES)


def _drawn_name(method: str, sampler: str, size: int) -> str:
    return f"{method}, {sampler} of {size}"


def _lines(point: Row) -> Iterator[Row]:
    at, row = point["at"], point["row"]
    yield _line(point, "free", at)
    for method in METHODS:
        if part := known(at, method):
            yield _line(point, method, part)
            for draw in DRAWS:
                own = {"method": _drawn_name(method, *draw), "model": point["model"]}
                tv = drawn_tv(row, at["free"], method, *draw)
                yield {**own, "base": point["base"], "tv": tv}
        # the lift with weights converges to the free distribution
        if method != "lift" and (part := known(at, method, WEIGHTED)):
            yield _line(point, f"{method}, weighted", part, WEIGHTED)


def _line(point: Row, method: str, part: Row, before: str = "") -> Row:
    """before: of the names of the fields; the free distribution has none of the distances."""
    line = {name: point[name] for name in ("model", "base")} | {"method": method}
    if f"{before}tv" in part:
        tv, kl = part[f"{before}tv"], part[f"{before}kl"]
        line |= {"tv": tv, "kl": math.inf if kl is None else kl}
    if point["row"]["truth"]:
        line |= {name: part[f"{before}{name}"] for name in JUDGED}
        line["above_free"] = line["p_right"] - point["at"]["p_right"]
    return line


def drawn_tv(row: Row, free: list[float], method: str, sampler: str, size: int) -> float | None:
    """Of the distribution of one draw from a weighted population, where nothing is drawn if no
    particle came to an answer; None where the method was not simulated. A method that
    allows what the lift allows has the value of the lift."""
    name = "lift" if method in row["as_lift"] else method
    if name not in row["draws"]:
        return None
    distribution = row["draws"][name][sampler][str(size)]["law"]
    return tv_between(distribution, free, max(0.0, 1.0 - sum(distribution)))


# What columns and figures show of groups of points, or of lines with a base.

MEDIAN = weighted_quantile(0.5)


def mean(field: str) -> Callable[[Group], Estimate | None]:
    """Of the cases; questions are drawn again, as variants of one say less than many questions."""
    return estimate(weighted_mean, field, "base")


def median(field: str) -> Callable[[Group], Estimate | None]:
    """The same of the median."""
    return estimate(MEDIAN, field, "base")


def share_of_lift(field: str) -> Callable[[Group], Estimate | None]:
    """The share of a part in the summed error of the lift: ratios of single points are wild
    where both are next to nothing. None where there is no error; ends are nan where questions
    without error may be drawn alone."""

    def of(group: Group) -> Estimate | None:
        wholes, parts = group["lift"].to_numpy(float), group[field].tolist()
        if not wholes.sum() > 0:
            return None

        def ratio(values: np.ndarray, taken: np.ndarray) -> np.ndarray:
            sums = taken @ wholes
            return np.divide(taken @ values, sums, out=np.full(len(sums), np.nan), where=sums > 0)

        low, high = bootstrap(parts, group["base"].tolist(), ratio)
        return float(sum(parts) / wholes.sum()), low, high

    return of


def where_kl_is_finite(of: Callable[[Group], Any]) -> Callable[[Group], Any]:
    """The same of the lines whose KL divergence is finite."""
    return lambda group: of(group[np.isfinite(group["kl"])])


def infinite_kl(group: Group) -> int | None:
    """How many divergences are; None where there are none at all."""
    return int(np.isinf(group["kl"]).sum()) if group["kl"].notna().any() else None


def farther(found: Points) -> tuple[int, int]:
    """(cases in which the lift is clearly farther from the free distribution, in which canonical
    is)."""
    more = found["tokenization"]
    return int((more > CLEARLY).sum()), int((more < -CLEARLY).sum())
