"""A generation that is broken off leaves what constrained it as good as new."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import CONSTRAINTS, END, PAD, N, batch, tiny  # noqa: E402

from bpe_automata.decoding import TokenTable  # noqa: E402
from bpe_automata.integrations.transformers import (  # noqa: E402
    ConstraintLogitsProcessor,
    ForcedDecoding,
    TokenTableProcessor,
    prefix_allowed_tokens_fn,
)

OPTIONS = {"max_new_tokens": 25, "eos_token_id": [END], "pad_token_id": PAD}


def constrained(how):
    """Prompts, and the options of `generate` that constrain them in this way."""
    inputs, constraints = batch([0, 6, 12])
    if how == "function":
        return inputs, {"prefix_allowed_tokens_fn": prefix_allowed_tokens_fn(constraints, **inputs)}
    if "table" in how:
        table = TokenTable.of(CONSTRAINTS[1].automaton(), [END], N)
        masks = TokenTableProcessor(table, inputs["input_ids"])
    else:
        masks = ConstraintLogitsProcessor(constraints, **inputs)
    loop = ForcedDecoding(masks) if "forced" in how else None
    return inputs, {"logits_processor": [masks], "custom_generate": loop}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("how", ["mask", "mask, forced", "table", "table, forced", "function"])
def test_an_interrupted_generation_leaves_everything_usable(error, how):
    model = tiny()
    inputs, ours = constrained(how)
    options = {**OPTIONS, **ours, "do_sample": True}
    torch.manual_seed(8)
    expected = model.generate(**inputs, **options).tolist()
    calls = []

    def interrupt(*_):
        calls.append(1)
        if len(calls) == 4:
            raise error("here")

    handle = model.model.layers[1].register_forward_pre_hook(interrupt)
    with pytest.raises(error, match="here"):
        model.generate(**inputs, **options)
    handle.remove()
    torch.manual_seed(8)
    assert model.generate(**inputs, **options).tolist() == expected
