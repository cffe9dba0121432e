"""Outlines 1.3.3 with this package's masks, on a tiny random model of transformers."""

import re
from typing import Literal

import pytest

pytest.importorskip("outlines", reason="outlines is missing: pip install outlines")
pytest.importorskip("outlines.processors.base_logits_processor")

import outlines
import torch
from hf_tiny import hosted, tiny

from bpe_automata.integrations.outlines import Generator

PROMPTS = ["de a", "x", "de abc de"]
OPTIONS = {"max_new_tokens": 60, "do_sample": True, "top_k": 0}


@pytest.fixture(scope="module")
def model():
    names = {"bos_token": "<start>", "eos_token": "<end>", "pad_token": "<end>"}
    return outlines.from_transformers(tiny(seed=2), hosted(**names))


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
