"""Added tokens, which are cut out of the text before all else, in two passes, against `encode`."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from support.laws import accepted_iff_encode_gives_the_ids_back

from bpe_automata import Budget
from bpe_automata._budget import spending
from bpe_automata.canonical.canonical import canonical_automaton
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


@examples(60)
@given(
    st.data(),
    st.dictionaries(SPECIAL, st.just({}) | FLAGS, min_size=1, max_size=4),
    st.sampled_from(["ab< .\n", "ab<", "a"]),
)
def test_ids_are_accepted_iff_encode_cuts_them_out_so(data, entries, characters):
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
    some = [list(ids) for ids in product(tokenizer.added_ids, range(tokenizer.n_ids))]
    for _ in range(2):
        text = "".join(data.draw(st.lists(pieces, max_size=6)))
        some += [tokenizer.encode(text), data.draw(resegmentations(tokenizer, text))]
        some.append(data.draw(st.lists(st.integers(0, tokenizer.n_ids - 1), max_size=6)))
    accepted_iff_encode_gives_the_ids_back(tokenizer, some)


@pytest.mark.parametrize("normalized", [False, True])
def test_tables_of_too_many_added_tokens_are_a_typed_error(normalized):
    added = [added_token(f"<tok_{k}>", normalized=normalized) for k in range(1_000)]
    table, nfc = [byte_spelling(bytes([byte])) for byte in range(256)], {"type": "NFC"}
    tokenizer = small_tokenizer(table, (), byte_level(), added, normalizer=nfc)
    with spending(Budget(max_bytes=500_000)), pytest.raises(BudgetExceededError, match="bytes"):
        canonical_automaton(tokenizer)


@pytest.mark.parametrize("flag", ["single_word", "lstrip", "rstrip"])
def test_what_the_first_pass_cuts_out_ends_the_text_of_the_second(flag):
    """`ab` before `<x>` is a single word. Every short sequence is tried."""
    second = added_token("ab", normalized=True, **{flag: True})
    tokenizer = small_tokenizer("ab ", added=[added_token("<x>"), second])
    for n in range(5):
        every = list(product(range(tokenizer.n_ids), repeat=n))
        accepted_iff_encode_gives_the_ids_back(tokenizer, every)
