"""The processors of a constraint and of a token table answer the same calls in the same way, beams
find the likeliest texts, and continuous batching is refused."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import (  # noqa: E402
    CONSTRAINTS,
    END,
    PAD,
    TOKENIZER,
    N,
    constraint,
    processor,
    tiny,
)
from hf_tiny import PROMPTS as TEXTS  # noqa: E402
from served import constraint as of_another_tokenizer  # noqa: E402

from bpe_automata._decoding.token_table import TokenTable  # noqa: E402
from bpe_automata.errors import (  # noqa: E402
    ArgumentError,
    BufferShapeError,
    DecodingError,
    LogitsError,
    PromptError,
    TokenOutOfRangeError,
    UnsupportedFeatureError,
)
from bpe_automata.integrations.transformers import (  # noqa: E402
    ConstraintLogitsProcessor,
    only_plain_batching,
    padded,
    prefix_allowed_tokens_fn,
)

OURS = constraint("abc|true|12?")
PATH = [(0, 3, 1), (1, 4, 2)]
TABLE = TokenTable.of(OURS.automaton(), [END], N)
PROMPTS = torch.tensor([TOKENIZER.encode("0,")] * 2)
ZEROS = torch.zeros(2, N)


def by_constraint(prompts=PROMPTS):
    return ConstraintLogitsProcessor(OURS, prompts, prefix=False, pad_id=PAD)


def by_table(prompts=PROMPTS):
    return ConstraintLogitsProcessor(TABLE, prompts, pad_id=PAD)


BOTH = pytest.mark.parametrize("made", [by_constraint, by_table])
ONE, TWO = (TOKENIZER.encode(digit)[0] for digit in "12")
ALLOWED = sorted(TOKENIZER.encode(text)[0] for text in ("abc", "true", "1", "12"))


def after(*rows, prompts=PROMPTS):
    return torch.cat([prompts, torch.tensor(rows, dtype=torch.long).reshape(len(prompts), -1)], 1)


def spoiled(ids, value, row=1):
    scores = ZEROS.clone()
    scores[row, ids] = value
    return scores


FAULTS = {
    "narrow": (PROMPTS, ZEROS[:, :5], LogitsError, "43 ids"),
    "a vector": (PROMPTS, ZEROS[0], LogitsError, "43 ids"),
    "integers": (PROMPTS, ZEROS.long(), LogitsError, "int64"),
    "fewer rows of logits": (PROMPTS, ZEROS[:1], BufferShapeError, "1 rows of logits for 2"),
    "more rows of logits": (PROMPTS, ZEROS[[0] * 4], BufferShapeError, "4 rows of logits for 2"),
    "rows of half a prompt": (PROMPTS[[0, 0, 1]], ZEROS[[0] * 3], BufferShapeError, "3 rows"),
    "no rows": (PROMPTS[:0], ZEROS[:0], BufferShapeError, "0 rows"),
    "fewer ids": (PROMPTS[:, :1], ZEROS, BufferShapeError, "rows of 1 ids"),
    "other prompts": (PROMPTS + 1, ZEROS, PromptError, "not the prompts"),
    "a negative id": (after([3], [-3]), ZEROS, TokenOutOfRangeError, "-3"),
    "one after the end": (after([END], [END]) - 43, ZEROS, TokenOutOfRangeError, "-3"),
    "NaN": (PROMPTS, spoiled(ALLOWED[0], torch.nan), LogitsError, "row 1.*is nan"),
    "inf": (PROMPTS, spoiled(ALLOWED[1], torch.inf), LogitsError, "row 1.*is inf"),
    "no mass": (PROMPTS, spoiled(ALLOWED, -torch.inf), LogitsError, "row 1: every id"),
    "no mass at all": (PROMPTS, spoiled(slice(0, N), -torch.inf), LogitsError, "row 1: every id"),
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


@BOTH
@pytest.mark.parametrize(
    "wrong",
    [PROMPTS[0], PROMPTS[:0], PROMPTS.float(), PROMPTS > 0, PROMPTS[None]],
    ids=["a vector", "none", "floating", "bool", "cube"],
)
def test_prompts_of_another_shape_or_kind(made, wrong):
    with pytest.raises(BufferShapeError, match="input_ids are"):
        made(wrong)


def test_a_row_of_a_table_that_names_no_end_has_ended_where_nothing_can_be_read():
    made = ConstraintLogitsProcessor(
        TokenTable.from_transitions(PATH, 0, n_ids=N), PROMPTS, pad_id=PAD
    )
    for read in ([], [3], [3, 4], [3, 4, PAD]):
        masked = made(after(read, read), ZEROS)
        assert (
            torch.isfinite(masked).nonzero()[:, 1].tolist() == [([3, 4, PAD, PAD])[len(read)]] * 2
        )


# ---------------------------------------------------------------- constraints of several kinds


def test_what_is_no_constraint_over_the_one_tokenizer_is_refused():
    other = of_another_tokenizer("abab")
    with pytest.raises(ArgumentError, match="constraint 1 is over"):
        ConstraintLogitsProcessor([OURS, other], PROMPTS, prefix=False)
    with pytest.raises(ArgumentError, match="constraint 0 is 'abc'"):
        ConstraintLogitsProcessor("abc", PROMPTS)
    with pytest.raises(ArgumentError, match="constraint 1 is 'abc'"):
        ConstraintLogitsProcessor([OURS, "abc"], PROMPTS, prefix=False)
    with pytest.raises(ArgumentError, match="constraint 1 is over 5 ids"):
        ConstraintLogitsProcessor([OURS, TokenTable.from_transitions(PATH, 0, n_ids=5)], PROMPTS)
    with pytest.raises(DecodingError, match="give pad_id"):
        ConstraintLogitsProcessor(TokenTable.from_transitions(PATH, 0, n_ids=N), PROMPTS)
    with pytest.raises(TokenOutOfRangeError, match="pad_id 43"):
        ConstraintLogitsProcessor(OURS, PROMPTS, prefix=False, pad_id=N)
    with pytest.raises(BufferShapeError, match="attention_mask"):
        ConstraintLogitsProcessor(OURS, PROMPTS, torch.ones(1, 2))
    with pytest.raises(TokenOutOfRangeError, match="prompt 1: "):
        ConstraintLogitsProcessor([OURS, CONSTRAINTS[0]], torch.tensor([[0], [N + 7]]))


def test_padding_on_the_right_is_refused():
    """A model would go on with the padding, and the constraint with the prompt."""
    prompts = torch.tensor([[0, 1, 2], [1, PAD, PAD]])
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    table = {"prefix": False, "pad_id": PAD}
    for hosted in (ConstraintLogitsProcessor, prefix_allowed_tokens_fn):
        with pytest.raises(PromptError, match=r"prompt 1 has padding .*padding_side"):
            hosted(OURS, prompts, mask)
        with pytest.raises(PromptError, match=r"prompt 1 ends with pad_id .*attention_mask"):
            hosted(OURS, prompts, **table)
        hosted(OURS, prompts.flip(1), mask.flip(1), prefix=False)
        hosted(OURS, prompts, torch.ones_like(mask), **table)  # it says that these are ids
        hosted(OURS, prompts[1:], **table)  # nothing that it might be as long as


# ---------------------------------------------------------------- generation

MODEL = tiny()
OPTIONS = {"max_new_tokens": 12, "eos_token_id": [END], "pad_token_id": PAD}


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
    prompts = [TOKENIZER.encode(text) for text in TEXTS[: len(FINITE)]]
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


# ---------------------------------------------------------------- continuous batching


def test_every_entry_is_refused_inside_the_guard():
    pytest.importorskip("transformers.generation.continuous_batching")
    model, (inputs, masks) = tiny(), processor([0])
    with only_plain_batching(model):
        with pytest.raises(UnsupportedFeatureError, match="continuous batching"):
            model.generate(
                **inputs, logits_processor=[masks], cache_implementation="paged", **OPTIONS
            )
        with pytest.raises(UnsupportedFeatureError, match="continuous batching"):
            model.generate_batch(inputs["input_ids"].tolist(), logits_processor=[masks])
        with (
            pytest.raises(UnsupportedFeatureError, match="continuous batching"),
            model.continuous_batching_context_manager(),
        ):
            pass
        model.generate(**inputs, logits_processor=[masks], **OPTIONS)
    assert "init_continuous_batching" not in vars(model)
