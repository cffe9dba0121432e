"""The canonical automaton accepts exactly { ids : encode(decode(ids)) == ids }."""

from __future__ import annotations

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from paths import is_canonical

from bpe_automata.constructions import canonical_automaton
from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.testing import (
    bpe_tokenizers,
    byte_level,
    byte_spelling,
    resegmentations,
    small_tokenizer,
    split,
    texts,
)


@examples(60)
@given(st.data())
def test_random_tokenizers(data):
    tokenizer = data.draw(bpe_tokenizers())
    automaton = canonical_automaton(tokenizer)
    any_ids = st.lists(st.integers(0, tokenizer.n_ids - 1), max_size=6)
    for _ in range(4):
        text = data.draw(texts(tokenizer))
        for ids in (
            tokenizer.encode(text),
            data.draw(resegmentations(tokenizer, text)),
            data.draw(any_ids),
        ):
            assert automaton.accepts(ids) == is_canonical(tokenizer, ids)


@examples(200)
@given(st.data())
def test_smollm2(smollm2_tokenizer, data):
    text = data.draw(texts(smollm2_tokenizer if data.draw(st.booleans()) else None))
    automaton = canonical_automaton(smollm2_tokenizer)
    own, other = smollm2_tokenizer.encode(text), data.draw(resegmentations(smollm2_tokenizer, text))
    for ids in (own, other):
        assert automaton.accepts(ids) == is_canonical(smollm2_tokenizer, ids)


def test_nothing_is_canonical(smollm2_tokenizer):
    assert canonical_automaton(smollm2_tokenizer).accepts([])


def test_the_canonical_sequences_are_not_closed_under_prefixes(smollm2_tokenizer):
    """GPT-2's lookahead: a newline stands alone only before text that is no space."""
    automaton = canonical_automaton(smollm2_tokenizer)
    ids = smollm2_tokenizer.encode("\n\nfoo")
    assert [smollm2_tokenizer.decode([i]) for i in ids] == ["\n", "\n", "foo"]
    assert automaton.accepts(ids)
    assert not automaton.accepts(ids[:2])


def test_text_of_bytes_without_a_token_has_no_canonical_sequence(smollm2_tokenizer):
    """`encode` drops such a byte in silence."""
    assert smollm2_tokenizer.decode(smollm2_tokenizer.encode("a\x04b")) == "ab"
    assert not any(b"\x04" in spelled for spelled in smollm2_tokenizer.spellings)


def ignoring(*vocabulary, merges=(), added=()):
    pretokenizer = split({"Regex": " ?[a-z]+"})
    return small_tokenizer(vocabulary, merges, pretokenizer, added, ignore_merges=True)


def test_with_ignore_merges_a_whole_pretoken_is_one_token_and_nothing_else():
    """abc is reached by no merge: alone it is one token, inside a longer pretoken never."""
    tokenizer = ignoring("a", "b", "c", " ", "ab", "abc", merges=[("a", "b")])
    automaton = canonical_automaton(tokenizer)
    a, _, c, space, ab, abc = range(6)
    assert tokenizer.encode("abc") == [abc]
    assert automaton.accepts([abc])
    assert not automaton.accepts([ab, c])
    assert automaton.accepts([ab, c, a])
    assert not automaton.accepts([abc, a])
    assert automaton.accepts([space, ab, c])
    assert not automaton.accepts([space, abc])


def test_a_token_that_the_pretokenizer_would_divide_is_never_canonical():
    tokenizer = ignoring("a", "b", " ", "a b")
    assert tokenizer.encode("a b") != [3]
    assert not canonical_automaton(tokenizer).accepts([3])


def test_ignore_merges_of_a_token_that_ends_inside_a_character():
    """It can be no pretoken, so it is never canonical and no mask may offer it."""
    letters = sorted(byte_spelling(bytes([byte])) for byte in "a\u2028".encode())
    vocabulary = [*letters, byte_spelling(b"a\xe2")]
    tokenizer = small_tokenizer(vocabulary, (), byte_level(), ignore_merges=True)
    automaton = canonical_automaton(tokenizer)
    assert automaton.step(automaton.start, len(letters)) is None


def test_a_fused_unknown_token_that_spells_itself_is_refused():
    with pytest.raises(UnsupportedTokenizerError, match="fuse_unk"):
        small_tokenizer(["a", "<unk>"], unk_token="<unk>", fuse_unk=True)
    small_tokenizer(["a", "<", "<unk>"], unk_token="<unk>", fuse_unk=True)
