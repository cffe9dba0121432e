"""Dose: noise has the size that it says, and each case is compared with itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.answers.cases import CASES
from experiments.study import dose

torch = pytest.importorskip("torch")


def quantized(rng, rows, width, block=32):
    """Weights on grids of 16 levels, in blocks of so many: (matrix, the step of each weight)."""
    shape = rows, -(-width // block)
    steps, lowest = rng.uniform(1e-3, 0.1, shape), rng.normal(size=shape)
    levels = rng.integers(0, 16, (*shape, block))
    for half in range(0, block, 16):  # two neighbours on the grid are met in nearly every block
        levels[..., half : half + 2] = 3, 4
    made = (lowest[..., None] + steps[..., None] * levels).reshape(rows, -1)[:, :width]
    return torch.tensor(made, dtype=torch.float32), np.repeat(steps, block, 1)[:, :width]


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([32, 64, 70]), st.booleans())
def test_the_step_is_that_of_the_grid(seed, rows, width, narrow):
    weight, steps = quantized(np.random.default_rng(seed), rows, width, 16 if narrow else 32)
    assert dose.steps_of(weight).numpy() == pytest.approx(steps, rel=1e-2)


def test_two_grids_with_a_divisor_in_common_are_told_apart():
    """As in formats whose scales are whole multiples of one number."""
    rng = np.random.default_rng(5)
    levels = rng.integers(0, 16, (50, 2, 16))
    levels[..., :2] = 3, 4
    steps = 0.001 * np.array([3, 5])[:, None]
    weight = torch.tensor((levels * steps).reshape(50, 32), dtype=torch.float32)
    expected = np.broadcast_to(steps, (50, 2, 16)).reshape(50, 32)
    assert dose.steps_of(weight).numpy() == pytest.approx(expected, rel=1e-2)


def test_equal_weights_have_no_step():
    assert (dose.steps_of(torch.full((2, 40), 0.3)) == 0).all()
    assert (dose.steps_of(torch.ones(1, 33))[0, -1] == 0).all()


def test_noise_is_within_the_dose_and_vectors_stay():
    weight, steps = quantized(np.random.default_rng(1), 40, 64)
    model = torch.nn.Linear(64, 40)
    model.weight.data, bias = weight.clone(), model.bias.clone()
    dose.add_noise(model, 0.5, 3)
    share = ((model.weight - weight).detach().numpy() / steps).ravel()
    assert np.abs(share).max() <= 0.5 + 1e-3
    assert share.std() == pytest.approx(0.5 / np.sqrt(3), rel=0.1)
    assert torch.equal(model.bias, bias)


def test_cases_are_drawn_by_lot_and_each_family_has_its_share():
    every = pd.Series([case.family for case in CASES if case.is_enumerated()]).value_counts()
    cases = dose.drawn(160, 0)
    found = pd.Series([case.family for case in cases]).value_counts()
    assert len({case.name for case in cases}) == 160
    assert [case.name for case in dose.drawn(160, 1)] != [case.name for case in cases]
    expected = 160 * every / every.sum()
    assert ((found.reindex(every.index, fill_value=0) - expected).abs() <= 1).all()


def row(noise, name, lift, canonical, free, slack=0.0):
    masses = {"log10_mass": -1.0, "lift": lift, "canonical": canonical, "rest": 0.0}
    asked = {"model": "m", "dose": noise, "name": name, "base": name, "key": f"{noise}{name}"}
    return {**asked, **masses, "free": free, "slack": slack}


def test_each_case_is_compared_with_itself_where_every_dose_is_exact():
    rows = pd.DataFrame(
        [
            row(0.0, "a", 0.5, 0.1, [0.9, 0.1]),
            row(0.0, "b", 0.2, 0.1, [0.5, 0.5]),
            row(1.0, "a", 0.4, 0.2, [0.4, 0.6]),
            row(1.0, "b", 0.4, 0.2, [0.4, 0.6], slack=0.02),
        ]
    )
    before, after = dose.compared(rows).to_dict("records")
    assert (before["name"], before["moved"], before["lift_change"]) == ("a", 0, 0)
    assert after["moved"] == pytest.approx(0.5)
    assert after["advantage_change"] == pytest.approx(-0.2)
    assert (before["same"], after["same"]) == (True, False)
