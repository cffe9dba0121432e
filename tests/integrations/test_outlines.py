"""Outlines 1.3.3 with this package's masks, on a tiny random model of transformers."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import pytest
from served import END, START, V, constraint, mask_after, tokenizer

from bpe_automata import constrain
from bpe_automata.errors import (
    BufferShapeError,
    DecodingError,
    PromptError,
    UnsupportedFeatureError,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
outlines = pytest.importorskip("outlines", reason="outlines is missing: pip install outlines")
pytest.importorskip("outlines.processors.base_logits_processor")

from bpe_automata.integrations.outlines import ConstraintLogitsProcessor, Generator  # noqa: E402

PROMPTS = ["de a", "x", "de abc de"]
OPTIONS = {"max_new_tokens": 20, "do_sample": True, "top_k": 0}


@pytest.fixture(scope="module")
def hosted():
    import tokenizers

    backend = tokenizers.Tokenizer.from_str(tokenizer().to_json())
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<start>", eos_token="<end>", pad_token="<end>"
    )


@pytest.fixture(scope="module")
def model(hosted):
    torch.manual_seed(2)
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    ends = {"bos_token_id": START, "eos_token_id": END, "pad_token_id": END}
    config = transformers.LlamaConfig(vocab_size=V, initializer_range=0.4, **shape, **heads, **ends)
    return outlines.from_transformers(transformers.LlamaForCausalLM(config).eval(), hosted)


def canonical(prompt, text):
    """Is what was written the tokenizer's own tokenization? Then no other ids spell it."""
    whole = tokenizer().encode(prompt + text)
    return whole[: len(tokenizer().encode(prompt))] == tokenizer().encode(prompt)


@pytest.mark.parametrize(
    ("output_type", "regex"),
    [
        (Literal["yes", "no", "node"], "yes|no|node"),
        (outlines.types.Regex("[a-c]{2,5}"), "[a-c]{2,5}"),
        (outlines.types.regex("(abc){1,3}"), "(abc){1,3}"),
        (int, r"-?(0|[1-9][0-9]*)"),
    ],
)
def test_texts_match_and_are_canonical(output_type, regex, model):
    generator = Generator(model, output_type)
    torch.manual_seed(4)
    for prompt in PROMPTS:
        for _ in range(3):
            text = generator(prompt, **OPTIONS)
            assert re.fullmatch(regex, text) or len(tokenizer().encode(text)) == 20
            assert canonical(prompt, text)


def test_a_batch_equals_one_by_one(model):
    """Greedy, so that only the masks decide; prompts of different lengths are padded."""
    generator = Generator(model, outlines.types.Regex("[a-c]{2,5}|yes|no"))
    options = {"max_new_tokens": 20, "do_sample": False}
    alone = [generator(prompt, **options) for prompt in PROMPTS]
    masks = []
    original = generator.logits_processor.process_logits

    def watched(input_ids, logits):
        found = original(input_ids, logits)
        masks.append((input_ids.clone(), torch.isfinite(found)))
        return found

    generator.logits_processor.process_logits = watched
    assert len(generator.batch(PROMPTS, **options)) == len(alone)
    width = masks[0][0].shape[1]
    for ids, allowed in masks:
        for prompt, row, found in zip(PROMPTS, ids.tolist(), allowed.numpy(), strict=True):
            written = row[width:]
            written = written[: written.index(END) + 1] if END in written else written
            expected = mask_after("[a-c]{2,5}|yes|no", tokenizer().encode(prompt), written)
            assert np.array_equal(found, expected)


def test_beams_follow_their_own_ids(model):
    generator = Generator(model, outlines.types.Regex("[a-c]{2,5}|yes|no"))
    found = generator("de a", max_new_tokens=20, num_beams=4, num_return_sequences=3)
    for text in found:
        assert re.fullmatch("[a-c]{2,5}|yes|no", text)
        assert canonical("de a", text)


def test_the_lift_is_another_method(model):
    """After "a", the lift may write what merges with it."""
    texts = {
        method: Generator(model, outlines.types.Regex("b"), method=method)("a", **OPTIONS)
        for method in ("lift",)
    }
    assert texts == {"lift": "b"}
    with pytest.raises(PromptError, match="would merge"):
        Generator(model, outlines.types.Regex("b"))("a", **OPTIONS)
    assert Generator(model, outlines.types.Regex("b"), prefix=False)("a", **OPTIONS) == "b"


def test_a_processor_by_itself_in_the_generator_of_outlines(model):
    processor = ConstraintLogitsProcessor(constraint("yes|no|node"), "torch", pad_id=END)
    generator = outlines.Generator(model, processor=processor)
    for prompt in PROMPTS:
        assert generator(prompt, **OPTIONS) in ("yes", "no", "node")


def test_numpy_logits_are_masked_alike():
    """What llama-cpp-python gives: one row, one dimension, the prompt first."""
    processor = ConstraintLogitsProcessor(constraint("yes|no|node"), "numpy")
    ids = np.array([START], dtype=np.intc)
    for text in ("", "no"):
        written = tokenizer().encode(text)
        found = processor(np.array([*ids, *written]), np.zeros(V, np.single))
        assert np.array_equal(np.isfinite(found), mask_after("yes|no|node", [START], written))
    processor.reset()
    merging = np.array(tokenizer().encode("y") + tokenizer().encode("e"))
    found = processor(merging, np.zeros(V, np.single))
    assert np.flatnonzero(np.isfinite(found)).tolist() == [END]
    assert isinstance(processor.error, PromptError)


def test_what_is_not_supported_is_refused(model):
    with pytest.raises(UnsupportedFeatureError, match="context-free"):
        Generator(model, outlines.types.CFG("start: /a/"))
    with pytest.raises(UnsupportedFeatureError, match="mlx"):
        ConstraintLogitsProcessor(constraint("ab"), "mlx")
    with pytest.raises(UnsupportedFeatureError, match="tokenizer is not known"):
        Generator(object(), int)
    with pytest.raises(DecodingError, match="eos_ids"):
        ConstraintLogitsProcessor(constrain(tokenizer(), "ab", eos_ids=()))
    with pytest.raises(BufferShapeError, match="9 logits"):
        ConstraintLogitsProcessor(constraint("ab"))(torch.zeros(1, 1).long(), torch.zeros(1, 9))
