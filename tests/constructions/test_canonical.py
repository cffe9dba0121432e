"""The canonical automaton accepts exactly { ids : encode(decode(ids)) == ids }, written out or
walked step by step, of finite languages and of infinite ones.
"""

import itertools
import random
import re
from itertools import pairwise

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from support.drawn import PREFIXED
from support.laws import accepted_iff_encode_gives_the_ids_back, own_ids

from bpe_automata import compile_regex, constrain
from bpe_automata._kernels.bits import members
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.canonical.tables import universal as universal_of
from bpe_automata.constructions.explicit import explore, explored
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError
from bpe_automata.testing import (
    bpe_tokenizers,
    byte_level,
    byte_spelling,
    cyclic_regexes,
    merge_tables,
    resegmentations,
    small_tokenizer,
    texts,
)
from bpe_automata.testing._inputs import own_pieces


@examples(40)
@given(st.data())
def test_random_tokenizers(data):
    tokenizer, some = data.draw(bpe_tokenizers()), []
    any_ids = st.lists(st.integers(0, tokenizer.n_ids - 1), max_size=6)
    for _ in range(4):
        text = data.draw(texts(tokenizer))
        some += [tokenizer.encode(text), data.draw(resegmentations(tokenizer, text))]
        some.append(data.draw(any_ids))
    accepted_iff_encode_gives_the_ids_back(tokenizer, some)


@examples(20)
@given(bpe_tokenizers())
def test_every_text_is_read_from_a_universal_hypothesis_and_from_no_other(tokenizer):
    automaton = canonical_automaton(tokenizer)
    boundaries = automaton.pipeline.boundaries
    steps = boundaries.follow.any(axis=0)
    for hypothesis, universal in enumerate(universal_of(boundaries)):
        level = met = {frozenset((hypothesis,))}
        while level:
            level = {
                frozenset(np.flatnonzero(after).tolist())
                for some in level
                for after in (steps[list(some)].any(axis=0) if some else ())
            } - met
            met = met | level
        assert universal == all(some and boundaries.ends[list(some)].any() for some in met)


def test_ignore_merges_of_a_token_that_ends_inside_a_character():
    """It can be no pretoken, so it is never canonical and no mask may offer it."""
    letters = sorted(byte_spelling(bytes([byte])) for byte in "a\u2028".encode())
    vocabulary = [*letters, byte_spelling(b"a\xe2")]
    tokenizer = small_tokenizer(vocabulary, (), byte_level(), ignore_merges=True)
    automaton = canonical_automaton(tokenizer)
    assert automaton.step(automaton.start, len(letters)) is None


@pytest.mark.parametrize("regex", [r"[\n\t]*", r"[\n\t]*a?"])
def test_what_is_remembered_of_a_mask_or_a_step_is_by_the_last_id_too(regex):
    """Behind a tab a newline stands alone. Behind a newline the two would be one token, but for a
    letter that follows."""
    newline, tab = byte_spelling(b"\n"), byte_spelling(b"\t")
    merges = [(newline, newline)]
    tokenizer = small_tokenizer(
        ["a", tab, newline, 2 * newline], merges, byte_level(use_regex=True)
    )
    constraint = constrain(tokenizer, regex)
    written = constraint.automaton()  # by many steps at once
    for ids in itertools.chain(*(itertools.product(range(4), repeat=n) for n in range(5))):
        text = tokenizer.decode(ids)
        right = tokenizer.encode(text) == [*ids] and re.fullmatch(regex, text) is not None
        matcher = constraint.matcher()
        read = [matcher.advance(token) for token in ids if matcher.allows(token)]
        assert (len(read) == len(ids) and matcher.is_accepting) == right, ids
        assert written.accepts(ids) == right


# ---------------------------------------------------------------- written out

METHODS = ("lift", "canonical")


def by_steps(engine, state, most):
    """(states, transitions, accepting), one id at a time."""
    states, found = [state], []
    for source, here in enumerate(states):
        for token in members(engine.mask(here)).tolist():
            if token not in engine.eos_ids:
                after = engine.step(here, token)
                if after not in states:
                    states.append(after)
                found.append((source, token, states.index(after)))
        if len(found) > most:
            raise BudgetExceededError("edges", most, "too many")
    return states, found, [engine.accepting(here) for here in states]


@examples(20)
@given(st.data(), st.sampled_from(METHODS))
def test_explored_is_what_single_steps_find(data, method):
    tokenizer = data.draw(bpe_tokenizers() | st.sampled_from(PREFIXED))
    regex = data.draw(cyclic_regexes(own_pieces(tokenizer)))
    added = [token.id for token in tokenizer.description.added]
    eos = tuple(added[:1]) if data.draw(st.booleans()) else ()
    try:
        engine = constrain(tokenizer, regex, method=method, eos_ids=eos).engine
        initial = engine.initial()
        states, transitions, accepting = by_steps(engine, initial, 2000)
    except (BudgetExceededError, EmptyLanguageError):
        return
    found = explored(engine, initial)
    assert list(found.states) == states
    assert list(map(type, found.states)) == list(map(type, states))
    automaton = found.automaton
    assert list(automaton.transitions()) == transitions
    assert automaton.accepting.tolist() == accepting
    assert automaton.start == 0
    assert automaton.relevant().all()
    assert automaton.spellings == tokenizer.spellings
    assert automaton.alphabet.tolist() == [i for i in range(tokenizer.n_ids) if i not in eos]


def test_the_budget():
    tokenizer = small_tokenizer(["a", "b"], [])
    engine = constrain(tokenizer, compile_regex("[ab]{3}")).engine
    automaton = explore(engine, engine.initial(), max_edges=1000)
    assert explore(engine, engine.initial(), automaton.n_transitions).identical(automaton)
    with pytest.raises(BudgetExceededError):
        explore(engine, engine.initial(), automaton.n_transitions - 1)


# ---------------------------------------------------------------- infinite languages
# Every edge of the automaton lies on a path to acceptance whose ids are
# canonical and match, and every string of the language has its path.


def paths_through(automaton):
    """For each transition a shortest path from the start to acceptance that takes it, as ids; None
    where there is none."""
    graph = networkx.DiGraph(automaton.to_networkx())
    ends = [state for state in automaton.states() if automaton.accepting[state]]
    there = networkx.single_source_shortest_path(graph, automaton.start)
    home = networkx.multi_source_dijkstra_path(graph.reverse(), ends, weight=None)
    for source, token, target in automaton.transitions():
        if target in home:
            before, after = there[source], home[target][::-1]
            ids = [[graph.edges[e]["symbol"] for e in pairwise(way)] for way in (before, after)]
            yield [*ids[0], token, *ids[1]]
        else:
            yield None


def check(tokenizer, regex, longest=10):
    """False if nothing can be spelled."""
    dfa = compile_regex(regex)
    engine = constrain(tokenizer, dfa, added_tokens=True).engine
    samples = {dfa.sample(random.Random(seed), longest).decode() for seed in range(40)}
    spelled = [text for text in samples if tokenizer.decode(tokenizer.encode(text)) == text]
    try:
        initial = engine.initial()
    except EmptyLanguageError:
        assert not spelled
        return False
    automaton = explore(engine, initial, 4000)
    for witness in paths_through(automaton):
        assert witness is not None, "an irrelevant state"
        assert own_ids(tokenizer, witness) == witness
        assert dfa.accepts(tokenizer.decode(witness).encode())
    for text in spelled:
        assert automaton.accepts(tokenizer.encode(text))
    return True


@st.composite
def alone(draw):
    """Merges without a pretokenizer: every joint can break, so relevance does most of its work."""
    table = draw(merge_tables(("a", "b"), shuffled=draw(st.booleans())))
    return small_tokenizer(table.vocabulary, table.merges)


@examples(40)
@given(st.data(), bpe_tokenizers() | alone())
def test_random_tokenizers_and_cyclic_regexes(data, tokenizer):
    try:
        check(tokenizer, data.draw(cyclic_regexes(own_pieces(tokenizer))))
    except BudgetExceededError:
        return


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "regex", [r"\s+\S{1,2}(\n\s*)?", r"(é|日本|😀|\u0301)+", r"a(<\|im_end\|>)*b?"]
)
def test_many_steps_are_many_single_steps_on_smollm2(smollm2_tokenizer, method, regex):
    engine = constrain(smollm2_tokenizer, regex, method=method).engine
    rng, here = random.Random(0), engine.initial()
    for _ in range(40):
        tokens = np.setdiff1d(members(engine.mask(here)), engine.eos_ids)
        after = engine.steps(here, tokens)
        assert len(after) == len(tokens)
        for k in rng.sample(range(len(tokens)), min(100, len(tokens))):
            assert after[k] == engine.step(here, int(tokens[k]))
        here = rng.choice(after) if after else engine.initial()
