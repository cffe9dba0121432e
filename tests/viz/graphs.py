"""Drawings of graphs, random ones and a small one."""

from __future__ import annotations

from hypothesis import strategies as st

from bpe_automata.viz import Drawing, Edge, Node

WORDS = ["␣the", "a", ":␣", "true", '"', "\\n", "日本", "é", ",", "<b>", "&amp;", "$x$"]
SAMPLED = st.sampled_from(WORDS)
TEXTS = st.text(st.characters(codec=None), max_size=12)


@st.composite
def drawings(draw: st.DrawFn, texts: st.SearchStrategy[str] = SAMPLED) -> Drawing:
    """Any labelled graph of up to 12 nodes."""
    n = draw(st.integers(1, 12))
    flags = st.booleans()
    node = st.builds(Node, texts, flags, flags, flags, st.sampled_from(["", "a note"]))
    place = st.integers(0, n - 1)
    nodes = draw(st.lists(node, min_size=n, max_size=n))
    edges = draw(st.lists(st.builds(Edge, place, place, texts, flags), max_size=24))
    return Drawing(tuple(nodes), tuple(edges), draw(texts))


def a_star_b_star() -> Drawing:
    return Drawing(
        (Node("0", accepting=True, start=True, lit=True), Node("1", accepting=True)),
        (Edge(0, 0, "a", lit=True), Edge(0, 1, "b"), Edge(1, 1, "b")),
        "a*b*",
    )
