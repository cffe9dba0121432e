"""Derivation: BPE on a token's own bytes ends in that token, or the token appears in no output."""

from __future__ import annotations

from itertools import pairwise

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.reference import bpe, merge_ranks
from bpe_automata.reference.bpe import base_symbols
from bpe_automata.testing import bpe_tokenizers, small_tokenizer, texts
from bpe_automata.tokenizer.derivation import bpe as fast_bpe
from bpe_automata.tokenizer.derivation import derive


def check_derivation(tokenizer):
    description = tokenizer.description
    derivation, ranks = derive(description), merge_ranks(description)
    for token, data in enumerate(description.tokens):
        symbols = base_symbols(description, data) if data else None
        carried_out = trace(symbols, ranks) if symbols else []
        made = bpe(symbols, ranks) if symbols else []
        assert derivation.reachable[token] == (made == [token])
        if derivation.reachable[token] and len(symbols) > 1:
            left, right = int(derivation.left[token]), int(derivation.right[token])
            assert carried_out[-1] == (left, right)
            numbers = derivation.proper[:, 2].tolist()
            number = numbers.index(token)
            assert derivation.proper[number].tolist() == [left, right, token]
            assert max(numbers.index(p) if p in numbers else -1 for p in (left, right)) < number
            epoch = max(ranks[pair][0] for pair in carried_out)
            assert derivation.epoch[number] == epoch
            assert derivation.birth[token] == derivation.epoch.tolist().index(epoch)


def trace(symbols, ranks):
    """The pairs that BPE merges, in the order in which it does."""
    tokens, carried_out = list(symbols), []
    while pairs := [(ranks[p][0], at) for at, p in enumerate(pairwise(tokens)) if p in ranks]:
        _, at = min(pairs)
        carried_out.append((tokens[at], tokens[at + 1]))
        tokens[at : at + 2] = [ranks[carried_out[-1]][1]]
    return carried_out


@examples(25)
@given(bpe_tokenizers())
def test_derivation_is_bpe_on_the_tokens_own_bytes(tokenizer):
    check_derivation(tokenizer)


@examples(25)
@given(st.data())
def test_the_kernel_is_the_plain_min_rank_loop(data):
    tokenizer = data.draw(bpe_tokenizers())
    description = tokenizer.description
    symbols = data.draw(st.lists(st.sampled_from(sorted(description.base.values())), max_size=20))
    assert fast_bpe(derive(description), symbols) == bpe(symbols, merge_ranks(description))


@examples(25)
@given(st.data())
def test_an_unreachable_token_appears_in_no_output_without_ignore_merges(data):
    tokenizer = data.draw(bpe_tokenizers())
    if tokenizer.description.ignore_merges:
        return
    reachable = derive(tokenizer.description).reachable
    added = {token.id for token in tokenizer.description.added}
    ids = tokenizer.encode(data.draw(texts(tokenizer)))
    assert all(reachable[i] or i in added for i in ids)


def derived_from(merges: list[str], vocabulary: str):
    pairs = [tuple(merge.split()) for merge in merges]
    return derive(small_tokenizer(vocabulary.split(), pairs).description)


def test_of_several_merges_for_one_token_the_one_that_happens_is_its_derivation():
    # ab + c is listed first; but b + c comes before a + b, so a + bc makes the token.
    derivation = derived_from(["b c", "a b", "ab c", "a bc"], "a b c bc ab abc")
    assert (derivation.left[5], derivation.right[5], derivation.birth[5]) == (0, 3, 2)


def test_a_derivation_of_too_low_a_rank_comes_right_after_its_parts():
    """abc + d has rank 1, but abc is there only after a + bc, of rank 3."""
    derivation = derived_from(["b c", "abc d", "a b", "a bc"], "a b c d bc abcd ab abc")
    made = derivation.proper[:, 2].tolist()
    assert made == [4, 6, 7, 5], "bc, ab, abc, abcd"
    assert derivation.epoch.tolist() == [0, 2, 3, 3]
    assert derivation.late.tolist() == [False, False, False, True]
    assert derivation.birth[[4, 6, 7, 5]].tolist() == [0, 1, 2, 2]


@pytest.mark.long
def test_derivation_of_smollm2(smollm2_tokenizer):
    check_derivation(smollm2_tokenizer)
