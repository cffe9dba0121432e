"""Models of transformers as functions of ids: equal to fresh passes, whatever was asked before."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import KINDS, ON, PADDING, N, tiny  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from support import examples  # noqa: E402

from bpe_automata.errors import PromptError, TokenOutOfRangeError, UnsupportedFeatureError  # noqa: E402
from bpe_automata.integrations.transformers import CausalModel  # noqa: E402

EDITS = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.integers(0, N + PADDING - 1), max_size=6)),
    min_size=1,
    max_size=8,
)
"""Take back so many ids, then append these."""


def equal(found, model, ids):
    with torch.no_grad():
        logits = model(torch.tensor([list(ids)], device=model.device)).logits
    expected = logits[0, -1].cpu().numpy()
    assert found.dtype == np.float32
    assert found.shape == (N + PADDING,)
    np.testing.assert_allclose(found, expected, rtol=2e-7, atol=1e-7)  # a float32's rounding


@ON
@pytest.mark.parametrize("kind", KINDS)
@examples(12)
@given(edits=EDITS)
def test_any_sequence_of_calls_equals_fresh_passes(device, kind, edits):
    model, ids = tiny(kind).to(device), [1, 2]
    asked = CausalModel(model)
    for back, more in edits:
        ids = [*ids[: max(1, len(ids) - back)], *more]
        equal(asked(ids), model, ids)


def test_a_state_space_model_is_read_afresh():
    model = tiny("mamba")
    asked = CausalModel(model)
    for ids in ([1, 2, 3], [1, 2, 3, 4], [1, 5]):
        equal(asked(ids), model, ids)
    assert not asked.cached
    assert asked.fed == 9


def test_bad_ids_change_nothing():
    model = tiny()
    asked = CausalModel(model)
    asked([1, 2, 3])
    with pytest.raises(PromptError, match="at least one"):
        asked([])
    for wrong in (-1, N + PADDING):
        with pytest.raises(TokenOutOfRangeError, match=str(wrong)):
            asked([1, 2, wrong])
    equal(asked([1, 2, 3, 4]), model, [1, 2, 3, 4])
    assert (asked.passes, asked.fed) == (2, 4)


def test_models_that_cannot_be_asked_are_refused():
    with pytest.raises(UnsupportedFeatureError, match="training"):
        CausalModel(tiny().train())
    config = transformers.T5Config(
        vocab_size=9, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2
    )
    with pytest.raises(UnsupportedFeatureError, match="encoder-decoder"):
        CausalModel(transformers.T5ForConditionalGeneration(config).eval())
