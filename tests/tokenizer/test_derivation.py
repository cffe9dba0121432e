"""Derivations: BPE on a token's own bytes ends in that token, or the token appears in no output."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata.reference import bpe, merge_ranks
from bpe_automata.reference._bpe import base_symbols
from bpe_automata.testing import bpe_tokenizers
from bpe_automata.tokenizer.derivation import bpe as fast_bpe
from bpe_automata.tokenizer.derivation import derive


@examples(25)
@given(bpe_tokenizers())
def test_derivation_is_bpe_on_the_tokens_own_bytes(tokenizer):
    description = tokenizer.description
    derivation, ranks = derive(description), merge_ranks(description)
    for token, data in enumerate(description.tokens):
        symbols = base_symbols(description, data) if data else None
        made, carried_out = merged(symbols, ranks) if symbols else ([], [])
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


def merged(symbols, ranks):
    """(what BPE makes, the pairs that it merges in this order)."""
    tokens, carried_out = list(symbols), []
    while pairs := [(ranks[p][0], at) for at, p in enumerate(pairwise(tokens)) if p in ranks]:
        _, at = min(pairs)
        carried_out.append((tokens[at], tokens[at + 1]))
        tokens[at : at + 2] = [ranks[carried_out[-1]][1]]
    return tokens, carried_out


@examples(25)
@given(st.data())
def test_the_kernel_is_the_plain_min_rank_loop(data):
    tokenizer = data.draw(bpe_tokenizers())
    description = tokenizer.description
    symbols = data.draw(st.lists(st.sampled_from(sorted(description.base.values())), max_size=20))
    assert fast_bpe(derive(description), symbols) == bpe(symbols, merge_ranks(description))
