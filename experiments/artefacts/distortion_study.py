"""The distortion study: how far constraints take a model from its own distribution, and when a
canonical mask helps.

Two models are given prompts with constraints of several families (`experiments.cases`), whose
languages can be listed. So each distribution is a sum over the trie of all tokenizations, exact or
with a bound on what is missing (`experiments.exact`). Draws from a few weighted particles are
simulated on that trie.

The distance of the lift is the sum of three parts:

    TV lift = tokenization (TV lift - TV canonical)
            + myopia (TV canonical - TV of canonical with weights)
            + rest (TV of canonical with weights)

These parts come from removing first the other tokenizations, then masking step by step. In the
other order myopia = TV lift and tokenization = -rest, because the lift with weights is exact. The
mean over both orders is each part's Shapley value; for tokenization at most one half of TV lift.

Where each answer is one token, the canonical mask acts on one step. By construction its
distribution is then the model's own given canonical ids, and its distance is at most the mass on
other ids. That this mass is small, and that the lift is far off for the same answers, are
measurements.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bpe_automata.sampling._smc import resample
from bpe_automata.sampling._weights import effective_sample_size, normalised
from experiments import show
from experiments.cases import prompt_text, read
from experiments.exact import METHODS, Trie, laws, pose, total_variation
from experiments.lab import Row
from experiments.models import GEMMA, SMOLLM2, label, opened
from experiments.statistics import bootstrap, estimate, quantile, weighted_mean, weighted_quantile

TITLE, LONG = "When a canonical mask brings a model nearer to itself, and when it does not", True
CASES = read(Path(__file__).with_suffix(".jsonl"))
PARTICLES = (8, 32)
TOLERANCE = CLEARLY = 0.01
"""The largest error of a distance that is counted; the smallest difference that is counted."""
MASSES = {"below 1e-4": 1e-4, "1e-4 to 1e-2": 1e-2, "over 1e-2": math.inf}
LENGTHS = {"one token": 1, "2": 2, "3": 3, "4 or more": math.inf}
"""The most ids of a case's longest answer, in the tokenizer's own ids, for each group of cases."""
LAWS = ("free", "lift", "canonical", "weighted")


@dataclass(frozen=True)
class Config:
    """cases: names or families, all if empty; temperature: of the model; slack, unread, most_nodes:
    see `experiments.exact`; populations: how many weighted ones of each size are simulated."""

    models: tuple[str, ...] = (SMOLLM2, GEMMA)
    cases: tuple[str, ...] = ()
    temperature: float = 1.0
    slack: float = 1e-3
    unread: float = 0.05
    most_nodes: int = 1500
    populations: int = 1000
    device: str = "auto"
    dtype: str = "float32"
    seed: int = 0


SMOKE = Config((SMOLLM2,), ("yes_no_nile_space", "names_species"), populations=50)


def cells(config: Config) -> list[Row]:
    """A cell is a model with a case."""
    chosen = [c for c in CASES.values() if not config.cases or {c.name, c.family} & {*config.cases}]
    return [{"model": model, "case": case.name} for model in config.models for case in chosen]


def measure(config: Config, model: str, case: str) -> Row:
    """All distributions over the answers, and the distances of draws from populations."""
    loaded, asked = opened(model, config.device, config.dtype), CASES[case]
    posed = pose(loaded, prompt_text(asked, loaded), asked.answers)
    tree = Trie(posed, config.temperature).explore(config.slack, config.unread, config.most_nodes)
    found, rng = laws(tree), np.random.default_rng([config.seed, zlib.crc32(case.encode())])
    return {
        "family": asked.family,
        "base": asked.base,
        "ids": max(map(len, posed.own)),
        "truth": [asked.answers.index(answer) for answer in asked.truth],
        "is_marked": any(not answer[-1].isalnum() for answer in asked.answers),
        **found,
        **{
            f"{method}, SMC of {n}": total_variation(
                found["free"], smc(tree, column, n, config.populations, rng)
            )
            for column, method in enumerate(METHODS)
            for n in PARTICLES
        },
    }


def smc(tree: Trie, column: int, n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """float64 [answers]: the distribution of one draw, by weight, from a population of n particles
    under a mask, weighted and resampled as in `bpe_automata.sampling._smc`; the mean over `count`
    populations. In an open node the rest of its only answer counts as certain."""
    masked, alive = np.exp(tree.masked[:, column]), tree.alive[:, column]
    nodes = np.flatnonzero(alive)[1:]
    nodes = nodes[np.argsort(tree.parent[nodes], kind="stable")]
    remaining = np.full(len(tree), -np.inf)  # log of the mass that the mask leaves behind a node
    np.logaddexp.at(remaining, tree.parent[nodes], tree.steps[nodes])
    having, first, family = np.unique(tree.parent[nodes], return_index=True, return_inverse=True)
    number, last = np.zeros(len(tree), dtype=np.int64), np.append(first[1:], len(nodes)) - 1
    number[having] = np.arange(len(having))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.nan_to_num(masked[nodes] / masked[tree.parent[nodes]])
    total = np.concatenate([[0.0], np.cumsum(shares)])
    within = family + np.minimum(total[1:] - total[first][family], 1.0)
    at, weights = np.zeros((count, n), dtype=np.int64), np.zeros((count, n))
    while (going := np.isfinite(remaining[at])).any():
        weights += np.where(going, remaining[at], 0.0)
        for own, logs in zip(at, weights, strict=True):
            if effective_sample_size(logs) < n / 2:
                own[:] = own[resample(normalised(logs), rng)]
                logs[:] = np.logaddexp.reduce(logs) - np.log(n)
        going = np.isfinite(remaining[at])
        own = number[at[going]]
        position = np.searchsorted(within, own + rng.random(len(own)), side="right")
        # The cumulated probability of a last child may have been rounded to below 1.
        at[going] = nodes[np.minimum(position, last[own])]
    answers = tree.answer[at]
    usable = np.where(answers >= 0, weights, -1e300)
    shares = np.exp(usable - usable.max(axis=1, keepdims=True)) * (answers >= 0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return np.bincount(np.maximum(answers, 0).ravel(), shares.ravel(), tree.n) / count


# What the rows say. A point is a case under a model; TVs are those to the free distribution.


def points(rows: pd.DataFrame) -> pd.DataFrame:
    """The cases that are within `TOLERANCE` of exact, with distances, parts, and ranges."""
    found = rows[rows["off"] <= TOLERANCE].reset_index(drop=True)
    for name in LAWS:
        each = zip(found["free"], found[name], strict=True)
        found[f"TV {name}"] = [total_variation(p, q) for p, q in each]
    lift, own, rest = (found[f"TV {name}"] for name in LAWS[1:])
    found = found.assign(tokenization=lift - own, myopia=own - rest, rest=rest)
    found["own share"], found["step share"] = (lift - own - rest) / 2, (lift + own - rest) / 2
    names = [*map(label, found["model"])]
    found["model"] = pd.Categorical(names, dict.fromkeys(names))
    halves = np.where(found["ids"] == 1, "one token", "longer")
    found["answers"] = pd.Categorical(halves, ["one token", "longer"])
    ends, bounds = [0, *LENGTHS.values()], [0, *MASSES.values()]
    found["length"] = pd.cut(found["ids"], ends, labels=[*LENGTHS])
    found["masses"] = pd.cut(found["mass"], bounds, labels=[*MASSES], right=False)
    return found


def summed_up(group: pd.DataFrame) -> Row:
    """What the tables say of some points. Intervals come from resampling whole questions, as
    variants of one question are not independent."""
    off, more = group[group["TV lift"] > CLEARLY], group["tokenization"]
    share = off["tokenization"] / off["TV lift"]
    return {
        "cases": len(group),
        "lift, mean": estimate(group, weighted_mean, "TV lift", "base"),
        "canonical, mean": estimate(group, weighted_mean, "TV canonical", "base"),
        "lift, median": quantile(group["TV lift"].tolist(), 0.5),
        "canonical, median": quantile(group["TV canonical"].tolist(), 0.5),
        "lift off": len(off),
        "more than half taken away": int((share > 0.5).sum()),
        "median share": share.median(),
        "lift : canonical farther": f"{(more > CLEARLY).sum()} : {(more < -CLEARLY).sum()}",
    }


SUMMED: dict[str, show.Format] = dict.fromkeys(
    ("lift, mean", "canonical, mean"), show.interval(show.fixed(3))
)
SUMMED |= dict.fromkeys(("lift, median", "canonical, median"), show.fixed(4))
SUMMED["median share"] = lambda value: f"{round(value, 2) + 0.0:.2f}"


def by(found: pd.DataFrame, field: str) -> pd.DataFrame:
    """A line for each model and value."""
    return pd.DataFrame(
        {"model": model, field: str(value)} | summed_up(group)
        for (model, value), group in found.groupby(["model", field], observed=True)
    )


def ways(found: pd.DataFrame) -> pd.DataFrame:
    """A line for each model and way to answer: distances, and the probability of right answers in
    cases that have some (simulated draws have distances only)."""
    lines = list[Row]()
    populations = [f"{method}, SMC of {n}" for method in METHODS for n in PARTICLES]
    for model, own in found.groupby("model", observed=True):
        told = own[own["truth"].map(len) > 0]
        for name in [*LAWS, *populations]:
            field = f"TV {name}" if name in LAWS else name
            line: Row = {"model": model, "way": name, "cases": len(own)}
            line["median"] = estimate(own, weighted_quantile(0.5), field, "base")
            line["mean"] = estimate(own, weighted_mean, field, "base")
            line |= {"90 %": quantile(own[field].tolist(), 0.9), "worst": own[field].max()}
            line["P(right)"] = None
            if name in LAWS:
                each = zip(told[name], told["truth"], strict=True)
                line["P(right)"] = np.mean([sum(p[k] for k in truth) for p, truth in each])
            lines.append(line)
    return pd.DataFrame(lines)


def parts(found: pd.DataFrame) -> pd.DataFrame:
    """A line for each model: shares of the summed distance of the lift."""
    names = {"tokenization": "tokenization", "myopia": "myopia", "rest": "rest"}
    names |= {"own share": "tokenization, Shapley", "step share": "myopia, Shapley"}
    lines = list[Row]()
    for model, own in found.groupby("model", observed=True):
        wholes = own["TV lift"].to_numpy(dtype=float)

        def ratio(values: np.ndarray, taken: np.ndarray, w: np.ndarray = wholes) -> np.ndarray:
            shares: np.ndarray = (taken @ values) / (taken @ w)
            return shares

        line: Row = {"model": model, "cases": len(own)}
        for field, name in names.items():
            ends = bootstrap(own[field].tolist(), [own["base"].tolist()], ratio)
            line[name] = (own[field].sum() / wholes.sum(), *ends)
        lines.append(line)
    return pd.DataFrame(lines)


SHARES: dict[str, show.Format] = dict.fromkeys(
    ("tokenization", "myopia", "rest", "tokenization, Shapley", "myopia, Shapley"),
    show.interval(show.percent()),
)


def targets(found: pd.DataFrame) -> pd.DataFrame:
    """A line for each model and meaning of "the model writes this answer"."""
    far = found[found["prefix off"] <= TOLERANCE].copy()
    for method in METHODS:
        pairs = zip(far["prefix"], far[method], strict=True)
        far[f"TV {method}"] = [total_variation(p, q) for p, q in pairs]
    far["tokenization"] = far["TV lift"] - far["TV canonical"]
    far["mass"] = far["prefix mass"] / far["mass"]
    some = {"ids that spell it exactly": found.assign(mass=1.0), "a text that begins with it": far}
    some["the same, where one ends in a mark"] = far[far["is_marked"]]
    kept = ("cases", "lift, mean", "canonical, mean", "lift : canonical farther")
    return pd.DataFrame(
        {"target": name, "model": model, "mass": own["mass"].median()}
        | {key: summed_up(own)[key] for key in kept}
        for name, group in some.items()
        for model, own in group.groupby("model", observed=True)
    )


def tables(rows: pd.DataFrame) -> list[show.Table]:
    """Distances by length, mass and family; then all ways, parts and targets."""
    found = points(rows)
    distances: dict[str, show.Format] = {
        "median": show.interval(show.fixed(4)),
        "mean": show.interval(show.fixed(3)),
    }
    distances |= dict.fromkeys(("90 %", "worst", "P(right)"), show.fixed(3))
    note = f"""[ ]: 95 % intervals by drawing questions again, variants together, each for itself.
        The questions were written to cover kinds of constraints, before any was measured: they are
        no sample of what people ask

        lift off: cases in which the lift is off by more than {CLEARLY}; more than half taken away:
        those of them in which the canonical mask removes more than half of the lift's distance;
        median share: the share that it removes; farther: by more than {CLEARLY}, of all cases

        {(rows["off"] > TOLERANCE).sum()} of {len(rows)} cases are left out, as one of their
        distances may be wrong by more than {TOLERANCE}"""
    length = "Answer length decides: ids of the longest answer"
    about_mass = "mass: the model's probability of all answers of a case together, unasked"
    about_ways = f"""weighted: what importance weights and SMC under the canonical mask converge to
        (under the lift's: the free distribution); SMC of {" or ".join(map(str, PARTICLES))}: one
        draw from a population of that size, simulated

        P(right): in the cases that say which answers are right"""
    about_targets = """mass: of all answers, relative to that of ids that spell one exactly, median.
        The last id of a text that begins with an answer may go past its end; masks admit none that
        does. A mark: a character that is neither a letter nor a digit"""
    sums = "Where the lift's distance comes from: shares of its sum"
    meanings = "Two meanings of: the model writes an answer"
    return [
        show.Table(length, by(found, "length"), SUMMED, note),
        show.Table("The mass of the answers", by(found, "masses"), SUMMED, about_mass),
        show.Table("Families of constraints", by(found, "family"), SUMMED),
        show.Table("What removes it", ways(found), distances, about_ways),
        show.Table(sums, parts(found), SHARES),
        show.Table(meanings, targets(found), SUMMED | {"mass": show.fixed(4)}, about_targets),
    ]


def figure(rows: pd.DataFrame) -> show.Figure:
    """A mark for each case: how far the lift and canonical are from the free distribution."""
    found = points(rows)
    each = [*found.groupby(["model", "answers"], observed=True)]
    canvas, axes = show.panels(1, len(each), (2.6 * len(each), 4.2), sharey=True)
    for axis, ((model, name), own) in zip(axes[0], each, strict=True):
        axis.axline((0, 0), (1, 1), color=show.PALE, linewidth=1)
        more = own["tokenization"]
        colors = np.where(
            more > CLEARLY, show.LIFT, np.where(more < -CLEARLY, show.CANONICAL, show.PALE)
        )
        axis.scatter(own["TV lift"], own["TV canonical"], s=16, c=colors, alpha=0.6, linewidths=0)
        axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal", xlabel="TV of the lift")
        axis.set_title(f"{model}: {name}\n{len(own)} cases", loc="left", fontsize=10)
    axes[0][0].set_ylabel("TV of canonical")
    sums = by(found, "answers").groupby("answers")[["more than half taken away", "lift off"]].sum()
    counts = {name: "{} of {}".format(*pair) for name, *pair in sums.itertuples()}
    return show.Figure(
        canvas,
        "Answer length decides: of the lift's error a canonical mask takes away more than half in "
        f"{counts.get('one token')} cases if answers are one token, in {counts.get('longer')} if "
        "longer",
        "A mark is a question under one model; TV: total variation distance to the model's own "
        f"distribution over the answers, exact or within {TOLERANCE}. Red: the lift is farther off "
        f"by more than {CLEARLY}; blue: canonical is. Counted: cases in which the lift is off by "
        f"more than {CLEARLY}.",
    )


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """Distances by the length of the answers; means (medians) by length and mass; parts."""
    found, lines = points(rows), list[Row]()
    halves = by(found, "answers")
    worst = found.groupby(["model", "answers"], observed=True)[["TV lift", "TV canonical"]].max()
    halves = halves.drop(columns=["lift, median", "canonical, median"])
    names = ["lift, worst", "canonical, worst"]
    halves[names], formats = worst.to_numpy(), SUMMED | dict.fromkeys(names, show.fixed(2))
    for model, own in found.groupby("model", observed=True):
        some = {"all": own} | dict([*own.groupby("answers", observed=True)])
        some |= {f"mass {name}": group for name, group in own.groupby("masses", observed=True)}
        for method in METHODS:
            tv = {name: group[f"TV {method}"] for name, group in some.items()}
            said = {n: f"{v.mean():.3f} ({quantile(v.tolist(), 0.5):.3f})" for n, v in tv.items()}
            lines.append({"mean (median)": f"{model}, {method}"} | said)
    return {
        "distortion-study in short": show.markdown(pd.DataFrame(lines)),
        "distortion-study": show.markdown(halves, formats),
        "distortion-study shares": show.markdown(parts(found), SHARES),
    }
