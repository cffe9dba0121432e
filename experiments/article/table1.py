"""The article's Table 1 and the numbers of its text, published beside measured.

Table 1 is a text merge by merge. The text of the article asks a model for the first name of a US
president; the answers are ` Theodore` and ` William`. Three columns: the model's own probabilities,
summed over all tokenizations; what is left when any tokenization is admitted (Outlines), namely the
probability of the shortest sequences of ids that lead to one answer only; and the same over the
tokenizer's own tokenization (DirectMerge and CartesianMerge). Below, the size of the automata of
`boolean: ((true)|(false))`.

Published (Tran-Thien 2024) are the shares of the two, for a 4-bit Mistral-7B-v0.1; the masses are
those that the companion notebook prints. Measured here is the default model, SmolLM2-135M-Instruct,
or `--model`; the automata are of the Mistral-7B table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bpe_automata.decoding.constraint import Method
from experiments.article import table1_report
from experiments.article.mistral import MERGES_HELP, mistral_table
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.run.measuring import Run
from experiments.run.report import Report
from experiments.shared import models
from experiments.study.distortion import METHODS, Spanned, span
from experiments.study.prompts import PRESIDENT, Case
from experiments.study.token_trie import TokenTrie, along_paths, masked_steps, per_answer
from experiments.study.tree_logprobs import no_progress, pick_evaluator

VERSION = 2


@dataclass(frozen=True)
class Config(config.Config):
    """Which model the probabilities are of, and which table the automata."""

    model: str = option(models.SMOLLM2, "a packaged model, a local folder or a hub id")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "that the model runs on")
    merges: int | None = option(None, MERGES_HELP)


SMOKE = Config(merges=20)


def measure(run: Run[Config]) -> None:
    """A row of merges, one of probabilities, one of sizes. What is not installed, and a model that
    cannot be had, are errors, not rows."""
    chosen = run.config
    rows: dict[str, Callable[[], Row]] = {
        "merges": table1_report.steps,
        "sizes": lambda: sizes_row(chosen.merges),
        "laws": lambda: laws_row(chosen.model, chosen.device),
    }
    for key in run.expect(rows):
        run.add(key, rows[key]())
    for row in run.rows:
        run.note(**row.get("provenance", {}))


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Three tables."""
    return table1_report.report(rows, manifest)


def readme(facts: Row) -> str:
    """The sizes of the article's example."""
    return table1_report.readme(facts)


def laws_row(model: str, device: str) -> Row:
    """Probabilities under a model, and which one it was."""
    loaded = models.opened(model, device, "float32")
    which = {"model": loaded.name, "note": loaded.note, "provenance": loaded.provenance()}
    return {"kind": "laws"} | which | laws(loaded, PRESIDENT)


def sizes_row(merges: int | None) -> Row:
    """Of the automata."""
    return {"kind": "sizes", "sizes": table1_report.measured(mistral_table(merges))}


def laws(loaded: models.LoadedModel, case: Case) -> Row:
    """Probabilities of the answers, in their order, by column; `masked`: the law of each answer
    when decoding step by step, by method."""
    item = span(loaded, case)
    evaluate = pick_evaluator(loaded.model, item.prompt_ids, item.trie)
    scores = evaluate(loaded.model, item.prompt_ids, item.trie, no_progress)
    return {
        "prompt": case.prompt,
        "answers": list(case.answers),
        "free": answer_mass(item, scores),
        **{method: deciding_mass(item, scores, method) for method in METHODS},
        "masked": {method: masked_law(item, scores, method) for method in METHODS},
    }


def answer_mass(item: Spanned, steps: np.ndarray) -> list[float]:
    """For each answer the probability of all its sequences of ids. steps: float64 [n], logarithm of
    the probability of each node's id after its parent."""
    paths = along_paths(item.trie, steps)
    answers = int(item.answer_of.max()) + 1
    return np.exp(per_answer(item.leaves, item.answer_of, paths, answers)).tolist()


def masked_law(item: Spanned, scores: np.ndarray, method: Method) -> list[float]:
    """The same where each step is renormalised over what `method` admits."""
    alive = item.trie.alive(METHODS.index(method))
    return answer_mass(item, masked_steps(item.trie, scores, alive))


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
