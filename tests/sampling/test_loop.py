"""The decoding loop: what it draws, what it counts, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata import constrain
from bpe_automata.errors import ArgumentError, LogitsError, ModelError
from bpe_automata.models import character_tokenizer
from bpe_automata.reference import naive_constraint
from bpe_automata.sampling import decode, draw, log_probabilities
from bpe_automata.sampling.logits import has_ended, only_the_end_follows
from bpe_automata.testing import small_tokenizer

TOKENIZER = small_tokenizer(["a", "b", "c", "ab", "bc"], [("a", "b"), ("b", "c")], None, ["<end>"])
END = 5
FINITE = constrain(TOKENIZER, r"a(b|bc){0,3}|cab?", eos_ids=[END])
ENDLESS = constrain(TOKENIZER, r"(abc)*", eos_ids=[END])
NEVER_ENDED = constrain(TOKENIZER, r"abc|abcc", eos_ids=[])


def noise(ids):
    """A distribution of its own after each sequence; wider than the tokenizer."""
    return np.random.default_rng([7, *ids]).normal(size=TOKENIZER.n_ids + 3)


def logits_of(weights):
    with np.errstate(divide="ignore"):
        return np.log(np.array(weights, dtype=float))


# ---------------------------------------------------------------- one draw

masses = st.lists(st.integers(0, 4), min_size=1, max_size=8).filter(any)


@given(masses, st.data())
@examples(200)
def test_a_draw_inverts_the_distribution(weights, data):
    """Over a fine grid of u, each id comes as often as it weighs."""
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=len(weights)))[: len(weights)])
    left = np.where(allowed, weights, 0)
    log_p = log_probabilities(logits_of(weights), len(weights))
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


@given(masses)
@examples(100)
def test_the_ends_of_the_interval(weights):
    log_p, everything = log_probabilities(logits_of(weights), len(weights)), np.ones(len(weights))
    possible = np.flatnonzero(weights)
    assert draw(log_p, everything.astype(bool), 0.0)[0] == possible[0]
    assert draw(log_p, everything.astype(bool), np.nextafter(1.0, 0.0))[0] == possible[-1]


def test_padding_keeps_its_mass():
    log_p = log_probabilities(np.zeros(8), 6)
    assert np.exp(log_p) == pytest.approx([1 / 8] * 6)


def test_temperature():
    weights = np.array([1.0, 4.0])
    assert np.exp(log_probabilities(np.log(weights), 2, 0.5)) == pytest.approx([1 / 17, 16 / 17])
    assert np.exp(log_probabilities(np.log(weights), 2, 0)) == pytest.approx([0.2, 0.8])


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


@pytest.mark.parametrize(
    "logits", [np.array(["0", "1", "2"]), np.array([0j, 1, 2]), [True, False, True], [[0], [1, 2]]]
)
def test_logits_that_are_no_numbers(logits):
    with pytest.raises(LogitsError, match="give real numbers"):
        log_probabilities(logits, 3)


def test_logits_of_torch():
    torch = pytest.importorskip("torch")
    logits = torch.tensor([0.0, 1.0, 2.0])
    expected = log_probabilities(logits.numpy(), 3)
    for good in (logits, logits.double(), torch.tensor([0, 1, 2])):
        np.testing.assert_allclose(log_probabilities(good, 3), expected)
    for bad in (logits.bfloat16(), logits.clone().requires_grad_()):
        with pytest.raises(LogitsError, match=r"detach\(\).float\(\).cpu\(\)"):
            log_probabilities(bad, 3)
        better = bad.detach().float().cpu().numpy()
        np.testing.assert_allclose(log_probabilities(better, 3), expected)


WRONG_TEMPERATURES = [-1.0, float("nan"), float("inf"), 10**400, "1", None, True]


@pytest.mark.parametrize("temperature", WRONG_TEMPERATURES)
def test_a_wrong_temperature(temperature):
    logits = np.array([0.0, -np.inf, 1.0])
    with pytest.raises(ArgumentError, match="temperature"):
        log_probabilities(logits, 3, temperature)
    with pytest.raises(ArgumentError, match="temperature"):  # nothing but forced ids
        decode(noise, NEVER_ENDED, max_new_tokens=2, forced=True, temperature=temperature)


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
        assert (skipped.log_weight is not None) == bool(
            temperature and ended and not skipped.forced
        )
    assert saved


def test_the_weight_is_the_mass_that_the_masks_left():
    for seed in range(10):
        found = decode(noise, FINITE, (0,), seed=seed)
        matcher, expected = FINITE.matcher((0,)), 0.0
        for token in (*found.ids, END):
            p = np.exp(noise((0, *matcher.ids)))
            expected += np.log(p[matcher.allowed_ids()].sum() / p.sum())
            matcher.advance(token)
        assert found.log_weight == pytest.approx(expected)


def test_how_it_ends():
    short = decode(noise, ENDLESS, seed=1, max_new_tokens=1)
    assert not short.complete
    assert short.finish_reason == "truncated"
    assert short.log_weight is None
    assert decode(noise, FINITE, seed=1).finish_reason == "complete"
    nothing = decode(noise, FINITE, seed=1, max_new_tokens=0)
    assert (nothing.ids, nothing.passes, nothing.finish_reason) == ((), 0, "truncated")
    assert {decode(noise, NEVER_ENDED, seed=s).text for s in range(9)} == {"abcc"}


def test_the_end_comes_where_the_model_wants_it():
    """Endless and finite: end-of-sequence is drawn like any id."""
    texts = {decode(noise, ENDLESS, seed=seed, max_new_tokens=40).text for seed in range(30)}
    assert {"", "abc", "abcabc"} <= texts


def test_a_model_that_fails():
    def failing(ids):
        if len(ids) == 2:
            raise RuntimeError("out of memory")
        return noise(ids)

    with pytest.raises(ModelError, match="after 2 generated ids: RuntimeError: out of memory") as e:
        decode(failing, FINITE, seed=0)
    assert len(e.value.ids) == 2
    assert isinstance(e.value.__cause__, RuntimeError)


def test_an_interruption_passes():
    def interrupted(ids):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decode(interrupted, FINITE, seed=0)
    assert decode(noise, FINITE, seed=0).complete


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
    with pytest.raises(LogitsError, match="tokenizer of 6 ids"):
        decode(lambda ids: np.zeros(5), FINITE)


def test_close_and_the_weights():
    """The longest texts within `max_new_tokens` leave no room for the end; one id less does."""
    closed = [decode(noise, ENDLESS, seed=s, max_new_tokens=4, close=True) for s in range(60)]
    assert {len(found.ids) for found in closed} == {0, 2, 4}
    for found in closed:
        assert found.complete
        assert found.finish_reason == "complete"
        assert (found.log_weight is None) == (len(found.ids) == 4)
    roomy = ENDLESS.within(4)
    for seed in range(60):
        assert decode(noise, roomy, seed=seed, max_new_tokens=5).log_weight is not None


@pytest.mark.parametrize("eos_ids", [(), (2,)])
def test_a_dead_end_is_not_complete(eos_ids):
    """The naive engine does not know that no id spells `c`."""
    tokenizer = character_tokenizer("ab")
    naive = naive_constraint(tokenizer, "ac|bb", eos_ids)
    found = decode(lambda ids: np.array([9.0, 0.0, 0.0]), naive, temperature=0)
    assert (found.ids, found.complete, found.finish_reason) == ((0,), False, "truncated")


def test_only_the_end_follows_is_what_the_mask_says():
    for constraint in (FINITE, NEVER_ENDED):
        stack, said = [constraint.matcher()], set()
        while stack:
            matcher = stack.pop()
            ids = set(matcher.allowed_ids().tolist())
            ends = not ids - {END}
            assert only_the_end_follows(matcher, constraint) == ends
            read = matcher.ids[-1:] == (END,)
            assert has_ended(matcher, constraint) == (read if constraint.eos_ids else ends)
            said.add((ends, read))
            for token in ids:
                after = matcher.copy()
                after.advance(token)
                stack.append(after)
        assert len(said) == (3 if constraint.eos_ids else 2)
