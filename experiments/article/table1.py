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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.explicit import explore
from bpe_automata._constructions.lift import Lift
from bpe_automata._decoding.constraint import Method
from bpe_automata._tokenizer.description import Description
from bpe_automata.reference import TokenDFA, direct_merge, explicit, merges_in_order, replay
from bpe_automata.testing import small_tokenizer
from experiments.answers.cases import BOOLEAN, PRESIDENT
from experiments.answers.logprobs import pick_evaluator
from experiments.answers.methods import OUR_METHODS, Spanned, span
from experiments.answers.trie import along_paths, masked_steps, per_answer
from experiments.article.mistral import MERGES_HELP, Reference, mistral_table, name_of
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Row
from experiments.run.files import require
from experiments.run.measuring import Run
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.tables import Table, fixed
from experiments.shared import models

# The size of the automata of the article's example.

PUBLISHED = {"lift": (17, 48), "direct_of_given": (5, 4)}
"""States and transitions: drawn in the article's companion notebook, Tran-Thien 2024, which prints
the 48."""
IN_THE_TEXT = 16
"""States of the lift by the article's text, beside 48 transitions."""
INSTALL = "pip install 'interegular>=0.3.3'"


def sizes_row(tokenizer: Tokenizer) -> Row:
    """By the name of the automaton: states, transitions, and how many of the states accept.
    tokenizer: BPE alone."""
    sizes = {
        name: {
            "states": automaton.n_states,
            "transitions": automaton.n_transitions,
            "accepting": int(automaton.accepting.sum()),
        }
        for name, automaton in automata(tokenizer).items()
    }
    return {"kind": "sizes", "sizes": sizes}


def automata(table: Tokenizer) -> dict[str, TokenAutomaton]:
    """The lift and DirectMerge of the reference, and what the package makes. DirectMerge changes
    the automaton that it is given, so it matters whether that one is minimal: the article gave it
    the one that interegular makes of the regex, in which `true` and `false` end apart."""
    reference, dfa, spelled = Reference(table), compile_regex(BOOLEAN), table.spellings
    given = interegular_dfa(table.description, BOOLEAN)
    lifted, canonical = Lift(table, dfa), CartesianMerge(table, dfa)
    direct = [direct_merge(one, reference.merges) for one in (given, reference.symbols(dfa))]
    return {
        "lift": explicit(reference.lifted(dfa), spelled),
        "direct_of_given": explicit(direct[0], spelled),
        "direct_of_minimal": explicit(direct[1], spelled),
        "package_lift": explore(lifted, lifted.initial()),
        "package_canonical": explore(canonical, canonical.initial()),
    }


def interegular_dfa(description: Description, regex: str) -> TokenDFA:
    """interegular's own automaton of a regex, not minimised, over base symbols. Raises
    MissingDependencyError."""
    fsm = require("interegular", INSTALL).parse_pattern(regex).to_fsm()
    read = {
        (character, symbol): fsm.alphabet[character]
        for data, symbol in description.base.items()
        if (character := data.decode("utf-8")) in fsm.alphabet
    }
    transitions = [
        (state, symbol, row[key])
        for state, row in fsm.map.items()
        for (_, symbol), key in read.items()
        if key in row
    ]
    return TokenDFA.of(transitions, fsm.initial, fsm.finals)


# The article's Table 1: a text, merge by merge, published beside what the library computes.

TEXT = "aaaabaacac"
TOKENS = ("a", "b", "c", "ab", "aa", "ac")
MERGES = (("a", "b"), ("a", "a"), ("a", "c"))
PUBLISHED_STEPS = (
    ("a", "a", "a", "a", "b", "a", "a", "c", "a", "c"),
    ("a", "a", "a", "ab", "a", "a", "c", "a", "c"),
    ("aa", "a", "ab", "aa", "c", "a", "c"),
    ("aa", "a", "ab", "aa", "c", "ac"),
)
"""The tokens before the first merge and after each one; Tran-Thien 2024, Table 1."""


def merged_row() -> Row:
    """steps: the tokens before the first merge and after each one, by the reference; encoded: what
    the package makes of the text at once."""
    tokenizer = small_tokenizer(TOKENS, MERGES)
    merges = merges_in_order(tokenizer.description)
    ids = [TOKENS.index(letter) for letter in TEXT]
    found = [replay(ids, merges[:done]) for done in range(len(merges) + 1)]
    return {
        "kind": "merges",
        "steps": [[TOKENS[token] for token in ids] for ids in found],
        "encoded": [TOKENS[token] for token in tokenizer.encode(TEXT)],
    }


def is_published(row: Row) -> bool:
    """Do all steps, and `encode`, come out as published?"""
    published = (*PUBLISHED_STEPS, PUBLISHED_STEPS[-1])
    return [*row["steps"], row["encoded"]] == [*map(list, published)]


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
        "merges": merged_row,
        "sizes": lambda: sizes_row(mistral_table(chosen.merges)),
        "laws": lambda: distributions_row(chosen.model, chosen.device),
    }
    for key in run.expect(rows):
        run.add(key, rows[key]())
    for row in run.rows:
        run.note(**row.get("provenance", {}))


def distributions_row(model: str, device: str) -> Row:
    """Probabilities of the answers under a model, in their order, by column; `masked`: those when
    decoding step by step, by method."""
    loaded = models.opened(model, device, "float32")
    item = span(loaded, PRESIDENT)
    evaluate = pick_evaluator(loaded.model, item.prompt_ids, item.trie)
    scores = evaluate(loaded.model, item.prompt_ids, item.trie)
    return {
        "kind": "laws",
        "model": loaded.name,
        "note": loaded.note,
        "provenance": loaded.provenance(),
        "prompt": PRESIDENT.prompt,
        "answers": list(PRESIDENT.answers),
        "free": answer_mass(item, scores),
        **{method: deciding_mass(item, scores, method) for method in OUR_METHODS},
        "masked": {method: masked_distribution(item, scores, method) for method in OUR_METHODS},
    }


def answer_mass(item: Spanned, steps: np.ndarray) -> list[float]:
    """For each answer the probability of all its sequences of ids. steps: float64 [n], logarithm of
    the probability of each node's id after its parent."""
    paths = along_paths(item.trie, steps)
    answers = int(item.answer_of.max()) + 1
    return np.exp(per_answer(item.leaves, item.answer_of, paths, answers)).tolist()


def masked_distribution(item: Spanned, scores: np.ndarray, method: Method) -> list[float]:
    """The same where each step is renormalised over what `method` admits."""
    alive = item.trie.alive(OUR_METHODS.index(method))
    return answer_mass(item, masked_steps(item.trie, scores, alive))


def deciding_mass(item: Spanned, scores: np.ndarray, method: Method) -> list[float]:
    """For each answer the probability, under the model, of the shortest sequences of ids that
    `method` admits and that lead to this answer only."""
    trie, alive = item.trie, item.trie.alive(OUR_METHODS.index(method))
    answers = int(item.answer_of.max()) + 1
    # Of the answers that each node can still become, the first and the last by their numbers.
    first, last = np.full(len(trie), answers), np.full(len(trie), -1)
    ends = alive[item.leaves]
    first[item.leaves[ends]] = last[item.leaves[ends]] = item.answer_of[ends]
    for node in range(len(trie) - 1, 0, -1):  # children come after their parents
        parent = trie.parent[node]
        first[parent] = min(first[parent], first[node])
        last[parent] = max(last[parent], last[node])
    decided = alive & (first == last)
    nodes = np.flatnonzero(decided & ~decided[trie.parent])
    return np.bincount(first[nodes], np.exp(along_paths(trie, scores)[nodes]), answers).tolist()


# ---------------------------------------------------------------- what the rows say

COLUMNS = {
    "free": "unconstrained",
    "lift": "any tokenization\n(Outlines)",
    "canonical": "its own tokenization\n(DirectMerge, CartesianMerge)",
}
PUBLISHED_MASSES: dict[str, tuple[float, float]] = {
    "free": (0.0236206, 0.00388386),
    "lift": (0.0284329, 0.0253642),
    "canonical": (0.0236205, 0.00388619),
}
"""(` William`, ` Theodore`): printed by the article's companion notebook, Tran-Thien 2024."""
PUBLISHED_SHARES = {"free": 0.858792, "lift": 0.528521, "canonical": 0.858719}
"""Of the first, in the article to five digits; the masses above are rounded."""
PUBLISHED_MODEL = "Mistral-7B-v0.1, 4 bits (published)"
DIFFERENT = "the steps of Table 1 are not the published ones"
SIZES = {
    "lift": "lift (Outlines), reference",
    "direct_of_given": "DirectMerge of interegular's automaton, reference",
    "direct_of_minimal": "DirectMerge of the minimal automaton, reference",
    "package_lift": "lift, package",
    "package_canonical": "CartesianMerge, package (states hold the last id)",
}


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Three tables, of whatever rows there are."""
    by_kind = {row["kind"]: row for row in rows if not row.get(FAILURE)}
    found, merged = by_kind.get("laws"), by_kind.get("merges")
    measured = by_kind.get("sizes", {}).get("sizes", {})
    tables = [
        merge_by_merge(merged),
        probabilities(found),
        sizes(measured, name_of(manifest["config"]["merges"])),
    ]
    wrong = [DIFFERENT] if merged and not is_published(merged) else []
    title = "Table 1 of the article, and the numbers of its text"
    return Report(title, tables, facts=facts(found) | {"sizes": measured}, wrong=wrong)


def facts(row: Row | None) -> Row:
    """model: that was measured; william: what the answer ` William` has of both, by column, and
    when decoding step by step, by method."""
    if row is None:
        return {}
    step_by_step = {method: masses[0] for method, masses in row["masked"].items()}
    return {"model": row["model"], "william": _shares(row), "william_step_by_step": step_by_step}


def readme(facts: Row) -> str:
    """The sizes of the article's example."""
    if not facts["sizes"]:
        return f"The article's example `{BOOLEAN}` was not measured."
    lift, given, minimal = (
        "{states} states and {transitions} transitions".format(**facts["sizes"][name])
        for name in ("lift", "direct_of_given", "direct_of_minimal")
    )
    found = {name: (size["states"], size["transitions"]) for name, size in facts["sizes"].items()}
    verdict = "comes out" if found.items() >= PUBLISHED.items() else "does not come out"
    return wrapped(
        f"The article's example `{BOOLEAN}` {verdict} as in its companion notebook: {lift} under "
        f"the lift, {given} by DirectMerge ({minimal} if one begins with the minimal automaton)."
    )


def _shares(masses: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Of the first answer, by column."""
    return {column: masses[column][0] / sum(masses[column]) for column in COLUMNS}


def merge_by_merge(row: Row | None) -> Table:
    """A line for each step."""
    names = ["single letters", *(f"after merge ({left}, {right})" for left, right in MERGES)]
    found = [visible(step) for step in row["steps"]] if row else ["-"] * len(names)
    published = map(visible, PUBLISHED_STEPS)
    lines = [[*line] for line in zip(names, published, found, strict=True)]
    if row:
        lines.append(["`encode`, all at once", "", visible(row["encoded"])])
    notes = ["The order of the merges counts, and the order of the letters."]
    columns = [f"`{TEXT}`", "published", "measured"]
    return Table("Table 1: a text merge by merge", columns, lines, notes)


def visible(tokens: Sequence[str]) -> str:
    """Tokens, one after the other."""
    return "+".join(f"`{token}`" for token in tokens)


def probabilities(row: Row | None) -> Table:
    """Mass of both answers and the share of the first, published beside measured."""
    lines = _lines(PUBLISHED_MODEL, PUBLISHED_MASSES, PUBLISHED_SHARES)
    notes = [
        "unconstrained: probability of each answer, summed over all its tokenizations; the other "
        "columns: of the shortest sequences of ids that lead to one answer only",
        "step by step: the distribution of what a masked model writes, renormalised at each step",
        "published: Tran-Thien 2024, printed by the companion notebook; the article has the shares "
        "to five digits",
    ]
    if row is not None:
        lines += _lines(f"{row['model']} (measured)", row, _shares(row))
        step_by_step = [f"{row['masked'][method][0]:.6f}" for method in OUR_METHODS]
        lines.append(["", "the same, decoding step by step", "", *step_by_step])
        question = row["prompt"].replace("\n", " ")
        notes = [f"prompt: {question}", *notes, *([row["note"]] if row["note"] else [])]
    columns = ["model", "answer", *COLUMNS.values()]
    return Table("In the text: what constraining does to a distribution", columns, lines, notes)


def _lines(model: str, masses: Mapping[str, Any], shares: Mapping[str, float]) -> list[list[str]]:
    """A line per answer, and one for the share of the first."""
    first, second = ([f"{masses[column][i]:.6g}" for column in COLUMNS] for i in (0, 1))
    return [
        [model, "‘ William’", *first],
        ["", "‘ Theodore’", *second],
        ["", "William of the two", *map(fixed(6), map(shares.__getitem__, COLUMNS))],
    ]


def sizes(found: Row, merges: str) -> Table:
    """States and transitions, published beside measured; merges: whose they are."""
    lines = []
    for name, of in SIZES.items():
        made = found.get(name, {})
        pairs = (PUBLISHED.get(name), (made["states"], made["transitions"]) if made else None)
        shown = [f"{pair[0]} / {pair[1]}" if pair else "-" for pair in pairs]
        lines.append([of, *shown, str(made.get("accepting", "-"))])
    notes = [
        f"states / transitions; merges: {merges} (no prefix, no byte fallback)",
        f"published: in the companion notebook; the article's text says {IN_THE_TEXT} states of "
        "the lift",
        "DirectMerge changes the automaton that it is given: in the article that is interegular's, "
        "which is not minimal, as `true` and `false` end apart in it",
    ]
    columns = [BOOLEAN, "published", "measured", "accepting states"]
    return Table("In the text, and Figures 2 and 3: size of the automata", columns, lines, notes)
