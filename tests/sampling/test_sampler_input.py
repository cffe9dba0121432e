"""Bad input to every sampler: typed errors, nothing changed; and what each of them gives where
there is nothing to give."""

from collections import Counter

import numpy as np
import pytest
from exact_distribution import TableModel, constraint_of, logs

from bpe_automata.errors import ArgumentError, LogitsError, ModelError, PromptError
from bpe_automata.sampling import adaptive, rejection, smc, weighted

SAMPLERS = [weighted, smc, adaptive, rejection]
every = pytest.mark.parametrize("sampler", SAMPLERS)
EOS = (4, 5)


def sized(sampler, n, **options):
    return {("particles" if sampler is smc else "n"): n, **options}


class Breaks:
    """A model that gives `last` (or raises it) at its k-th call."""

    def __init__(self, last, k=3):
        self.last, self.left, self.good = last, k, TableModel(2)

    def __call__(self, ids):
        self.left -= 1
        if self.left > 0:
            return self.good(ids)
        if isinstance(self.last, BaseException):
            raise self.last
        return self.last


@every
@pytest.mark.parametrize(
    ("logits", "said"),
    [(np.array([0.0, np.nan, 0, 0, 0, 0]), "id 1 is nan"), (np.zeros(5), "6 ids")],
)
def test_bad_logits(sampler, logits, said):
    with pytest.raises(LogitsError, match=said):
        sampler(Breaks(logits), constraint_of("lift", EOS), **sized(sampler, 5, seed=0))


@every
@pytest.mark.parametrize("raised", [KeyboardInterrupt(), ValueError("out of memory")])
def test_an_interruption_changes_nothing(sampler, raised):
    """Matchers of the same constraint stay where they are; the next run is as if none had been."""
    constraint = constraint_of("canonical", EOS)
    matcher = constraint.matcher()
    matcher.advance(1)
    before = (matcher.ids, matcher.allowed_ids().tolist(), matcher.is_accepting)
    options = sized(sampler, 5, seed=0)
    expected = KeyboardInterrupt if isinstance(raised, KeyboardInterrupt) else ModelError
    with pytest.raises(expected) as caught:
        sampler(Breaks(raised), constraint, **options)
    if expected is ModelError:
        assert caught.value.__cause__ is raised
        assert "out of memory" in str(caught.value)
    assert (matcher.ids, matcher.allowed_ids().tolist(), matcher.is_accepting) == before
    again = sampler(TableModel(2), constraint, **options)
    assert again == sampler(TableModel(2), constraint_of("canonical", EOS), **options)


@every
def test_bad_arguments(sampler):
    constraint, model = constraint_of("lift", EOS), TableModel()
    for wrong in (
        sized(sampler, 0),
        sized(sampler, 2, max_new_tokens=-1),
        sized(sampler, 2, temperature=0),
        sized(sampler, 2, temperature=np.inf),
        sized(sampler, 2, max_new_tokens=None),
        sized(sampler, 2.5),
        sized(sampler, 2, prompt="ab"),
    ):
        with pytest.raises(ArgumentError):
            sampler(model, constraint, **wrong)
    with pytest.raises(PromptError):
        sampler(model, constraint_of("canonical", EOS), [0, 1])  # `a`, `b` would be `ab`
    assert not model.calls


@pytest.mark.parametrize("sampler", [weighted, smc, adaptive])
@pytest.mark.parametrize("eos", [EOS, ()])
def test_a_budget_wastes_nothing(sampler, eos):
    """As `weights` says: one id is left for the end, where there is one."""
    constraint, options = constraint_of("lift", eos), {"max_new_tokens": 3, "seed": 0}
    options = sized(sampler, 100, **options) | ({"threshold": 0.0} if sampler is smc else {})

    def wasted(n):
        found = sampler(TableModel(2), constraint.within(n), **options).generations
        return sum(generation.log_weight == -np.inf for generation in found)

    assert wasted(3 - bool(eos)) == 0
    assert wasted(4 - bool(eos)) > 0


@every
def test_no_room_for_the_end(sampler):
    """The text is complete, but the model was not asked whether it ends there."""
    constraint = constraint_of("lift", EOS, "abc")
    options = sized(sampler, 4, max_new_tokens=2, seed=0)
    if sampler is rejection:
        found = rejection(TableModel(), constraint, max_tries=500, **options)
        assert (found.generations, found.tries, found.probability) == ((), 500, 0.0)
        assert 0 < found.truncated < 500
        return
    found = sampler(TableModel(), constraint, **options)
    assert [generation.log_weight for generation in found.generations] == [-np.inf] * 4
    whole = {generation.text for generation in found.generations if generation.complete}
    assert whole <= {"abc"}


@pytest.mark.parametrize("sampler", [weighted, smc, adaptive])
def test_a_language_that_the_model_never_writes(sampler):
    """`c` or the end, but neither `a` nor `b`."""
    never, options = constraint_of("lift", EOS, "c?[ab]"), sized(sampler, 6, seed=0)
    found = sampler(lambda ids: logs([0, 0, 1, 0, 2, 3]), never, **options)
    assert {generation.log_weight for generation in found.generations} == {-np.inf}
    assert not any(generation.complete for generation in found.generations)


@every
def test_a_seed_says_everything(sampler):
    model, constraint = TableModel(4), constraint_of("canonical", EOS)
    first = sampler(model, constraint, **sized(sampler, 8, seed=5))
    assert first == sampler(model, constraint, **sized(sampler, 8, seed=5))
    assert first == sampler(model, constraint, **sized(sampler, 8, seed=np.random.default_rng(5)))
    assert first != sampler(model, constraint, **sized(sampler, 8, seed=6))


def test_equal_sequences_share_one_call():
    model = TableModel(4)
    found = smc(model, constraint_of("lift", EOS), particles=200, seed=1, threshold=0.9)
    assert found.resampled
    assert max(Counter(model.calls).values()) == 1
    assert found.passes == len(model.calls) < 60
