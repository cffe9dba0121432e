"""The distortion study: how much constraints distort a model, where it comes from, what removes it.

Several models are asked prompts with constraints of several families (`answers.cases`), whose
languages can be enumerated: all distributions are summed up on the trie of all tokenizations, at
all temperatures, exactly or with a bound on what is missing. Besides, what is drawn from a few
weighted particles is simulated on that trie. How an error is taken apart: `points`; what the
methods are: `answers.methods`. Larger languages are sampled: `study.sampled`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.errors import BudgetExceededError
from experiments.answers.asked import Opened, ask, described, given_back, opened, row_seed
from experiments.answers.cases import CASES, StudyCase, chosen
from experiments.answers.distributions import (
    Aims,
    Explored,
    distributions,
    tv_between,
)
from experiments.answers.methods import OUR_METHODS, Posed
from experiments.answers.populations import PARTICLES, Estimated, Populations
from experiments.answers.trie import unroll
from experiments.engines.peers import OutlinesCore
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.run.measuring import Run
from experiments.shared.models import Device, Dtype
from experiments.study.distortion_study.points import ENUMERATED, TITLE, facts, readme
from experiments.study.distortion_study.report import figures, tables

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
    listed = [case for case in CASES if case.is_enumerated()]
    ask(run, chosen(listed, run.config.cases), enumerated_row)


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
    row = {
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
    if posed.healing:
        row["healing"]["temperatures"] = unhealed(config, ready, ids, case, each)
    return row


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


def unhealed(config: Config, ready: Opened, ids: list[int], case: StudyCase, healed: Row) -> Row:
    """By temperature: what the free distribution and the lift are if the prompt's last ids stay,
    against the free distribution with them given back. slack: how far either may be from exact, at
    most."""
    _, found = explored(config, ready, ready.poser.unhealed(ids, case.answers))
    result = {}
    for number, temperature in enumerate(config.temperatures):
        own = distributions(found, number, ("lift",), len(case.answers), ())
        distribution, reference = own["methods"]["lift"], healed[str(temperature)]["free"]
        result[str(temperature)] = {
            "free": own["free"],
            "lift": distribution["law"],
            "slack": own["free_slack"] + distribution["slack"] / 2,
            "tv_free": tv_between(own["free"], reference),
            "tv_lift": tv_between(distribution["law"], reference),
        }
    return result
