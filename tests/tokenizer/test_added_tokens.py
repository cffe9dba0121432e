"""Added tokens, which are cut out of the text before all else, in two passes: the text automaton
against `encode`; and derivations of tokens from their bytes.
"""

from __future__ import annotations

import itertools
import random
import tracemalloc
from itertools import pairwise

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata import Budget, Tokenizer, constrain
from bpe_automata._budget import spending
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata._tokenizer.derivation import bpe as fast_bpe
from bpe_automata._tokenizer.derivation import derive
from bpe_automata.errors import BrokenTokenizerError, BudgetExceededError, UnsupportedTokenizerError
from bpe_automata.reference import bpe, merge_ranks
from bpe_automata.reference._bpe import base_symbols
from bpe_automata.testing import (
    added_token,
    bpe_tokenizers,
    byte_level,
    byte_spelling,
    resegmentations,
    small_tokenizer,
    texts,
)

SPECIAL = st.text(st.sampled_from("ab<"), min_size=1, max_size=3)
FLAGS = st.dictionaries(
    st.sampled_from(("normalized", "lstrip", "rstrip", "single_word")), st.just(True), max_size=2
)


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


@examples(150)
@given(st.data(), st.dictionaries(SPECIAL, FLAGS, min_size=1, max_size=3))
def test_two_passes_white_space_beside_and_single_words(data, entries):
    """normalized=True (a second pass), lstrip, rstrip, single_word, in any company."""
    added = [added_token(content, **flags) for content, flags in sorted(entries.items())]
    try:
        tokenizer = small_tokenizer("ab< .\n", added=added)
        canonical_automaton(tokenizer)
    except UnsupportedTokenizerError:
        assert any(flags for flags in entries.values()), "plain added tokens are never refused"
        return
    pieces = st.sampled_from([*sorted(entries), "a", " ", "\n", "."])
    for _ in range(3):
        text = "".join(data.draw(st.lists(pieces, max_size=6)))
        for ids in (tokenizer.encode(text), data.draw(resegmentations(tokenizer, text))):
            own = tokenizer.encode(tokenizer.decode(ids)) == ids
            assert cut_by_automaton(tokenizer, ids) == own


def test_a_single_word_that_is_also_an_ordinary_token_is_refused():
    """Left in the text, it becomes the same id: one that stands for two things."""
    for merges, ignore in (([("a", "b")], False), ([], True)):
        tokenizer = small_tokenizer(
            ["a", "b", "ab"],
            merges,
            None,
            [added_token("ab", single_word=True)],
            ignore_merges=ignore,
        )
        ids = tokenizer.encode("aab" if merges else "ab")
        assert 2 in ids
        with pytest.raises(UnsupportedTokenizerError, match="an ordinary token as well"):
            canonical_automaton(tokenizer)


def test_ids_that_tokenizers_would_not_give_are_refused():
    data = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "version": "1.0"}
    data["decoder"] = {"type": "Fuse"}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    for number in (0, 3):
        entries = [{"id": number, "content": "zz", **flags}, {"id": 2, "content": "yy", **flags}]
        with pytest.raises(BrokenTokenizerError, match=f"'zz' is listed with id {number}"):
            Tokenizer.from_json(data | {"added_tokens": entries})


# ---------------------------------------------------------------- decoded to something else


def gives_itself_back(tokenizer, library, ids):
    """Does `tokenizers` make these ids of what it decodes them to?"""
    text = library.decode(ids, skip_special_tokens=False)
    return "\ufffd" not in text and tokenizer.encode(text) == ids


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_an_added_token_written_with_spaces_is_the_ordinary_token(normalized, special):
    """Gemma's `▁▁`: no text holds `▁`, and spaces are merged to the same id. In normalized text it
    is cut out before anything is merged."""
    entry = added_token("▁▁", normalized=normalized, special=special)
    tokenizer = small_tokenizer(
        ["▁", "a", "▁▁", "▁a", "▁▁a"],
        [("▁", "▁"), ("▁", "a"), ("▁▁", "a")],
        normalizer={"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        decoder={"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        added=[entry],
    )
    automaton = canonical_automaton(tokenizer)
    library = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    assert tokenizer.spellings[2] == b"  "
    for ids in itertools.chain(*(itertools.product(range(5), repeat=n) for n in range(5))):
        assert automaton.accepts(ids) == gives_itself_back(tokenizer, library, [*ids]), ids
    assert automaton.accepts([2, 1] if normalized else [4])


def test_an_added_token_that_is_decoded_to_a_byte():
    """DeepSeek-Coder's `õ`: text that holds it is spelled by no ids; as a byte it is ordinary."""
    spelled = byte_spelling("é魚".encode())
    tokenizer = small_tokenizer(
        ["a", *dict.fromkeys(spelled), "õ"],
        pretokenizer=byte_level(),
        decoder=byte_level(),
        added=["é", "õ"],
    )
    automaton = canonical_automaton(tokenizer)
    library = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    lost = {token.content: token.id for token in tokenizer.description.lost}
    assert tokenizer.encode("é") == [lost["é"]]
    assert tokenizer.encode("õ") == [lost["õ"]]
    found = 0
    for ids in itertools.chain(*(itertools.product(range(7), repeat=n) for n in range(5))):
        own = gives_itself_back(tokenizer, library, [*ids])
        assert automaton.accepts(ids) == own, ids
        found += own
    assert found > 5
    assert automaton.accepts(tokenizer.encode("a魚"))


def test_a_byte_without_a_token_whose_character_is_one():
    """Gemma-2 has no `<0x09>`, but a tab."""
    written = [f"<0x{byte:02X}>" for byte in range(256) if byte != 9]
    tokenizer = small_tokenizer([*written, "a", "\t"], byte_fallback=True)
    automaton = canonical_automaton(tokenizer)
    for text in ("a\ta", "é\t\n", "\t"):
        assert automaton.accepts(tokenizer.encode(text))
    bare = small_tokenizer([*written, "a"], byte_fallback=True)
    with pytest.raises(UnsupportedTokenizerError, match="<0x09>"):
        canonical_automaton(bare)


def with_nfc(contents, normalized):
    """A byte-level tokenizer of single bytes, under NFC, with these added tokens."""
    return small_tokenizer(
        [byte_spelling(bytes([b])) for b in range(256)],
        pretokenizer=byte_level(use_regex=True),
        decoder=byte_level(),
        normalizer={"type": "NFC"},
        added=[added_token(content, normalized=normalized) for content in contents],
    )


def test_a_long_added_token_is_within_the_budget_of_a_constraint():
    """Under a normalizer its states are told apart as a chain: not in a round for each of them."""
    text = "".join(random.Random(1).choices("abcdefgh ijkl", k=12_000))
    tokenizer = with_nfc([text], normalized=False)
    allowed = constrain(tokenizer, "yes|no", eos_ids=[]).matcher().allowed_ids()
    assert sorted(tokenizer.decode([i]) for i in allowed.tolist()) == ["n", "y"]


def test_thousands_of_normalized_added_tokens_under_nfc_take_megabytes():
    """Not a row over all tokens for each state of each normalizer."""
    tokenizer = with_nfc([f"<tok_{k}>" for k in range(3_000)], normalized=True)
    tracemalloc.start()
    try:
        text = canonical_automaton(tokenizer).pipeline.text
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 400_000_000
    assert text.after.shape[1] == 3_000


@pytest.mark.parametrize("normalized", [False, True])
def test_tables_of_too_many_added_tokens_are_a_typed_error(normalized):
    tokenizer = with_nfc([f"<tok_{k}>" for k in range(1_000)], normalized)
    with spending(Budget(max_bytes=500_000)), pytest.raises(BudgetExceededError, match="bytes"):
        canonical_automaton(tokenizer)


# ---------------------------------------------------------------- derivation
# BPE on a token's own bytes ends in that token, or the token appears in no output.


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
