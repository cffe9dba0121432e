"""How an error is taken apart, on the rows of the study: the parts of each error sum to it, and the
Shapley values are the means over both orders."""

from __future__ import annotations

import numpy as np

from experiments.run.files import PAPER
from experiments.run.report import read_published
from experiments.run.tables import frame
from experiments.study.distortion_study.points import THREE, points


def test_errors_are_the_sums_of_their_parts():
    rows, _ = read_published(PAPER / "rows" / "distortion-study.jsonl.gz")
    found = points(frame(rows))
    lift, canonical, rest = (found[name].to_numpy() for name in ("lift", "canonical", "rest"))
    assert len(lift) > 1000
    assert np.allclose(found[list(THREE)].sum(axis=1), lift)
    # With weights the lift is at 0, and canonical at the rest.
    tokenization = ((lift - canonical) + (0 - rest)) / 2
    myopia = ((lift - 0) + (canonical - rest)) / 2
    assert np.allclose(found["tokenization_shapley"], tokenization)
    assert np.allclose(found["myopia_shapley"], myopia)
    assert np.allclose(tokenization + myopia + rest, lift)
