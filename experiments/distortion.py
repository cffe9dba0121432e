"""The distortion table: what a constraint does to the law of a model, computed exactly.

For a prompt and a prefix-free set of answers, three laws over the answers:

- *free*: the model's own, each answer summed over all its tokenizations, given that it writes one
  of the answers as whole tokens;
- *lift*: each step masked and renormalised over all tokenizations (Willard & Louf 2023);
- *canonical*: the same over the tokenizer's own tokenization only.

The answers are prefix-free, so an end is forced and end-of-sequence has no factor of its own.
After Tran-Thien, "Fast, High-Fidelity LLM Decoding with Regex Constraints" (2024).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from bpe_automata import Constraint, constrain
from bpe_automata.automata.sources import from_strings
from bpe_automata.decoding.constraint import Method
from experiments import distortion_report, models
from experiments.intervals import clopper_pearson
from experiments.optional import require
from experiments.path_measures import (
    Size,
    along_paths,
    kl_divergence,
    masked_steps,
    normalised,
    per_answer,
    size_of,
    total_variation,
)
from experiments.prompts import CASES, Case
from experiments.runner import Options, Run, read_run
from experiments.sampling import ConstrainedSampler, sample_free
from experiments.token_trie import Automaton, TokenTrie, automaton_of, unroll
from experiments.tree_logprobs import Evaluator, pick_evaluator

METHODS: tuple[Method, ...] = ("lift", "canonical")
BOOLEAN = "boolean: ((true)|(false))"
SAMPLES = 2000
ALPHA = 0.01
"""Probability that any of all the intervals of a run misses its exact value, if all is right."""


@dataclass(frozen=True)
class Spanned:
    """A case as automata: what both methods allow after the prompt, and the trie of it all.

    `leaves`: int64[k], nodes of complete answers; `answer_of`: int64[k], their answers' numbers.
    """

    prompt_ids: list[int]
    constraints: dict[Method, Constraint]
    automata: dict[Method, Automaton]
    trie: TokenTrie
    leaves: np.ndarray
    answer_of: np.ndarray


def run(options: Options) -> None:
    """Measure unless told to render only; then print the table and draw the figure."""
    if not options.render_only:
        measure(options, CASES)
    rows, manifest = read_run(options)
    distortion_report.render(rows, manifest, options)


def measure(options: Options, cases: Sequence[Case]) -> None:
    """One row for the sizes of the automata of `BOOLEAN`, then one per case."""
    started = time.perf_counter()
    models.use_threads()
    with require("rich.console").Console(stderr=True).status("loading the model"):
        loaded = models.load_model(options.model, options.device)
        spanned = [span(loaded, case) for case in cases]
        evaluate = pick_evaluator(loaded.model, spanned[0].prompt_ids, spanned[0].trie)
    config = configuration(options, cases, evaluate)
    run_ = Run(options, config, loaded.provenance(), len(cases) + 1, started)
    run_.add({"kind": "boolean", "pattern": BOOLEAN, "sizes": boolean_sizes(loaded)})
    with progress_bar() as bar:
        task = bar.add_task("", total=sum(len(item.trie.inner()) for item in spanned))
        for i, (case, item) in enumerate(zip(cases, spanned, strict=True)):
            bar.update(task, description=case.name)
            advance = partial(bar.advance, task)
            scores = evaluate(loaded.model, item.prompt_ids, item.trie, advance)
            row = exact_row(case, item, scores)
            rng = np.random.default_rng([options.seed, i])
            run_.add(row | {"samples": sampled(item, scores, row, config, rng)})


def configuration(options: Options, cases: Sequence[Case], evaluate: Evaluator) -> dict[str, Any]:
    """What else determines the numbers. The level of an interval is Bonferroni's."""
    intervals = (1 + len(METHODS)) * sum(len(case.answers) for case in cases)
    return {
        "samples": options.n or SAMPLES,
        "alpha": ALPHA,
        "intervals": intervals,
        "alpha_per_interval": ALPHA / intervals,
        "evaluator": evaluate.__name__,
    }


def progress_bar() -> Any:
    """On stderr, gone when done."""
    console = require("rich.console").Console(stderr=True)
    return require("rich.progress").Progress(console=console, transient=True)


def boolean_sizes(loaded: models.LoadedModel) -> dict[str, dict[str, int]]:
    """States and transitions of the article's own example, from the start of a text."""
    sizes: dict[str, dict[str, int]] = {}
    for method in METHODS:
        constraint = constrain(loaded.tokenizer, BOOLEAN, method=method, eos_ids=loaded.eos_ids)
        automaton = constraint.automaton()
        sizes[method] = {"states": automaton.n_states, "transitions": automaton.n_transitions}
    return sizes


def span(loaded: models.LoadedModel, case: Case) -> Spanned:
    """Build both automata after the prompt, and unroll them into one trie."""
    tokenizer, dfa = loaded.tokenizer, from_strings(case.answers)
    prompt_ids = tokenizer.encode(case.prompt)
    constraints = {
        method: constrain(tokenizer, dfa, method=method, eos_ids=loaded.eos_ids)
        for method in METHODS
    }
    explicit = {method: constraints[method].automaton(prompt_ids) for method in METHODS}
    automata = {method: automaton_of(explicit[method]) for method in METHODS}
    trie = unroll(list(automata.values()))
    leaves = trie.leaves()
    number = {answer.encode(): i for i, answer in enumerate(case.answers)}
    spelled = [b"".join(map(tokenizer.token_bytes, trie.ids(leaf))) for leaf in leaves]
    answer_of = np.array([number[text] for text in spelled])
    return Spanned(prompt_ids, constraints, automata, trie, leaves, answer_of)


def exact_row(case: Case, item: Spanned, scores: np.ndarray) -> dict[str, Any]:
    """Everything about one case that needs no sampling. Probabilities are in answer order."""
    trie, n = item.trie, len(case.answers)
    paths = along_paths(trie, scores)
    mass = per_answer(item.leaves, item.answer_of, paths, n)
    own = trie.alive(METHODS.index("canonical"))[item.leaves]
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
        "methods": {m: _method(item, scores, free, m) for m in METHODS},
    }


def token_counts(item: Spanned, own: np.ndarray) -> list[int]:
    """Ids in the canonical tokenization of each answer; `own`: bool[k], the canonical leaves."""
    leaf_of = dict(zip(item.answer_of[own].tolist(), item.leaves[own].tolist(), strict=True))
    return [int(item.trie.depth[leaf]) for _, leaf in sorted(leaf_of.items())]


def _method(item: Spanned, scores: np.ndarray, free: np.ndarray, method: Method) -> dict[str, Any]:
    """Law, distances to the free law (nats), and size of one method."""
    alive = item.trie.alive(METHODS.index(method))
    paths = along_paths(item.trie, masked_steps(item.trie, scores, alive))
    log_law = per_answer(item.leaves, item.answer_of, paths, len(free))
    law = np.exp(log_law)
    size: Size = size_of(item.automata[method], item.trie, alive, paths)
    return {
        "law": law.tolist(),
        "total_variation": total_variation(free, law),
        "kl_nats": kl_divergence(free, log_law),
        **asdict(size),
    }


def sampled(
    item: Spanned,
    scores: np.ndarray,
    row: dict[str, Any],
    config: dict[str, Any],
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Samples of all three methods, and whether their intervals hold the exact values of `row`."""
    wanted, alpha, answers = config["samples"], config["alpha_per_interval"], len(row["answers"])
    free = sample_free(item.trie, scores, wanted, rng)
    counts = np.bincount(item.answer_of, free.passing[item.leaves], answers).astype(int)
    result = {"free_trials": free.trials, "free": compared(counts, row["free"], alpha)}
    for column, method in enumerate(METHODS):
        constraint = item.constraints[method]
        sampler = ConstrainedSampler(constraint, item.prompt_ids, item.trie, column)
        drawn = [sampler.draw(scores, rng) for _ in range(wanted)]
        counts = np.bincount(item.answer_of[np.searchsorted(item.leaves, drawn)], None, answers)
        result[method] = compared(counts, row["methods"][method]["law"], alpha)
    return result


def compared(counts: np.ndarray, exact: list[float], alpha: float) -> dict[str, Any]:
    """Counts per answer beside the exact law, with Clopper-Pearson intervals of level 1 - alpha."""
    n = int(counts.sum())
    intervals = [clopper_pearson(int(k), n, alpha) for k in counts]
    inside = [low <= p <= high for (low, high), p in zip(intervals, exact, strict=True)]
    return {"n": n, "counts": counts.tolist(), "intervals": intervals, "inside": inside}
