"""A model as a function of ids equals a fresh forward pass, whatever was asked before."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from budget import examples  # noqa: E402
from hf_tiny import PADDING, N, tiny  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from bpe_automata.errors import (  # noqa: E402
    PromptError,
    TokenOutOfRangeError,
    UnsupportedFeatureError,
)
from bpe_automata.integrations.transformers import CausalModel  # noqa: E402

MODELS = {kind: tiny(kind) for kind in ("llama", "gpt2", "mistral", "mamba")}
EDITS = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.integers(0, N + PADDING - 1), max_size=6)),
    min_size=1,
    max_size=8,
)
"""Take back so many ids, then append these."""


def fresh(model, ids):
    with torch.no_grad():
        return model(torch.tensor([list(ids)])).logits[0, -1].numpy()


def equal(found, model, ids):
    expected = fresh(model, ids)
    assert found.dtype == np.float32
    assert found.shape == (N + PADDING,)
    np.testing.assert_allclose(found, expected, rtol=2e-7, atol=1e-7)  # a float32's rounding


@pytest.mark.parametrize("kind", MODELS)
@examples(12)
@given(edits=EDITS)
def test_any_sequence_of_calls_equals_fresh_passes(kind, edits):
    asked, ids = CausalModel(MODELS[kind]), [1, 2]
    for back, more in edits:
        ids = [*ids[: max(1, len(ids) - back)], *more]
        equal(asked(ids), MODELS[kind], ids)


@pytest.mark.parametrize(("kind", "cached"), [("llama", True), ("gpt2", True), ("mistral", False)])
def test_only_what_is_new_goes_through_the_model(kind, cached):
    asked = CausalModel(MODELS[kind])
    for ids in ([1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 9], [1, 2, 9], [7]):
        equal(asked(ids), MODELS[kind], ids)
    assert asked.cached == cached
    assert asked.passes == 5
    # read: 3, 2 more, one after a crop to two, the last one again, one after a crop to none
    assert asked.fed == (3 + 2 + 1 + 1 + 1 if cached else 3 + 5 + 3 + 3 + 1)
    assert asked.cropped == (3 if cached else 0)


def test_a_state_space_model_is_read_afresh():
    asked = CausalModel(MODELS["mamba"])
    for ids in ([1, 2, 3], [1, 2, 3, 4], [1, 5]):
        equal(asked(ids), MODELS["mamba"], ids)
    assert not asked.cached
    assert asked.fed == 9


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_pass_leaves_no_trace(error):
    """The first layer has read the ids when the second one raises."""
    model = tiny()
    asked = CausalModel(model)
    asked([1, 2, 3])

    def interrupt(*_):
        raise error("here")

    handle = model.model.layers[1].register_forward_pre_hook(interrupt)
    for ids in ([1, 2, 3, 4], [1, 7]):
        with pytest.raises(error):
            asked(ids)
    handle.remove()
    equal(asked([1, 2, 3, 4]), model, [1, 2, 3, 4])


def test_bad_ids_change_nothing():
    asked = CausalModel(MODELS["llama"])
    asked([1, 2, 3])
    with pytest.raises(PromptError, match="at least one"):
        asked([])
    for wrong in (-1, N + PADDING):
        with pytest.raises(TokenOutOfRangeError, match=str(wrong)):
            asked([1, 2, wrong])
    equal(asked([1, 2, 3, 4]), MODELS["llama"], [1, 2, 3, 4])
    assert (asked.passes, asked.fed) == (2, 4)


def test_models_that_cannot_be_asked_are_refused():
    with pytest.raises(UnsupportedFeatureError, match="training"):
        CausalModel(tiny().train())
    config = transformers.T5Config(
        vocab_size=9, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2
    )
    with pytest.raises(UnsupportedFeatureError, match="encoder-decoder"):
        CausalModel(transformers.T5ForConditionalGeneration(config).eval())


@pytest.mark.parametrize(
    ("rope", "limit"),
    [
        ({"rope_type": "dynamic", "factor": 2.0}, 128),
        (
            {
                "rope_type": "longrope",
                "factor": 2.0,
                "short_factor": [1.0] * 4,
                "long_factor": [3.0] * 4,
                "original_max_position_embeddings": 6,
            },
            6,
        ),
        ({"rope_type": "linear", "factor": 2.0}, None),
        ({"rope_type": "default"}, None),
    ],
    ids=lambda value: value["rope_type"] if isinstance(value, dict) else str(value),
)
def test_positions_that_change_with_the_length_are_refused(rope, limit):
    model = tiny(rope_parameters={"rope_theta": 10000.0, **rope})
    asked = CausalModel(model)
    ids = [1] * (limit or 40)
    for length in (2, len(ids) - 1, len(ids)):
        equal(asked(ids[:length]), model, ids[:length])
    if limit is not None:
        with pytest.raises(UnsupportedFeatureError, match=f"up to {limit} ids"):
            asked([*ids, 1])


def test_the_decoding_loop_takes_it():
    loop = pytest.importorskip("bpe_automata.sampling.loop")
    from hf_tiny import REGEXES, constraint

    asked, model, one_of = CausalModel(MODELS["llama"]), MODELS["llama"], constraint(REGEXES[0])
    for seed in range(3):
        options = {"max_new_tokens": 30, "seed": seed}
        one = loop.decode(asked, one_of, (3, 4), **options)
        other = loop.decode(
            lambda ids: fresh(model, ids), constraint(REGEXES[0]), (3, 4), **options
        )
        assert one.ids == other.ids
        assert one.log_weight == pytest.approx(other.log_weight, abs=1e-5)
