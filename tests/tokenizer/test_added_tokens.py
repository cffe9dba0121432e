"""Added tokens, which are cut out of the text before all else, in two passes: the text automaton
against `encode`."""

from __future__ import annotations

from itertools import chain, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata import Budget
from bpe_automata._budget import spending
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata.errors import BudgetExceededError, UnsupportedTokenizerError
from bpe_automata.testing import (
    added_token,
    byte_level,
    byte_spelling,
    resegmentations,
    small_tokenizer,
)

SPECIAL = st.text(st.sampled_from("ab<"), min_size=1, max_size=3)
FLAGS = st.sampled_from(
    [
        *((name,) for name in ("normalized", "lstrip", "rstrip", "single_word")),
        *(("single_word", side) for side in ("normalized", "lstrip", "rstrip")),
        ("lstrip", "rstrip"),
    ]
).map(lambda names: dict.fromkeys(names, True))


def cut_by_automaton(tokenizer, ids):
    """Are these ids what is cut out of their own text? Ordinary tokens are single characters."""
    pipeline = canonical_automaton(tokenizer).pipeline
    text, state = pipeline.text, pipeline.text.start
    numbers = {int(token): k for k, token in enumerate(text.ids)}
    for token in ids:
        if token in numbers:
            state = int(text.after[text.after_row[state], numbers[token]])
        else:
            state = int(text.next[state, pipeline.alphabet.atom(tokenizer.decode([token]))])
        if state < 0:
            return False
    return bool(text.ends[state])


def is_own(tokenizer, ids):
    return tokenizer.encode(tokenizer.decode(ids)) == list(ids)


@examples(100)
@given(
    st.data(),
    st.dictionaries(SPECIAL, st.just({}) | FLAGS, min_size=1, max_size=4),
    st.sampled_from(["ab< .\n", "ab<", "a"]),
)
def test_ids_are_cut_so_iff_encode_cuts_them_so(data, entries, characters):
    """Overlaps, shared beginnings, one inside another; characters that only added tokens spell;
    normalized=True (a second pass), lstrip, rstrip, single_word, in any company."""
    added = [added_token(content, **flags) for content, flags in sorted(entries.items())]
    try:
        tokenizer = small_tokenizer(characters, added=added)
        canonical_automaton(tokenizer)
    except UnsupportedTokenizerError:
        assert any(entries.values()), "plain added tokens are never refused"
        return
    pieces = st.sampled_from([*sorted(entries), *characters])
    for _ in range(2):
        text = "".join(data.draw(st.lists(pieces, max_size=6)))
        for ids in (
            tokenizer.encode(text),
            data.draw(resegmentations(tokenizer, text)),
            data.draw(st.lists(st.integers(0, tokenizer.n_ids - 1), max_size=6)),
        ):
            assert cut_by_automaton(tokenizer, ids) == is_own(tokenizer, ids)
    for ids in product(tokenizer.added_ids, range(tokenizer.n_ids)):
        assert cut_by_automaton(tokenizer, ids) == is_own(tokenizer, ids)


@pytest.mark.parametrize("flag", ["single_word", "lstrip", "rstrip"])
def test_what_the_first_pass_cuts_out_ends_the_text_of_the_second(flag):
    """`ab` before `<x>` is a single word. Every short sequence is tried."""
    second = added_token("ab", normalized=True, **{flag: True})
    tokenizer = small_tokenizer("ab ", added=[added_token("<x>"), second])
    for ids in chain(*(product(range(tokenizer.n_ids), repeat=n) for n in range(5))):
        assert cut_by_automaton(tokenizer, ids) == is_own(tokenizer, ids), ids


@pytest.mark.parametrize("normalized", [False, True])
def test_tables_of_too_many_added_tokens_are_a_typed_error(normalized):
    added = [added_token(f"<tok_{k}>", normalized=normalized) for k in range(1_000)]
    table, nfc = [byte_spelling(bytes([byte])) for byte in range(256)], {"type": "NFC"}
    tokenizer = small_tokenizer(table, (), byte_level(), added, normalizer=nfc)
    with spending(Budget(max_bytes=500_000)), pytest.raises(BudgetExceededError, match="bytes"):
        canonical_automaton(tokenizer)
