"""Beams find the likeliest texts, by the processor or the function, or bad logits are told."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import (  # noqa: E402
    END,
    PAD,
    PROMPTS,
    TOKENIZER,
    batch,
    constraint,
    processor,
    tiny,
)

from bpe_automata.errors import LogitsError  # noqa: E402
from bpe_automata.integrations.transformers import (  # noqa: E402
    ConstraintLogitsProcessor,
    padded,
    prefix_allowed_tokens_fn,
)

MODEL = tiny()
OPTIONS = {"max_new_tokens": 12, "eos_token_id": [END], "pad_token_id": PAD}


def prompt(number):
    return TOKENIZER.encode(PROMPTS[number % len(PROMPTS)])


BEAMS = [
    {"num_beams": 1},
    {"num_beams": 2},
    {"num_beams": 5},
    {"num_beams": 7, "early_stopping": True},
    {"num_beams": 3, "do_sample": True, "top_k": 6},
    {"num_beams": 6, "num_return_sequences": 2},
]


@pytest.mark.parametrize("options", BEAMS, ids=str)
def test_generation_by_the_function_equals_generation_by_the_processor(options):
    inputs, constraints = batch([0, 6, 12, 18])
    found = []
    for how in ("processor", "function"):
        if how == "processor":
            extra = {"logits_processor": [ConstraintLogitsProcessor(constraints, **inputs)]}
        else:
            fn = prefix_allowed_tokens_fn(constraints, **inputs)
            extra = {"prefix_allowed_tokens_fn": fn}
        torch.manual_seed(4)
        found.append(MODEL.generate(**inputs, **extra, **OPTIONS, **options).tolist())
    assert found[0] == found[1]


def log_probability(ids, completion):
    """Of the completion and its end, by the model alone."""
    row = torch.tensor([[*ids, *completion, END]])
    with torch.no_grad():
        logits = MODEL(row).logits[0].to(torch.float32)
    steps = logits.log_softmax(-1)[len(ids) - 1 : -1].gather(1, row[0, len(ids) :, None])
    return float(steps.sum())


FINITE = [r"[a-d]{2}", r"(true|tr|abc), ?", "ab|b[ac]|12", "d"]


@pytest.mark.parametrize("beams", [2, 12, 30])
def test_beams_enough_for_all_texts_find_the_likeliest(beams):
    """A reference: all texts and their probabilities. With 12 or 30 beams there are fewer
    continuations than beams at some steps; rows are reordered at all of them."""
    constraints = [constraint(regex) for regex in FINITE]
    prompts = [prompt(number) for number in range(len(FINITE))]
    inputs = padded(prompts, PAD)
    masks = ConstraintLogitsProcessor(constraints, **inputs)
    options = {"early_stopping": "never", "length_penalty": 0.0, "num_beams": beams}
    found = MODEL.generate(**inputs, logits_processor=[masks], **OPTIONS, **options)
    for row, (one, ids) in enumerate(zip(constraints, prompts, strict=True)):
        texts = list(one.automaton(ids).enumerate())
        result = masks.result(TOKENIZER, row, found[row, inputs["input_ids"].shape[1] :].tolist())
        assert result.complete
        assert result.ids in texts
        if beams >= len(texts):
            best = max(log_probability(ids, text) for text in texts)
            assert log_probability(ids, result.ids) == pytest.approx(best, abs=1e-4)


class Spoiled(transformers.LogitsProcessor):
    """Writes one logit, before the constraint is asked, from a number of generated ids on."""

    def __init__(self, row, ids, value, after):
        self.row, self.ids, self.value, self.after = row, ids, value, after

    def __call__(self, input_ids, scores):
        if input_ids.shape[1] >= self.after:
            scores = scores.clone()
            scores[self.row, self.ids] = self.value
        return scores


@pytest.mark.parametrize(
    ("row", "value", "after", "options"),
    [
        (0, math.nan, 0, {"num_beams": 2}),
        (0, math.inf, 0, {"num_beams": 2}),
        (1, -math.inf, 2, {"do_sample": True}),
    ],
)
def test_logits_that_nothing_can_be_drawn_from_are_an_error_that_names_the_row(
    row, value, after, options
):
    inputs, masks = processor([1, 0])
    spoiled = Spoiled(row, slice(None), value, inputs["input_ids"].shape[1] + after)
    with pytest.raises(LogitsError, match=f"row {row}"):
        MODEL.generate(**inputs, logits_processor=[spoiled, masks], **options, **OPTIONS)
