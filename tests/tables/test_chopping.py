"""The published heuristic that gives forced ids back, against trying every token."""

from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata.automata.compile import compile_regex
from bpe_automata.testing import bpe_tokenizers, finite_regexes
from bpe_automata.testing._inputs import own_pieces
from experiments.chop import chopped


def plain(tokenizer, dfa, state, ids, max_tokens, least_bytes, grammar):
    """The source's own words, over every token and every byte, without a trie."""
    data = b"".join(map(tokenizer.token_bytes, ids))
    ends = [sum(len(tokenizer.token_bytes(t)) for t in ids[k:]) for k in range(len(ids) + 1)]
    counts = (n for n, size in enumerate(ends[::-1]) if n >= max_tokens and size >= least_bytes)
    last = ends[::-1][next(counts, len(ids))]
    edge = len(data)
    ordinary = [token for token in tokenizer.description.tokens if token]
    for at in range(len(data) - last, len(data)):
        suffix = data[at:]
        beyond = [t[len(suffix) :] for t in ordinary if t.startswith(suffix) and t != suffix]
        if any(not grammar or dfa.far[dfa.walk(rest, state)] >= 0 for rest in beyond):
            edge = at
            break
    kept = list(ids)
    while kept and len(b"".join(map(tokenizer.token_bytes, kept))) > edge:
        kept.pop()
    return tuple(kept)


@examples(10)
@given(st.data(), st.integers(0, 4), st.integers(0, 5), st.booleans())
def test_the_trie_finds_what_trying_every_token_finds(data, most, least, grammar):
    tokenizer = data.draw(bpe_tokenizers(max_merges=8))
    dfa = compile_regex(data.draw(finite_regexes(own_pieces(tokenizer))))
    text = data.draw(st.sampled_from(own_pieces(tokenizer)))
    ids = tokenizer.encode(text)
    state = data.draw(st.integers(0, dfa.n_states - 1))
    found = chopped(tokenizer, dfa, state, ids, most, least, grammar)
    assert found == plain(tokenizer, dfa, state, ids, most, least, grammar)
