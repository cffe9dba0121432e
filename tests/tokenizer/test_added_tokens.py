"""Added tokens are cut out leftmost-longest first of all: the automaton against `encode`."""

from __future__ import annotations

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.constructions import canonical_automaton
from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.testing import byte_level, byte_spelling, resegmentations, small_tokenizer
from bpe_automata.tokenizer.added import SPELLED

SPECIAL = st.text(st.sampled_from("ab<"), min_size=1, max_size=3)


def cut_by_automaton(tokenizer, ids):
    """Are these ids what is cut out of their own text?"""
    pipeline, state = canonical_automaton(tokenizer).pipeline, 0
    numbers = {int(token): k for k, token in enumerate(pipeline.added.ids)}
    for token in ids:
        if token in numbers:
            state = int(pipeline.added.after[state, numbers[token]])
        else:
            atom = pipeline.alphabet.atom(tokenizer.decode([token]))
            state = int(pipeline.added.next[state, atom])
        if state == SPELLED:
            return False
    return True


@examples(120)
@given(st.data(), st.sets(SPECIAL, min_size=1, max_size=4), st.sampled_from(["ab<", "ab", "a"]))
def test_ids_are_cut_so_iff_encode_cuts_them_so(data, contents, characters):
    """Overlaps, shared beginnings, one inside another; characters that only added tokens spell."""
    tokenizer = small_tokenizer(characters, added=sorted(contents))
    text = "".join(data.draw(st.lists(st.sampled_from([*sorted(contents), "a"]), max_size=5)))
    for ids in (
        data.draw(st.lists(st.integers(0, tokenizer.n_ids - 1), max_size=6)),
        data.draw(resegmentations(tokenizer, text)),
    ):
        assert cut_by_automaton(tokenizer, ids) == (tokenizer.encode(tokenizer.decode(ids)) == ids)


def test_a_longer_added_token_comes_before_a_shorter_one():
    tokenizer = small_tokenizer("ab", added=["a", "ab"])
    assert cut_by_automaton(tokenizer, [2])
    assert not cut_by_automaton(tokenizer, [0, 1])


def test_a_character_that_no_ordinary_token_spells_may_still_join_two_added_tokens():
    tokenizer = small_tokenizer("ab", added=["aж", "жb"])
    a, b, first, second = range(4)
    assert tokenizer.encode("aжb") == [first, b]
    assert cut_by_automaton(tokenizer, [first, b])
    assert not cut_by_automaton(tokenizer, [a, second])


def test_ids_that_tokenizers_would_not_give_are_refused():
    data = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "version": "1.0"}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    for number in (0, 3):
        entries = [{"id": number, "content": "zz", **flags}, {"id": 2, "content": "yy", **flags}]
        with pytest.raises(BrokenTokenizerError, match=f"'zz' is listed with id {number}"):
            from_json(data | {"added_tokens": entries})


def from_json(data):
    from bpe_automata import Tokenizer

    return Tokenizer.from_json(data)


def test_an_added_token_that_shares_its_id_with_a_byte_is_refused():
    """The character é is how ByteLevel writes the byte E9, so adding it gives it that id."""
    vocabulary = [byte_spelling(bytes([byte])) for byte in "aé鄀".encode()]
    tokenizer = small_tokenizer(sorted(set(vocabulary)), (), byte_level(), added=["é"])
    with pytest.raises(UnsupportedTokenizerError, match="added token 'é'"):
        canonical_automaton(tokenizer)
