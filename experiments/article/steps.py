"""Figure 4: one merge of DirectMerge, by what surrounds the state between its two tokens."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from bpe_automata.reference import TokenDFA, merge_pair, merge_twin
from experiments.article.panels import Page, Panel, drawing_of_dfa

HEADLINE = "Figure 4. DirectMerge at one state S, before and after"
NOTE = (
    "Above, a merge a b → ab (Algorithm 1), by what else comes to S and leaves it; below, which "
    "the article's figure has not, a merge a a → aa (Algorithm 2). S′ is new."
)
A, B, MADE, X, Y = range(5)
TOKENS = {A: "a", B: "b", MADE: "ab", X: "x", Y: "y"}
TWIN_TOKENS = {**TOKENS, MADE: "aa"}
PER_LINE = 2


@dataclass(frozen=True)
class Case:
    """title; transitions between named states, in the order in which they are drawn; start and
    accepting states; twin: the merge is (a, a)."""

    title: str
    transitions: tuple[tuple[str, int, str], ...]
    accepting: tuple[str, ...] = ("Q",)
    start: str = "P"
    twin: bool = False

    def before(self) -> TokenDFA:
        """As it is given."""
        return TokenDFA.of(self.transitions, self.start, self.accepting)

    def after(self) -> TokenDFA:
        """As one merge leaves it."""
        merged = self.before()
        if self.twin:
            merge_twin(merged, A, MADE)
        else:
            merge_pair(merged, A, B, MADE)
        return merged

    def panels(self) -> list[Panel]:
        """Before, and after."""
        named: dict[Hashable, str] = {name: name for name in self.names()}
        tokens = TWIN_TOKENS if self.twin else TOKENS
        drawings = [drawing_of_dfa(dfa, tokens, named) for dfa in (self.before(), self.after())]
        return [Panel(self.title, drawings[0]), Panel(), Panel("", drawings[1])]

    def names(self) -> Sequence[str]:
        """The states, as they appear."""
        ends = (name for source, _, target in self.transitions for name in (source, target))
        return [*dict.fromkeys((self.start, *ends))]


PLAIN = (("P", A, "S"), ("S", B, "Q"))
MIXED = (("P", A, "S"), ("P", X, "S"), ("S", B, "Q"), ("S", Y, "R"))
LOOPS = (("P", X, "S"), ("S", A, "S"), ("S", B, "S"), ("S", Y, "R"))
TWIN = (("P", A, "S"), ("P", X, "S"), ("S", A, "Q"), ("S", Y, "R"))
CASES = (
    Case("nothing else: S goes", PLAIN),
    Case("S accepts: only b goes", PLAIN, accepting=("S", "Q")),
    Case("another token leaves: only b goes", (*PLAIN, ("S", Y, "R")), accepting=("Q", "R")),
    Case("another token comes: only a goes", (*PLAIN, ("P", X, "S"))),
    Case("S is the start: only a goes", (("S", B, "Q"), ("Q", A, "S")), start="S"),
    Case("both: S is split", MIXED, accepting=("Q", "R")),
    Case("both, with loops", LOOPS, accepting=("R",)),
    Case("a a, no loop", (("P", A, "S"), ("S", A, "Q")), twin=True),
    Case("a a, others come and leave", TWIN, ("Q", "R"), twin=True),
    Case("a a, with a loop", (("P", X, "S"), ("S", A, "S"), ("S", Y, "R")), ("R",), twin=True),
)


def figure_4() -> Page:
    """Two cases a line, each before and after."""
    lines = [CASES[i : i + PER_LINE] for i in range(0, len(CASES), PER_LINE)]
    rows = (tuple(panel for case in line for panel in case.panels()) for line in lines)
    return Page(tuple(rows), HEADLINE, NOTE)
