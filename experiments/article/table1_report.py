"""Table 1 and the numbers of the text, published beside measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from bpe_automata.constructions import CartesianMerge, Lift, explore
from bpe_automata.reference import (
    TokenDFA,
    direct_merge,
    explicit,
    lift,
    merges_in_order,
    replay,
    spelled_in_symbols,
    symbol_dfa,
)
from bpe_automata.testing import small_tokenizer
from bpe_automata.tokenizer.description import Description
from experiments.article.mistral import name_of
from experiments.run.executors import Row
from experiments.run.files import require
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.tables import Table
from experiments.study.distortion import BOOLEAN

# States and transitions of the article's example, with the Mistral-7B merge table alone.

PUBLISHED_SIZES = {"lift": (17, 48), "direct_of_given": (5, 4)}
"""States and transitions: drawn in the article's companion notebook, Tran-Thien 2024, which prints
the 48."""
IN_THE_TEXT = 16
"""States of the lift by the article's text, beside 48 transitions."""
INSTALL = "pip install 'interegular>=0.3.3'"


def measured(table: Tokenizer) -> dict[str, Row]:
    """By name: states, transitions, and how many of the states accept. table: BPE alone."""
    return {name: automaton_sizes(automaton) for name, automaton in automata(table).items()}


def automaton_sizes(automaton: TokenAutomaton) -> Row:
    """An automaton in numbers."""
    accepting = int(automaton.accepting.sum())
    states, transitions = automaton.n_states, automaton.n_transitions
    return {"states": states, "transitions": transitions, "accepting": accepting}


def automata(table: Tokenizer) -> dict[str, TokenAutomaton]:
    """The lift and DirectMerge of the reference, and what the package makes. DirectMerge changes
    the automaton that it is given, so it matters whether that one is minimal: the article gave it
    the one that interegular makes of the regex, in which `true` and `false` end apart."""
    description, dfa = table.description, compile_regex(BOOLEAN)
    merges = merges_in_order(description)
    minimal, spelled = symbol_dfa(description, dfa), table.spellings
    symbols = spelled_in_symbols([*description.base.values()], merges)
    given = interegular_dfa(description, BOOLEAN)
    lifted, canonical = Lift(table, dfa), CartesianMerge(table, dfa)
    return {
        "lift": explicit(lift(minimal, symbols), spelled),
        "direct_of_given": explicit(direct_merge(given, merges), spelled),
        "direct_of_minimal": explicit(direct_merge(minimal, merges), spelled),
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
PUBLISHED_MERGES = (
    ("a", "a", "a", "a", "b", "a", "a", "c", "a", "c"),
    ("a", "a", "a", "ab", "a", "a", "c", "a", "c"),
    ("aa", "a", "ab", "aa", "c", "a", "c"),
    ("aa", "a", "ab", "aa", "c", "ac"),
)
"""The tokens before the first merge and after each one; Tran-Thien 2024, Table 1."""
_TITLE = "Table 1: a text merge by merge"


def steps() -> Row:
    """steps: the tokens before the first merge and after each one, by the reference; encoded: what
    the package makes of the text at once."""
    tokenizer = small_tokenizer(TOKENS, MERGES)
    merges = merges_in_order(tokenizer.description)
    ids = [TOKENS.index(letter) for letter in TEXT]
    found = [replay(ids, merges[:done]) for done in range(len(merges) + 1)]
    return {
        "kind": "merges",
        "steps": [_spelled(tokens) for tokens in found],
        "encoded": _spelled(tokenizer.encode(TEXT)),
    }


def _spelled(ids: Sequence[int]) -> list[str]:
    return [TOKENS[token] for token in ids]


def table(row: Row | None) -> Table:
    """A line for each step."""
    names = ["single letters", *(f"after merge ({left}, {right})" for left, right in MERGES)]
    found = row["steps"] if row else [[] for _ in names]
    lines = [
        [name, _shown(published), _shown(made) if made else "-"]
        for name, published, made in zip(names, PUBLISHED_MERGES, found, strict=True)
    ]
    if row:
        lines.append(["`encode`, all at once", "", _shown(row["encoded"])])
    notes = ["The order of the merges counts, and the order of the letters."]
    return Table(_TITLE, [f"`{TEXT}`", "published", "measured"], lines, notes)


def _shown(tokens: Sequence[str]) -> str:
    return "+".join(f"`{token}`" for token in tokens)


def is_published(row: Row) -> bool:
    """Do all steps, and `encode`, come out as published?"""
    return [*row["steps"], row["encoded"]] == [
        list(s) for s in (*PUBLISHED_MERGES, PUBLISHED_MERGES[-1])
    ]


COLUMNS = {
    "free": "unconstrained",
    "lift": "any tokenization\n(Outlines)",
    "canonical": "its own tokenization\n(DirectMerge, CartesianMerge)",
}
PUBLISHED: dict[str, tuple[float, float]] = {
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


def report(rows: Sequence[Row], manifest: Row) -> Report:
    """Of whatever rows there are."""
    by_kind = {row.get("kind"): row for row in rows}
    found, measured = by_kind.get("laws"), by_kind.get("sizes", {}).get("sizes", {})
    merged = by_kind.get("merges")
    tables = [
        table(merged),
        laws(found),
        sizes(measured, name_of(manifest["config"]["merges"])),
    ]
    return Report(
        "Table 1 of the article, and the numbers of its text",
        tables,
        facts=facts(found) | {"sizes": measured},
        wrong=[] if merged is None or is_published(merged) else [DIFFERENT],
    )


def facts(row: Row | None) -> Row:
    """model: that was measured; william: what the answer ` William` has of both, by column, and
    when decoding step by step, by method."""
    if row is None:
        return {}
    step_by_step = {method: law[0] for method, law in row["masked"].items()}
    return {"model": row["model"], "william": _shares(row), "william_step_by_step": step_by_step}


def readme(facts: Row) -> str:
    """The sizes of the article's example."""
    if not facts["sizes"]:
        return f"The article's example `{BOOLEAN}` was not measured."
    lift, given, minimal = (
        "{states} states and {transitions} transitions".format(**facts["sizes"][name])
        for name in ("lift", "direct_of_given", "direct_of_minimal")
    )
    same = all(
        (facts["sizes"][name]["states"], facts["sizes"][name]["transitions"]) == published
        for name, published in PUBLISHED_SIZES.items()
    )
    verdict = "comes out as in its companion notebook"
    if not same:
        verdict = "does not come out as in its companion notebook"
    return wrapped(
        f"The article's example `{BOOLEAN}` {verdict}: {lift} under the lift, {given} by "
        f"DirectMerge ({minimal} if one begins with the minimal automaton)."
    )


def _shares(masses: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Of the first answer, by column."""
    return {column: masses[column][0] / sum(masses[column]) for column in COLUMNS}


def laws(row: Row | None) -> Table:
    """Mass of both answers and what it makes of the first, published beside measured."""
    lines = _lines(PUBLISHED_MODEL, PUBLISHED, PUBLISHED_SHARES)
    notes = [
        "unconstrained: probability of each answer, summed over all its tokenizations; the other "
        "columns: of the shortest sequences of ids that lead to one answer only",
        "step by step: the law of what a masked model writes, renormalised at each step",
        "published: Tran-Thien 2024, printed by the companion notebook; the article has the shares "
        "to five digits",
    ]
    if row is not None:
        lines += _lines(f"{row['model']} (measured)", row, _shares(row))
        step_by_step = [f"{row['masked'][method][0]:.6f}" for method in ("lift", "canonical")]
        lines.append(["", "the same, decoding step by step", "", *step_by_step])
        question = row["prompt"].replace("\n", " ")
        notes = [f"prompt: {question}", *notes, *([row["note"]] if row["note"] else [])]
    columns = ["model", "answer", *COLUMNS.values()]
    return Table("In the text: what constraining does to a law", columns, lines, notes)


def _lines(model: str, masses: Mapping[str, Any], shares: Mapping[str, float]) -> list[list[str]]:
    """A line per answer, and one for the share of the first."""
    first, second = ([f"{masses[column][i]:.6g}" for column in COLUMNS] for i in (0, 1))
    return [
        [model, "‘ William’", *first],
        ["", "‘ Theodore’", *second],
        ["", "William of the two", *(f"{shares[column]:.6f}" for column in COLUMNS)],
    ]


def sizes(found: Row, table: str) -> Table:
    """States and transitions, published beside measured; table: whose merges."""
    lines = []
    for name, title in SIZES.items():
        published = PUBLISHED_SIZES.get(name)
        cells = [" / ".join(map(str, published)) if published else "-", "-", "-"]
        if measured := found.get(name):
            cells[1] = f"{measured['states']} / {measured['transitions']}"
            cells[2] = str(measured["accepting"])
        lines.append([title, *cells])
    notes = [
        f"states / transitions; merges: {table} (no prefix, no byte fallback)",
        f"published: in the companion notebook; the article's text says {IN_THE_TEXT} states of "
        "the lift",
        "DirectMerge changes the automaton that it is given: in the article that is interegular's, "
        "which is not minimal, as `true` and `false` end apart in it",
    ]
    columns = [BOOLEAN, "published", "measured", "accepting states"]
    return Table("In the text, and Figures 2 and 3: size of the automata", columns, lines, notes)
