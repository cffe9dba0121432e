"""The article's Table 1, published beside measured: what constraining does to a model's law.

The prompt asks for the first name of a US president; the answers are ` Theodore` and ` William`.
Three columns: the model's own probabilities, summed over all tokenizations; what is left when any
tokenization is admitted (Outlines), namely the probability of the shortest sequences of ids that
lead to one answer only; and the same over the tokenizer's own tokenization (DirectMerge and
CartesianMerge). Below, the size of the automata of `boolean: ((true)|(false))`.

Of the table's text nothing but Figure 1 was at hand; its numbers are those that the article's
companion notebook prints (Tran-Thien 2024), for a 4-bit Mistral-7B-v0.1. Measured here is the
default model, SmolLM2-135M-Instruct, or `--model`; the automata are of the Mistral-7B table.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bpe_automata.decoding.constraint import Method
from experiments import distortion, models, table1_report, table1_sizes
from experiments.distortion import METHODS, Spanned
from experiments.optional import require
from experiments.path_measures import along_paths
from experiments.prompts import PRESIDENT, Case
from experiments.runner import Options, Run, read_run
from experiments.token_trie import TokenTrie
from experiments.tree_logprobs import no_progress, pick_evaluator

Row = dict[str, Any]


def run(options: Options) -> None:
    """Measure unless told to render only; then print the table and write it for the paper."""
    if not options.render_only:
        measure(options)
    rows, manifest = read_run(options)
    table1_report.render(rows, manifest, options)


def measure(options: Options) -> None:
    """A row of probabilities, and a row of sizes."""
    started = time.perf_counter()
    models.use_threads()
    with require("rich.console").Console(stderr=True).status("loading the model"):
        loaded = models.load_model(options.model, options.device)
        run_ = Run(options, {}, loaded.provenance(), 2, started)
        run_.add({"kind": "laws"} | laws(loaded, PRESIDENT))
        run_.add({"kind": "sizes", "sizes": table1_sizes.measured()})


def laws(loaded: models.LoadedModel, case: Case) -> Row:
    """Probabilities of the answers, in their order, by column."""
    item = distortion.span(loaded, case)
    evaluate = pick_evaluator(loaded.model, item.prompt_ids, item.trie)
    scores = evaluate(loaded.model, item.prompt_ids, item.trie, no_progress)
    row = distortion.exact_row(case, item, scores)
    free = [share * row["free_mass"] for share in row["free"]]
    return {
        "prompt": case.prompt,
        "answers": list(case.answers),
        "free": free,
        **{method: deciding_mass(item, scores, method) for method in METHODS},
        "masked": {method: row["methods"][method]["law"] for method in METHODS},
    }


def deciding_mass(item: Spanned, scores: np.ndarray, method: Method) -> list[float]:
    """For each answer the probability, under the model, of the shortest sequences of ids that
    `method` admits and that lead to this answer only."""
    alive = item.trie.alive(METHODS.index(method))
    possible = possible_answers(item.trie, alive, item.leaves, item.answer_of)
    paths = np.exp(along_paths(item.trie, scores))
    mass = np.zeros(int(item.answer_of.max()) + 1)
    for node in np.flatnonzero(alive)[1:].tolist():
        if len(possible[node]) == 1 < len(possible[item.trie.parent[node]]):
            (answer,) = possible[node]
            mass[answer] += paths[node]
    return mass.tolist()


def possible_answers(
    trie: TokenTrie, alive: np.ndarray, leaves: np.ndarray, answer_of: np.ndarray
) -> list[set[int]]:
    """For each node the answers that it can still become, over the nodes that are alive (bool [n]).
    leaves: int64 [k], nodes; answer_of: int64 [k]."""
    possible: list[set[int]] = [set() for _ in range(len(trie))]
    for leaf, answer in zip(leaves.tolist(), answer_of.tolist(), strict=True):
        if alive[leaf]:
            possible[leaf].add(answer)
    for node in range(len(trie) - 1, 0, -1):  # children come after their parents
        possible[trie.parent[node]] |= possible[node]
    return possible
