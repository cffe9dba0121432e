"""The six figures of the article (Tran-Thien 2024) as pages of automata that the library computes.

1 a regex over characters, over tokens, and as masks; 2 and 3 `boolean: ((true)|(false))` under the
lift and under DirectMerge; 4 one merge of DirectMerge; 5 the target language as an
intersection; 6 Vegas configurations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.explicit import explore
from bpe_automata._constructions.lift import Lift
from bpe_automata._constructions.segments import Segments
from bpe_automata._kernels.bits import members
from bpe_automata.reference import (
    CartesianProduct,
    TokenDFA,
    explicit,
    merge_pair,
    merge_twin,
    symbol_dfa,
)
from bpe_automata.testing import small_tokenizer
from bpe_automata.viz import Drawing
from experiments.answers.cases import BOOLEAN
from experiments.artefacts.distortion import MERGES, SIZES, TOKENS, automata
from experiments.article.mistral import MISTRAL, NAME, Reference, mistral, mistral_table
from experiments.article.redrawn_panels import (
    Page,
    Panel,
    Squares,
    Step,
    drawing_of,
    drawing_of_dfa,
)

# Figure 1: from a regex to masks. The automaton over characters, the lift of it to tokens, and
# what the lift allows while a text is decoded.

REGEX_1 = "a*b*"
LIFT, DIRECT, MINIMAL = [*SIZES][:3]
TOKENS_1 = ("a", "b", "aa", "ab", "abb", "bb")
MERGES_1 = (("a", "a"), ("b", "b"), ("a", "b"), ("a", "bb"))
DECODED = ("aa", "abb", "b")
HEADLINE_1 = f"Figure 1. From characters to tokens to masks: the regex {REGEX_1}"
NOTE_1 = (
    f"Tokens: {', '.join(TOKENS_1)}. As in the article, the masks are those of the lift: every "
    "tokenization of a matching text is allowed."
)


def figure_1() -> Page:
    """Two automata above, the masks below."""
    tokenizer = small_tokenizer(TOKENS_1, MERGES_1)
    lift = Lift(tokenizer, compile_regex(REGEX_1))
    characters = drawing_of(characters_of(tokenizer, REGEX_1))
    tokens = drawing_of(explore(lift, lift.initial()))
    steps = steps_along(tokenizer, lift, DECODED)
    title = "Masks at decoding time: what may come next (chosen: dark)"
    height = 0.42 * (len(steps) + 1)
    rows = (
        (
            Panel("Over characters", characters, width=2.4),
            Panel("Over tokens (the lift)", tokens, width=3.4),
        ),
        (Panel(title, squares=Squares(TOKENS_1, steps), width=6.2, height=height),),
    )
    return Page(rows, HEADLINE_1, NOTE_1)


def characters_of(tokenizer: Tokenizer, regex: str) -> TokenAutomaton:
    """The automaton that reads one base symbol at a time."""
    return explicit(symbol_dfa(tokenizer.description, compile_regex(regex)), tokenizer.spellings)


def steps_along(tokenizer: Tokenizer, lift: Lift, decoded: tuple[str, ...]) -> tuple[Step, ...]:
    """What may come at each step of a text, its end included."""
    state, steps = lift.initial(), []
    for read, token in enumerate([*decoded, ""]):
        allowed = tuple(tokenizer.decode([i]) for i in members(lift.mask(state)).tolist())
        steps.append(Step(" ".join(decoded[:read]) or "(nothing yet)", allowed, token))
        if token:
            state = lift.step(state, TOKENS_1.index(token))
    return tuple(steps)


# Figures 2 and 3: the article's example, with the Mistral-7B merge table alone.


def figure_2() -> Page:
    """The lift."""
    found = _automata()
    note = (
        f"{NAME}. Published: {_words(17, 48)}, in the companion notebook; "
        f"the article's text says 16 states."
    )
    return _page(2, f"{BOOLEAN} over any tokenization (the lift, Outlines)", found[LIFT], note)


def figure_3() -> Page:
    """DirectMerge."""
    found = _automata()
    minimal = found[MINIMAL]
    note = (
        f"{NAME}. Published: {_words(5, 4)}. DirectMerge was given "
        "interegular's automaton, as in the article; from the minimal one it makes "
        f"{_words(minimal.n_states, minimal.n_transitions)}."
    )
    headline = f"{BOOLEAN} over the tokenizer's own tokenization (DirectMerge)"
    return _page(3, headline, found[DIRECT], note)


@lru_cache(maxsize=1)
def _automata() -> dict[str, TokenAutomaton]:
    return automata(mistral_table())


def _page(number: int, headline: str, automaton: TokenAutomaton, note: str) -> Page:
    size = _words(automaton.n_states, automaton.n_transitions)
    return Page(((Panel(size, drawing_of(automaton)),),), f"Figure {number}. {headline}", note)


def _words(states: int, transitions: int) -> str:
    return f"{states} states, {transitions} transitions"


# Figure 4: one merge of DirectMerge, by the transitions at the state between its two tokens.

HEADLINE_4 = "Figure 4. DirectMerge at one state S, before and after"
NOTE_4 = (
    "Above, a merge a b → ab (Algorithm 1), by what else comes to S and leaves it; below, which "
    "the article's figure has not, a merge a a → aa (Algorithm 2). S′ is new."
)
A, B, MADE, X, Y = range(5)
TOKENS_4 = {A: "a", B: "b", MADE: "ab", X: "x", Y: "y"}
TWIN_TOKENS = {**TOKENS_4, MADE: "aa"}
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
        tokens = TWIN_TOKENS if self.twin else TOKENS_4
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
    return Page(tuple(rows), HEADLINE_4, NOTE_4)


# Figure 5: the target language as an intersection. The automaton of all texts (Algorithm 3) and
# its product with a lift (CartesianMerge), for the merges of the article's Table 1.

REGEX_5 = "a*(b|c)"
HEADLINE_5 = "Figure 5. CartesianMerge: the tokenizer's own tokenizations of all texts, and a lift"
NOTE_5 = (
    f"Merges a b, a a, a c in this order; the regex is {REGEX_5}. All texts: every state "
    "accepts, and a token leads to one state wherever it is read."
)


def figure_5() -> Page:
    """All texts, the lift, and the relevant part of their product."""
    texts, lifted, product = automata_5()
    tokens = dict(enumerate(TOKENS))
    of_texts = names(texts, "012")
    of_lift = names(lifted, "pq")
    of_both: dict[Hashable, str] = {
        (state, text): name + number
        for state, name in of_lift.items()
        for text, number in of_texts.items()
    }
    panels = (
        Panel("The automaton of all texts (Algorithm 3)", drawing_of_dfa(texts, tokens, of_texts)),
        Panel(f"The lift of {REGEX_5}", drawing_of_dfa(lifted, tokens, of_lift)),
        Panel("The relevant part of their product", drawing_of_dfa(product, tokens, of_both)),
    )
    return Page((panels,), HEADLINE_5, NOTE_5)


def names(dfa: TokenDFA, letters: str) -> dict[Hashable, str]:
    """Short names, that of the start first."""
    others = sorted(dfa.states() - {dfa.start}, key=str)
    return dict(zip([dfa.start, *others], letters, strict=False))


def automata_5() -> tuple[TokenDFA, TokenDFA, TokenDFA]:
    """All texts, the lift, their product."""
    reference = Reference(small_tokenizer(TOKENS, MERGES))
    texts, lifted = reference.texts, reference.lifted(compile_regex(REGEX_5))
    return texts.automaton(), lifted, CartesianProduct(lifted, texts).automaton()


# Figure 6: a Vegas configuration, that is a part between delimiters that merge with nothing, is
# computed and stored once, however often it stands in a regex.

REGEX_6 = r"day:\n(sunny|rainy|dull)\nnight:\n(sunny|rainy|dull)\n"
HEADLINE_6 = "Figure 6. What stands between delimiters that merge with nothing is computed once"
SEGMENT = "V"
_LABELS = 9  # of one arrow, at most: all of those here


@dataclass(frozen=True)
class Segmented:
    """whole: the automaton, all states written out; outline: the same with one transition,
    `SEGMENT`, wherever the part stands that stands in several places; part: that one."""

    whole: Drawing
    outline: Drawing
    part: Drawing


def figure_6() -> Page:
    """Above without segments, below with them."""
    found = segmented(mistral(), REGEX_6)
    rows = (
        (Panel(f"All states written out: {found.whole.size()}", found.whole),),
        (Panel(f"With one segment by its name: {found.outline.size()}", found.outline),),
        (Panel(f"The segment {SEGMENT}, stored once: {found.part.size()}", found.part),),
    )
    note = (
        f"The regex is {REGEX_6}, the tokenizer {MISTRAL}, complete. Nothing merges with a line "
        "break, so that what stands between two of them depends on nothing else: the library finds "
        "the segments, and that they are equal."
    )
    return Page(rows, HEADLINE_6, note)


def segmented(tokenizer: Tokenizer, regex: str) -> Segmented:
    """Of a regex with one part of more than one id that stands in several places, and has one
    exit."""
    dfa, n_ids = compile_regex(regex), tokenizer.n_ids
    engine, placed = CartesianMerge(tokenizer, dfa), Segments(tokenizer).placed(dfa)
    copies = Counter(id(part) for part, _ in placed)
    (several,) = (
        part
        for part in {id(part): part for part, _ in placed}.values()
        if copies[id(part)] > 1 and part.table.n_states > 2
    )
    listed, accepting = list[tuple[Hashable, int, Hashable]](), list[Hashable]()
    for place, (part, leads_to) in enumerate(placed):
        if part is several:
            listed.append(((place, 0), n_ids, (leads_to[0], 0)))
            continue
        read = [*part.table.transitions()]
        exits = {state: (leads_to[i - n_ids], 0) for state, i, _ in read if i >= n_ids}
        listed += [((place, p), i, exits.get(q, (place, q))) for p, i, q in read if i < n_ids]
        ends = np.flatnonzero(part.table.accepting).tolist()
        accepting += [(place, state) for state in ends if state not in exits]
    spelled = [*tokenizer.spellings, SEGMENT.encode()]
    outline = TokenAutomaton.from_transitions(listed, (0, 0), accepting, spellings=spelled)
    own = [(p, i, q) for p, i, q in several.table.transitions() if i < n_ids]
    ends = np.flatnonzero(several.table.accepting).tolist()
    alone = TokenAutomaton.from_transitions(own, 0, ends, spellings=spelled)
    whole = explore(engine, engine.initial())
    return Segmented(*(drawing_of(each, _LABELS) for each in (whole, outline, alone)))


PAGES: dict[str, Callable[[], Page]] = {
    "figure1": figure_1,
    "figure2": figure_2,
    "figure3": figure_3,
    "figure4": figure_4,
    "figure5": figure_5,
    "figure6": figure_6,
}
"""By the name of its files."""
