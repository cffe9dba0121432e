"""One case of the study whose answers are enumerated: all distributions, exactly or with a bound on
what is missing, and what is drawn from a few weighted particles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.errors import BudgetExceededError
from experiments.answers.cases import StudyCase
from experiments.answers.distributions import (
    Aims,
    Explored,
    distributions,
    tv_between,
)
from experiments.answers.methods import OUR_METHODS, Posed
from experiments.answers.populations import PARTICLES, Estimated, Populations
from experiments.answers.trie import unroll
from experiments.run.executors import Row
from experiments.study.distortion_study.asked import (
    ENUMERATED,
    Config,
    Opened,
    described,
    given_back,
    opened,
    row_seed,
)


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
        "draws": draws(config, found, methods, n, row_seed(config, source, case)),
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
