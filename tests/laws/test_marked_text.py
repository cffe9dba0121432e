"""DirectMerge of complete tokenizers, through marked text: the second, independent path."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata import Tokenizer, compile_regex, constrain
from bpe_automata._constructions.explicit import explore
from bpe_automata._tokenizer.sources.named import names
from bpe_automata.errors import (
    BudgetExceededError,
    EmptyLanguageError,
    ImproperMergeTableError,
    MissingDependencyError,
    MissingFileError,
)
from bpe_automata.reference import direct_merged
from bpe_automata.testing import (
    bpe_tokenizers,
    cyclic_regexes,
    finite_regexes,
    small_tokenizer,
    trained_tokenizers,
)
from bpe_automata.testing._inputs import own_pieces

MOST_EDGES = 20_000
REGEXES = (
    r'(\{"a": ?(true|[0-9]{1,2})\}|  \n x)',
    r"(foo<\|im_end\|>|<s>|</s>|<\|endoftext\|>)?x",
    " ( g|g)eliş|[A-Z]{2}",
)
MORE_REGEXES = ("(true|false)", r"\s{0,3}(don't|DON'T|é日)\s{0,2}", "(ab)*c?", "[a-c1 ]{0,3}")
FEW = ("smollm2", "llama-3", "mistral-v1", "tekken-240911")


def check(tokenizer, regex):
    """The two paths, compared by a shortest counterexample; how many states the minimal automaton
    has, None if nothing can be spelled."""
    dfa = compile_regex(regex)
    try:
        engine = constrain(tokenizer, dfa, added_tokens=True).engine
        fast = explore(engine, engine.initial(), MOST_EDGES)
    except EmptyLanguageError:
        assert direct_merged(tokenizer, dfa, tokenizer.eos_ids).is_empty
        return None
    merged = direct_merged(tokenizer, dfa, tokenizer.eos_ids)
    found = merged.equivalent(fast)
    assert found is None, f"{regex!r}: {found}"
    assert fast.minimised().n_states == merged.n_states
    return merged.n_states


@examples(60)
@given(st.data())
def test_random_tokenizers(data):
    tokenizer = data.draw(bpe_tokenizers())
    regexes = finite_regexes if data.draw(st.booleans()) else cyclic_regexes
    try:
        check(tokenizer, data.draw(regexes(own_pieces(tokenizer))))
    except (BudgetExceededError, ImproperMergeTableError):
        return


@examples(8)
@given(st.data())
def test_trained_tokenizers(data):
    """Normalizers, prefixes, byte fallback, every kind of pretokenizer and added token."""
    tokenizer = data.draw(trained_tokenizers())
    try:
        check(tokenizer, data.draw(finite_regexes(own_pieces(tokenizer))))
    except (BudgetExceededError, ImproperMergeTableError):
        return


def load(name):
    try:
        return Tokenizer.load(name)
    except (MissingDependencyError, MissingFileError) as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", FEW)
def test_real_tokenizers(name):
    tokenizer = load(name)
    assert all(check(tokenizer, regex) for regex in REGEXES)


@pytest.mark.long
@pytest.mark.parametrize("name", names())
def test_all_real_tokenizers(name):
    tokenizer = load(name)
    found = [check(tokenizer, regex) for regex in (*REGEXES, *MORE_REGEXES)]
    assert sum(n is not None for n in found) >= 6


def test_a_boundary_keeps_a_merge_from_being_carried_out():
    """Without the digits splitter 1 1 would be 11; across the mark it is not."""
    plain = small_tokenizer(["1", "a", "11", "a1"], [("1", "1"), ("a", "1")])
    digits = {"type": "Digits", "individual_digits": True}
    split = small_tokenizer(["1", "a", "11", "a1"], [("1", "1"), ("a", "1")], digits)
    dfa = compile_regex("a11")
    assert [*islice(direct_merged(plain, dfa).enumerate(9), 9)] == [(1, 2)]
    assert [*islice(direct_merged(split, dfa).enumerate(9), 9)] == [(1, 0, 0)]


def test_an_added_token_takes_part_in_no_merge():
    """cat is an ordinary token and an added one, of the same id: with it a space is not merged."""
    vocabulary = ["c", "a", "t", " ", "at", "cat", " cat"]
    merges = [("a", "t"), ("c", "at"), (" ", "cat")]
    dfa = compile_regex(" cat")
    plain = small_tokenizer(vocabulary, merges)
    assert [*direct_merged(plain, dfa).enumerate(9)] == [(6,)]
    added = small_tokenizer(vocabulary, merges, added=["cat"])
    assert added.encode(" cat") == [3, 5]
    assert [*direct_merged(added, dfa).enumerate(9)] == [(3, 5)]
