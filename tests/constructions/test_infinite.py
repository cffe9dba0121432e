"""Infinite languages: every edge of the automaton lies on a path to acceptance whose ids are
canonical and match, and every string of the language has its path."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from paths import is_canonical, shortest_paths

from bpe_automata import compile_regex, constrain
from bpe_automata.automata import from_strings
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError
from bpe_automata.testing import bpe_tokenizers, cyclic_regexes, merge_tables, small_tokenizer
from bpe_automata.testing.inputs import own_pieces
from experiments.shared.regexes import VARIED
from experiments.shared.walks import finish, walk


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
    automaton, there, home = shortest_paths(engine, initial)
    for source, token, target in automaton.transitions():
        assert target in home, f"state {target} is irrelevant"
        witness = [*there[source], token, *home[target]]
        assert is_canonical(tokenizer, witness), witness
        assert dfa.accepts(tokenizer.decode(witness).encode())
    for text in spelled:
        assert automaton.accepts(tokenizer.encode(text))
    return True


@examples(35)
@given(st.data())
def test_random_tokenizers_and_cyclic_regexes(data):
    tokenizer = data.draw(bpe_tokenizers())
    try:
        check(tokenizer, data.draw(cyclic_regexes(own_pieces(tokenizer))))
    except BudgetExceededError:
        return


@examples(60)
@given(st.data())
def test_without_a_pretokenizer_every_joint_can_break(data):
    """One pretoken: here relevance does most of its work."""
    table = data.draw(merge_tables(("a", "b"), shuffled=data.draw(st.booleans())))
    tokenizer = small_tokenizer(table.vocabulary, table.merges)
    try:
        check(tokenizer, data.draw(cyclic_regexes(("a", "b", "ab", "aab"))))
    except BudgetExceededError:
        return


def test_relevance_on_a_cycle_is_a_least_fixpoint():
    """a...ac is aa,...,aa,c or aa,...,aa,ac; so no a can ever be read alone, though each a leads to
    where an a can be read."""
    tokenizer = small_tokenizer(["a", "c", "aa", "ac"], [("a", "a"), ("a", "c")])
    matcher = constrain(tokenizer, "a*c").matcher()
    assert matcher.allowed_ids().tolist() == [1, 2, 3]
    matcher.advance(2)
    assert matcher.allowed_ids().tolist() == [1, 2, 3]


def test_cycles_through_several_states():
    """All tables of three merges over two symbols, on regexes with nested loops."""
    pairs = list(itertools.product("ab", repeat=2))
    for merges in itertools.permutations(pairs, 3):
        tokenizer = small_tokenizer(["a", "b", *map("".join, merges)], merges)
        for regex in ("(aab*)*b", "(ab|ba*)*a", "a(ba)*b(aa)*"):
            assert check(tokenizer, regex, 8)


@pytest.mark.parametrize("name", VARIED)
def test_walks_of_smollm2_are_canonical_matching_and_able_to_finish(smollm2_tokenizer, name):
    constraint = constrain(smollm2_tokenizer, VARIED[name], added_tokens=True)
    for seed in range(3):
        rng = random.Random(seed)
        ids, state = walk(constraint, rng, 12)
        ids = finish(constraint, ids, state, rng)
        text = smollm2_tokenizer.decode(ids)
        assert smollm2_tokenizer.encode(text) == ids
        assert constraint.dfa.accepts(text.encode())
        if "\\p{" not in VARIED[name]:
            assert re.fullmatch(VARIED[name], text)


def test_the_first_mask_of_a_finite_part_is_inside_that_of_the_whole(smollm2_tokenizer):
    texts = ["12", "12.5", "-7", "0.25", "1e9"]
    part = constrain(smollm2_tokenizer, from_strings(texts)).matcher()
    whole = constrain(smollm2_tokenizer, VARIED["numbers"]).matcher()
    assert set(part.allowed_ids()) <= set(whole.allowed_ids())
