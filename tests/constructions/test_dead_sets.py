"""Pairs of ids: when BPE breaks a pair, rectangles of broken pairs, and the dead sets, against
their definitions on all pairs.
"""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace

import numpy as np
import pytest
import tokenizers
from hypothesis import assume, event, given
from hypothesis import strategies as st
from support import examples
from support.drawn import ACCENTED, composing_tokenizers

from bpe_automata import Tokenizer, compile_regex
from bpe_automata._constructions import geometry, product_tables
from bpe_automata._constructions.canonical import canonical_automaton
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.explicit import explored
from bpe_automata._constructions.geometry import Geometry
from bpe_automata._constructions.product_parts import fixed_set_for
from bpe_automata._kernels.bits import has, members, set_bits
from bpe_automata._kernels.dead_sets import AGAIN, DONE
from bpe_automata._kernels.geometry import (
    all_positions,
    exceeds,
    forbid,
    how_many,
    keep,
    listed,
    outside,
    placed,
    positions_of,
)
from bpe_automata._kernels.leading_ids import add_witnessed
from bpe_automata._kernels.product import ALIVE, PARTLY, key_number, key_state_pair
from bpe_automata._kernels.references import packed
from bpe_automata._tokenizer.derivation import derive
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError, ImproperMergeTableError
from bpe_automata.reference import bpe, breaks_by_spines, is_canonical, merge_ranks, replay
from bpe_automata.reference._bpe import base_symbols
from bpe_automata.testing import byte_dfas, merge_tables, small_tokenizer, split
from bpe_automata.testing._small import byte_level, byte_spelling


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


def test_equal_ranks_go_left_to_right():
    """aaa is aa,a; so a,aa is broken by the very merge that makes aa, and aa,a is not."""
    table = Table(small_tokenizer(["a", "aa"], [("a", "a")]).description)
    assert not table.canonical([0, 1])
    assert table.geometry.breaking_merge(0, 1) == 0
    assert table.geometry.breaking_merge(1, 0) == -1


def test_a_tie_that_rectangles_do_not_tell():
    """bbbb: the first bb takes up the third b before another bb is made. So bb,bb is broken, though
    the merge of bb and b finds no b there that outlives its epoch."""
    table = Table(small_tokenizer(["b", "bb", "bbb"], [("bb", "b"), ("b", "b")]).description)
    assert not table.canonical([1, 1])
    assert not breaks_by_spines(1, 1, table.derivation, table.derivations)
    assert table.geometry.breaking_merge(1, 1) == len(table.derivation.proper)
    assert not table.geometry.ordered
    assert table.canonical([2, 0])
    assert table.geometry.breaking_merge(2, 0) < 0


@examples(200)
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
    monkeypatch.setattr(geometry, "_MOST_STEPS", 1)
    tied = small_tokenizer(["b", "bb", "bbb"], [("bb", "b"), ("b", "b")])
    with pytest.raises(ImproperMergeTableError, match="too many pairs of tokens"):
        canonical_automaton(tied)
    canonical_automaton(small_tokenizer(["b", "bb", "bbb"], [("b", "b"), ("bb", "b")]))


def test_pairs_of_smollm2(smollm2_tokenizer):
    """Random pairs, and pairs that random text holds, against BPE of the concatenation."""
    canonical = canonical_automaton(smollm2_tokenizer)
    description, rng = smollm2_tokenizer.description, random.Random(5)
    ranks = merge_ranks(description)
    reachable = np.flatnonzero(canonical.derivation.reachable).tolist()
    short = [token for token in reachable if len(description.tokens[token]) <= 4]
    for _ in range(2000):
        pair = [rng.choice(short), rng.choice(short if rng.random() < 0.8 else reachable)]
        symbols = [base_symbols(description, description.tokens[token]) for token in pair]
        expected = bpe([*symbols[0], *symbols[1]], ranks) == pair
        assert canonical.allowed(*pair) == expected


# ---------------------------------------------------------------- dead sets

CORPUS = ['{"name":"ann","names":["a","nn"],"man":12}', "the mannequin names an ant", "banana anna"]
FINITE = (
    '\\{"name":"(ann|an|a)","man":1?2\\}',
    "(ban|an)(a|na|ann)?nam(e|es)",
    "(a|b|n){1,4}e",
    '"(names|man)":\\["a"(,"nn")?\\]',
)
LOOPS = ("(an)*t", "b(an|na)*e", '"[a-n]*"', "(a|nn)*m(an)*")
INNER = byte_spelling(bytes(range(0x80, 0xC0)))
"""The bytes inside characters, each as a byte-level file writes it."""


def pairs_of(tokenizer):
    """(the ids that BPE makes, the pairs of them that it leaves as they are), by running it."""
    description = tokenizer.description
    ranks, spelled = merge_ranks(description), tokenizer.spellings

    def made(*ids):
        try:
            symbols = base_symbols(description, b"".join(spelled[i] for i in ids))
        except UnicodeDecodeError:
            return False
        return symbols is not None and bpe(symbols, ranks) == [*ids]

    ids = [i for i in range(tokenizer.n_ids) if spelled[i] and made(i)]
    return ids, {(one, other) for one in ids for other in ids if made(one, other)}


def dead_by_definition(tokenizer, dfa):
    """For each state the ids after which no ids lead to acceptance: those that lead on are found
    for all states and last ids together, until there are no more."""
    ids, allowed = pairs_of(tokenizer)
    states = range(1, dfa.n_states)
    steps = {
        state: [(i, to) for i in ids if (to := walked(dfa, state, tokenizer.spellings[i]))]
        for state in states
    }
    alive = {(state, last) for state in states for last in ids if dfa.accepting[state]}
    grown = True
    while grown:
        grown = False
        for state in states:
            lively = [i for i, to in steps[state] if (to, i) in alive]
            for last in ids:
                if (state, last) not in alive and any((last, i) in allowed for i in lively):
                    alive.add((state, last))
                    grown = True
    return {state: {i for i in ids if (state, i) not in alive} for state in states}


def walked(dfa, state, data):
    for byte in data:
        state = int(dfa.trans[state, dfa.byte_class[byte]])
    return state


def check_dead_sets(tokenizer, dfa, at_once=False):
    """At all configurations of the fixed set. at_once: settled in one call before any status is
    known. Returns how many are PARTLY."""
    engine = CartesianMerge(tokenizer, dfa)
    tables, expected = engine.tables, dead_by_definition(tokenizer, dfa)
    assert tables.fixed_set >= 0
    states = np.arange(1, dfa.n_states, dtype=np.int64)
    if at_once:
        engine.relevance.settle(states, np.full(len(states), tables.fixed_set))
    status = tables.statuses(states, np.full(len(states), tables.fixed_set))
    partly = states[status == PARTLY]
    assert not any(expected[state] for state in states[status == ALIVE].tolist())
    for state in partly.tolist():
        known, order = (
            engine.relevance.dead((state, tables.fixed_set)),
            tables.forbidden_sets.before.order,
        )
        assert {*([] if known is None else order[listed(known)].tolist())} == expected[state], state
    return len(partly)


@pytest.fixture(scope="module")
def trained():
    """BPE trained without a pretokenizer, on texts with keys that are parts of one another."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=70, min_frequency=1, show_progress=False, special_tokens=[]
    )
    tokenizer.decoder = tokenizers.decoders.Fuse()
    tokenizer.train_from_iterator(CORPUS * 2, trainer)
    return Tokenizer.from_json(json.loads(tokenizer.to_str()))


@pytest.mark.parametrize("regex", FINITE + LOOPS)
def test_dead_sets_of_finite_languages_and_on_cycles(trained, regex):
    assert check_dead_sets(trained, compile_regex(regex)) > 0


def test_what_is_known_grows_while_dead_sets_are_found(trained, monkeypatch):
    """With next to no room at the beginning the search begins again and again."""
    wanted, settle = [], product_tables.settle

    def noted(*arguments):
        answer = settle(*arguments)
        wanted.append(answer[1])
        return answer

    monkeypatch.setattr(product_tables, "settle", noted)
    monkeypatch.setattr(product_tables, "_ROOM", 4)
    monkeypatch.setattr(product_tables, "_ROOM_OF_SETS", 1)
    for regex in FINITE + LOOPS:
        check_dead_sets(trained, compile_regex(regex), at_once=True)
    assert {AGAIN, DONE} <= {*wanted}


@examples(40)
@given(composing_tokenizers(), st.sampled_from(ACCENTED))
def test_where_room_for_state_pairs_runs_out_nothing_that_was_begun_is_kept(tokenizer, regex):
    """All candidates of configurations that are PARTLY open, each settled first, with room for no
    state_pair."""
    dfa = compile_regex(regex)
    engine = CartesianMerge(tokenizer, dfa)
    try:
        explored(engine, engine.initial(), 2000)
    except (BudgetExceededError, EmptyLanguageError):
        assume(False)
    memo = engine.tables.memo
    keys = [
        (key_state_pair(int(key)), key_number(int(key))) for key in memo.configurations if key >= 0
    ]
    statuses = engine.tables.statuses(*np.array(keys, np.int64).reshape(-1, 2).T.copy())
    configurations = [key for key, status in zip(keys, statuses, strict=True) if status == PARTLY]
    event(f"partly: {len(configurations) > 0}")
    dead = [engine.relevance.dead(configuration) for configuration in configurations]
    state_pairs = [
        (int(memo.state[state_pair]), int(memo.text_state[state_pair]))
        for state_pair, _ in configurations
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product_tables, "_SPARE_STATE_PAIRS", 1)
        patch.setattr(product_tables, "_STATES_PER_SPARE_PAIR", 10**9)
        for state_pair, (_, number) in [*zip(state_pairs, configurations, strict=True)][:4]:
            fresh = CartesianMerge(tokenizer, dfa)
            fresh.relevance.settle(
                np.array([fresh.tables.state_pair(*state_pair)]), np.array([number])
            )
            for k, other in enumerate(state_pairs):
                found = fresh.relevance.dead(
                    (fresh.tables.state_pair(*other), configurations[k][1])
                )
                assert (found is None) == (dead[k] is None)
                assert found is None or (found == dead[k]).all()


def test_what_is_settled_on_a_cycle_is_known_to_those_that_passed_it():
    """After `c` the search comes by `a` to where `c`, `d` and `f` can be read, passes `c`, which
    leads back, and settles both ends of `fg` as a cycle that this state_pair is not on."""
    merges = [("p", "d"), ("q", "b"), ("q", "a"), ("f", "g"), ("p", "fg")]
    vocabulary = [*"abcdefgpq", "pd", "qb", "qa", "fg", "pfg", *"01"]
    tokenizer = small_tokenizer(vocabulary, merges, split({"Regex": "[0-9]"}))
    ids = tokenizer.encode("pcbe")
    engine = CartesianMerge(tokenizer, compile_regex("(c|p(c|fg))(a(c|fg))*(be|ade)|pde"))
    assert [tokenizer.token_bytes(i) for i in ids] == [b"p", b"c", b"b", b"e"]
    state = engine.initial()
    for token in ids:
        assert token in members(engine.mask(state))
        state = engine.step(state, token)


@examples(80)
@given(merge_tables(), byte_dfas(most_states=6))
def test_dead_sets_are_those_of_the_definition(table, dfa):
    partly = check_dead_sets(small_tokenizer(table.vocabulary, table.merges), dfa)
    event(f"partly: {partly > 0}")


@examples(80)
@given(merge_tables(), byte_dfas(most_states=6), st.sampled_from([1, 2, 7, 100]))
def test_what_a_follower_decides_is_so_by_the_definition(table, dfa, at_once):
    decided, undecided = followers(small_tokenizer(table.vocabulary, table.merges), dfa, at_once)
    event(f"decided: {decided > 0}, undecided: {undecided > 0}")


@pytest.mark.parametrize("at_once", [1, 2, 7, 100])
@pytest.mark.parametrize("regex", FINITE + LOOPS)
def test_followers_in_finite_languages_and_on_cycles(trained, regex, at_once):
    decided, _ = followers(trained, compile_regex(regex), at_once)
    assert decided > 0


def followers(tokenizer, dfa, at_once):
    """At the configurations of the fixed set that are PARTLY, of so many ids at once: (how many
    `add_witnessed` decides, how many it leaves open)."""
    engine = CartesianMerge(tokenizer, dfa)
    tables, expected = engine.tables, dead_by_definition(tokenizer, dfa)
    number, (ids, _) = tables.fixed_set, pairs_of(tokenizer)
    tables._set_arrays.know(number)
    states = np.arange(1, dfa.n_states, dtype=np.int64)
    status = tables.statuses(states, np.full(len(states), number))
    found = [0, 0]
    for state in states[status == PARTLY].tolist():
        for some in (ids[k : k + at_once] for k in range(0, len(ids), at_once)):
            rows = np.array([(i, state, number, 0) for i in some], np.int32)
            free, bound = np.zeros((2, engine.canonical.geometry.n_words), np.int32)
            given = rows, free, bound, tables.settled, tables._tokens()
            left = tables.ask(add_witnessed, *given, packed(tables.forbidden_sets))
            lively = {*members(bound)}
            assert not free.any()
            assert lively <= {*some}
            for i, open_ in zip(some, left.tolist(), strict=True):
                assert open_ or (i in lively) == (i not in expected[state]), (state, i)
            found[0] += int((~left).sum())
            found[1] += int(left.sum())
    return found


@examples(40)
@given(merge_tables(), st.data())
def test_sets_of_positions_are_sets_of_ids(table, data):
    """What `_kernels.geometry` makes of ids and of sets of them, pair by pair."""
    tokenizer = small_tokenizer(table.vocabulary, table.merges)
    ids, allowed = pairs_of(tokenizer)
    geometry = canonical_automaton(tokenizer).geometry
    before, after, birth = geometry.before, geometry.after, geometry.derivation.birth
    assert sorted(before.order.tolist()) == sorted(after.order.tolist()) == ids
    at = positions_of(before.order, tokenizer.n_ids)
    assert [
        before.order[state_pair] if state_pair >= 0 else i for i, state_pair in enumerate(at)
    ] == [*range(tokenizer.n_ids)]
    token = data.draw(st.sampled_from(ids))
    forbidden, other = all_positions(len(ids)), all_positions(len(ids))
    assert (how_many(forbidden), len(listed(forbidden))) == (len(ids), len(ids))
    forbid(token, birth, 1, before, forbidden)
    first = {r for r in ids if (r, token) not in allowed}
    assert {*before.order[listed(forbidden)].tolist()} == first
    assert (placed(np.array([*first], dtype=np.int64), at, len(ids)) == forbidden).all()
    every = np.arange(tokenizer.n_ids)  # those that BPE does not make have no state_pair
    assert outside(every, forbidden, at).tolist() == [i for i in every.tolist() if i not in first]
    forbid(token, birth, 0, after, other)
    assert {*after.order[listed(other)].tolist()} == {n for n in ids if (token, n) not in allowed}
    forbid(data.draw(st.sampled_from(ids)), birth, 1, before, other)
    second = {*before.order[listed(other)].tolist()}
    assert exceeds(forbidden, other) == bool(first - second)
    assert keep(forbidden, other) == bool(first & second)
    assert {*before.order[listed(forbidden)].tolist()} == first & second


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 128, 200])
def test_all_positions_fill_words_to_their_ends(n):
    assert listed(all_positions(n)).tolist() == [*range(n)]
    assert how_many(all_positions(n)) == n


def apart_by_definition(tokenizer):
    """Has every byte inside a character an id of its own that may stand beside every id?"""
    ids, allowed = pairs_of(tokenizer)
    forbidden_by_all = {i for i in ids if all({(i, j), (j, i)} <= allowed for j in ids)}
    return {*range(0x80, 0xC0)} <= {
        tokenizer.spellings[i][0] for i in forbidden_by_all if len(tokenizer.spellings[i]) == 1
    }


@st.composite
def tokenizers_of_bytes(draw):
    """All bytes inside characters, rarely but one, and a few merges: of ASCII alone, or of a byte
    inside a character too."""
    inner = list(INNER)
    if draw(st.sampled_from((True, False, False))):
        inner.remove(draw(st.sampled_from(inner)))
    first = byte_spelling(b"\xc3")
    parts = ["a", "b", first, *draw(st.lists(st.sampled_from(inner), max_size=1))]
    merges = draw(st.lists(st.tuples(*[st.sampled_from(parts)] * 2), max_size=2, unique=True))
    if draw(st.booleans()):
        merges = [merge for merge in merges if {*merge} <= {"a", "b"}]
    vocabulary = ["a", "b", first, *inner, *("".join(merge) for merge in merges)]
    table = dict.fromkeys(vocabulary)
    return small_tokenizer([*table], merges, byte_level())


@examples(20)
@given(tokenizers_of_bytes())
def test_apart_is_what_its_definition_says(tokenizer):
    fixed_set = fixed_set_for(canonical_automaton(tokenizer), compile_regex("a"))
    expected = apart_by_definition(tokenizer)
    event(f"apart: {expected}")
    assert fixed_set.apart == expected


@pytest.mark.parametrize(
    "merge", [("a", "b"), ("a", INNER[0]), (INNER[0], "a"), (INNER[1], INNER[2]), None]
)
def test_apart_is_lost_by_one_merge_on_either_side(merge):
    """And by one byte that is missing."""
    merges = [merge] if merge else []
    inner = INNER if merge else INNER[1:]
    vocabulary = ["a", "b", byte_spelling(b"\xc3"), *inner, *("".join(m) for m in merges)]
    tokenizer = small_tokenizer(vocabulary, merges, byte_level())
    fixed_set = fixed_set_for(canonical_automaton(tokenizer), compile_regex("a"))
    assert fixed_set.apart == (merge == ("a", "b")) == apart_by_definition(tokenizer)
