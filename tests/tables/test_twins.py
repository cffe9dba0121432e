"""Twins: ids of BPE-dropout spell the same text, each merge left out as often as is said."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.testing import small_tokenizer
from experiments.artefacts.twins import SMOKE
from experiments.dropout import Speller, corpus, files


@pytest.fixture(scope="module")
def read():
    return corpus(SMOKE.files, SMOKE.ids)


def test_without_dropout_the_ids_are_the_tokenizers(read):
    for path, pretokens in read.held_out.items():
        ids = list(read.speller.spelled(pretokens, 0.0, random.Random(1)))
        assert ids == read.tokenizer.encode(files(SMOKE.files)[path])


@given(st.floats(0.01, 1), st.integers(0, 2**32 - 1))
def test_ids_with_dropout_spell_the_same_text(read, dropout, seed):
    pretokens = next(iter(read.held_out.values()))[:60]
    ids = list(read.speller.spelled(pretokens, dropout, random.Random(seed)))
    text = read.tokenizer.text_bytes(list(read.speller.own(pretokens)))
    assert read.tokenizer.text_bytes(ids) == text
    if dropout == 1:
        assert len(ids) == len(text)


def test_each_possible_merge_is_left_out_with_that_probability():
    """`true` is t r u e, in three merges one after the other: of n texts so many get so far."""
    merges = [("t", "r"), ("tr", "u"), ("tru", "e")]
    table = small_tokenizer([*"true", "tr", "tru", "true"], merges)
    speller, rng = Speller(table), random.Random(2)
    n, dropout = 4000, 0.3
    drawn = Counter(len(speller.spell("true", dropout, rng)) for _ in range(n))
    kept = 1 - dropout
    expected = {1: kept**3, 2: kept**2 * dropout, 3: kept * dropout, 4: dropout}
    assert {k: drawn[k] / n for k in expected} == pytest.approx(expected, abs=0.03)
