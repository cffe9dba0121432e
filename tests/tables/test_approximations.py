"""The two approximations: right where they are exact, wrong where they are known to be."""

from __future__ import annotations

import json

import pytest
import tokenizers

from bpe_automata import Tokenizer
from experiments.laws import exact_sequences as approximations_module
from experiments.laws.exact_sequences import BpePairs, ReencodedPairs, Tally, approximations, judge


@pytest.fixture(scope="module")
def rivals(smollm2_tokenizer):
    return approximations(smollm2_tokenizer)


def test_plain_words_pass_both(smollm2_tokenizer, rivals):
    ids = smollm2_tokenizer.encode("The quick brown fox")
    for rival in rivals:
        assert rival.accepted([ids, [], ids[:1]]) == [True] * 3


def test_a_merge_that_was_left_out_fails_both(smollm2_tokenizer, rivals):
    ids = [*smollm2_tokenizer.encode("t"), *smollm2_tokenizer.encode("he")]
    assert smollm2_tokenizer.encode("the") != ids
    for rival in rivals:
        assert rival.accepted([ids]) == [False]


def spelled(tokenizer, *tokens):
    """Ids of one token each."""
    return [tokenizer.spellings.index(token) for token in tokens]


def test_bpe_knows_nothing_of_pretokens(smollm2_tokenizer, rivals):
    """`\\s+(?!\\S)` leaves the last space to the word, yet BPE would rather merge all spaces."""
    rejected = spelled(smollm2_tokenizer, b"\n   ", b" i")
    accepted = spelled(smollm2_tokenizer, b"    ", b"s")
    assert smollm2_tokenizer.encode("\n    i") == rejected
    assert smollm2_tokenizer.encode("    s") != accepted
    bpe, reencoded = rivals
    assert bpe.accepted([rejected, accepted]) == [False, True]
    assert reencoded.accepted([rejected, accepted]) == [True, False]


def test_a_pair_that_is_encoded_alone_sees_no_further(smollm2_tokenizer, rivals):
    """Two line ends at the end of a text are one token, and so are two before a space."""
    ids = spelled(smollm2_tokenizer, b"\n", b"\n", b"cl")
    assert smollm2_tokenizer.encode("\n\ncl") == ids
    assert rivals[1].accepted([ids]) == [False]


def test_what_is_wrong_is_counted_beside_what_is_right(smollm2_tokenizer, rivals):
    tally = Tally()
    right = smollm2_tokenizer.encode_batch(["\n    i", "\n\ncl", "plain"])
    wrong = [spelled(smollm2_tokenizer, b"    ", b"s")]
    judge(smollm2_tokenizer, right + wrong, tally, rivals)
    assert (tally.counts["tried"], tally.counts["canonical"], tally.wrong) == (4, 3, [])
    counts = tally.approximations
    assert dict(counts["pairs of BPE"]) == {"false reject": 2, "false accept": 1}
    assert dict(counts["re-encoded pairs"]) == {"false reject": 1, "false accept": 0}


def test_what_is_no_text_is_left_to_bpe(smollm2_tokenizer, rivals):
    """The bytes of a character without a token of its own."""
    ids = smollm2_tokenizer.encode("🜁")
    assert len(ids) > 1
    with pytest.raises(UnicodeDecodeError):
        smollm2_tokenizer.token_bytes(ids[0]).decode("utf-8")
    assert [rival.accepted([ids]) for rival in rivals] == [[True], [True]]


def test_added_tokens_go_with_everything_but_themselves_in_pieces(smollm2_tokenizer, rivals):
    added = smollm2_tokenizer.description.added[0]
    ids = smollm2_tokenizer.encode(f"a{added.content}b")
    assert added.id in ids
    assert [rival.accepted([ids]) for rival in rivals] == [[True], [True]]


def test_what_is_forgotten_is_tried_again(smollm2_tokenizer, monkeypatch):
    monkeypatch.setattr(approximations_module, "MOST_KNOWN", 2)
    texts = ["The quick brown fox", "\n    i", "\n\ncl"]
    sequences = [*smollm2_tokenizer.encode_batch(texts), spelled(smollm2_tokenizer, b"t", b"he")]
    bpe, reencoded = approximations(smollm2_tokenizer)
    for _ in range(2):
        assert bpe.accepted(sequences) == [True, False, False, False]
        assert reencoded.accepted(sequences) == [True, True, False, False]


def test_a_space_before_the_text_gets_the_benefit_of_the_doubt():
    """Metaspace: `a`, `b` in the middle of a text is not judged as `▁a`."""
    vocabulary = {"▁": 0, "a": 1, "b": 2, "▁a": 3, "\n": 4, "c": 5, "bc": 6}
    model = tokenizers.models.BPE(vocab=vocabulary, merges=[("▁", "a"), ("b", "c")])
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(
        prepend_scheme="always", split=False
    )
    backend.decoder = tokenizers.decoders.Metaspace(prepend_scheme="always", split=False)
    tokenizer = Tokenizer.load(backend)
    assert tokenizer.encode("abbca") == [3, 2, 6, 1]
    pairs = ReencodedPairs(tokenizer)
    assert pairs.accepted([[3, 2, 6, 1], [3, 2, 2, 5], [1, 2]]) == [True, False, False]
    assert BpePairs(tokenizer).accepted([[3, 2, 6, 1], [3, 2, 2, 5]]) == [True, False]
    assert json.loads(json.dumps(tokenizer.decode([3, 2, 6, 1]))) == "abbca"
