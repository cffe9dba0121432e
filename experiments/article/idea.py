"""Figure 1: from a regex to masks. The automaton over characters, the automaton over tokens that is
made of it (the lift), and what it allows while a text is decoded."""

from __future__ import annotations

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from bpe_automata.constructions import Lift, explore
from bpe_automata.kernels.bits import members
from bpe_automata.reference import explicit, symbol_dfa
from bpe_automata.testing import small_tokenizer
from experiments.article.panels import Page, Panel
from experiments.article.pictures import drawing_of
from experiments.article.squares import Squares, Step

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
