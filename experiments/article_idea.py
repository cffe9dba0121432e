"""Figure 1: from a regex to masks. The automaton over characters, the automaton over tokens that is
made of it (the lift), and what it allows while a text is decoded."""

from __future__ import annotations

from typing import Any

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from bpe_automata.constructions import Lift, explore
from bpe_automata.kernels.bits import members
from bpe_automata.reference import explicit, symbol_dfa
from bpe_automata.testing import small_tokenizer
from experiments.article_panels import Panel, drawing_of

REGEX = "a*b*"
TOKENS = ("a", "b", "aa", "ab", "abb", "bb")
MERGES = (("a", "a"), ("b", "b"), ("a", "b"), ("a", "bb"))
DECODED = ("aa", "abb", "b")
HEADLINE = f"Figure 1. From characters to tokens to masks: the regex {REGEX}"
NOTE = (
    f"Tokens: {', '.join(TOKENS)}. As in the article, the masks are those of the lift: every "
    "tokenization of a matching text is allowed."
)
ALLOWED, CHOSEN, FORBIDDEN = "#7fc4cc", "#00798c", "#f2f2f2"


def figure_1() -> list[list[Panel]]:
    """Two automata above, the masks below."""
    tokenizer = small_tokenizer(TOKENS, MERGES)
    lift = Lift(tokenizer, compile_regex(REGEX))
    characters = characters_of(tokenizer, REGEX)
    tokens = explore(lift, lift.initial())
    rows = masks_along(tokenizer, lift, DECODED)
    table = Panel(
        "Masks at decoding time: what may come next (chosen: dark)",
        draw=lambda axes: draw_masks(axes, rows),
        width=6.2,
        height=0.42 * (len(rows) + 1),
    )
    automata = [
        Panel("Over characters", drawing_of(characters), width=2.4),
        Panel("Over tokens (the lift)", drawing_of(tokens), width=3.4),
    ]
    return [automata, [table]]


def characters_of(tokenizer: Tokenizer, regex: str) -> TokenAutomaton:
    """The automaton that reads one base symbol at a time."""
    return explicit(symbol_dfa(tokenizer.description, compile_regex(regex)), tokenizer.spellings)


def masks_along(
    tokenizer: Tokenizer, lift: Lift, decoded: tuple[str, ...]
) -> list[tuple[str, set[str], str]]:
    """At each step: the tokens so far, those that may come, the one that does ("": the end)."""
    state, rows = lift.initial(), []
    for place, token in enumerate([*decoded, ""]):
        allowed = {tokenizer.decode([i]) for i in members(lift.mask(state)).tolist()}
        so_far = " ".join(decoded[:place]) or "(nothing yet)"
        rows.append((so_far, allowed, token))
        if token:
            state = lift.step(state, TOKENS.index(token))
    return rows


def draw_masks(axes: Any, rows: list[tuple[str, set[str], str]]) -> None:
    """A line per step, a square per token."""
    for line, (so_far, allowed, chosen) in enumerate(rows):
        axes.text(-0.7, -line, so_far, ha="right", va="center", fontsize=10, family="monospace")
        for column, token in enumerate(TOKENS):
            color = ALLOWED if token in allowed else FORBIDDEN
            if token == chosen:
                color = CHOSEN
            below = -line - 0.4
            axes.bar(column, 0.8, 0.9, below, color=color)
            shown = "white" if token == chosen else "#222222" if token in allowed else "#bbbbbb"
            place = {"ha": "center", "va": "center", "fontsize": 10, "family": "monospace"}
            axes.text(column, -line, token, color=shown, **place)
    axes.set_xlim(-3.4, len(TOKENS))
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.axis("off")
