"""The least number of ids on graphs of nodes, groups and forbidden pairs that no tokenizer has:
what depends on the last id then matters at every level."""

from __future__ import annotations

from dataclasses import dataclass
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples

from bpe_automata._automata.compile import compile_regex
from bpe_automata._constructions import horizon_search
from bpe_automata._constructions.horizon import GraphHorizon
from bpe_automata._constructions.horizon_graph import NEVER, Facts, Graph, Spread
from bpe_automata._constructions.horizon_lift import LiftHorizon
from bpe_automata._constructions.horizon_search import Search
from bpe_automata._constructions.lift import Lift
from bpe_automata._constructions.within import horizon_of
from bpe_automata._kernels.bits import members, set_bits, without
from bpe_automata._sharing import BYTES

N_IDS = 8
FAR = 40


def packed(ids):
    bits = np.zeros(1, dtype=np.int32)
    set_bits(bits, np.array(sorted(ids), dtype=np.int64))
    return bits


@dataclass
class Made:
    """A `Reader` of states (node, last id). groups[node]: (ids, free target, bound target), -1 for
    none; forbidden: pairs that may not stand side by side without a boundary; slack: how much too
    low the better bounds from below are; partial: is what is too far left out; opened, stepped: how
    many spreads and steps were asked for."""

    groups: list[list[tuple[list[int], int, int]]]
    accepting: set[int]
    forbidden: set[tuple[int, int]]
    slack: int = FAR
    texts: int = 0
    partial: bool = False
    n_words: int = 1
    opened: int = 0
    stepped: int = 0

    def __post_init__(self):
        self.nodes = range(len(self.groups))
        self.far = self.distances()

    def distances(self):
        """D[node, last], level by level."""
        far = {(n, r): 0 if n in self.accepting else FAR for n in self.nodes for r in range(8)}
        while True:
            nearer = {at: min(here, self.after(far, *at)) for at, here in far.items()}
            if nearer == far:
                return far
            far = nearer

    def after(self, far, node, last):
        found = [FAR]
        for ids, free, bound in self.groups[node]:
            for n in ids:
                if free >= 0:
                    found.append(1 + far[free, n])
                if bound >= 0 and (last, n) not in self.forbidden:
                    found.append(1 + far[bound, n])
        return min(found)

    def dead(self, node, k):
        return {r for r in range(N_IDS) if self.far[node, r] > k}

    # what a source says

    def facts(self, keys):
        accepting = np.isin(keys, list(self.accepting))
        lower, final = np.where(accepting, 0, 1), np.where(accepting, 0, NEVER)
        return Facts(lower, final, accepting, lower, accepting)

    def look(self, keys):
        dead = [self.dead(key, FAR - 1) for key in keys.tolist()]
        never = [len(d) == N_IDS for d in dead]
        final = [self.stays(key) if self.texts else NEVER for key in keys.tolist()]
        return np.array(never), np.array([not d for d in dead]), np.array(final)

    def stays(self, key):
        """From which k on dead_k is what it stays."""
        return next(k for k in range(FAR) if self.dead(key, k) == self.dead(key, FAR - 1))

    def at_most(self, key):
        return max(self.far[key, r] for r in range(N_IDS)) if self.texts else NEVER

    def bounded(self, key, k):
        return False

    def unsure(self, key, k):
        if not self.texts:
            return None
        targets = {target for _, *sides in self.groups[key] for target in sides} - {-1}
        return [target for target in targets if self.stays(target) + self.texts - 1 > k]

    def lower(self, keys, k):
        near = [min(self.far[key, r] for r in range(N_IDS)) for key in keys.tolist()]
        return np.array([max(0, least - self.slack) for least in near], dtype=np.int32)

    def least(self, key):
        return int(self.lower(np.array([key]), FAR)[0])

    def near(self, key):
        return min(self.far[key, r] for r in range(N_IDS)) if self.partial else NEVER

    def goal(self, key):
        dead = self.dead(key, FAR - 1)
        return packed(dead) if dead else None

    def left(self, key, k):
        """The groups that are not left out."""
        if not self.partial:
            return self.groups[key]
        near = {-1: FAR, **{n: min(self.far[n, r] for r in range(N_IDS)) for n in self.nodes}}
        return [g for g in self.groups[key] if min(near[g[1]], near[g[2]]) < k]

    def spread(self, key, k):
        self.opened += 1
        sides = np.array([(f, b) for _, f, b in self.left(key, k)], dtype=np.int64).reshape(-1, 2)
        return Spread(sides[:, 0].copy(), sides[:, 1].copy())

    def step(self, key, token):
        self.stepped += 1
        return next((tuple(to) for ids, *to in self.groups[key] if token in ids), (-1, -1))

    def members(self, key, k, groups):
        left = self.left(key, k)
        return np.array([n for g in groups for n in left[g][0]], dtype=np.int64)

    def reached_by(self, key, ids):
        return packed(ids)

    def following(self, ids, candidates):
        some = members(candidates)
        return np.array(
            [n for n in ids if any((r, n) not in self.forbidden for r in some)], dtype=np.int64
        )

    def narrow(self, ids, candidates):
        kept = [r for r in members(candidates) if all((r, n) in self.forbidden for n in ids)]
        candidates[:] = packed(kept)
        return len(kept)

    def outside(self, ids, dead):
        return without(ids, dead)

    def universe(self, key):
        return packed(range(N_IDS))

    def key(self, state):
        return state[0]

    def before(self, state):
        return state

    def mask(self, state, free, bound):
        return free | (bound & packed({n for n in range(8) if (state[1], n) not in self.forbidden}))

    def plain(self, state):
        return self.within(*state, FAR)

    def within(self, node, last, k):
        return packed(
            n
            for ids, free, bound in self.groups[node]
            for n in ids
            if (free >= 0 and self.far[free, n] < k)
            or (bound >= 0 and self.far[bound, n] < k and (last, n) not in self.forbidden)
        )


@st.composite
def made(draw):
    n = draw(st.integers(2, 7))
    targets = st.sampled_from([-1, *range(n)])
    ids = st.lists(st.integers(0, N_IDS - 1), min_size=1, max_size=4, unique=True)
    # Boundaries are rare, or everything would be settled by them.
    rarely = st.one_of(st.just(-1), st.just(-1), st.just(-1), targets)
    groups = st.lists(st.lists(st.tuples(ids, rarely, targets), max_size=4), min_size=n, max_size=n)
    pairs = st.sets(st.tuples(*[st.integers(0, N_IDS - 1)] * 2), min_size=8, max_size=56)
    accepting = {n - 1, *draw(st.sets(st.integers(1, n - 1), max_size=1))}
    slack = draw(st.sampled_from([0, 1, FAR]))
    texts = draw(st.integers(0, 2))
    return Made(draw(groups), accepting, draw(pairs), slack, texts, draw(st.booleans()))


@pytest.mark.parametrize("n_bytes", [BYTES, 2_500, 0])
@examples(60)
@given(source=made(), rng=st.randoms(use_true_random=False))
def test_distances_and_masks(n_bytes, source, rng):
    """D(node, last) and the ids of every mask, asked in any order, are those of the definition,
    however little of what was found out may be kept."""
    states = [state for state, far in source.far.items() if far < FAR]
    assume(states)
    cases = [(state, k) for state in states for k in (None, 0, 1, 2, 3, 4, 5, 7, 12)]
    rng.shuffle(cases)
    horizon = GraphHorizon(source)
    with mock.patch.object(horizon_search, "BYTES", n_bytes):
        for state, k in cases[:150]:
            if k is None:
                assert horizon.least(state) == source.far[state]
            else:
                assert horizon.reaches(state, k) == (source.far[state] <= k)
                got, wanted = horizon.mask(state, k), source.within(*state, k)
                assert members(got).tolist() == members(wanted).tolist()


def test_a_search_leaves_alone_what_is_too_far():
    """A way of three ids to the end, which one last id forbids, and one of many more."""
    n = 12
    detour = [[([0], -1, node + 1)] for node in range(4, n - 1)]
    groups = [[([0], -1, 1), ([1], -1, 4)], [([0], -1, 2)], [([0], -1, 3)], [], *detour, []]

    def opened(slack):
        source = Made(groups, {3, n - 1}, {(7, 0)}, slack)
        graph = Graph(source)
        root = graph.numbers(np.array([0]))
        live = Search(graph).live(int(root[0]), 5, packed(range(N_IDS)))
        assert set(range(N_IDS)) - set(members(live).tolist()) == source.dead(0, 5)
        return source.opened

    assert opened(slack=0) < opened(slack=FAR)


def test_one_short_way_saves_the_others():
    """Each of the nodes that the root leads to is near the end, and leads to many more."""
    chain, near = range(1, 13), 13  # a long way that is found first, and the last but one
    tree = {0: range(14, 22), **{14 + i: range(22 + 8 * i, 30 + 8 * i) for i in range(8)}}
    end = 22 + 64
    groups = [[([0], near if node else 1, -1)] for node in range(end)]
    for node in chain:
        groups[node] = [([0], node + 1 if node + 1 in chain else end, -1)]
    groups[near] = [([0], end, -1)]
    for node, below in tree.items():
        groups[node] += [([1], target, -1) for target in below]
    source = Made([*groups, []], {end}, set())
    assert GraphHorizon(source).reaches((0, 0), 4)
    assert source.far[0, 0] == 3
    assert source.opened < 30  # of 86


def test_what_led_on_elsewhere_is_tried_before_a_node_is_opened():
    """A hundred nodes that the root leads to, each with ways of its own, and one that all share."""
    n, end = 100, 102
    groups = [[([node % 7], node + 1, -1) for node in range(n)]]
    groups += [[([0], 0, -1), ([node % 6 + 1], n + 1, -1), ([7], n + 1, -1)] for node in range(n)]
    source = Made([*groups, [([3], end, -1)], []], {end}, set())
    mask = GraphHorizon(source).mask((0, 0), 3)
    assert members(mask).tolist() == list(range(7))
    assert source.opened < 12
    assert source.stepped < 600


def test_a_short_search_does_not_ask_which_states_include_others(smollm2_tokenizer):
    """That takes a microsecond a state, or more where it is in vain."""
    dfa = compile_regex("(?:.{0,25}a){0,30}b")
    horizon = horizon_of(Lift(smollm2_tokenizer, dfa))
    with mock.patch.object(LiftHorizon, "_include", side_effect=AssertionError):
        assert horizon.least(dfa.start) == 1
        assert not horizon.reaches(dfa.start, 0)


def test_what_is_found_by_inclusion_is_found_without(smollm2_tokenizer):
    """A long search asks which states of a counted repeat include others; it says the same."""
    dfa = compile_regex(r'(?:[^"\\]){10,300}(?:é|[a-zà-ÿ])http한[0-9]')
    states, found = np.arange(1, dfa.n_states), []
    for included in (True, False):
        horizon = horizon_of(Lift(smollm2_tokenizer, dfa))
        horizon._widest_found = not included
        found.append([horizon.lower(states, k) > k for k in (3, 5)])
        assert (horizon._towards.widest != np.arange(dfa.n_states)).any() == included
    assert np.array_equal(*found)
