"""The article's figures, redrawn from what the library computes, and what its notebook plots.

In the article (Tran-Thien 2024): 1 a regex over characters, over tokens, and as masks; 2 the
example `boolean: ((true)|(false))` under the lift and 3 under DirectMerge; 4 a step of DirectMerge;
5 the target language as an intersection; 6 Vegas configurations. They show automata, of which ours
are the library's own, not copies. Last, how preprocessing and mask times are distributed over the
schemas of functions, as regexes that outlines-core makes.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata import Constraint, TokenAutomaton, Tokenizer, compile_regex, constrain
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
from bpe_automata.viz import Drawing, Edge, Node, edge_label, plot
from bpe_automata.viz import figure as natural
from experiments.artefacts.distortion import BOOLEAN, MERGES, SIZES, TOKENS, automata
from experiments.artefacts.growth import WARM
from experiments.article.mistral import MISTRAL, NAME, Reference, mistral, mistral_table
from experiments.engines import INSTALL, OutlinesCore, PeerError, refusals
from experiments.files import lines_of, require
from experiments.lab import Row
from experiments.resources import timed
from experiments.show import CANONICAL, LIFT, Figure, Table, duration, panels, whole
from experiments.statistics import quantile
from experiments.walks import walk

TITLE, TIMED = "The article's figures, redrawn", True
PACKAGES = ("outlines_core",)
FUNCTIONS = Path(__file__).with_name("functions.jsonl")
"""Functions with their parameters' schemas, one JSON object a line, written for this project."""
NAMES = tuple(f["name"] for f in lines_of(FUNCTIONS))
WALKS, STEPS = 3, 60


@dataclass(frozen=True)
class Config:
    """Which figures, and of which functions times are measured."""

    pages: tuple[str, ...] = tuple(f"figure{k}" for k in range(1, 7))
    functions: tuple[str, ...] = NAMES
    seed: int = 0


SMOKE = Config(("figure1", "figure4"), NAMES[:2])


def cells(config: Config) -> list[Row]:
    """A figure each, a function each."""
    pages: list[Row] = [{"page": page} for page in config.pages]
    return [*pages, *({"function": name} for name in config.functions)]


def measure(config: Config, page: str = "", function: str = "") -> list[Row] | Row:
    """The panels of a figure, or the times of one regex."""
    if function:
        build = require("outlines_core.json_schema", INSTALL).build_regex_from_schema
        (schema,) = (f["parameters"] for f in lines_of(FUNCTIONS) if f["name"] == function)
        engines = engines_of(mistral(), mistral_table())
        return costs_of(build(json.dumps(schema)), *engines, config.seed)
    headline, note, lines = PAGES[page]()
    said = {"headline": headline, "note": note}
    return [{"line": k, **panel, **said} for k, line in enumerate(lines) for panel in line]


# Drawings: dictionaries of JSON, as rows keep them.

Page = tuple[str, str, list[list[Row]]]
"""headline, note, lines of panels: {"title", "drawing"}, {"title", "squares"}, or an arrow."""


def panel(title: str, drawing: Drawing) -> Row:
    """An automaton."""
    return {"title": title, "drawing": asdict(drawing)}


def drawing_of(automaton: TokenAutomaton, labels: int = 6) -> Drawing:
    """All states that the start leads to, numbered from there on, and all arrows."""
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
    """Two automata above, the masks along a text below, its end included."""
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
    drawn = panel(sizes[which], drawing_of(found[[*SIZES][which]]))
    note = f"{NAME}. {note}".replace("MINIMAL", sizes[2])
    return f"Figure {number}. {BOOLEAN} {what}", note, [[drawn]]


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
    """The whole automaton; the same with one transition, V, wherever the part stands that stands in
    several places; and that part. There is one of more than one id, and it has one exit."""
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
    """Without segments, with one by its name, and the segment."""
    drawings = segmented(mistral(), REGEX_6)
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

# What regexes cost.


@lru_cache(maxsize=1)
def engines_of(complete: Tokenizer, alone: Tokenizer) -> tuple[Tokenizer, Tokenizer, Any]:
    """(a tokenizer, its merge table as one, outlines-core, None if not installed), kernels warm."""
    try:
        outlines = OutlinesCore(complete)
    except PeerError:
        outlines = None
    for regex in WARM:
        costs_of(regex, complete, alone, outlines, 0)
    return complete, alone, outlines


def costs_of(regex: str, complete: Tokenizer, alone: Tokenizer, outlines: Any, seed: int) -> Row:
    """Seconds of everything about one regex."""
    row: Row = {"regex": regex}
    row["lift, all masks"], _ = timed(lambda: lift_index(complete, regex))
    row["first mask, BPE alone"], _ = timed(lambda: first_mask(alone, regex))
    row["first mask, complete tokenizer"], timing = timed(lambda: first_mask(complete, regex))
    drawing = constrain(complete, regex, eos_ids=complete.eos_ids, added_tokens=False)
    row["a mask, complete tokenizer"] = masks = list[float]()
    rng = random.Random(f"{seed} {regex}")
    for ids, _ in [walk(drawing, rng, STEPS) for _ in range(WALKS)]:
        state = timing.engine.initial()
        for token in ids:
            state = timing.engine.step(state, token)
            masks.append(timed(partial(timing.engine.mask, state))[0])
    if outlines is not None:
        try:
            with refusals():
                row["outlines-core (index)"], _ = timed(lambda: outlines.prepare(regex))
        except PeerError as error:
            row["refused"] = str(error)
    return row


def lift_index(tokenizer: Tokenizer, regex: str) -> int:
    """The lift with the mask of every state that its start leads to; how many states."""
    lift = Lift(tokenizer, compile_regex(regex), tokenizer.eos_ids)
    todo = [lift.initial()]
    seen = {*todo}
    while todo:
        state = todo.pop()
        ids = members(lift.mask(state))
        fresh = {*lift.steps(state, ids[~np.isin(ids, tokenizer.eos_ids)])} - seen
        seen |= fresh
        todo += fresh
    return len(seen)


def first_mask(tokenizer: Tokenizer, regex: str) -> Constraint:
    """A constraint that has made its first mask."""
    constraint = constrain(tokenizer, regex, eos_ids=tokenizer.eos_ids)
    constraint.engine.mask(constraint.engine.initial())
    return constraint


# What the rows say.

CURVES = {
    "outlines-core (index)": ("#8d6b94", "-"),
    "lift, all masks": (LIFT, "-"),
    "first mask, BPE alone": (CANONICAL, "-"),
    "first mask, complete tokenizer": (CANONICAL, ":"),
    "a mask, complete tokenizer": ("#7fc4cc", "-"),
}
PUBLISHED = {0.687: "Outlines’ preprocessing", 27.3: "relevant states", 0.00153: "a mask"}
"""Seconds: means of the article's Table 2, for function-calling schemas with Mistral-7B."""


def times(rows: pd.DataFrame) -> pd.Series:
    """Seconds by curve."""
    found = rows.reindex(columns=[*CURVES]).melt(var_name="seconds").explode("value").dropna()
    found["seconds"] = pd.Categorical(found["seconds"], [*CURVES])
    return found.astype({"value": float}).groupby("seconds", observed=True)["value"]


def tables(rows: pd.DataFrame) -> list[Table]:
    """Each curve in numbers."""
    of = ["mean", "median", ("99 of 100", lambda v: quantile(v, 0.99)), ("most", "max")]
    data = times(rows).agg([*of, ("n", "size")]).reset_index()
    means = ", ".join(f"{name} {mean:g}" for mean, name in PUBLISHED.items())
    note = f"means that are published, of other schemas on another machine: {means}"
    formats = dict.fromkeys(data.columns[1:-1], "{:.2g}".format) | {"n": whole}
    return [Table("Preprocessing and mask times", data, formats, note)]


def figure(rows: pd.DataFrame) -> list[Figure]:
    """The pages, then the times."""
    pages = rows.dropna(subset=["page"]).groupby("page", sort=False)
    return [*(drawn(str(name), page) for name, page in pages), curves(rows)]


def drawn(name: str, page: pd.DataFrame) -> Figure:
    """Panels in one scale: in inches, at which the text of a drawing has 10 points."""
    lines = [line.to_dict("records") for _, line in page.groupby("line")]
    sizes = [[size_of(one) for one in line] for line in lines]
    single = len(lines[0]) > 1
    among = [line for line in sizes if len(line) > 1] if single else sizes
    widths = [max(line[k][0] for line in among) for k in range(len(among[0]))]
    heights = [max(height for _, height in line) + 0.3 for line in sizes]
    width = max(sum(widths) + 0.3 * len(widths) + 0.1, 7.5)
    height = sum(heights) + 0.3 * len(heights) + 0.9
    from matplotlib import pyplot

    panels(1, 1, (1, 1))  # chooses the backend
    pyplot.close("all")
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
    """Not the nan of a column that the row does not have."""
    return isinstance(value, dict | list)


def drawing_in(one: Row) -> Drawing:
    """Of a panel, out of its row."""
    nodes = tuple(Node(**node) for node in one["drawing"]["nodes"])
    return Drawing(nodes, tuple(Edge(**edge) for edge in one["drawing"]["edges"]))


def size_of(one: Row) -> tuple[float, float]:
    """Inches."""
    if is_there(one.get("drawing")):
        width, height = natural(drawing_in(one)).get_size_inches()
        return max(float(width), 0.09 * len(one["title"])), float(height)
    if is_there(one.get("squares")):
        return 6.2, 0.42 * (len(one["squares"]) + 1)
    return 0.3, 0.3


def fill(axes: Any, one: Row) -> None:
    """Draw a panel."""
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


def curves(rows: pd.DataFrame) -> Figure:
    """Which share of the regexes, or masks, takes at most so long."""
    made, ((axes,),) = panels(1, 1, (9.6, 5.6))
    found = dict(list(times(rows)))
    for name, seconds in found.items():
        color, line = CURVES[name]
        label = f"{name}: mean {duration(seconds.mean())}"
        axes.ecdf(seconds, color=color, linestyle=line, linewidth=2, label=label)
    for mean, name in PUBLISHED.items():
        axes.axvline(mean, color="#999999", linestyle="--", linewidth=1)
        left = mean * (0.5 if mean == min(PUBLISHED) else 0.9)
        said = {"ha": "right", "va": "bottom", "fontsize": 8, "color": "#666666"}
        axes.text(left, 0.04, f"{name},\npublished mean {duration(mean)}", **said)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda seconds, _: duration(seconds))
    axes.minorticks_off()
    axes.set(xlabel="time (log scale)", ylabel="share that takes at most so long", ylim=(0, 1.02))
    axes.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=2)
    alone, complete = (found[name].mean() for name in [*CURVES][2:4])
    headline = (
        "Function-calling schemas: CartesianMerge makes its first mask on average\nafter "
        f"{duration(alone)} with BPE alone, after {duration(complete)} with the complete tokenizer"
    )
    n, masks = rows["regex"].notna().sum(), len(found["a mask, complete tokenizer"])
    note = (
        f"{n} regexes, {masks:,} masks, each once; tokenizer: {MISTRAL}. BPE alone: without byte "
        "fallback, as in the article; all but outlines-core: the package. Dashed: means that the "
        "article's Table 2 gives, on another machine."
    )
    return Figure(made, headline, note, "mask_times")
