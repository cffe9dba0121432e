"""The logits processor and `generate`, on a random model over SmolLM2's vocabulary; and models of
transformers as functions of ids.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import ON, PADDING, N, tiny  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from support import examples, tiny_llama  # noqa: E402

from bpe_automata import constrain  # noqa: E402
from bpe_automata.errors import PromptError, TokenOutOfRangeError, UnsupportedFeatureError  # noqa: E402
from bpe_automata.integrations.transformers import CausalModel, generate  # noqa: E402

VOCABULARY = 49_152
REGEXES = [r"[0-9]{1,3}(\.[0-9]{2})?", r" (yes|no|maybe) (sir|madam)", r'\{"a": (true|false)\}']
PROMPTS = ["A number:", "Answer the question, please:", "J"]


@pytest.fixture(scope="module")
def model():
    """16 more logits than the tokenizer has ids, as padded vocabularies do."""
    ids = {"bos_token_id": 1, "eos_token_id": [2, 0], "pad_token_id": 2}
    return tiny_llama(1, VOCABULARY + 16, layers=2, initializer_range=0.4, **ids)


def is_canonical(tokenizer, prompt, ids):
    whole = tokenizer.encode(prompt) + list(ids)
    return tokenizer.encode(tokenizer.decode(whole)) == whole


def next_logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0, -1]


def by_hand(model, tokenizer, prompt, regex, method, steps):
    """Greedy decoding with a Matcher: the definition that `generate` must meet."""
    ids = tokenizer.encode(prompt)
    matcher = constrain(tokenizer, regex, method=method, eos_ids=(0, 2)).matcher(prefix=ids)
    written = []
    for _ in range(steps):
        allowed = torch.from_numpy(matcher.mask())
        logits = next_logits(model, ids + written)[: len(allowed)]
        token = int(logits.masked_fill(~allowed, -torch.inf).argmax())
        matcher.advance(token)
        if matcher.is_finished:
            break
        written.append(token)
    return tuple(written)


@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_a_batch_of_different_regexes_equals_the_matcher_row_by_row(
    method, model, smollm2_tokenizer
):
    options = {"method": method, "max_new_tokens": 12, "do_sample": False}
    batch = generate(model, smollm2_tokenizer, PROMPTS, REGEXES, **options)
    for prompt, regex, found in zip(PROMPTS, REGEXES, batch, strict=True):
        assert found.ids == by_hand(model, smollm2_tokenizer, prompt, regex, method, 12)
        assert found == generate(model, smollm2_tokenizer, prompt, regex, **options)


def test_samples_match_are_canonical_and_follow_the_seed(model, smollm2_tokenizer):
    prompts = [prompt for prompt in PROMPTS for _ in range(4)]
    regexes = [regex for regex in REGEXES for _ in range(4)]
    options = {"max_new_tokens": 30, "do_sample": True, "top_k": 0, "seed": 11}
    before = torch.random.get_rng_state()
    found = generate(model, smollm2_tokenizer, prompts, regexes, **options)
    assert torch.equal(before, torch.random.get_rng_state())
    assert found == generate(model, smollm2_tokenizer, prompts, regexes, **options)
    for prompt, regex, one in zip(prompts, regexes, found, strict=True):
        assert re.fullmatch(regex, one.text)
        assert (one.complete, one.finish_reason) == (True, "complete")
        assert smollm2_tokenizer.decode(one.ids) == one.text
        assert is_canonical(smollm2_tokenizer, prompt, one.ids)


# ---------------------------------------------------------------- a model as a function of ids
# It equals a fresh forward pass, whatever was asked before.

MODELS = {kind: tiny(kind) for kind in ("llama", "gpt2", "mistral", "mamba")}
EDITS = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.integers(0, N + PADDING - 1), max_size=6)),
    min_size=1,
    max_size=8,
)
"""Take back so many ids, then append these."""


def fresh(model, ids):
    with torch.no_grad():
        return model(torch.tensor([list(ids)], device=model.device)).logits[0, -1].cpu().numpy()


def equal(found, model, ids):
    expected = fresh(model, ids)
    assert found.dtype == np.float32
    assert found.shape == (N + PADDING,)
    np.testing.assert_allclose(found, expected, rtol=2e-7, atol=1e-7)  # a float32's rounding


@ON
@pytest.mark.parametrize("kind", MODELS)
@examples(12)
@given(edits=EDITS)
def test_any_sequence_of_calls_equals_fresh_passes(device, kind, edits):
    model, ids = tiny(kind).to(device), [1, 2]
    asked = CausalModel(model)
    for back, more in edits:
        ids = [*ids[: max(1, len(ids) - back)], *more]
        equal(asked(ids), model, ids)


def test_a_state_space_model_is_read_afresh():
    asked = CausalModel(MODELS["mamba"])
    for ids in ([1, 2, 3], [1, 2, 3, 4], [1, 5]):
        equal(asked(ids), MODELS["mamba"], ids)
    assert not asked.cached
    assert asked.fed == 9


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
