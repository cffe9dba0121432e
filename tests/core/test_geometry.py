"""When BPE breaks a pair of ids, and the rectangles of broken pairs, against the definition."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata._kernels.bits import has, members, set_bits
from bpe_automata.canonical import geometry
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.canonical.geometry import Geometry
from bpe_automata.errors import ImproperMergeTableError
from bpe_automata.reference import bpe, breaks_by_spines, is_canonical, merge_ranks, replay
from bpe_automata.reference._bpe import base_symbols
from bpe_automata.testing import merge_tables, small_tokenizer
from bpe_automata.tokenizer.derivation import derive


class Table:
    """A merge table with everything that the laws compare."""

    def __init__(self, description):
        self.derivation = derive(description)
        self.geometry = Geometry(self.derivation)
        self.ranks = merge_ranks(description)
        self.derivations = {
            (left, right): (number, made)
            for number, (left, right, made) in enumerate(self.derivation.proper.tolist())
        }
        self.reachable = np.flatnonzero(self.derivation.reachable).tolist()
        self.symbols = [base_symbols(description, token) for token in description.tokens]

    def canonical(self, tokens):
        return is_canonical(tokens, [self.symbols[token] for token in tokens], self.ranks)

    def everything(self):
        return np.full(self.geometry.n_words, -1, dtype=np.int32)


@st.composite
def tables(draw, symbols=("a", "b", "c")):
    """Merges in any order, or some of them of one rank."""
    table = draw(merge_tables(symbols, shuffled=draw(st.booleans())))
    description = small_tokenizer(table.vocabulary, table.merges).description
    n = len(table.merges) if draw(st.booleans()) else 0
    tied = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool)
    return Table(replace(description, tied=tied))


@examples(35)
@given(tables())
def test_when_a_pair_is_broken(table):
    """Brute force over all pairs == the walk of the spines == the kernel. Where merges are tied the
    spines tell what is certain, and the kernel the rest too."""
    tied = not np.array_equal(np.unique(table.derivation.epoch), table.derivation.epoch)
    for left, right in itertools.product(table.reachable, repeat=2):
        canonical = table.canonical([left, right])
        certain = breaks_by_spines(left, right, table.derivation, table.derivations)
        assert not (certain and canonical)
        assert tied or certain or canonical
        assert (table.geometry.breaking_merge(left, right) < 0) == canonical


@examples(35)
@given(tables())
def test_rectangles_are_the_forbidden_pairs(table):
    for left in table.reachable:
        after, before = table.everything(), table.everything()
        table.geometry.clear_followers(left, after)
        table.geometry.clear_predecessors(left, before)
        for other in table.reachable:
            assert has(after, other) == table.canonical([left, other])
            assert has(before, other) == table.canonical([other, left])


@examples(35)
@given(tables())
def test_what_may_follow_is_the_same_of_few_ids_and_of_many(table):
    """Few are tried one by one, of many the rectangles are taken out."""
    for left in table.reachable:
        every = np.full_like(table.everything(), -1)  # with ids that there are not
        table.geometry.clear_followers(left, every)
        for k in range(0, len(table.reachable), 8):
            few = np.zeros_like(every)
            set_bits(few, np.array(table.reachable[k : k + 8]))
            table.geometry.clear_followers(left, few)
            kept = [other for other in table.reachable[k : k + 8] if has(every, other)]
            assert members(few).tolist() == sorted(kept)


@examples(35)
@given(tables())
def test_the_forbidden_share_counts_the_union_of_the_rectangles(table):
    pairs = list(itertools.product(table.reachable, repeat=2))
    forbidden = sum(not table.canonical(pair) for pair in pairs)
    assert table.geometry.forbidden_share() == pytest.approx(forbidden / len(pairs))


@examples(60)
@given(st.data(), tables(("a", "b")))
def test_pair_lemma(data, table):
    """A sequence of reachable tokens is BPE's output iff every adjacent pair is."""
    token = st.sampled_from(table.reachable)
    tokens = data.draw(st.lists(token, min_size=1, max_size=6))
    pairs = itertools.pairwise(tokens)
    assert table.canonical(tokens) == all(table.canonical(pair) for pair in pairs)


@examples(100)
@given(tables(("a", "b")), st.data())
def test_ordered_tables_can_be_replayed(table, data):
    """`ordered` says that the derivations, one after the other, do what encoders do; where it says
    no, two tokens show the difference."""
    derivations = [tuple(row) for row in table.derivation.proper.tolist()]
    pairs = [(a, b) for a, b in itertools.product(table.reachable, repeat=2)]
    spelled = [table.symbols[a] + table.symbols[b] for a, b in pairs]
    same = [replay(word, derivations) == bpe(word, table.ranks) for word in spelled]
    assert table.geometry.ordered == all(same)
    word = data.draw(st.lists(st.sampled_from(table.reachable), max_size=6))
    symbols = [symbol for token in word for symbol in table.symbols[token]]
    assert not all(same) or replay(symbols, derivations) == bpe(symbols, table.ranks)


@pytest.mark.parametrize("run", [3, 9, 31])
def test_runs_that_grow_from_the_left(run):
    """Gemma's runs of white space: each length is made of all shorter ones, in an order in which
    most merges come before those that make their parts."""
    lengths = range(2, run + 1)
    merges = [("a" * k, "a" * (n - k)) for n in reversed(lengths) for k in range(1, n)]
    tokenizer = small_tokenizer(["a", *("a" * n for n in lengths), "b"], merges)
    table = Table(tokenizer.description)
    for left, right in itertools.product(table.reachable, repeat=2):
        canonical = table.canonical([left, right])
        assert (table.geometry.breaking_merge(left, right) < 0) == canonical
    automaton = canonical_automaton(tokenizer)
    for n in range(1, 3 * run):
        ids = tokenizer.encode("a" * n)
        assert automaton.accepts(ids)
        assert not automaton.accepts([*ids, 0]) or tokenizer.encode("a" * (n + 1)) == [*ids, 0]


def test_trying_pairs_has_an_end(monkeypatch):
    monkeypatch.setattr(geometry, "_MOST_TRIED", 0)
    tied = small_tokenizer(["b", "bb", "bbb"], [("bb", "b"), ("b", "b")])
    with pytest.raises(ImproperMergeTableError, match="too many pairs of tokens"):
        canonical_automaton(tied)
    canonical_automaton(small_tokenizer(["b", "bb", "bbb"], [("b", "b"), ("bb", "b")]))


def test_one_pair_of_a_family_tells_for_most(monkeypatch):
    """The runs of spaces of Gemma-3's table are tied, and 137,000 of its tokens begin with one."""
    monkeypatch.setattr(geometry, "_MOST_TRIED", 30)  # of 96
    others = "acdefghijklmnopqrstuvwxyz"
    merges = [("bb", "b"), ("bbb", "b"), ("b", "b"), *(("b", x) for x in others)]
    vocabulary = ["b", "bb", "bbb", "bbbb", *others, *("b" + x for x in others)]
    tokenizer = small_tokenizer(vocabulary, merges)
    automaton = canonical_automaton(tokenizer)
    for ids in itertools.product(range(len(vocabulary)), repeat=2):
        text = "".join(vocabulary[k] for k in ids)
        assert automaton.accepts(ids) == (tokenizer.encode(text) == [*ids])
