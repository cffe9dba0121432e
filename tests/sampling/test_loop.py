"""The decoding loop: what it draws, what it counts, what it refuses; and the example models, which
compute what their docstrings say.
"""

import gzip
from fractions import Fraction
from math import log

import numpy as np
import pytest
from exact_distribution import logs
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata import constrain
from bpe_automata.errors import ArgumentError, LogitsError, ModelError
from bpe_automata.models import CompressionModel, NGramModel, character_tokenizer
from bpe_automata.reference import naive_constraint
from bpe_automata.sampling import decode, draw, log_probabilities
from bpe_automata.testing import small_tokenizer

TOKENIZER = small_tokenizer(["a", "b", "c", "ab", "bc"], [("a", "b"), ("b", "c")], None, ["<end>"])
END = 5
FINITE = constrain(TOKENIZER, r"a(b|bc){0,3}|cab?", eos_ids=[END])
ENDLESS = constrain(TOKENIZER, r"(abc)*", eos_ids=[END])
NEVER_ENDED = constrain(TOKENIZER, r"abc|abcc", eos_ids=[])


def noise(ids):
    """A distribution of its own after each sequence; wider than the tokenizer."""
    return np.random.default_rng([7, *ids]).normal(size=TOKENIZER.n_ids + 3)


# ---------------------------------------------------------------- one draw

masses = st.lists(st.integers(0, 4), min_size=1, max_size=8).filter(any)


@given(masses, st.data())
@examples(200)
def test_a_draw_inverts_the_distribution(weights, data):
    """Over a fine grid of u, each id comes as often as it weighs."""
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=len(weights)))[: len(weights)])
    left = np.where(allowed, weights, 0)
    log_p = log_probabilities(logs(weights), len(weights))
    if not left.sum():
        with pytest.raises(LogitsError, match="no mass"):
            draw(log_p, allowed, 0.5)
        return
    grid = (np.arange(left.sum()) + 0.5) / left.sum()
    drawn = [draw(log_p, allowed, u) for u in grid]
    assert np.bincount([token for token, _ in drawn], minlength=len(left)).tolist() == left.tolist()
    share = np.log(left.sum() / sum(weights))
    assert [mass for _, mass in drawn] == pytest.approx([share] * len(drawn))
    assert left[draw(log_p, allowed, 0.3, greedy=True)[0]] == left.max()
    possible = np.flatnonzero(left)
    assert draw(log_p, allowed, 0.0)[0] == possible[0]
    assert draw(log_p, allowed, np.nextafter(1.0, 0.0))[0] == possible[-1]


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([0.0, np.nan, 1.0], "logit of id 1 is nan"),
        ([0.0, 1.0, np.inf], "logit of id 2 is inf"),
        ([-np.inf] * 3, "all logits are -inf"),
        ([0.0, 1.0], "shape \\(2,\\) for a tokenizer of 3 ids"),
        ([[0.0, 1.0, 2.0]], "one vector"),
        ([], "shape \\(0,\\)"),
    ],
)
def test_logits_that_are_refused(logits, message):
    with pytest.raises(LogitsError, match=message):
        log_probabilities(np.array(logits), 3)


# ---------------------------------------------------------------- the loop


@pytest.mark.parametrize(
    "constraint", [FINITE, ENDLESS, NEVER_ENDED], ids=["finite", "*", "no end"]
)
@pytest.mark.parametrize("temperature", [0, 0.7])
def test_forced_ids_change_nothing_but_the_passes(constraint, temperature):
    saved = 0
    for seed in range(25):
        options = {"seed": seed, "temperature": temperature, "max_new_tokens": 9}
        asked = decode(noise, constraint, **options)
        skipped = decode(noise, constraint, forced=True, **options)
        assert skipped.ids == asked.ids
        assert skipped.finish_reason == asked.finish_reason
        assert skipped.passes + skipped.forced == asked.passes
        saved += skipped.forced
        ended = len(asked.ids) < asked.passes or not constraint.eos_ids
        assert (asked.log_weight is not None) == bool(temperature and ended)
        assert skipped.log_weight is None or skipped.log_weight == asked.log_weight
    assert saved


def test_how_it_ends():
    short = decode(noise, ENDLESS, seed=1, max_new_tokens=1)
    assert not short.complete
    assert short.finish_reason == "truncated"
    assert short.log_weight is None
    assert decode(noise, FINITE, seed=1).finish_reason == "complete"
    nothing = decode(noise, FINITE, seed=1, max_new_tokens=0)
    assert (nothing.ids, nothing.passes, nothing.finish_reason) == ((), 0, "truncated")
    assert {decode(noise, NEVER_ENDED, seed=s).text for s in range(9)} == {"abcc"}


def test_a_model_that_fails():
    def failing(ids):
        if len(ids) == 2:
            raise RuntimeError("out of memory")
        return noise(ids)

    with pytest.raises(ModelError, match="after 2 generated ids: RuntimeError: out of memory") as e:
        decode(failing, FINITE, seed=0)
    assert len(e.value.ids) == 2
    assert isinstance(e.value.__cause__, RuntimeError)


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="-1 is negative"):
        decode(noise, FINITE, max_new_tokens=-1)
    for wrong in (None, 2.5, "3", True):
        with pytest.raises(ArgumentError, match=r"max_new_tokens is .*: give an integer"):
            decode(noise, FINITE, max_new_tokens=wrong)
    for wrong in ("ab", 7, [0.5]):
        with pytest.raises(ArgumentError, match="id"):
            decode(noise, FINITE, wrong)
    assert decode(noise, FINITE, max_new_tokens=np.int64(3), temperature=np.float32(1)).passes
    for wrong in ({"order": 0}, {"order": "3"}, {"smoothing": 0.0}, {"smoothing": np.inf}):
        with pytest.raises(ArgumentError):
            NGramModel.train(character_tokenizer("abc"), "abc", **wrong)


@pytest.mark.parametrize("eos_ids", [(), (2,)])
def test_a_dead_end_is_not_complete(eos_ids):
    """The naive engine does not know that no id spells `c`."""
    tokenizer = character_tokenizer("ab")
    naive = naive_constraint(tokenizer, "ac|bb", eos_ids)
    found = decode(lambda ids: np.array([9.0, 0.0, 0.0]), naive, temperature=0)
    assert (found.ids, found.complete, found.finish_reason) == ((0,), False, "truncated")


# ---------------------------------------------------------------- example models

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
