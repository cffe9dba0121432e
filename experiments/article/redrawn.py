"""The article's figures, redrawn from what the library computes.

In the article (Tran-Thien 2024): 1 a regex over characters, over tokens, and as masks; 2 the
example `boolean: ((true)|(false))` under the lift and 3 under DirectMerge; 4 a step of DirectMerge;
5 the target language as an intersection; 6 Vegas configurations. They show automata, of which ours
are the library's own, not copies.

Measured besides is what the companion notebook plots: how preprocessing and mask times are
distributed over function-calling schemas. (Its growth of a repeated `.` is part of `growth`.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from bpe_automata.constructions import Lift, explore
from bpe_automata.errors import ArgumentError
from bpe_automata.kernels.bits import members
from bpe_automata.reference import explicit, symbol_dfa
from bpe_automata.testing import small_tokenizer
from experiments.article import costs
from experiments.article.costs import measured, regexes_of_file, regexes_of_schemas, some
from experiments.article.mistral import MISTRAL, NAME, mistral, mistral_table
from experiments.article.panels import (
    Page,
    Panel,
    Squares,
    Step,
    drawing_of,
    drawn,
    page_of,
    row_of,
)
from experiments.article.product import figure_5
from experiments.article.steps import figure_4
from experiments.article.table1_report import IN_THE_TEXT, PUBLISHED_SIZES, automata
from experiments.article.vegas import figure_6
from experiments.engines.named import versions
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.measuring import Run
from experiments.run.report import Report
from experiments.study.distortion import BOOLEAN

# Figures 2 and 3: the article's example under the lift and under DirectMerge, with the Mistral-7B
# merge table alone.


def figure_2() -> Page:
    """The lift."""
    found = _automata()
    note = (
        f"{NAME}. Published: {_words(*PUBLISHED_SIZES['lift'])}, in the companion notebook; "
        f"the article's text says {IN_THE_TEXT} states."
    )
    return _page(2, f"{BOOLEAN} over any tokenization (the lift, Outlines)", found["lift"], note)


def figure_3() -> Page:
    """DirectMerge."""
    found = _automata()
    minimal = found["direct_of_minimal"]
    note = (
        f"{NAME}. Published: {_words(*PUBLISHED_SIZES['direct_of_given'])}. DirectMerge was given "
        "interegular's automaton, as in the article; from the minimal one it makes "
        f"{_words(minimal.n_states, minimal.n_transitions)}."
    )
    headline = f"{BOOLEAN} over the tokenizer's own tokenization (DirectMerge)"
    return _page(3, headline, found["direct_of_given"], note)


@lru_cache(maxsize=1)
def _automata() -> dict[str, TokenAutomaton]:
    return automata(mistral_table())


def _page(number: int, headline: str, automaton: TokenAutomaton, note: str) -> Page:
    size = _words(automaton.n_states, automaton.n_transitions)
    return Page(((Panel(size, drawing_of(automaton)),),), f"Figure {number}. {headline}", note)


def _words(states: int, transitions: int) -> str:
    return f"{states} states, {transitions} transitions"


# Figure 1: from a regex to masks. The automaton over characters, the automaton over tokens that is
# made of it (the lift), and what it allows while a text is decoded.

REGEX = "a*b*"
TOKENS = ("a", "b", "aa", "ab", "abb", "bb")
MERGES = (("a", "a"), ("b", "b"), ("a", "b"), ("a", "bb"))
DECODED = ("aa", "abb", "b")
HEADLINE = f"Figure 1. From characters to tokens to masks: the regex {REGEX}"
NOTE = (
    f"Tokens: {', '.join(TOKENS)}. As in the article, the masks are those of the lift: every "
    "tokenization of a matching text is allowed."
)


def figure_1() -> Page:
    """Two automata above, the masks below."""
    tokenizer = small_tokenizer(TOKENS, MERGES)
    lift = Lift(tokenizer, compile_regex(REGEX))
    characters = drawing_of(characters_of(tokenizer, REGEX))
    tokens = drawing_of(explore(lift, lift.initial()))
    steps = steps_along(tokenizer, lift, DECODED)
    title = "Masks at decoding time: what may come next (chosen: dark)"
    height = 0.42 * (len(steps) + 1)
    rows = (
        (
            Panel("Over characters", characters, width=2.4),
            Panel("Over tokens (the lift)", tokens, width=3.4),
        ),
        (Panel(title, squares=Squares(TOKENS, steps), width=6.2, height=height),),
    )
    return Page(rows, HEADLINE, NOTE)


def characters_of(tokenizer: Tokenizer, regex: str) -> TokenAutomaton:
    """The automaton that reads one base symbol at a time."""
    return explicit(symbol_dfa(tokenizer.description, compile_regex(regex)), tokenizer.spellings)


def steps_along(tokenizer: Tokenizer, lift: Lift, decoded: tuple[str, ...]) -> tuple[Step, ...]:
    """What may come at each step of a text, its end included."""
    state, steps = lift.initial(), []
    for place, token in enumerate([*decoded, ""]):
        allowed = tuple(tokenizer.decode([i]) for i in members(lift.mask(state)).tolist())
        steps.append(Step(" ".join(decoded[:place]) or "(nothing yet)", allowed, token))
        if token:
            state = lift.step(state, TOKENS.index(token))
    return tuple(steps)


VERSION = 2
PAGES: dict[str, Callable[[], Page]] = {
    "figure1": figure_1,
    "figure2": figure_2,
    "figure3": figure_3,
    "figure4": figure_4,
    "figure5": figure_5,
    "figure6": figure_6,
}


@dataclass(frozen=True)
class Config(config.Config):
    """Which figures, and of what regexes times are measured."""

    pages: tuple[str, ...] = option(tuple(PAGES), "which figures, separated by commas")
    regexes: Path | None = option(
        None, 'JSON lines with a "regex" each (none: the schemas of functions of this repository)'
    )
    n: int | None = option(None, "how many of them, drawn at random (none: all)")


SMOKE = Config(pages=("figure1", "figure2"), n=2)


def measure(run: Run[Config]) -> None:
    """A row per figure, and one per regex."""
    pages, given = run.config.pages, run.config.regexes
    if unknown := set(pages) - set(PAGES):
        raise ArgumentError(f"--pages: {min(unknown)!r} is none of {', '.join(PAGES)}")
    named = regexes_of_schemas() if given is None else regexes_of_file(given)
    seed = run.config.seed
    chosen = some(named, run.config.n, seed)
    mistral()  # that it is not installed is one error, not one for each row
    run.note(tokenizer=MISTRAL, peers=versions(["outlines_core"]))
    run.cells([Cell(name, page_row, (name,)) for name in pages], alone=True, what="figures")
    cells = [
        Cell(f"regex {place}: {name}", measured, (name, regex, seed))
        for place, (name, regex) in enumerate(chosen)
    ]
    run.cells(cells, alone=True, what="times")


def page_row(name: str) -> Row:
    """What a figure shows."""
    return {"kind": "page"} | row_of(PAGES[name]())


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """All that there are rows of."""
    by_key = {row["key"]: row for row in rows}
    regexes = [row for row in rows if row.get("kind") == "regex"]
    given = manifest["config"]["regexes"]
    what = "Function-calling schemas" if given is None else f"Regexes of {given}"
    pages = [name for name in PAGES if by_key.get(name, {}).get("kind") == "page"]
    figures = [drawn(page_of(by_key[name]), name) for name in pages]
    return Report(
        "The article's figures, redrawn",
        [costs.table(regexes)],
        [*figures, *([costs.draw(regexes, what)] if regexes else [])],
        {"times": costs.summaries(regexes), "regexes": len(regexes)},
    )
