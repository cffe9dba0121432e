"""The article's figures, redrawn from what the library computes.

The figures of the article (Tran-Thien 2024) show: 1 a regex over characters, over tokens, and as
masks; 2 the example `boolean: ((true)|(false))` under the lift, and 3 under DirectMerge; 4 a step
of DirectMerge; 5 the target language as an intersection; 6 Vegas configurations. The automata in
ours are made by the library, not copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from bpe_automata._kernels.bits import members
from bpe_automata.constructions.cartesian_merge import CartesianMerge
from bpe_automata.constructions.explicit import explore
from bpe_automata.constructions.lift import Lift
from bpe_automata.constructions.segments import Segments
from bpe_automata.reference import (
    CartesianProduct,
    TokenDFA,
    explicit,
    merge_pair,
    merge_twin,
    symbol_dfa,
)
from bpe_automata.testing import small_tokenizer
from bpe_automata.viz import Drawing, Edge, Node, edge_label, plot
from bpe_automata.viz import figure as natural
from experiments.artefacts.distortion import BOOLEAN, MERGES, SIZES, TOKENS, automata
from experiments.inputs import tokenizer_of
from experiments.lab import Row
from experiments.mistral import MISTRAL, NAME, Reference, mistral_table
from experiments.show import CANONICAL, Figure, Table

TITLE = "The article's figures, redrawn"


@dataclass(frozen=True)
class Config:
    """pages: which figures are drawn."""

    pages: tuple[str, ...] = tuple(f"figure{k}" for k in range(1, 7))


SMOKE = Config(("figure1", "figure4"))


def cells(config: Config) -> list[Row]:
    """A cell is a figure."""
    return [{"page": page} for page in config.pages]


def measure(config: Config, page: str) -> list[Row]:
    """The panels of a figure."""
    del config
    headline, note, lines = PAGES[page]()
    said = {"headline": headline, "note": note}
    return [{"line": k, **panel, **said} for k, line in enumerate(lines) for panel in line]


# Drawings: dictionaries of JSON, as rows keep them.

Page = tuple[str, str, list[list[Row]]]
"""headline, note, lines of panels: {"title", "drawing"}, {"title", "squares"}, or an arrow."""


def panel(title: str, drawing: Drawing) -> Row:
    """The row of a panel that shows an automaton."""
    return {"title": title, "drawing": asdict(drawing)}


def drawing_of(automaton: TokenAutomaton, labels: int = 6) -> Drawing:
    """All states that the start leads to, numbered in the order of a search, and all arrows."""
    drawing = automaton.picture(labels=labels).drawing
    order = [i for i, node in enumerate(drawing.nodes) if node.start]
    for node in order:  # grows while we go
        order += dict.fromkeys(e.target for e in drawing.leaving(node) if e.target not in order)
    number = {node: i for i, node in enumerate(order)}
    nodes = [replace(drawing.nodes[q], label=str(i), start=i == 0) for i, q in enumerate(order)]
    edges = [
        replace(e, source=number[e.source], target=number[e.target])
        for e in drawing.edges
        if e.source in number
    ]
    return Drawing(tuple(nodes), tuple(sorted(edges, key=lambda e: (e.source, e.target))))


def drawing_of_dfa(
    dfa: TokenDFA, tokens: Mapping[int, str], names: Mapping[Hashable, str]
) -> Drawing:
    """A reference automaton; states without a name are new, and called S′."""
    order = [state for state in names if state in dfa.states()]
    order += sorted((state for state in dfa.states() if state not in names), key=str)
    number = {state: i for i, state in enumerate(order)}
    nodes = [Node(names.get(q, "S′"), q in dfa.accepting, q == dfa.start) for q in order]
    read: dict[tuple[int, int], list[int]] = {}
    for source, token, target in dfa.transitions():
        read.setdefault((number[source], number[target]), []).append(token)
    edges = [Edge(*ends, edge_label([tokens[t] for t in sorted(of)])) for ends, of in read.items()]
    return Drawing(tuple(nodes), tuple(sorted(edges, key=lambda e: (e.source, e.target))))


# The six figures.

TOKENS_1 = ("a", "b", "aa", "ab", "abb", "bb")
MERGES_1 = (("a", "a"), ("b", "b"), ("a", "b"), ("a", "bb"))


def figure_1() -> Page:
    """Two automata above; below them the masks along a text, that at its end included."""
    tokenizer, dfa = small_tokenizer(TOKENS_1, MERGES_1), compile_regex("a*b*")
    characters = explicit(symbol_dfa(tokenizer.description, dfa), tokenizer.spellings)
    lift = Lift(tokenizer, dfa)
    state, squares, decoded = lift.initial(), list[Row](), ("aa", "abb", "b")
    for read, token in enumerate([*decoded, ""]):
        allowed = [TOKENS_1[i] for i in members(lift.mask(state)).tolist()]
        so_far = " ".join(decoded[:read]) or "(nothing yet)"
        squares.append({"so far": so_far, "allowed": allowed, "chosen": token})
        if token:
            state = lift.step(state, TOKENS_1.index(token))
    above = [panel("Over characters", drawing_of(characters))]
    above.append(panel("Over tokens (the lift)", drawing_of(explore(lift, lift.initial()))))
    title = "Masks at decoding time: what may come next (chosen: dark)"
    note = f"""Tokens: {", ".join(TOKENS_1)}. As in the article, the masks are those of the lift:
        every tokenization of a matching text is allowed."""
    headline = "Figure 1. From characters to tokens to masks: the regex a*b*"
    return headline, note, [above, [{"title": title, "squares": squares}]]


def example(number: int, which: int, what: str, note: str) -> Page:
    """Figures 2 and 3: the article's example, with the Mistral-7B merge table alone."""
    found = automata(mistral_table())
    sizes = [f"{made.n_states} states, {made.n_transitions} transitions" for made in found.values()]
    picture = panel(sizes[which], drawing_of(found[[*SIZES][which]]))
    note = f"{NAME}. {note}".replace("MINIMAL", sizes[2])
    return f"Figure {number}. {BOOLEAN} {what}", note, [[picture]]


LIFTED = "Published: 17 states, 48 transitions, in the notebook; the article's text says 16 states."
MERGED = (
    "Published: 5 states, 4 transitions. DirectMerge was given interegular's automaton, as in the "
    "article; from the minimal one it makes MINIMAL."
)
A, B, MADE, X, Y = range(5)
PLAIN = (("P", A, "S"), ("S", B, "Q"))
MIXED = (("P", A, "S"), ("P", X, "S"), ("S", B, "Q"), ("S", Y, "R"))
LOOPS = (("P", X, "S"), ("S", A, "S"), ("S", B, "S"), ("S", Y, "R"))
TWIN = (("P", A, "S"), ("P", X, "S"), ("S", A, "Q"), ("S", Y, "R"))
CASES: dict[str, tuple[tuple[tuple[str, int, str], ...], tuple[str, ...], str]] = {
    "nothing else: S goes": (PLAIN, ("Q",), "P"),
    "S accepts: only b goes": (PLAIN, ("S", "Q"), "P"),
    "another token leaves: only b goes": ((*PLAIN, ("S", Y, "R")), ("Q", "R"), "P"),
    "another token comes: only a goes": ((*PLAIN, ("P", X, "S")), ("Q",), "P"),
    "S is the start: only a goes": ((("S", B, "Q"), ("Q", A, "S")), ("Q",), "S"),
    "both: S is split": (MIXED, ("Q", "R"), "P"),
    "both, with loops": (LOOPS, ("R",), "P"),
    "a a, no loop": ((("P", A, "S"), ("S", A, "Q")), ("Q",), "P"),
    "a a, others come and leave": (TWIN, ("Q", "R"), "P"),
    "a a, with a loop": ((("P", X, "S"), ("S", A, "S"), ("S", Y, "R")), ("R",), "P"),
}
"""By title: transitions, in the order in which they are drawn, accepting states and start."""


def merged(title: str) -> tuple[TokenDFA, TokenDFA]:
    """A case before and after one merge, which is (a, a) where the title begins with it."""
    transitions, accepting, start = CASES[title]
    before, after = (TokenDFA.of(transitions, start, accepting) for _ in range(2))
    if title.startswith("a a"):
        merge_twin(after, A, MADE)
    else:
        merge_pair(after, A, B, MADE)
    return before, after


def figure_4() -> Page:
    """Two cases a line, each before and after."""
    pairs = list[list[Row]]()
    for title, (transitions, _, start) in CASES.items():
        made = "aa" if title.startswith("a a") else "ab"
        tokens = {A: "a", B: "b", MADE: made, X: "x", Y: "y"}
        ends = (name for source, _, target in transitions for name in (source, target))
        names: dict[Hashable, str] = {name: name for name in dict.fromkeys((start, *ends))}
        before, after = (drawing_of_dfa(dfa, tokens, names) for dfa in merged(title))
        pairs.append([panel(title, before), {"title": ""}, panel("", after)])
    note = """Above, a merge a b → ab (Algorithm 1), by what else comes to S and leaves it; below,
        which the article's figure has not, a merge a a → aa (Algorithm 2). S′ is new."""
    lines = [one + other for one, other in zip(pairs[::2], pairs[1::2], strict=True)]
    return "Figure 4. DirectMerge at one state S, before and after", note, lines


REGEX_5 = "a*(b|c)"


def automata_5() -> tuple[TokenDFA, TokenDFA, TokenDFA]:
    """All texts over the merges of the article's Table 1, a lift, and their product."""
    reference = Reference(small_tokenizer(TOKENS, MERGES))
    texts, lifted = reference.texts, reference.lifted(compile_regex(REGEX_5))
    return texts.automaton(), lifted, CartesianProduct(lifted, texts).automaton()


def figure_5() -> Page:
    """All texts (Algorithm 3), the lift, and the relevant part of their product."""
    texts, lifted, product = automata_5()

    def named(dfa: TokenDFA, letters: str) -> dict[Hashable, str]:
        states = [dfa.start, *sorted(dfa.states() - {dfa.start}, key=str)]
        return dict(zip(states, letters, strict=False))

    of_texts, of_lift = named(texts, "012"), named(lifted, "pq")
    of_both: dict[Hashable, str] = {
        (q, t): name + number for q, name in of_lift.items() for t, number in of_texts.items()
    }
    titles = ("The automaton of all texts (Algorithm 3)", f"The lift of {REGEX_5}")
    each = zip(
        (*titles, "The relevant part of their product"),
        (texts, lifted, product),
        (of_texts, of_lift, of_both),
        strict=True,
    )
    tokens = dict(enumerate(TOKENS))
    line = [panel(title, drawing_of_dfa(dfa, tokens, names)) for title, dfa, names in each]
    note = f"""Merges a b, a a, a c in this order; the regex is {REGEX_5}. All texts: every state
        accepts, and a token leads to one state wherever it is read."""
    headline = (
        "Figure 5. CartesianMerge: the tokenizer's own tokenizations of all texts, and a lift"
    )
    return headline, note, [line]


REGEX_6 = r"day:\n(sunny|rainy|dull)\nnight:\n(sunny|rainy|dull)\n"


def segmented(tokenizer: Tokenizer, regex: str) -> tuple[Drawing, Drawing, Drawing]:
    """The whole automaton; the same with one transition, V, wherever the repeated part occurs; and
    that part. Exactly one part with more than one id is repeated, and it has one exit."""
    dfa, n_ids = compile_regex(regex), tokenizer.n_ids
    engine, placed = CartesianMerge(tokenizer, dfa), Segments(tokenizer).placed(dfa)
    copies = Counter(id(part) for part, _ in placed)
    unique = {id(part): part for part, _ in placed}.values()
    (several,) = (p for p in unique if copies[id(p)] > 1 and p.table.n_states > 2)
    listed, accepting = list[tuple[Hashable, int, Hashable]](), list[Hashable]()
    for at, (part, leads_to) in enumerate(placed):
        if part is several:
            listed.append(((at, 0), n_ids, (leads_to[0], 0)))
            continue
        read = [*part.table.transitions()]
        exits = {state: (leads_to[i - n_ids], 0) for state, i, _ in read if i >= n_ids}
        listed += [((at, p), i, exits.get(q, (at, q))) for p, i, q in read if i < n_ids]
        ends = np.flatnonzero(part.table.accepting).tolist()
        accepting += [(at, state) for state in ends if state not in exits]
    spelled = [*tokenizer.spellings, b"V"]
    outline = TokenAutomaton.from_transitions(listed, (0, 0), accepting, spellings=spelled)
    own = [(p, i, q) for p, i, q in several.table.transitions() if i < n_ids]
    ends = np.flatnonzero(several.table.accepting).tolist()
    alone = TokenAutomaton.from_transitions(own, 0, ends, spellings=spelled)
    every = (explore(engine, engine.initial()), outline, alone)
    one, other, third = (drawing_of(automaton, 9) for automaton in every)
    return one, other, third


def figure_6() -> Page:
    """The figure of segments: written out; with the repeated one as V; and that segment itself."""
    drawings = segmented(tokenizer_of(MISTRAL), REGEX_6)
    titles = (
        "All states written out",
        "With one segment by its name",
        "The segment V, stored once",
    )
    each = zip(titles, drawings, strict=True)
    lines = [[panel(f"{title}: {drawing.size()}", drawing)] for title, drawing in each]
    note = f"""The regex is {REGEX_6}, the tokenizer {MISTRAL}, complete. Nothing merges with a line
        break, so that what stands between two of them depends on nothing else: the library finds
        the segments, and that they are equal."""
    headline = "Figure 6. What stands between delimiters that merge with nothing is computed once"
    return headline, note, lines


PAGES: dict[str, Callable[[], Page]] = {
    "figure1": figure_1,
    "figure2": lambda: example(2, 0, "over any tokenization (the lift, Outlines)", LIFTED),
    "figure3": lambda: example(3, 1, "over the tokenizer's own (DirectMerge)", MERGED),
    "figure4": figure_4,
    "figure5": figure_5,
    "figure6": figure_6,
}

# What the rows say.


def tables(rows: pd.DataFrame) -> list[Table]:
    """None: this artefact has figures only."""
    del rows
    return []


def figure(rows: pd.DataFrame) -> list[Figure]:
    """A figure for each page."""
    return [figure_of(str(name), page) for name, page in rows.groupby("page", sort=False)]


def figure_of(name: str, page: pd.DataFrame) -> Figure:
    """Panels at one scale, at which the text of a drawing has 10 points."""
    lines = [line.to_dict("records") for _, line in page.groupby("line")]
    sizes = [[size_of(one) for one in line] for line in lines]
    single = len(lines[0]) > 1
    among = [line for line in sizes if len(line) > 1] if single else sizes
    widths = [max(line[k][0] for line in among) for k in range(len(among[0]))]
    heights = [max(height for _, height in line) + 0.3 for line in sizes]
    width = max(sum(widths) + 0.3 * len(widths) + 0.1, 7.5)
    height = sum(heights) + 0.3 * len(heights) + 0.9
    made, top = pyplot.figure(figsize=(width, height)), height - 0.5
    for line, row, tall in zip(lines, sizes, heights, strict=True):
        left = 0.2
        for one, (w, h), column in zip(line, row, widths, strict=False):
            made.text(left / width, (top - 0.16) / height, one["title"], fontsize=11)
            below = top - 0.3 - (tall - 0.3 + h) / 2
            fill(made.add_axes((left / width, below / height, w / width, h / height)), one)
            left += column + 0.3
        top -= tall + 0.3
    first = page.iloc[0]
    return Figure(made, first["headline"], " ".join(first["note"].split()), name)


def is_there(value: Any) -> bool:
    """Is it a value, not the nan of a column that the row does not have?"""
    return isinstance(value, dict | list)


def drawing_in(one: Row) -> Drawing:
    """The drawing that the row of a panel holds."""
    nodes = tuple(Node(**node) for node in one["drawing"]["nodes"])
    return Drawing(nodes, tuple(Edge(**edge) for edge in one["drawing"]["edges"]))


def size_of(one: Row) -> tuple[float, float]:
    """The size of a panel in inches."""
    if is_there(one.get("drawing")):
        width, height = natural(drawing_in(one)).get_size_inches()
        return max(float(width), 0.09 * len(one["title"])), float(height)
    if is_there(one.get("squares")):
        return 6.2, 0.42 * (len(one["squares"]) + 1)
    return 0.3, 0.3


def fill(axes: Any, one: Row) -> None:
    """Draws a panel into its axes."""
    if is_there(one.get("drawing")):
        plot(drawing_in(one), axes)
        return
    axes.axis("off")
    if not is_there(one.get("squares")):
        axes.text(0.5, 0.5, "⇒", ha="center", va="center", fontsize=16, color="#888888")
        return
    centered = {"ha": "center", "va": "center", "fontsize": 10, "family": "monospace"}
    for line, step in enumerate(one["squares"]):
        axes.text(-0.7, -line, step["so far"], **(centered | {"ha": "right"}))
        for column, token in enumerate(TOKENS_1):
            color, ink = ("#7fc4cc", "#222222") if token in step["allowed"] else ("#f2f2f2", "#bbb")
            color, ink = (CANONICAL, "white") if token == step["chosen"] else (color, ink)
            axes.bar(column, 0.8, 0.9, -line - 0.4, color=color)
            axes.text(column, -line, token, color=ink, **centered)
    axes.set(xlim=(-3.4, len(TOKENS_1)), ylim=(-len(one["squares"]) + 0.4, 0.6))
