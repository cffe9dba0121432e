"""Random networks of regexes: joined in one assembly they read what their ways read; linked out of
parts they are that assembly."""

import pickle
import random
import re
from functools import cache
from itertools import combinations_with_replacement, product

import networkx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples, same_arrays, same_masks

from bpe_automata import LinkedDFA, compile_regex, constrain
from bpe_automata._budget import Budget
from bpe_automata.automata.assembly import Assembly
from bpe_automata.automata.linked import explicit
from bpe_automata.automata.part_tables import table_of
from bpe_automata.automata.parts import BYTE, Part, length_of
from bpe_automata.errors import (
    BudgetExceededError,
    EmptyLanguageError,
    PromptError,
    UnsupportedFeatureError,
    UnsupportedTokenizerError,
)
from bpe_automata.testing import bpe_tokenizers, small_tokenizer

BYTES = np.arange(256, dtype=np.uint8)
_BUDGET = Budget(max_states=10_000)
PIECES = ("a", "b", "ab", "", "[ab]", "a*", "(ab)*", "b+", "c", "a|bc", "<", "<c|b<", "[\u00e9a]")
N = 4


def lists_of_edges(sources):
    """Edges (from, regex, to) between places; the first `sources` of them are left."""
    place = st.integers(0, N - 1)
    edge = st.tuples(st.integers(0, sources - 1), st.sampled_from(PIECES), place)
    return st.lists(edge, min_size=2, max_size=8)


def networks():
    """Texts begin at the first place, and end at the last."""
    found = lists_of_edges(N - 1)
    return found.map(lambda edges: [(p, piece, q) for p, piece, q in edges if piece or p < q])


def labelled(alternatives, costs, follow, rest):
    """The part that reads one of some alternatives, and then is at the exit with its label."""
    table = table_of(alternatives)
    return Part(table, table.far(costs), follow, rest)


def linked(edges, byte_class=BYTES, readable=None, budget=_BUDGET):
    """A part for each place, whose exits lead to the parts of others; one context for all."""
    far, parts = _far(edges), {}
    for place in range(N - 1):
        out = [(piece, other) for one, piece, other in edges if one == place and other in far]
        if not out:
            continue

        def follow(context, label):
            return [(parts.get(label) if label < N - 1 else None, context)]

        alternatives = [((compile_regex(piece),), other) for piece, other in out]
        parts[place] = labelled(alternatives, far, follow, lambda _: 0)
    return LinkedDFA([(parts[0], None)], byte_class, budget, readable)


def _far(edges):
    """Length of the shortest text from each place to the end, of those that lead there."""
    back = networkx.MultiDiGraph()
    back.add_node(N - 1)
    for one, piece, other in edges:
        back.add_edge(other, one, weight=length_of(compile_regex(piece)))
    return networkx.single_source_dijkstra_path_length(back, N - 1)


def joined(edges, ends=(N - 1,)):
    """In one assembly, what is literal as bytes."""
    parts = Assembly()
    places = [parts.state() for _ in range(N)]
    for end in ends:
        parts.accept(places[end])
    for one, piece, other in edges:
        literal = re.escape(piece) == piece
        parts.put(places[one], piece.encode() if literal else compile_regex(piece), places[other])
    return parts.dfa(places[0])


matches = cache(re.fullmatch)


def reads(edges, ends, word):
    """Is there a way from the first place to one of `ends` that reads the word?"""
    ways = networkx.DiGraph()
    ways.add_node((0, 0))
    for one, piece, other in edges:
        for at, to in combinations_with_replacement(range(len(word) + 1), 2):
            if matches(piece, word[at:to]):
                ways.add_edge((one, at), (other, to))
    reached = networkx.descendants(ways, (0, 0)) | {(0, 0)}
    return any((end, len(word)) in reached for end in ends)


WORDS = ["".join(word) for n in range(5) for word in product("abc", repeat=n)]
SHORT = st.sampled_from(["", "a", "b", "ab"])


@examples(200)
@given(
    st.lists(st.tuples(SHORT, st.integers(0, 3)), min_size=1, max_size=6),
    st.lists(st.tuples(SHORT, st.sampled_from(PIECES), st.integers(0, 3)), min_size=1, max_size=2),
)
def test_a_table_tells_what_each_text_is(texts, languages):
    """Texts, and languages behind texts: each word has the labels of the alternatives it is of."""
    alternatives = [((text.encode(),), label) for text, label in texts]
    for before, piece, label in languages:
        alternatives.append(((before.encode(), compile_regex(piece)), label))
    table = table_of(alternatives)
    for word in WORDS:
        state = table.begun_after(word.encode()).start
        of_texts = {label for text, label in texts if text == word}
        of_languages = {
            label
            for before, piece, label in languages
            if word.startswith(before) and matches(piece, word[len(before) :])
        }
        assert set(table.exits.get(state, ())) == of_texts | of_languages, word


@examples(60)
@given(lists_of_edges(N), st.sets(st.integers(0, N - 1)))
def test_any_network_reads_what_its_ways_read(edges, ends):
    whole = joined(edges, ends)
    for word in map("".join, (w for n in range(5) for w in product("abc", repeat=n))):
        assert whole.accepts(word.encode()) == reads(edges, ends, word)


def test_a_long_chain_outgrows_its_first_room():
    """More states than the tables have rows at first."""
    parts, two = Assembly(), compile_regex("[ab]{2}")
    start = parts.state()
    parts.accept(parts.read(start, [two] * 70_000))
    dfa = parts.dfa(start)
    assert dfa.n_states == 140_002
    for count, wanted in ((139_999, False), (140_000, True), (140_001, False)):
        assert dfa.accepts(b"a" * count) == wanted


@examples(60)
@given(networks())
def test_parts_that_overlap_are_told_apart_as_they_are_met(edges):
    assume(0 in _far(edges))
    found, whole = linked(edges), joined(edges)
    assert same_arrays(found.to_dfa(), whole)
    assert len(found.shortest()) == len(whole.shortest())
    again = linked(edges)  # met in another order
    for text in whole.sample(random.Random(1), 20), b"abab", b"bca", b"":
        assert again.accepts(text) == whole.accepts(text)
    assert same_arrays(again.to_dfa(), whole)


ADDED, PLAIN = small_tokenizer("ab<c>", added=["<c>"]), small_tokenizer("ac")


@pytest.mark.parametrize(
    ("tokenizer", "edges"),
    [
        (ADDED, [(0, "a", 1), (0, "b", 2), (1, "<c>", 3), (2, "<b", 3)]),
        (PLAIN, [(0, "a", 1), (0, "c", 3), (1, "a", 1), (1, "b", 3)]),
        (PLAIN, [(0, "a", 1), (0, "c", 3), (1, "a|b", 2), (2, "a", 2), (2, "b", 3)]),
    ],
)
def test_what_comes_to_no_end_is_masked(tokenizer, edges):
    """Behind `a` there is only `<c>`, which is an added token and so no text of the language; or a
    text ends in `b` alone, which has no id: not in the state that any other byte leads to."""
    for automaton in (joined(edges), linked(edges)):
        matcher = constrain(tokenizer, automaton, added_tokens=False).matcher()
        assert matcher.allowed_ids().tolist() == [1]


@examples(15)
@given(networks(), bpe_tokenizers(), st.sampled_from(["canonical", "lift"]))
def test_masks_are_those_of_the_whole(edges, tokenizer, method):
    assume(0 in _far(edges))
    try:
        same_masks(tokenizer, method, linked(edges), joined(edges))
    except (EmptyLanguageError, PromptError, UnsupportedTokenizerError):
        assume(False)
    except UnsupportedFeatureError:  # a byte of a part that the tokenizer has no id for
        assert method == "lift"


EDGES = [(0, "a+", 1), (1, "b", 1), (1, "a", 3)]


def test_a_text_before_and_a_byte_before():
    found = linked(EDGES)
    assert same_arrays(found.begun_with(b"xyz").to_dfa(), compile_regex("xyza+b*a"))
    assert found.begun_with(b"") is found
    before = found.state_before(ord(" "))
    for text, good in ((b" aba", True), (b"aba", True), (b"  aba", False)):
        assert bool(found.accepting[found.walk(text, before)]) == good
    assert not found.accepts(b" aba")


def test_a_part_that_is_left_for_nowhere_is_refused():
    """By `a` alone one comes from it to itself, and never to the end."""
    readable = np.zeros(256, bool)
    readable[ord("a")] = True
    with pytest.raises(UnsupportedFeatureError, match="to_dfa"):
        linked([(0, "a", 0), (0, "b", 3)], readable=readable)
    assert linked([(0, "a", 0), (0, "a|b", 3)], readable=readable).accepts(b"aa")


def test_what_needs_an_origin_or_all_states_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="origin"):
        pickle.dumps(linked(EDGES))
    with pytest.raises(UnsupportedFeatureError, match="a ban of a linked automaton"):
        explicit(linked(EDGES), "a ban")


def test_an_automaton_without_end_is_not_written_out():
    parts = []

    def follow(context, label):
        return [(parts[0], _Deeper())] if label else [(None, context)]

    parts.append(labelled([((b"a",), 1), ((b"b",), 0)], {0: 0, 1: BYTE}, follow, lambda _: 0))
    found = LinkedDFA([(parts[0], _Deeper())], BYTES, Budget(max_states=300))
    assert found.accepts(b"a" * 100 + b"b")
    with pytest.raises(BudgetExceededError):
        found.to_dfa()
    assert found.shortest() == b"b"
    assert int(found.far[found.start]) == 1


class _Deeper:
    """A context that is equal to no other."""
