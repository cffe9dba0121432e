"""The strongest law: every mask at every prefix, end of sequence included, equals the trie of
`encode(s)` over all strings s of a finite language."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, named
from support.laws import every_mask_is_that_of_the_trie_of_encode as law

from bpe_automata import constrain
from bpe_automata.errors import (
    EmptyLanguageError,
    PromptError,
)
from bpe_automata.reference import canonical_trie
from bpe_automata.testing import (
    added_token,
    bpe_tokenizers,
    byte_level,
    byte_spelling,
    finite_regexes,
    small_tokenizer,
    texts,
)
from bpe_automata.testing._inputs import own_pieces


@pytest.fixture(scope="module")
def qwen():
    return named("qwen")


@examples(60)
@given(st.data())
def test_random_tokenizers_and_finite_regexes(data):
    """From the start, or after the beginning of what `encode` makes of some text."""
    tokenizer = data.draw(bpe_tokenizers())
    pieces = own_pieces(tokenizer)
    regex = data.draw(finite_regexes(pieces))
    added = [token.id for token in tokenizer.description.added]
    eos = tuple(data.draw(st.sets(st.sampled_from(added), max_size=2))) if added else ()
    before = tokenizer.encode(data.draw(texts(tokenizer, 3)) + data.draw(st.sampled_from(pieces)))
    length = data.draw(st.just(0) | st.integers(0, len(before)))
    read = data.draw(st.sampled_from([True, False, "plain"]))
    law(tokenizer, regex, before[:length], eos, read)


@pytest.mark.parametrize("prompt", ["Answer:", "Q: a\n\nA: ", "it", "x = ", "<|im_start|>user\n"])
def test_smollm2_after_a_prompt(smollm2_tokenizer, prompt):
    """Where the prompt ends in a space, ` yes` would have been one token: only some answers go."""
    for regex in (r" ?(yes|no|'s|'ll)", r"\n? {0,3}[a-c]?", r"[0-9]{1,2}"):
        law(smollm2_tokenizer, regex, smollm2_tokenizer.encode(prompt), (2,))


NFC = [
    "Müller [a-c]{2}",
    "(é|e\u0301?|n){0,2}!",
    "[a-cé\u0301\u0327]{2}",
    "(größe|breite): [aé]{1,2}",
]


@pytest.mark.parametrize("regex", NFC)
def test_a_real_tokenizer_under_nfc(qwen, regex):
    assert law(qwen, regex, (), qwen.eos_ids, most=20_000)


def test_a_character_beyond_ascii_costs_little(qwen):
    """Of the letters that marks may follow the 30 that it holds are told apart."""
    constraint = constrain(qwen, "Müller [a-z]{20}")
    matcher = constraint.matcher()
    while len(ids := np.setdiff1d(matcher.allowed_ids(), qwen.eos_ids)):
        matcher.advance(int(ids[len(ids) // 2]))
    assert matcher.is_accepting
    assert len(constraint.engine.product.statuses()) < 2000


@pytest.mark.parametrize(
    ("added_tokens", "read"), [("plain", {"<p>"}), (True, {"<|s|>", "<p>"}), (False, set())]
)
@pytest.mark.parametrize("text", ["<|s|>", "<p>"])
def test_special_tokens_are_text_only_where_asked_for(added_tokens, read, text):
    """Canonical: a text that spells an added token has its id, or no ids at all. Lift: ordinary
    tokens may spell it all the same."""
    tokenizer = small_tokenizer("ab<|sp>", added=[added_token("<|s|>", special=True), "<p>"])
    whole, part = tokenizer.encode(text)[0], tokenizer.encode("<")[0]
    options = {"eos_ids": (), "added_tokens": added_tokens}
    lift = constrain(tokenizer, f"a({re.escape(text)})", "lift", **options).matcher([])
    lift.advance(0)
    assert {*lift.allowed_ids().tolist()} == ({part, whole} if text in read else {part})
    canonical = constrain(tokenizer, f"a({re.escape(text)})", **options)
    if text in read:
        matcher = canonical.matcher()
        matcher.advance(0)
        assert matcher.allowed_ids().tolist() == [whole]
    else:
        with pytest.raises(EmptyLanguageError, match="added_tokens=True"):
            canonical.matcher()


def test_no_text_goes_on_inside_a_character():
    """Not even where what `decode` shows of half a character is the very character."""
    tokenizer = small_tokenizer(
        ["a", *byte_spelling("\ufffd".encode())], [], byte_level(use_regex=False)
    )
    whole = tokenizer.encode("\ufffd")
    assert tokenizer.decode(whole[:2]) == "\ufffd"
    assert canonical_trie(tokenizer, ["", "a"], whole[:2]) == {}
    assert canonical_trie(tokenizer, ["", "a"], whole) == {(): {None, 0}, (0,): {None}}
    with pytest.raises(PromptError):
        constrain(tokenizer, "a?").matcher(whole[:2])


def test_a_language_of_missing_bytes_is_empty(smollm2_tokenizer):
    with pytest.raises(EmptyLanguageError):
        constrain(smollm2_tokenizer, r"a\x04").matcher()


def test_an_added_token_may_come_where_no_character_may(smollm2_tokenizer):
    """Two spaces are one pretoken only where the text ends behind them."""
    matcher = constrain(smollm2_tokenizer, "  <repo_name>", added_tokens=True).matcher()
    for token in smollm2_tokenizer.encode("  <repo_name>"):
        assert matcher.allowed_ids().tolist() == [token]
        matcher.advance(token)
