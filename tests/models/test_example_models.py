"""The example models compute what their docstrings say."""

from __future__ import annotations

import gzip
import random
from fractions import Fraction
from math import log

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata import constrain
from bpe_automata.errors import ArgumentError, TokenOutOfRangeError
from bpe_automata.models import CompressionModel, NGramModel, character_tokenizer
from bpe_automata.sampling import decode

TEXTS = st.lists(st.text("abc", max_size=12), min_size=1, max_size=3)


def law_of(texts, ids, order, smoothing, n_ids, end):
    """p(t | ids) as the recursion says, counted anew; exact."""
    sequences = [["abc".index(c) for c in text] + [end] for text in texts]

    def count(gram):
        k = len(gram)
        return sum(s[i : i + k] == list(gram) for s in sequences for i in range(len(s) - k + 1))

    def p(token, context):
        shorter = p(token, context[1:]) if context else Fraction(1, n_ids)
        # End-of-sequence is never followed, so a context is as frequent as what comes after it.
        total = sum(count((*context, t)) for t in range(n_ids))
        if not total:
            return shorter
        return (count((*context, token)) + smoothing * shorter) / (total + smoothing)

    context = tuple(ids[max(0, len(ids) - order + 1) :]) if order > 1 else ()
    return [p(token, context) for token in range(n_ids)]


@examples(40)
@given(
    TEXTS,
    st.lists(st.integers(0, 3), max_size=6),
    st.integers(1, 4),
    st.sampled_from((Fraction(1, 8), Fraction(1), Fraction(5, 2))),
)
def test_the_n_gram_model_is_its_recursion(texts, ids, order, smoothing):
    tokenizer = character_tokenizer("abc")
    model = NGramModel.train(tokenizer, texts, order, float(smoothing))
    expected = law_of(texts, ids, order, smoothing, 4, 3)
    found = model(ids)
    assert found.dtype == np.float64
    np.testing.assert_allclose(np.exp(found), np.array(expected, dtype=float), rtol=1e-12)
    assert sum(expected) == 1
    assert np.isfinite(found).all()


def test_order_one_is_additive_smoothing():
    model = NGramModel.train(character_tokenizer("abc"), "aab", order=1, smoothing=2.0)
    expected = np.array([2 + 0.5, 1 + 0.5, 0.5, 1 + 0.5]) / (4 + 2)
    np.testing.assert_allclose(model([1, 2]), np.log(expected))


def test_one_text_is_a_list_of_one():
    tokenizer = character_tokenizer("abc")
    one, listed = NGramModel.train(tokenizer, "abc"), NGramModel.train(tokenizer, ["abc"])
    assert (one([0, 1]) == listed([0, 1])).all()
    assert (one([0, 1]) != NGramModel.train(tokenizer, ["a", "b", "c"])([0, 1])).any()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"order": 0}, {"order": 2.5}, {"order": "3"}),
        *({"smoothing": 0.0}, {"smoothing": np.inf}, {"smoothing": "1"}),
    ],
)
def test_bad_n_gram_arguments(wrong):
    with pytest.raises(ArgumentError):
        NGramModel.train(character_tokenizer("abc"), "abc", **wrong)


@examples(15)
@given(
    st.text("ab cé\n", max_size=200),
    st.text("ab cé\n", max_size=20),
    st.sampled_from((1, 6, 9)),
    st.sampled_from(("\n", "", " END ")),
)
def test_the_compression_model_is_the_length_of_gzip(training, written, level, end):
    tokenizer = character_tokenizer("ab cé\n")
    model = CompressionModel(tokenizer, training, end=end, level=level)
    candidates = [*sorted("ab cé\n"), end]
    sizes = [len(gzip.compress((training + written + c).encode(), level)) for c in candidates]
    found = model(tokenizer.encode(written))
    np.testing.assert_allclose(found, -8 * log(2) * np.array(sizes))
    assert (model(tokenizer.encode(written)) == found).all()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"level": 77}, {"level": 0}, {"level": 2.5}, {"end": "\ud800"}, {"end": b"\n"}),
        *({"training_text": "a\ud800"}, {"training_text": None}),
    ],
)
def test_bad_compression_arguments(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        CompressionModel(character_tokenizer("abc"), **({"training_text": "abc"} | wrong))


@pytest.mark.parametrize("make", [CompressionModel, NGramModel.train])
def test_ids_that_the_models_do_not_know(make):
    tokenizer = character_tokenizer("abc")
    model = make(tokenizer, "abc")
    for wrong in (-1, 4, 9999):
        with pytest.raises(TokenOutOfRangeError, match=f"id {wrong} is not in 0 .. 3"):
            model([0, wrong])
    for wrong in ("ab", [0.5], 7):
        with pytest.raises(ArgumentError):
            model(wrong)
    assert (model(np.array([0, 3])) == model((0, 3))).all()


def test_a_training_text_longer_than_the_window():
    """Fed in two parts or as one, across the places where zlib moves its window."""
    rng = random.Random(1)
    tokenizer = character_tokenizer("abcdefgh")
    for length in (32_000, 65_000, 99_000):
        training = "".join(rng.choices("abcdefgh", weights=range(1, 9), k=length))
        written = training[-700:-100]
        model = CompressionModel(tokenizer, training)
        sizes = [len(gzip.compress((training + written + c).encode(), 9)) for c in "abcdefgh\n"]
        found = model(tokenizer.encode(written))
        np.testing.assert_allclose(found, -8 * log(2) * np.array(sizes))


def test_it_quotes_what_it_was_trained_on():
    training = "the quick brown fox jumps over the lazy dog. " * 3
    tokenizer = character_tokenizer(training)
    model = CompressionModel(tokenizer, training)
    constraint = constrain(tokenizer, "the quick [a-z ]{20}")
    assert decode(model, constraint, temperature=0).text == "the quick brown fox jumps over"


def test_characters_become_ids():
    tokenizer = character_tokenizer("banana é日🎉\n")
    assert tokenizer.encode("nab") == [sorted(set("banana é日🎉\n")).index(c) for c in "nab"]
    text = "é 日🎉\nanna"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.eos_ids == (tokenizer.n_ids - 1,)
    assert tokenizer.decode(tokenizer.eos_ids) == "<end>"
    assert character_tokenizer("ab", end="[stop]").decode([2]) == "[stop]"
    constraint = constrain(tokenizer, "(na|日){2}")
    assert constraint.automaton().total() == 4


@pytest.mark.parametrize(("text", "end"), [("", "<end>"), ("a\ud800", "<end>"), ("ab", "b")])
def test_bad_alphabets(text, end):
    with pytest.raises(ArgumentError):
        character_tokenizer(text, end)
