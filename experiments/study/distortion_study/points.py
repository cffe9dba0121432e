"""The rows of the distortion study as points, and what these say as a whole. A point is one case
under one model at one temperature.

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

from experiments.answers.asked import MODEL
from experiments.answers.distributions import tv_between
from experiments.answers.methods import METHODS, OUR_METHODS
from experiments.answers.populations import PARTICLES
from experiments.answers.targets import COMPLETE, PREFIX, SEQUENCE
from experiments.run import statistics
from experiments.run.executors import Row
from experiments.run.statistics import bootstrap, weighted_mean, weighted_quantile
from experiments.run.tables import Group, markdown, records
from experiments.shared.shown import Estimate, estimate, in_order, label

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
PARTS = ("lift", "canonical", *THREE)
ASKED = ("model", "name", "family", "base", "style", "boundary", "prompt")
"""What points take from their row."""
SAID = ("is_drawn", "is_within_tolerance", "log10_mass", "masses", "ids", "row", "at")
FIELDS = (*ASKED, "temperature", *PARTS, *SHAPLEY, *SAID)
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


def pairs_of(found: Points, attribute: str, reference: str) -> Points:
    """Points of questions that are asked in several ways, but for the reference's way; with
    `PART_difference`, what a part is beyond that of the same question in the reference's way."""
    is_reference = found[attribute] == reference
    keys = ["model", "base"]
    references = found.loc[is_reference, [*keys, *PARTS]].drop_duplicates(keys, keep="last")
    pairs = found[~is_reference].merge(references, on=keys, suffixes=("", "_reference"))
    differences = {f"{part}_difference": pairs[part] - pairs[f"{part}_reference"] for part in PARTS}
    return pairs.assign(**differences)


def of_methods(found: Points) -> pd.DataFrame:
    """A line for each point at the temperature of the draws and each way to answer: the free
    distribution, each method as it is masked, what its weights converge to, and the distribution of
    one draw from weighted populations of several sizes.

    tv; kl: KL(free || distribution) in nats, inf where it lacks an answer that the model gives
    (what is not assigned counts as nothing, so it is an upper bound up to the slack of the free
    distribution), nan of populations; beyond: tv - that of the lift; other: does it allow other ids
    than the lift? lost, share: as in the row; p_right, above_free, is_right, same_answer: where
    right answers are known.
    """
    lines = [line for point in records(at_draws(found)) for line in _lines(point)]
    made = pd.DataFrame(lines, columns=[*MEASURED, *JUDGED, "above_free"])
    made["model"] = pd.Categorical(made["model"], found["model"].cat.categories)
    weighted = [f"{method}, weighted" for method in METHODS[1:]]
    drawn = [_drawn_name(method, *draw) for method in METHODS for draw in DRAWS]
    names = ("free", *METHODS, *weighted, *drawn)
    return in_order(made.astype({"tv": float, "kl": float}), "method", names)


MEASURED = ("model", "base", "method", "tv", "kl", "beyond", "other", "lost", "share")
JUDGED = ("p_right", "is_right", "same_answer")
DRAWS = tuple((sampler, size) for sampler in ("importance", "smc") for size in PARTICLES)


def _drawn_name(method: str, sampler: str, size: int) -> str:
    return f"{method}, {sampler} of {size}"


def _lines(point: Row) -> Iterator[Row]:
    at, row = point["at"], point["row"]
    yield _line(point, "free", at)
    for method in METHODS:
        if part := known(at, method):
            yield _line(point, method, part) | {"other": method not in row["as_lift"]}
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
        line |= {"tv": tv, "kl": math.inf if kl is None else kl, "beyond": tv - point["lift"]}
        line |= {name: part[name] for name in ("lost", "share")}
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


# What is said of the points as a whole: facts, and sentences for the README.


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """By model, at the temperature of the draws; what the README needs and others may read.

    finite: how many cases are within `TOLERANCE` of exact, under however many models. points,
    settled: cases under one model at one temperature, and those of them within `TOLERANCE`.
    """
    del manifest
    every = points(rows)
    found = within_tolerance(every)
    methods, targets = of_methods(found), of_targets(found)
    return {
        "finite": int(at_draws(found)["name"].nunique()),
        "points": len(every),
        "settled": len(found),
        "models": {
            str(model): _model_facts(some, methods[methods["model"] == model])
            | {"targets": _target_facts(targets[targets["model"] == model])}
            for model, some in at_draws(found).groupby("model", observed=True)
        },
        "notes": {row["source"]: row["note"] for row in records(rows[rows["kind"] == MODEL])},
    }


def _model_facts(drawn: Points, methods: pd.DataFrame) -> Row:
    lift, canonical = farther(drawn)
    single = drawn[drawn["ids"] == 1]
    worst = {"lift": drawn["tokenization"].idxmax(), "canonical": drawn["tokenization"].idxmin()}
    divergences = dict([*methods.groupby("method", observed=True)["kl"]])
    return {
        "cases": len(drawn),
        "lift_farther": lift,
        "canonical_farther": canonical,
        "parts": {name: _part_facts(drawn, name) for name in PARTS},
        "shares": {name: _share_facts(drawn, name) for name in (*THREE, *SHAPLEY)},
        "masses": {
            str(name): {
                "cases": len(some),
                **{part: float(some[part].mean()) for part in OUR_METHODS},
            }
            for name, some in drawn.groupby("masses")
        },
        "kl": {
            name: _kl_facts(divergences[name])
            for name in ("lift", "canonical", "canonical, weighted")
        },
        "single": len(single),
        "single_parts": {name: _part_facts(single, name) for name in PARTS},
        "worst": {
            name: {"case": p["name"], "lift": p["lift"], "canonical": p["canonical"]}
            for name, p in ((name, drawn.loc[place]) for name, place in worst.items())
        },
    }


def _target_facts(lines: pd.DataFrame) -> Row:
    """By target: cases, the mean distances of both, and in how many cases they change places."""
    return {
        str(name): {
            "cases": len(some),
            "turned": int(some["turned"].sum()),
            **{method: float(some[method].mean()) for method in OUR_METHODS},
        }
        for name, some in lines.groupby("target", observed=True)
    }


def _part_facts(found: Points, part: str) -> Row:
    """Nothing of nothing."""
    made = mean(part)(found)
    if made is None:
        return {}
    value, low, high = made
    values = found[part].tolist()
    return {
        "mean": value,
        "mean_interval": (low, high),
        "median": statistics.quantile(values, 0.5),
        "upper": statistics.quantile(values, 0.9),
        "highest": max(values),
        "over_0.1": float(np.mean(found[part] > 0.1)),
    }


def _share_facts(found: Points, part: str) -> Row:
    """Of the lift's error, summed up over the cases; None for what nothing can be said of."""
    made = share_of_lift(part)(found) or (np.nan,) * 3
    value, *ends = (None if np.isnan(v) else v for v in made)
    return {"value": value, "interval": ends}


def _kl_facts(found: pd.Series[float]) -> Row:
    """In nats; None where no case is finite."""
    finite = found[np.isfinite(found)].tolist()
    return {
        "median": statistics.quantile(finite, 0.5) if finite else None,
        "mean": float(np.mean(finite)) if finite else None,
        "infinite": len(found) - len(finite),
    }


def readme(facts: Row) -> dict[str, str]:
    """A line of a table for each model, and the whole of it in a paragraph."""
    if not facts:
        return {}
    return {"distortion-study": _paragraph(facts), "distortion-study in short": _in_short(facts)}


def _in_short(facts: Row) -> str:
    columns = "model", "cases", "lift: mean", "median", "canonical: mean", "median"
    lines = []
    for model, found in facts["models"].items():
        errors = [found["parts"][way] for way in OUR_METHODS]
        shown = [f"{error[kind]:.3f}" for error in errors for kind in ("mean", "median")]
        lines.append((label(model), str(found["cases"]), *shown))
    return markdown(columns, lines)


def _paragraph(facts: Row) -> str:
    sentences = [_sentence(model, found) for model, found in facts["models"].items()]
    return "\n".join(
        [
            f"`python -m experiments run distortion-study` asks {facts['finite']} cases of "
            f"listed answers exactly (or within {TOLERANCE}), under {len(facts['models'])} models "
            "([all tables](paper_figures/distortion-study.md)). The error is the total variation "
            "distance to the model's own distribution of id sequences that end where an answer "
            "does, given that it writes one; *mass* is the probability that it does. Two things "
            "can be taken away from the lift's error: other *tokenizations* (by canonical ids), "
            "and the *myopia* of masking step by step (by importance weights). What is taken away "
            "first matters: weights alone make the lift exact, so what is left to tokenization "
            "after them is nothing, and the mean over both orders, its Shapley value, cannot "
            "exceed one half. The *rest* is the effect of free mass that is not canonical. The "
            "questions were written for this, to cover kinds of constraints; they are no sample of "
            "what people ask.",
            "",
            *sentences,
        ]
    )


def _sentence(model: str, found: Row) -> str:
    parts, kl = found["parts"], found["kl"]
    told = (
        f"- *{label(model)}*, {found['cases']} cases: the lift's error is "
        f"{parts['lift']['mean']:.3f} on average (median {parts['lift']['median']:.4f}), "
        f"canonical's {parts['canonical']['mean']:.3f} ({parts['canonical']['median']:.4f}); case "
        f"by case they differ by {parts['tokenization']['mean']:.3f} (median "
        f"{parts['tokenization']['median']:.4f}). {_by_mass(found['masses'])}"
        f"{_shares(found['shares'])}The median KL divergence is {_nats(kl['lift'])} of the "
        f"lift, {_nats(kl['canonical'])} of canonical. By more than {CLEARLY}, the lift is farther "
        f"off in {found['lift_farther']} cases, canonical in {found['canonical_farther']}"
    )
    if found["canonical_farther"]:
        worst = found["worst"]["canonical"]
        told += (
            f" (most in `{worst['case']}`: {worst['canonical']:.2f} against {worst['lift']:.2f})"
        )
    told += f". {_by_target(found['targets'])}"
    single = found["single_parts"]
    if found["single"]:
        told += (
            f" Where each answer is one token ({found['single']} cases), the two are "
            f"{single['lift']['mean']:.3f} and {single['canonical']['mean']:.4f} off: canonical "
            "masks one step then, so only the mass on other tokenizations is lost."
        )
    return told


def _by_target(found: Row) -> str:
    """Nothing of rows from before there were targets."""
    if PREFIX not in found:
        return ""
    told = [f"Against the texts that begin with an answer the two are {_off(found[PREFIX])}"]
    if COMPLETE in found:
        told.append(f"against answers with the end behind them {_off(found[COMPLETE])}")
    return f"{', '.join(told)}: neither mask knows whether the model would stop there."


def _off(target: Row) -> str:
    return (
        f"{target['lift']:.3f} and {target['canonical']:.3f} off in {target['cases']} cases (their "
        f"order is reversed in {target['turned']})"
    )


def _shares(found: Row) -> str:
    """Nothing where there is no error."""
    if any(found[name]["value"] is None for name in THREE):
        return ""
    first, then = (found[name]["value"] for name in ("tokenization", "myopia"))
    own, steps = (found[name]["value"] for name in SHAPLEY)
    rest = found["rest"]["value"]
    return (
        f"Of the lift's errors, summed up, canonical ids take away {first:.0%} if they come first "
        f"(weights then {then:.0%}, and {rest:.0%} stay), and nothing if weights do; the Shapley "
        f"values are {own:.0%} tokenization and {steps:.0%} myopia. "
    )


def _by_mass(found: Row) -> str:
    """How far both are off by how likely the answers are."""
    told = [
        f"{found[name]['lift']:.3f} and {found[name]['canonical']:.3f} where the answers have a "
        f"mass {name} ({found[name]['cases']} cases)"
        for name in MASSES
        if name in found
    ]
    return f"The two are {', '.join(told)}. "


def _nats(found: Row) -> str:
    if found["median"] is None:
        return "infinite"
    more = f" (infinite in {found['infinite']} cases)" if found["infinite"] else ""
    return f"{found['median']:.4f} nats{more}"
