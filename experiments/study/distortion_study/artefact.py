"""The distortion study: how much constraints distort a model, where it comes from, what removes it.

Several models are asked prompts with constraints of several families (`answers.cases`), whose
languages can be enumerated: all distributions are summed up on the trie of all tokenizations, at
all temperatures, exactly or with a bound on what is missing. Besides, what is drawn from a few
weighted particles is simulated on that trie. How an error is taken apart: `points`; what the
methods are: `answers.methods`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer
from bpe_automata.errors import BudgetExceededError
from experiments import statistics
from experiments.answers.asked import MODEL, Opened, ask, described, given_back, opened, row_seed
from experiments.answers.cases import CASES, StudyCase, chosen
from experiments.answers.distributions import Aims, Explored, distributions
from experiments.answers.methods import OUR_METHODS, Posed
from experiments.answers.populations import PARTICLES, Estimated, Populations
from experiments.answers.targets import COMPLETE, PREFIX
from experiments.engines import OutlinesCore
from experiments.models import Device, Dtype
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.run.measuring import Run
from experiments.run.tables import markdown, records
from experiments.shared.shown import label
from experiments.study.distortion_study.points import (
    CLEARLY,
    ENUMERATED,
    MASSES,
    SHAPLEY,
    THREE,
    TITLE,
    Points,
    at_draws,
    farther,
    of_methods,
    of_targets,
    points,
    share_of_lift,
    within_tolerance,
)
from experiments.study.distortion_study.report import figures, tables
from experiments.trie import unroll

VERSION = 3
__all__ = ["SMOKE", "TITLE", "VERSION", "Config", "facts", "figures", "inputs", "measure"]
__all__ += ["readme", "tables"]


@dataclass(frozen=True)
class Config(config.Config):
    """Which cases under which models, and how exactly."""

    models: tuple[str, ...] = option(
        ("smollm2", "gemma-3-270m"), "smollm2, gemma-3-270m, local folders, hub ids"
    )
    cases: tuple[str, ...] = option((), "names or families of cases, all if empty")
    temperatures: tuple[float, ...] = option((0.5, 1.0, 1.5), "what logits are divided by")
    slack: float = option(1e-3, "most probability of a distribution that may stay unassigned")
    unread: float = option(0.05, "most probability of paths that are not followed to their end")
    most_nodes: int = option(1500, "most forward positions per case")
    populations: int = option(1000, "weighted populations per estimate")
    device: Device = option("auto", "where the models run")
    dtype: Dtype = option("float32", "of the weights")

    def draws(self) -> int:
        """The number of the temperature at which draws are simulated: the one nearest to 1."""
        return min(range(len(self.temperatures)), key=lambda k: abs(self.temperatures[k] - 1))


SMOKE = Config(
    models=("smollm2",), cases=("yes_no_nile_space", "yes_no_nile_no_space"), populations=50
)


def inputs(asked: Config) -> Row:
    """The engine beside ours: rows with another version of it, or none, are not gone on with."""
    del asked
    return {"peers": {OutlinesCore.name: OutlinesCore.version()}}


def measure(run: Run[Config]) -> None:
    """A row for each model, then one for each model and case."""
    run.note(**inputs(run.config))
    ask(run, chosen(CASES, run.config.cases), enumerated_row)


def enumerated_row(config: Config, source: str, case: StudyCase) -> Row:
    """All that is said of one case under one model."""
    ready = opened(source, config.device, config.dtype)
    ids = ready.prompt_ids(case)
    posed, found = explored(config, ready, ready.poser.posed(ids, case.answers))
    n = len(case.answers)
    right = [case.answers.index(answer) for answer in case.truth]
    methods = tuple(posed.walkers)
    each = {
        str(temperature): distributions(found, number, methods, n, right, posed.unsure)
        for number, temperature in enumerate(config.temperatures)
    }
    return {
        "kind": ENUMERATED,
        **described(source, case),
        "prompt_tokens": len(ids),
        "nodes": len(found.trie),
        "asked": found.asked,
        "canonical_tokens": canonical_tokens(posed, ready.loaded.tokenizer),
        "absent": posed.absent,
        "as_lift": [m for m in methods[1:] if is_lift(found, methods.index(m))],
        "healing": given_back(posed.healing),
        "temperatures": each,
        "draws_at": config.temperatures[config.draws()],
        "draws": draws(config, found, methods, n, row_seed(config.seed, source, case)),
    }


def explored(config: Config, ready: Opened, posed: Posed) -> tuple[Posed, Explored]:
    """The trie of a question, as far as it matters; a method of others that reached no answer is
    absent from both. Raises BudgetExceededError where the lift or canonical reached none."""
    aims = Aims(config.slack, config.unread, config.most_nodes, config.draws())
    found = ready.explored(posed, config.temperatures, aims)
    return reached(posed, found, config.most_nodes)


def reached(posed: Posed, found: Explored, most_nodes: int) -> tuple[Posed, Explored]:
    """Without the methods that reached no answer. Raises BudgetExceededError for our own."""
    walkers, absent, columns = {}, dict(posed.absent), []
    for column, (method, walker) in enumerate(posed.walkers.items()):
        alive = found.trie.alive(column)
        if (found.complete & alive).any():
            walkers[method] = walker
            columns.append(column)
        elif method in OUR_METHODS:
            advice = f"no answer was reached by {method}; raise --most-nodes"
            raise BudgetExceededError("forward positions", most_nodes, advice)
        elif (found.open & alive).any():
            absent[method] = f"reached no answer in {most_nodes} forward positions"
        else:
            absent[method] = "can write no answer, it has dead ends alone"
    trie = replace(found.trie, states=found.trie.states[:, columns])
    return replace(posed, walkers=walkers, absent=absent), replace(found, trie=trie)


def canonical_tokens(posed: Posed, tokenizer: Tokenizer) -> list[int]:
    """Ids in the canonical tokenization of each answer; the model does not matter for these."""
    trie = unroll([posed.walkers["canonical"]])
    texts = {tokenizer.text_bytes(trie.ids(k), posed.prompt_ids[-1:]): k for k in trie.leaves()}
    return [int(trie.depth[texts[answer]]) for answer in posed.answers]


def is_lift(found: Explored, column: int) -> bool:
    """Does a method allow what the lift allows?"""
    return np.array_equal(found.trie.alive(column), found.trie.alive(0))


def draws(
    config: Config, found: Explored, methods: Sequence[str], n: int, seed: Sequence[int]
) -> Row:
    """By method, sampler and number of particles: the distribution of what one takes of a
    population. Methods that allow what the lift allows are left out."""
    rng = np.random.default_rng(seed)
    result: Row = {}
    for column, method in enumerate(methods):
        if column and is_lift(found, column):
            continue
        scores = found.scores[config.draws()]
        populations = Populations(found, scores, found.trie.alive(column), n)
        samplers = {"importance": populations.importance, "smc": populations.smc}
        result[method] = {
            sampler: {str(k): _estimate(draw(k, config.populations, rng)) for k in PARTICLES}
            for sampler, draw in samplers.items()
        }
    return result


def _estimate(made: Estimated) -> Row:
    """error: half the sum of the standard errors, which the error of a total variation distance to
    this distribution does not exceed on average."""
    return {"law": made.distribution.tolist(), "error": float(made.error.sum() / 2)}


# What is said of the points as a whole: facts, and what the pages say of them.


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """By model, at the temperature of the draws; what the pages need and others may read.

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
            str(model): _model_facts(
                some, methods[methods["model"] == model], targets[targets["model"] == model]
            )
            for model, some in at_draws(found).groupby("model", observed=True)
        },
        "notes": {row["source"]: row["note"] for row in records(rows[rows["kind"] == MODEL])},
    }


def _model_facts(drawn: Points, methods: pd.DataFrame, targets: pd.DataFrame) -> Row:
    divergences = dict([*methods.groupby("method", observed=True)["kl"]])
    worst = drawn.loc[drawn["tokenization"].idxmin()]
    return {
        **_distances(drawn),
        "farther": dict(zip(OUR_METHODS, farther(drawn), strict=True)),
        "worst_of_canonical": {name: worst[name] for name in ("name", *OUR_METHODS)},
        "shares": {name: _share_facts(drawn, name) for name in (*THREE, *SHAPLEY)},
        "masses": {name: _distances(drawn[drawn["masses"] == name]) for name in MASSES},
        "single": _distances(drawn[drawn["ids"] == 1]),
        "kl": {
            name: _kl_facts(divergences[name])
            for name in ("lift", "canonical", "canonical, weighted")
        },
        "targets": {
            str(name): _distances(some) | {"turned": int(some["turned"].sum())}
            for name, some in targets.groupby("target", observed=True)
        },
    }


def _distances(found: pd.DataFrame) -> Row:
    """Of both methods, and of what is between them; nothing but the number of cases of none."""
    each = found[[*OUR_METHODS, "tokenization"]] if len(found) else pd.DataFrame()
    return {"cases": len(found)} | {
        str(name): {
            "mean": float(values.mean()),
            "median": statistics.quantile(values.tolist(), 0.5),
        }
        for name, values in each.items()
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
    """A table of both distances by model and mass, and a paragraph for each model."""
    if not facts:
        return {}
    columns = "mean (median)", "all", *(f"mass {name}" for name in MASSES)
    lines = [
        [f"{label(model)}, {method}"]
        + [_shown(own.get(method)) for own in (found, *found["masses"].values())]
        for model, found in facts["models"].items()
        for method in OUR_METHODS
    ]
    told = [f"- *{label(model)}*: {_told(found)}" for model, found in facts["models"].items()]
    return {
        "distortion-study": "\n".join(told),
        "distortion-study in short": markdown(columns, lines),
    }


def _shown(of: Row | None) -> str:
    return f"{of['mean']:.3f} ({of['median']:.3f})" if of else "-"


def _told(found: Row) -> str:
    between, of, worst = found["tokenization"], found["farther"], found["worst_of_canonical"]
    single, kl = found["single"], found["kl"]
    told = [
        f"case by case the two differ by {between['mean']:.3f} on average (median "
        f"{between['median']:.4f}); by more than {CLEARLY}, the lift is farther off in "
        f"{of['lift']} of {found['cases']} cases, canonical in {of['canonical']}"
        + (
            f" (most in `{worst['name']}`: {worst['canonical']:.2f} against {worst['lift']:.2f})"
            if of["canonical"]
            else ""
        )
        + ".",
        _shares(found["shares"]),
        f"Where each answer is one token ({single['cases']} cases), the two are "
        f"{single['lift']['mean']:.3f} and {single['canonical']['mean']:.4f} off: canonical masks "
        "one step then, so only the mass on other tokenizations is lost."
        if single["cases"]
        else "",
        _by_target(found["targets"]),
        f"The median KL divergence is {_nats(kl['lift'])} of the lift, {_nats(kl['canonical'])} of "
        "canonical.",
    ]
    return " ".join(filter(None, told))


def _by_target(found: Row) -> str:
    """Nothing of rows from before there were targets."""
    names = {
        PREFIX: "the texts that begin with an answer",
        COMPLETE: "answers with the end behind them",
    }
    return " ".join(
        f"Against {name} they are {found[target]['lift']['mean']:.3f} and "
        f"{found[target]['canonical']['mean']:.3f} off (in reversed order in "
        f"{found[target]['turned']} of {found[target]['cases']} cases)."
        for target, name in names.items()
        if target in found
    )


def _shares(found: Row) -> str:
    """Nothing where there is no error."""
    if any(found[name]["value"] is None for name in THREE):
        return ""
    first, then, rest, own, steps = (f"{found[name]['value']:.0%}" for name in (*THREE, *SHAPLEY))
    return (
        f"Of the lift's errors, summed up, canonical ids take away {first} if they come first "
        f"(weights then {then}, and {rest} stay), and nothing if weights do; the Shapley values "
        f"are {own} tokenization and {steps} myopia."
    )


def _nats(found: Row) -> str:
    if found["median"] is None:
        return "infinite"
    more = f" (infinite in {found['infinite']} cases)" if found["infinite"] else ""
    return f"{found['median']:.4f} nats{more}"
