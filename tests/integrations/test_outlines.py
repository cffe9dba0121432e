"""Outlines 1.3.3 with this package's masks, on a tiny random model of transformers."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Literal

import numpy as np
import pytest
from served import END, START, V, constraint, mask_after, tokenizer

from bpe_automata import constrain
from bpe_automata.errors import BufferShapeError, DecodingError, UnsupportedFeatureError

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


@contextmanager
def watched(generator, monkeypatch):
    """What the processor sees while the generator runs: (ids [rows, n], allowed [rows, V]) of each
    step; `width` is that of the prompts."""
    seen = []
    original = generator.logits_processor.process_logits

    def process(input_ids, logits):
        found = original(input_ids, logits)
        seen.append((input_ids.tolist(), torch.isfinite(found).numpy()))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(generator.logits_processor, "process_logits", process)
        yield seen


def check_ids(seen, prompts, regex, method="canonical"):
    """All ids but the last are what the processor saw; of the last, its mask. Every mask is the
    definition's, every id was in the mask before, and a text that is complete is the tokenizer's
    own tokenization. Returns the ids of the last step, without the prompts."""
    width = len(seen[0][0][0])
    for rows, masks in seen:
        for prompt, ids, mask in zip(prompts, rows, masks, strict=True):
            written = ids[width:]
            written = written[: written.index(END) + 1] if END in written else written
            encoded = tokenizer().encode(prompt)
            assert ids[:width][-len(encoded) :] == encoded
            assert np.array_equal(mask, mask_after(regex, encoded, written, method))
            if method == "canonical" and mask[END] and END not in written:
                text = prompt + tokenizer().decode(written)
                assert tokenizer().encode(text) == [*encoded, *written]
    return [ids[width:] for ids in seen[-1][0]]


@pytest.mark.parametrize(
    ("output_type", "regex"),
    [
        (Literal["yes", "no", "node"], "yes|no|node"),
        (outlines.types.Regex("[a-c]{2,5}"), "[a-c]{2,5}"),
        (outlines.types.regex("(abc){1,3}"), "(abc){1,3}"),
        (int, r"-?(0|[1-9][0-9]*)"),
    ],
)
def test_texts_match_and_their_ids_are_canonical(output_type, regex, model, monkeypatch):
    generator = Generator(model, output_type)
    torch.manual_seed(4)
    for prompt in PROMPTS:
        for _ in range(3):
            with watched(generator, monkeypatch) as seen:
                text = generator(prompt, **OPTIONS)
            (ids,) = check_ids(seen, [prompt], regex)
            if len(seen) < OPTIONS["max_new_tokens"]:  # the last id was the end: it is not seen
                assert re.fullmatch(regex, text)
                assert tokenizer().decode(ids) == text
            else:
                assert text.startswith(tokenizer().decode(ids))


def test_the_rows_of_a_batch_are_masked_after_their_own_prompts(model, monkeypatch):
    """Prompts of different lengths are padded."""
    generator = Generator(model, outlines.types.Regex("[a-c]{2,5}|yes|no"))
    with watched(generator, monkeypatch) as seen:
        texts = generator.batch(PROMPTS, max_new_tokens=20, do_sample=False)
    assert len(texts) == len(check_ids(seen, PROMPTS, "[a-c]{2,5}|yes|no")) == 3
    for text in texts:
        assert re.fullmatch("[a-c]{2,5}|yes|no", text)


def test_beams_follow_their_own_ids(model, monkeypatch):
    """Beams at -inf hold ids that were not allowed: those may only end."""
    regex = "[a-c]{2,5}|yes|no"
    generator = Generator(model, outlines.types.Regex(regex))
    with watched(generator, monkeypatch) as seen:
        found = generator("de a", max_new_tokens=20, num_beams=4, num_return_sequences=3)
    width = len(seen[0][0][0])
    followed = 0
    for rows, masks in seen:
        for ids, mask in zip(rows, masks, strict=True):
            try:
                expected = mask_after(regex, ids[:width], ids[width:])
            except DecodingError:
                expected = np.arange(V) == END
            else:
                followed += len(ids) > width
            assert np.array_equal(mask, expected)
    assert followed > 4
    for text in found:
        assert re.fullmatch(regex, text)


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
