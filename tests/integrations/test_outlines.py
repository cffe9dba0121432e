"""Outlines 1.3.3 with this package's masks, on a tiny random model of transformers."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from served import END, START, V, constraint, tokenizer
from support import tiny_llama

from bpe_automata import constrain
from bpe_automata.errors import BufferShapeError, DecodingError, UnsupportedFeatureError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
outlines = pytest.importorskip("outlines", reason="outlines is missing: pip install outlines")
pytest.importorskip("outlines.processors.base_logits_processor")

from bpe_automata.integrations.outlines import ConstraintLogitsProcessor, Generator  # noqa: E402

PROMPTS = ["de a", "x", "de abc de"]
OPTIONS = {"max_new_tokens": 60, "do_sample": True, "top_k": 0}


@pytest.fixture(scope="module")
def hosted():
    import tokenizers

    backend = tokenizers.Tokenizer.from_str(tokenizer().to_json())
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<start>", eos_token="<end>", pad_token="<end>"
    )


@pytest.fixture(scope="module")
def model(hosted):
    ends = {"bos_token_id": START, "eos_token_id": END, "pad_token_id": END}
    model = tiny_llama(2, V, layers=2, initializer_range=0.4, **ends)
    return outlines.from_transformers(model, hosted)


@pytest.mark.parametrize(
    ("output_type", "regex"),
    [
        (Literal["yes", "no", "node"], "yes|no|node"),
        (outlines.types.Regex("[a-c]{2,5}"), "[a-c]{2,5}"),
        (outlines.types.regex("(abc){1,3}"), "(abc){1,3}"),
        (int, r"-?(0|[1-9][0-9]*)"),
        (outlines.types.CFG('start: "yes" | "no"'), "yes|no"),
        ({"enum": [7, 71]}, "71?"),
    ],
)
def test_texts_match_after_their_own_prompts(output_type, regex, model):
    """One by one, in a batch, where prompts of different lengths are padded, and as beams, where
    those at -inf hold ids that were not allowed."""
    generator = Generator(model, output_type)
    torch.manual_seed(4)
    found = [generator(prompt, **OPTIONS) for prompt in PROMPTS]
    found += generator.batch(PROMPTS, **OPTIONS)
    beams = generator("de a", max_new_tokens=60, num_beams=4, num_return_sequences=3)
    for text in [*found, *beams]:
        assert re.fullmatch(regex, text)


def test_what_is_not_supported_is_refused(model):
    with pytest.raises(UnsupportedFeatureError, match="mlx"):
        ConstraintLogitsProcessor(constraint("ab"), "mlx")
    with pytest.raises(UnsupportedFeatureError, match="tokenizer is not known"):
        Generator(object(), int)
    with pytest.raises(DecodingError, match="eos_ids"):
        ConstraintLogitsProcessor(constrain(tokenizer(), "ab", eos_ids=()))
    with pytest.raises(BufferShapeError, match="9 logits"):
        ConstraintLogitsProcessor(constraint("ab"))(torch.zeros(1, 1).long(), torch.zeros(1, 9))
