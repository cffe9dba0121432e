"""The processors of a constraint and of a token table answer the same calls in the same way, beams
find the likeliest texts, and continuous batching is refused."""

import pytest
import torch
from hf_tiny import PROMPTS as TEXTS
from hf_tiny import processor, tiny
from served import END, PAD, constraint, tokenizer

from bpe_automata import constrain
from bpe_automata.decoding.token_table import TokenTable
from bpe_automata.errors import (
    ArgumentError,
    BufferShapeError,
    DecodingError,
    LogitsError,
    PromptError,
    TokenOutOfRangeError,
    UnsupportedFeatureError,
)
from bpe_automata.integrations.transformers import (
    ConstraintLogitsProcessor,
    only_plain_batching,
    padded,
    prefix_allowed_tokens_fn,
)
from bpe_automata.testing import small_tokenizer

N = tokenizer().n_ids
OURS = constraint("abc|yes|12?")
PATH = [(0, 3, 1), (1, 4, 2)]
WITH_END = TokenTable.of(OURS.automaton(), [END], N)
NO_END = TokenTable.from_transitions(PATH, 0, n_ids=N)
PROMPTS = torch.tensor([tokenizer().encode("0 ")] * 2)
ZEROS = torch.zeros(2, N)


def by_constraint(prompts=PROMPTS):
    return ConstraintLogitsProcessor(OURS, prompts, prefix=False, pad_id=PAD)


def by_table(prompts=PROMPTS):
    return ConstraintLogitsProcessor(WITH_END, prompts, pad_id=PAD)


BOTH = pytest.mark.parametrize("made", [by_constraint, by_table])
ONE = tokenizer().encode("1")[0]
ALLOWED = sorted(tokenizer().encode(text)[0] for text in ("abc", "yes", "1"))


def after(*rows):
    return torch.cat([PROMPTS, torch.tensor(rows, dtype=torch.long).reshape(2, -1)], 1)


def spoiled(ids, value):
    """Logits that are wrong in the second row."""
    scores = ZEROS.clone()
    scores[1, ids] = value
    return scores


FAULTS = {
    "narrow": (PROMPTS, ZEROS[:, :5], LogitsError, f"{N} ids"),
    "integers": (PROMPTS, ZEROS.long(), LogitsError, "int64"),
    "fewer rows of logits": (PROMPTS, ZEROS[:1], BufferShapeError, "1 rows of logits for 2"),
    "rows of half a prompt": (PROMPTS[[0, 0, 1]], ZEROS[[0] * 3], BufferShapeError, "3 rows"),
    "fewer ids": (PROMPTS[:, :1], ZEROS, BufferShapeError, "rows of 1 ids.*encoder-decoder"),
    "other prompts": (PROMPTS + 1, ZEROS, PromptError, "not the prompts"),
    "a negative id": (after([3], [-3]), ZEROS, TokenOutOfRangeError, "-3"),
    "one after the end": (after([END, 3], [END, -3]), ZEROS, TokenOutOfRangeError, "-3"),
    "NaN": (PROMPTS, spoiled(ALLOWED[0], torch.nan), LogitsError, "row 1.*is nan"),
    "inf": (PROMPTS, spoiled(ALLOWED[1], torch.inf), LogitsError, "row 1.*is inf"),
    "no mass": (PROMPTS, spoiled(ALLOWED, -torch.inf), LogitsError, "row 1: every id"),
    "NaN at the end": (after([ONE], [END]), spoiled(END, torch.nan), LogitsError, "row 1.*is nan"),
}


@BOTH
@pytest.mark.parametrize("fault", FAULTS)
def test_the_same_faults_have_the_same_errors(made, fault):
    ids, scores, error, match = FAULTS[fault]
    with pytest.raises(error, match=match) as caught:
        made()(ids, scores)
    assert type(caught.value) is error


@BOTH
def test_a_row_that_has_ended_may_have_no_mass(made):
    masked = made()(after([ONE], [END]), spoiled(slice(0, N), -torch.inf))
    assert torch.isfinite(masked).any(1).tolist() == [True, False]


def test_a_row_of_a_table_that_names_no_end_has_ended_where_nothing_can_be_read():
    made = ConstraintLogitsProcessor(NO_END, PROMPTS, pad_id=PAD)
    for read, left in (([], 3), ([3], 4), ([3, 4], PAD), ([3, 4, PAD], PAD)):
        masked = made(after(read, read), ZEROS)
        assert torch.isfinite(masked).nonzero()[:, 1].tolist() == [left] * 2


OTHER = constrain(small_tokenizer("ab", added=["<end>"]), "a", eos_ids=(2,))
FIVE_IDS = TokenTable.from_transitions(PATH, 0, n_ids=5)
OUT_OF_RANGE = torch.tensor([[0], [N + 7]])


@pytest.mark.parametrize(
    ("constraints", "options", "error", "match"),
    [
        ([OURS, OTHER], {}, ArgumentError, "constraint 1 is over"),
        ("abc", {}, ArgumentError, "constraint 0 is 'abc'"),
        ([OURS, "abc"], {}, ArgumentError, "constraint 1 is 'abc'"),
        ([OURS, FIVE_IDS], {}, ArgumentError, "constraint 1 is over 5 ids"),
        (NO_END, {}, DecodingError, "give pad_id"),
        (OURS, {"pad_id": N}, TokenOutOfRangeError, f"pad_id {N}"),
        (OURS, {"attention_mask": torch.ones(1, 2)}, BufferShapeError, "attention_mask"),
        (WITH_END, {"input_ids": PROMPTS[0]}, BufferShapeError, "input_ids are"),
        (OURS, {"input_ids": PROMPTS.float()}, BufferShapeError, "input_ids are"),
        (OURS, {"input_ids": OUT_OF_RANGE, "prefix": True}, TokenOutOfRangeError, "prompt 1: "),
    ],
)
def test_what_does_not_fit_the_prompts_and_one_tokenizer_is_refused(
    constraints, options, error, match
):
    with pytest.raises(error, match=match):
        ConstraintLogitsProcessor(constraints, **{"input_ids": PROMPTS, "prefix": False, **options})


def test_padding_on_the_right_is_refused():
    """A model would go on with the padding, and the constraint with the prompt."""
    prompts = torch.tensor([[0, 1, 2], [1, PAD, PAD]])
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    alone = {"prefix": False, "pad_id": PAD}
    for hosted in (ConstraintLogitsProcessor, prefix_allowed_tokens_fn):
        with pytest.raises(PromptError, match=r"prompt 1 has padding .*padding_side"):
            hosted(OURS, prompts, mask)
        with pytest.raises(PromptError, match=r"prompt 1 ends with pad_id .*attention_mask"):
            hosted(OURS, prompts, **alone)
        hosted(OURS, prompts.flip(1), mask.flip(1), prefix=False)
        hosted(OURS, prompts, torch.ones_like(mask), **alone)  # it says that these are ids
        hosted(OURS, prompts[1:], **alone)  # nothing that it might be as long as


# ---------------------------------------------------------------- generation

MODEL = tiny()
OPTIONS = {"max_new_tokens": 12, "eos_token_id": [END], "pad_token_id": PAD}


def log_probability(ids, completion):
    """Of the completion and its end, by the model alone."""
    row = torch.tensor([[*ids, *completion, END]])
    with torch.no_grad():
        logs = MODEL(row).logits[0].to(torch.float32).log_softmax(-1)
    return float(logs[range(len(ids) - 1, row.shape[1] - 1), row[0, len(ids) :]].sum())


FINITE = [constraint(regex) for regex in ("[a-d]{2}", "(yes|ye|abc) ?", "ab|b[ac]|12", "d")]


@pytest.mark.parametrize("beams", [2, 12, 30])
def test_beams_enough_for_all_texts_find_the_likeliest(beams):
    """A reference: all texts and their probabilities. With 12 or 30 beams there are fewer
    continuations than beams at some steps; rows are reordered at all of them."""
    prompts = [tokenizer().encode(text) for text in TEXTS[: len(FINITE)]]
    inputs = padded(prompts, PAD)
    masks = ConstraintLogitsProcessor(FINITE, **inputs)
    options = {"early_stopping": "never", "length_penalty": 0.0, "num_beams": beams}
    found = MODEL.generate(**inputs, logits_processor=[masks], **OPTIONS, **options)
    for row, (one, ids) in enumerate(zip(FINITE, prompts, strict=True)):
        texts = list(one.automaton(ids).enumerate())
        result = masks.result(tokenizer(), row, found[row, inputs["input_ids"].shape[1] :].tolist())
        assert result.complete
        assert result.ids in texts
        if beams >= len(texts):
            best = max(log_probability(ids, text) for text in texts)
            assert log_probability(ids, result.ids) == pytest.approx(best, abs=1e-4)


def test_every_entry_of_continuous_batching_is_refused_inside_the_guard():
    pytest.importorskip("transformers.generation.continuous_batching")
    model, (inputs, masks) = tiny(), processor([0])
    given = {"logits_processor": [masks], **OPTIONS}
    for entry in (
        lambda: model.generate(**inputs, cache_implementation="paged", **given),
        lambda: model.generate_batch(inputs["input_ids"].tolist(), logits_processor=[masks]),
        lambda: model.continuous_batching_context_manager().__enter__(),
    ):
        with (
            only_plain_batching(model),
            pytest.raises(UnsupportedFeatureError, match="continuous batching"),
        ):
            entry()
    with only_plain_batching(model):
        model.generate(**inputs, **given)
    assert "init_continuous_batching" not in vars(model)
