"""Every tokenizer is compared with its library on the sample texts: decoding when it is loaded,
encoding before its automaton is stored.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import tokenizers

from bpe_automata import Tokenizer, constrain
from bpe_automata.constructions import canonical_automaton
from bpe_automata.constructions.canonical import CanonicalAutomaton, build_parts, try_automaton
from bpe_automata.errors import (
    EncodingError,
    TokenizerError,
    TokenizerMismatchError,
    UnsupportedTokenizerError,
)
from bpe_automata.testing import added_token, byte_level, small_tokenizer, split
from bpe_automata.testing.small import byte_spelling
from bpe_automata.tokenizer.sample_texts import fixed_texts
from bpe_automata.tokenizer.source import Source
from bpe_automata.tokenizer.tokenizer import sample_texts

BYTES = [byte_spelling(bytes([byte])) for byte in range(256)]


def whole(**parts):
    """Every text has ids here."""
    merges = [("a", "b"), ("Ġ", "ab"), ("e", "Ġ")]
    return small_tokenizer(
        [*BYTES, *map("".join, merges)], merges, byte_level(True), ["<|endoftext|>"], **parts
    )


def source_of(tokenizer, **changes):
    source = Source(tokenizer.description, tokenizer.backend, "made", tokenizer.fingerprint)
    return replace(source, **changes)


def test_the_texts_are_always_the_same_and_hold_every_kind_of_byte():
    texts = fixed_texts()
    assert len(texts) == len(set(texts)) > 300
    used = {byte for text in texts for byte in text.encode("utf-8")}
    assert used == {*range(0xC0), *range(0xC2, 0xF5)}
    assert any("a<|endoftext|>b" in text for text in sample_texts(whole()))


@pytest.mark.parametrize("step", [{"type": "Whitespace"}, byte_level(True), None])
def test_without_a_decoder_ids_are_not_decoded_to_their_text(step):
    """tokenizers joins the tokens with spaces: `i`, `d` is decoded to `i d`."""
    good = json.loads(small_tokenizer(BYTES, pretokenizer=step).to_json())
    data = {**good, "decoder": None}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    assert theirs.decode(theirs.encode("id").ids) == "i d"
    with pytest.raises(UnsupportedTokenizerError, match=r"decoder None .* set the decoder"):
        Tokenizer.from_json(data)


def test_a_decoder_that_drops_inner_spaces_of_the_first_token_is_refused():
    step = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
    table = ["a", "b", "▁", "▁a", "▁a▁"], [("▁", "a"), ("▁a", "▁")]
    with pytest.raises(UnsupportedTokenizerError, match=r"drops all spaces .*'▁a▁'"):
        small_tokenizer(*table, step, decoder=step)
    tokenizer = small_tokenizer(*table, step)
    assert tokenizer.decode(tokenizer.encode("a ab")) == "a ab"
    small_tokenizer(*table, {**step, "split": True}, decoder={**step, "split": True})


def test_a_description_that_spells_an_id_otherwise_is_refused_with_the_first_difference():
    tokenizer = whole()
    number = tokenizer.encode("q")[0]
    tokens = list(tokenizer.description.tokens)
    tokens[number] = b"p"
    wrong = replace(tokenizer.description, tokens=tuple(tokens))
    with pytest.raises(TokenizerMismatchError, match="Tried on the text 'The quick") as caught:
        Tokenizer(source_of(tokenizer, description=wrong))
    error = caught.value
    assert (error.ours, error.theirs) == ("The puick brown fox", "The quick brown fox")
    assert tokenizer.encode(error.text) == list(error.ids)


@pytest.mark.parametrize(
    "changes",
    [
        {"splitters": ()},
        {"merges": whole().description.merges[:1]},
        {"merges": whole().description.merges[::-1].copy()},
        {"ignore_merges": True},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_automaton_that_differs_from_encode_is_not_kept(changes):
    """Each wrong part shows on the texts, the order of two merges that never meet excepted."""
    tokenizer = whole()
    wrong = replace(tokenizer.description, **changes)
    read = Tokenizer(source_of(tokenizer, description=wrong))
    if len(changes.get("merges", ())) == 3 or "ignore_merges" in changes:
        assert canonical_automaton(read).accepts(tokenizer.encode("ab ab"))
        return
    for _ in range(2):  # nothing of it is believed the second time
        with pytest.raises(TokenizerMismatchError, match="canonical"):
            constrain(read, "a")


def test_other_ids_of_a_text_must_be_rejected():
    tokenizer = whole()
    automaton = CanonicalAutomaton(tokenizer, build_parts(tokenizer))
    automaton.allowed = lambda left, right: True
    with pytest.raises(TokenizerMismatchError) as caught:
        try_automaton(automaton)
    error = caught.value
    assert (error.ours, error.theirs) == ("canonical", "not canonical")
    assert tokenizer.decode(error.ids) == error.text
    assert tokenizer.encode(error.text) != list(error.ids)


# ---------------------------------------------------------------- the library gives up


def test_a_pattern_that_the_engine_gives_up_on_is_a_typed_error():
    """Oniguruma stops after so many steps, and tokenizers panics: no `Exception` at all."""
    pattern = split({"Regex": r"(?:b|b)+[c\d]|b"})
    tokenizer = small_tokenizer("abc", pretokenizer=pattern)
    with pytest.raises(EncodingError, match="64 characters, 'bbb"):
        tokenizer.encode("b" * 64)
    with pytest.raises(EncodingError, match="gives up"):
        tokenizer.encode_batch(["a", "b" * 64])
    assert issubclass(EncodingError, TokenizerError)


def test_a_tokenizer_that_fails_on_ordinary_text_is_refused():
    with pytest.raises(EncodingError, match="another split pattern"):
        small_tokenizer(
            "abc", pretokenizer=split({"Regex": r"(?:a|a)+[c\d]|a"}), added=[added_token("<x>")]
        )
