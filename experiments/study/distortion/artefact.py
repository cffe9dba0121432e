"""The distortion table: what a constraint does to the distribution of a model, computed exactly.

For a prompt and a prefix-free set of answers, three distributions over the answers:

- *free*: the model's own, each answer summed over all its tokenizations, given that it writes one
  of the answers as whole tokens;
- *lift*: each step masked and renormalised over all tokenizations (Willard & Louf 2023);
- *canonical*: the same over the tokenizer's own tokenization only.

The answers are prefix-free, so an end is forced and end-of-sequence has no factor of its own.
After Tran-Thien, "Fast, High-Fidelity LLM Decoding with Regex Constraints" (2024).

Each exact distribution is checked by samples. Constrained ones go through the real `Matcher`, step
by step, over cached log-probabilities. Free ones are drawn from the model without any constraint,
and those that spell an answer count.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bpe_automata import Constraint, constrain
from bpe_automata._decoding.constraint import Method
from bpe_automata._kernels.bits import members
from bpe_automata.errors import BpeAutomataError
from experiments.answers.cases import BOOLEAN, PROMPTS, Case
from experiments.answers.logprobs import PROBE, Evaluator, pick_evaluator
from experiments.answers.methods import OUR_METHODS, Spanned, span
from experiments.answers.trie import (
    TokenTrie,
    along_paths,
    kl_divergence,
    masked_steps,
    normalised,
    per_answer,
    size_of,
    total_variation,
)
from experiments.engines.named import check_known
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.measuring import Run
from experiments.run.statistics import clopper_pearson
from experiments.shared import models
from experiments.study.distortion import report


class SamplerMismatchError(BpeAutomataError):
    """The matcher and the explored automaton disagree: a bug of the library, not of the input."""


class Step(NamedTuple):
    """What can follow a node. `row`: the packed mask seen there; `cumulated`: float64[k]."""

    row: np.ndarray
    children: np.ndarray
    cumulated: np.ndarray


class ConstrainedSampler:
    """Draws answers through a matcher: mask, renormalise, choose, advance.

    `automaton`: the number in `trie.states` of the automaton that the matcher must agree with.
    """

    def __init__(
        self, constraint: Constraint, prompt: list[int], trie: TokenTrie, automaton: int
    ) -> None:
        self._matcher = constraint.matcher(prefix=prompt)
        self._buffer = np.zeros((1, (constraint.n_ids + 31) // 32), dtype=np.int32)
        self._trie, self._alive = trie, trie.alive(automaton)
        self._memo: dict[int, Step] = {}

    def draw(self, log_probs: np.ndarray, rng: np.random.Generator) -> int:
        """One answer, as a leaf of the trie. The matcher is rolled back to the prompt after it."""
        node = depth = 0
        while (step := self._step(node, log_probs)) is not None:
            place = int(np.searchsorted(step.cumulated, rng.random(), side="right"))
            node = int(step.children[min(place, len(step.children) - 1)])
            self._matcher.advance(int(self._trie.token[node]))
            depth += 1
        self._matcher.rollback(depth)
        return node

    def _step(self, node: int, log_probs: np.ndarray) -> Step | None:
        """The options at `node` by the matcher's mask of this moment; None if complete."""
        if self._matcher.is_accepting:
            return None
        self._matcher.mask(self._buffer, 0)
        step = self._memo.get(node)
        if step is None:
            step = self._memo[node] = self._read(node, log_probs)
        elif not np.array_equal(step.row, self._buffer[0]):
            raise SamplerMismatchError(f"two masks for the ids {self._trie.ids(node)}")
        return step

    def _read(self, node: int, log_probs: np.ndarray) -> Step:
        """Decode the mask in the buffer; it must allow the node's living children, no others."""
        row = self._buffer[0].copy()
        allowed = members(row)
        children = np.flatnonzero((self._trie.parent == node) & self._alive)
        if not np.array_equal(allowed, np.sort(self._trie.token[children])):
            message = f"after {self._trie.ids(node)} the mask allows {allowed.tolist()[:20]}"
            raise SamplerMismatchError(f"{message}, the automaton has other edges")
        weights = np.exp(log_probs[children] - log_probs[children].max())
        return Step(row, children, np.cumsum(weights) / weights.sum())


def sample_free(
    trie: TokenTrie, log_probs: np.ndarray, wanted: int, rng: np.random.Generator
) -> tuple[np.ndarray, int]:
    """Unconstrained trials, until at least `wanted` of them spell an answer: (int64 [n], how many
    of them went through each node; how many there were).

    None are made if they would not fit 64 bits (a random model may never write an answer).

    The answers may be so unlikely that billions of trials are needed. They are not drawn one by
    one: the number of trials that take each edge out of a node is multinomial, so all trials are
    split down the trie at once, which has the same distribution. The rest of each node leaves the
    trie and is rejected. When to stop depends on how many were accepted, not on which, so the
    accepted ones are independent draws from the distribution of the answers.
    """
    total, trials = np.zeros(len(trie), dtype=np.int64), 0
    leaves = trie.leaves()
    mass = float(np.exp(along_paths(trie, log_probs)[leaves]).sum())
    if mass < wanted / 2**60:
        return total, 0
    while (missing := wanted - int(total[leaves].sum())) > 0:
        count = int(np.ceil(missing / mass))
        total += _split(trie, log_probs, count, rng)
        trials += count
    return total, trials


def _split(
    trie: TokenTrie, log_probs: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """int64[n]: how many of `count` trials pass through each node."""
    passing = np.zeros(len(trie), dtype=np.int64)
    passing[0] = count
    for node in trie.inner():
        children = np.flatnonzero(trie.parent == node)
        shares = np.exp(log_probs[children])
        rest = max(0.0, 1.0 - float(shares.sum()))
        shares = np.append(shares, rest) / (shares.sum() + rest)
        passing[children] = rng.multinomial(passing[node], shares)[:-1]
    return passing


VERSION = 1
render, readme = report.render, report.readme


@dataclass(frozen=True)
class Config(config.Config):
    """The defaults are those of `make demo`."""

    model: str = option(models.SMOLLM2, "smollm2, gemma-3-270m, a local folder or a hub id")
    device: models.Device = option("auto", "where the model runs")
    samples: int = option(2000, "per prompt and method, to hold against the exact distribution")
    prompts: tuple[str, ...] = option((), "names of prompts, all if empty")


SMOKE = Config(prompts=("yes_no", "digit", "chinese"), samples=50)


def measure(run: Run[Config]) -> None:
    """A row for the model, one for the sizes of the automata of `BOOLEAN`, then one per case."""
    asked, chosen = run.config, chosen_cases(run.config)
    # First, and alone: it makes the weights on first use.
    run.cells([Cell("model", model_row, (asked,))], what="loading the model")
    if run.store.rows["model"].get(FAILURE):
        return
    alpha = alpha_per_interval(chosen)
    cells = [Cell(case.name, case_row, (asked, case, alpha)) for case in chosen]
    run.cells([Cell("boolean", boolean_row, (asked,)), *cells])


def chosen_cases(asked: Config) -> list[Case]:
    """Raises ArgumentError for a name that no case has."""
    named = {case.name: case for case in PROMPTS}
    check_known("prompts", asked.prompts, named)
    return [named[name] for name in asked.prompts or named]


def alpha_per_interval(cases: Sequence[Case]) -> float:
    """The level of an interval is Bonferroni's."""
    return report.ALPHA / ((1 + len(OUR_METHODS)) * sum(len(case.answers) for case in cases))


@lru_cache(maxsize=1)
def evaluator(model: str, device: str) -> Evaluator:
    """How its probabilities are read."""
    loaded = models.opened(model, device, "float32")
    return pick_evaluator(loaded.model, loaded.prompt_ids("The"), PROBE)


def model_row(asked: Config) -> Row:
    """Which model it is, by hash."""
    return {"kind": "model", **models.opened(asked.model, asked.device, "float32").provenance()}


def boolean_row(asked: Config) -> Row:
    """States and transitions of the article's own example, from the start of a text, by method."""
    loaded = models.opened(asked.model, asked.device, "float32")
    sizes = {}
    for method in OUR_METHODS:
        constraint = constrain(loaded.tokenizer, BOOLEAN, method=method, eos_ids=loaded.eos_ids)
        automaton = constraint.automaton()
        sizes[method] = {"states": automaton.n_states, "transitions": automaton.n_transitions}
    return {"kind": "boolean", "pattern": BOOLEAN, "sizes": sizes}


def case_row(asked: Config, case: Case, alpha: float) -> Row:
    """Exact distributions, and samples beside them. alpha: level of one interval."""
    loaded = models.opened(asked.model, asked.device, "float32")
    item = span(loaded, case)
    evaluate = evaluator(asked.model, asked.device)
    scores = evaluate(loaded.model, item.prompt_ids, item.trie)
    row = exact_row(case, item, scores)
    rng = np.random.default_rng([asked.seed, zlib.crc32(case.name.encode())])
    row["samples"] = sampled(item, scores, row, asked.samples, alpha, rng)
    return row | {"evaluator": evaluate.__name__, "alpha_per_interval": alpha}


def exact_row(case: Case, item: Spanned, scores: np.ndarray) -> Row:
    """Everything about one case that needs no sampling. Probabilities are in answer order."""
    trie, n = item.trie, len(case.answers)
    paths = along_paths(trie, scores)
    mass = per_answer(item.leaves, item.answer_of, paths, n)
    own = trie.alive(OUR_METHODS.index("canonical"))[item.leaves]
    canonical_mass = per_answer(item.leaves[own], item.answer_of[own], paths, n)
    free, canonical_free = normalised(mass), normalised(canonical_mass)
    return {
        "kind": "case",
        "name": case.name,
        "prompt": case.prompt,
        "answers": list(case.answers),
        "prompt_tokens": len(item.prompt_ids),
        "trie_nodes": len(trie),
        "free": free.tolist(),
        "free_mass": float(np.exp(mass).sum()),
        "canonical_tokens": token_counts(item, own),
        "free_given_canonical": canonical_free.tolist(),
        "total_variation_given_canonical": total_variation(free, canonical_free),
        "canonical_share": float(np.exp(canonical_mass).sum() / np.exp(mass).sum()),
        "other_share": float(np.exp(paths[item.leaves[~own]]).sum() / np.exp(mass).sum()),
        "canonical_share_by_answer": np.exp(canonical_mass - mass).tolist(),
        "methods": {m: _method(item, scores, free, m) for m in OUR_METHODS},
    }


def token_counts(item: Spanned, own: np.ndarray) -> list[int]:
    """Ids in the canonical tokenization of each answer; `own`: bool[k], the canonical leaves."""
    leaf_of = dict(zip(item.answer_of[own].tolist(), item.leaves[own].tolist(), strict=True))
    return [int(item.trie.depth[leaf]) for _, leaf in sorted(leaf_of.items())]


def _method(item: Spanned, scores: np.ndarray, free: np.ndarray, method: Method) -> Row:
    """Distribution, distances to the free distribution (nats), and size of one method."""
    alive = item.trie.alive(OUR_METHODS.index(method))
    paths = along_paths(item.trie, masked_steps(item.trie, scores, alive))
    log_distribution = per_answer(item.leaves, item.answer_of, paths, len(free))
    distribution = np.exp(log_distribution)
    return {
        "law": distribution.tolist(),
        "total_variation": total_variation(free, distribution),
        "kl_nats": kl_divergence(free, log_distribution),
        **size_of(item.automata[method], item.trie, alive, paths),
    }


def sampled(
    item: Spanned, scores: np.ndarray, row: Row, wanted: int, alpha: float, rng: np.random.Generator
) -> Row:
    """Samples of all three methods, and whether their intervals hold the exact values of `row`."""
    answers = len(row["answers"])
    passing, trials = sample_free(item.trie, scores, wanted, rng)
    counts = np.bincount(item.answer_of, passing[item.leaves], answers).astype(int)
    result = {"free_trials": trials, "free": compared(counts, row["free"], alpha)}
    for column, method in enumerate(OUR_METHODS):
        constraint = item.constraints[method]
        sampler = ConstrainedSampler(constraint, item.prompt_ids, item.trie, column)
        drawn = [sampler.draw(scores, rng) for _ in range(wanted)]
        counts = np.bincount(item.answer_of[np.searchsorted(item.leaves, drawn)], None, answers)
        result[method] = compared(counts, row["methods"][method]["law"], alpha)
    return result


def compared(counts: np.ndarray, exact: list[float], alpha: float) -> Row:
    """Counts per answer beside the exact distribution, with Clopper-Pearson intervals of level 1 -
    alpha."""
    n = int(counts.sum())
    intervals = [clopper_pearson(int(k), n, alpha) for k in counts]
    inside = [low <= p <= high for (low, high), p in zip(intervals, exact, strict=True)]
    return {"n": n, "counts": counts.tolist(), "intervals": intervals, "inside": inside}
