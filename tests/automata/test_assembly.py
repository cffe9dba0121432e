"""Laws of automata put together: against compiled regexes, `re`, and one another."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import networkx
from hypothesis import given
from hypothesis import strategies as st
from support import examples, same_arrays

from bpe_automata._automata.algebra import (
    any_of,
    concatenation,
    union,
)
from bpe_automata._automata.assembly import Assembly
from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.sources import from_strings
from bpe_automata.testing import byte_dfas, cyclic_regexes

PIECES = ("a", "é", "日", "aé", "\n")
WORDS = [bytes(w) for n in range(6) for w in product(b"abc", repeat=n)]


@examples(40)
@given(cyclic_regexes(PIECES), cyclic_regexes(PIECES), cyclic_regexes(PIECES))
def test_rational_operations_are_those_of_regexes(one, two, three):
    a, b, c = (compile_regex(regex) for regex in (one, two, three))
    assert same_arrays(concatenation(a, b, c), compile_regex(f"(?:{one})(?:{two})(?:{three})"))
    assert same_arrays(concatenation(a, "xé".encode(), c), compile_regex(f"(?:{one})xé(?:{three})"))
    assert same_arrays(any_of((a, b, c)), compile_regex(f"(?:{one})|(?:{two})|(?:{three})"))
    assert same_arrays(any_of((a, b)), union(a, b))
    nothing = from_strings(())
    assert concatenation(a, nothing, c).is_empty
    assert any_of(()).is_empty


@examples(60)
@given(st.data())
def test_any_network_reads_what_its_ways_read(data):
    """Places joined at random: the words found by walking sets of places and positions."""
    blocks = data.draw(st.lists(byte_dfas(), min_size=1, max_size=3).map(trimmed))
    place = st.integers(0, 3)
    piece = st.sampled_from([b"", b"a", b"ab", b"c", *blocks])
    joins = data.draw(st.lists(st.tuples(place, piece, place), max_size=6))
    ends = data.draw(st.sets(place))
    parts = joined(joins, ends)
    found = parts.dfa(0)
    for word in WORDS:
        assert found.accepts(word) == reads(joins, ends, word)


def joined(joins, ends) -> Assembly:
    """Four places, joined."""
    parts = Assembly()
    for _ in range(4):
        parts.state()
    for one, what, other in joins:
        parts.put(one, what, other)
    for end in ends:
        parts.accept(end)
    return parts


def trimmed(dfas: list[ByteDFA]) -> list[ByteDFA]:
    """Without states that lead nowhere."""
    return [union(dfa, dfa) for dfa in dfas]


def reads(joins, ends, word: bytes) -> bool:
    """Is there a way from place 0 to one of `ends` that reads the word?"""
    ways = networkx.DiGraph()
    ways.add_node((0, 0))
    for one, what, other in joins:
        for at, to in combinations_with_replacement(range(len(word) + 1), 2):
            if word[at:to] == what if isinstance(what, bytes) else what.accepts(word[at:to]):
                ways.add_edge((one, at), (other, to))
    reached = networkx.descendants(ways, (0, 0)) | {(0, 0)}
    return any((end, len(word)) in reached for end in ends)


def test_a_long_chain_outgrows_its_first_room():
    """More states than the tables have rows at first."""
    parts, two = Assembly(), compile_regex("[ab]{2}")
    start = place = parts.state()
    for _ in range(70_000):
        after = parts.state()
        parts.put(place, two, after)
        place = after
    parts.accept(place)
    dfa = parts.dfa(start)
    assert dfa.n_states == 140_002
    for count, wanted in ((139_999, False), (140_000, True), (140_001, False)):
        assert dfa.accepts(b"a" * count) == wanted
