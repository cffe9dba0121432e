"""Drawings of graphs, random ones and a small one."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from bpe_automata.viz import Drawing, Edge, Node, edge_label

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


def random_drawing(n: int, seed: int) -> Drawing:
    """Connected, with loops, parallel edges, edges back and long labels."""
    rng = random.Random(seed)
    nodes = tuple(Node(f"q{i}", accepting=i % 5 == 4, start=i == 0) for i in range(n))
    edges = [Edge(rng.randrange(max(0, i - 4), i), i, _label(rng)) for i in range(1, n)]
    edges += [Edge(rng.randrange(n), rng.randrange(n), _label(rng)) for _ in range(n // 2)]
    return Drawing(nodes, tuple(edges))


def a_star_b_star() -> Drawing:
    return Drawing(
        (Node("0", accepting=True, start=True, lit=True), Node("1", accepting=True)),
        (Edge(0, 0, "a", lit=True), Edge(0, 1, "b"), Edge(1, 1, "b")),
        "a*b*",
    )


def _label(rng: random.Random) -> str:
    return edge_label(rng.sample(WORDS, rng.randint(1, 9)))
