"""Figure 6: a Vegas configuration, that is a part between delimiters that merge with nothing, is
computed and stored once, however often it stands in a regex."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace

from bpe_automata import Tokenizer, compile_regex
from bpe_automata.constructions import CartesianMerge, explored
from bpe_automata.constructions.segments import Segments
from bpe_automata.viz import Drawing, Edge
from experiments.article.mistral import MISTRAL, mistral
from experiments.article.panels import Page, Panel, numbered

REGEX = r"day:\n(sunny|rainy|dull)\nnight:\n(sunny|rainy|dull)\n"
HEADLINE = "Figure 6. What stands between delimiters that merge with nothing is computed once"
NAME = "V"
_LABELS = 9  # of one arrow, at most: all of those here


@dataclass(frozen=True)
class Segmented:
    """whole: the automaton, all states written out. outline: the same, where each segment that
    stands in several places is one arrow, called `NAME`. stands: that segment, once for each of its
    places."""

    whole: Drawing
    outline: Drawing
    stands: tuple[Drawing, ...]


def figure_6() -> Page:
    """Above without segments, below with them."""
    found = segmented(mistral(), REGEX)
    segment = found.stands[0]
    rows = (
        (Panel(f"All states written out: {found.whole.size()}", found.whole),),
        (Panel(f"With one segment by its name: {found.outline.size()}", found.outline),),
        (Panel(f"The segment {NAME}, stored once: {segment.size()}", segment),),
    )
    note = (
        f"The regex is {REGEX}, the tokenizer {MISTRAL}, complete. Nothing merges with a line "
        "break, so that what stands between two of them depends on nothing else: the library finds "
        "the segments, and that they are equal."
    )
    return Page(rows, HEADLINE, note)


def segmented(tokenizer: Tokenizer, regex: str) -> Segmented:
    """Of a regex all of whose segments end in one state each."""
    engine = CartesianMerge(tokenizer, compile_regex(regex))
    found = explored(engine, engine.initial())
    whole = found.automaton.picture(labels=_LABELS).drawing
    segments = Segments(engine.tables)
    # At a joint all ways meet in one state, as the last id changes nothing there.
    joint: dict[tuple[int, int], int] = {}
    key: dict[int, Hashable] = {}
    meets = [*range(len(found.states))]
    for number, state in enumerate(found.states):
        node = segments.of(state.place, state.hypotheses)
        if node is not None and node.at.number == 0:
            meets[number] = joint.setdefault((state.place, state.hypotheses), number)
            key[meets[number]] = node.segment.key
    met = (replace(e, source=meets[e.source], target=meets[e.target]) for e in whole.edges)
    arrows = [*dict.fromkeys(met)]
    inside = {begin: _inside(begin, arrows, key.keys()) for begin in key}
    several = [
        begin
        for begin, own in inside.items()
        if len(own) > 1 and [*key.values()].count(key[begin]) > 1
    ]
    hidden = {arrow for begin in several for arrow in inside[begin]}
    named = [Edge(begin, inside[begin][-1].target, NAME) for begin in several]
    outline = Drawing(whole.nodes, (*(e for e in arrows if e not in hidden), *named))
    return Segmented(
        numbered(whole, found.automaton.start),
        numbered(outline, meets[found.automaton.start]),
        tuple(_stand(whole, begin, inside[begin]) for begin in several),
    )


def _inside(begin: int, arrows: Sequence[Edge], joints: Collection[int]) -> list[Edge]:
    """The arrows from a joint to the next ones, those that end there last."""
    met, found = [begin], list[Edge]()
    for state in met:  # grows while we go
        for arrow in arrows:
            if arrow.source == state:
                found.append(arrow)
                if arrow.target not in joints and arrow.target not in met:
                    met.append(arrow.target)
    return sorted(found, key=lambda arrow: arrow.target in joints)


def _stand(whole: Drawing, begin: int, arrows: Sequence[Edge]) -> Drawing:
    """A segment by itself: its end accepts."""
    end = arrows[-1].target
    nodes = (replace(node, accepting=k == end) for k, node in enumerate(whole.nodes))
    return numbered(Drawing(tuple(nodes), tuple(arrows)), begin)
