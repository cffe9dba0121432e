"""Batches are rows: permutations, beams, the function of allowed ids, bad logits and bad ids."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import (  # noqa: E402
    CONSTRAINTS,
    END,
    PAD,
    PADDING,
    PROMPTS,
    TOKENIZER,
    N,
    batch,
    constraint,
    processor,
    tiny,
)
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from support import examples  # noqa: E402

from bpe_automata.errors import LogitsError  # noqa: E402
from bpe_automata.integrations.transformers import (  # noqa: E402
    ConstraintLogitsProcessor,
    padded,
    prefix_allowed_tokens_fn,
)

MODEL = tiny()
OPTIONS = {"max_new_tokens": 12, "eos_token_id": [END], "pad_token_id": PAD}


@st.composite
def walked(draw):
    """Numbers of prompts, and one completion of each, all of one length: allowed ids mostly, then
    whatever comes after the end."""
    numbers = draw(st.lists(st.integers(0, 24), min_size=1, max_size=5))
    length = draw(st.integers(0, 7))
    rows = []
    for number in numbers:
        matcher = CONSTRAINTS[number % len(CONSTRAINTS)].matcher(prompt(number))
        ids: list[int] = []
        while len(ids) < length:
            allowed = matcher.allowed_ids().tolist()
            if not allowed or draw(st.integers(0, 15)) == 0:
                ids += draw(
                    st.lists(
                        st.integers(0, N + PADDING - 1),
                        min_size=length - len(ids),
                        max_size=length - len(ids),
                    )
                )
                break
            ids.append(draw(st.sampled_from(allowed)))
            matcher.advance(ids[-1])
        rows.append(ids)
    return numbers, rows


def prompt(number):
    return TOKENIZER.encode(PROMPTS[number % len(PROMPTS)])


def whole(inputs, rows):
    return torch.cat([inputs["input_ids"], torch.tensor(rows, dtype=torch.long)], 1)


def expected(number, ids):
    """The mask by a matcher: bool [N]. Ends alone after an end or an id that is not allowed."""
    matcher = CONSTRAINTS[number % len(CONSTRAINTS)].matcher(prompt(number))
    ends = np.zeros(N, dtype=bool)
    ends[END] = True
    for token in ids:
        if token >= N or token == END or not matcher.mask()[token]:
            return ends
        matcher.advance(token)
    return matcher.mask()


@examples(40)
@given(case=walked(), data=st.data())
def test_a_batch_equals_its_rows_in_any_order(case, data):
    numbers, rows = case
    inputs, masks = processor(numbers)
    scores = torch.from_numpy(np.random.default_rng(len(rows)).normal(size=(len(rows), N + 3)))
    found = masks(whole(inputs, rows), scores)
    for row, (number, ids) in enumerate(zip(numbers, rows, strict=True)):
        allowed = np.pad(expected(number, ids), (0, 3))
        assert np.array_equal(torch.isfinite(found[row]).numpy(), allowed)
        assert torch.equal(found[row][allowed], scores[row][allowed])
    order = data.draw(st.permutations(range(len(numbers))))
    moved, other = processor([numbers[row] for row in order])
    again = other(whole(moved, [rows[row] for row in order]), scores[list(order)])
    assert torch.equal(again, found[list(order)])


@examples(40)
@given(case=walked())
def test_the_memo_never_shows(case):
    """Step by step, in jumps, or in one call: the ids decide."""
    numbers, rows = case
    inputs, stepping = processor(numbers)
    length = len(rows[0])
    zeros = torch.zeros(len(rows), N)
    for upto in [*range(length + 1), length, max(0, length - 2), length]:
        ids = whole(inputs, [row[:upto] for row in rows])
        _, once = processor(numbers)
        assert torch.equal(stepping(ids, zeros), once(ids, zeros))


@examples(30)
@given(case=walked())
def test_the_function_allows_what_the_processor_allows(case):
    numbers, rows = case
    inputs, masks = processor(numbers)
    _, constraints = batch(numbers)
    allowed = prefix_allowed_tokens_fn(constraints, **inputs)
    ids = whole(inputs, rows)
    found = torch.isfinite(masks(ids, torch.zeros(len(rows), N)))
    for row, mask in enumerate(found):
        assert allowed(row, ids[row]) == np.flatnonzero(mask).tolist()


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
