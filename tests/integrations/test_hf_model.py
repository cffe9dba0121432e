"""Models of transformers as functions of ids: equal to fresh passes, whatever was asked before."""

import numpy as np
import pytest
import torch
from hf_tiny import KINDS, ON, tiny
from hypothesis import given
from hypothesis import strategies as st
from served import V
from support import examples

from bpe_automata.errors import PromptError, TokenOutOfRangeError
from bpe_automata.integrations.transformers import CausalModel

EDITS = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.integers(0, V - 1), max_size=6)),
    min_size=1,
    max_size=8,
)
"""Take back so many ids, then append these."""


def equal(found, model, ids):
    with torch.no_grad():
        logits = model(torch.tensor([list(ids)], device=model.device)).logits
    expected = logits[0, -1].cpu().numpy()
    assert found.dtype == np.float32
    assert found.shape == (V,)
    np.testing.assert_allclose(found, expected, rtol=2e-7, atol=1e-7)  # a float32's rounding


@ON
@pytest.mark.parametrize("kind", KINDS)
@examples(12)
@given(edits=EDITS)
def test_any_sequence_of_calls_equals_fresh_passes(device, kind, edits):
    """Where the cache cannot be cropped, all ids are read afresh each time."""
    model, ids = tiny(kind).to(device), [1, 2]
    asked, fed = CausalModel(model), 0
    for back, more in edits:
        ids = [*ids[: max(1, len(ids) - back)], *more]
        equal(asked(ids), model, ids)
        fed += len(ids)
    assert asked.cached == (kind in ("llama", "gpt2"))
    assert asked.cached or asked.fed == fed


def test_bad_ids_change_nothing():
    model = tiny()
    asked = CausalModel(model)
    asked([1, 2, 3])
    with pytest.raises(PromptError, match="at least one"):
        asked([])
    for wrong in (-1, V):
        with pytest.raises(TokenOutOfRangeError, match=str(wrong)):
            asked([1, 2, wrong])
    equal(asked([1, 2, 3, 4]), model, [1, 2, 3, 4])
    assert (asked.passes, asked.fed) == (2, 4)
