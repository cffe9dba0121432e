"""The processors of a constraint and of a token table answer the same calls in the same way; and
what becomes of them under continuous batching.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import CONSTRAINTS, END, PAD, REGEXES, STOP, TOKENIZER, N, constraint, processor, tiny  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from served import constraint as of_another_tokenizer  # noqa: E402
from support import examples  # noqa: E402

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
    TokenTableProcessor,
    generate,
    only_plain_batching,
    prefix_allowed_tokens_fn,
)

OURS = constraint("abc|true|12?")
TABLE = TokenTable.of(OURS.automaton(), [END], N)
PROMPTS = torch.tensor([TOKENIZER.encode("0,")] * 2)
ZEROS = torch.zeros(2, N)


def by_constraint(prompts=PROMPTS):
    return ConstraintLogitsProcessor(OURS, prompts, prefix=False, pad_id=PAD)


def by_table(prompts=PROMPTS):
    return TokenTableProcessor(TABLE, prompts, pad_id=PAD)


BOTH = pytest.mark.parametrize("made", [by_constraint, by_table])
ONE, TWO = (TOKENIZER.encode(digit)[0] for digit in "12")
ALLOWED = sorted(TOKENIZER.encode(text)[0] for text in ("abc", "true", "1", "12"))


def after(*rows, prompts=PROMPTS):
    return torch.cat([prompts, torch.tensor(rows, dtype=torch.long).reshape(len(prompts), -1)], 1)


def spoiled(ids, value, row=1):
    scores = ZEROS.clone()
    scores[row, ids] = value
    return scores


def finite(scores):
    return [row.isfinite().nonzero()[:, 0].tolist() for row in scores]


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
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_not_allowed_may_have_any_logit(made, value):
    scores = torch.full((2, N + 3), value)
    scores[:, ALLOWED] = 0.5
    assert finite(made()(PROMPTS, scores)) == [ALLOWED] * 2


@BOTH
def test_rows_that_have_ended_need_no_mass(made):
    """Nor do rows that read what is not allowed, nor beams."""
    nothing = torch.full((2, N), -torch.inf)
    assert finite(made()(after([END], [STOP]), nothing)) == [[], []]
    assert finite(made()(after([END], [N + 7]), ZEROS)) == [[END, PAD]] * 2
    assert finite(made()(PROMPTS[[0, 0, 1, 1]], nothing[[0] * 4])) == [[]] * 4


@BOTH
@pytest.mark.parametrize(
    "wrong",
    [PROMPTS[0], PROMPTS[:0], PROMPTS.float(), PROMPTS > 0, PROMPTS[None]],
    ids=["a vector", "none", "floating", "bool", "cube"],
)
def test_prompts_of_another_shape_or_kind(made, wrong):
    with pytest.raises(BufferShapeError, match="input_ids are"):
        made(wrong)


@examples(25)
@given(st.lists(st.lists(st.integers(-1, N + 3), min_size=2, max_size=2), max_size=4))
def test_the_same_rows_have_the_same_masks_forced_ids_or_errors(columns):
    rows = [[column[row] for column in columns] for row in range(2)]
    found = []
    for made in (by_constraint, by_table):
        try:
            masked, forced = made()(after(*rows), ZEROS), made().forced(after(*rows))
            found.append((finite(masked), forced.tolist()))
        except DecodingError as error:
            found.append((type(error), str(error)))
    assert found[0] == found[1]
    if isinstance(found[0][1], list):
        for mask, forced in zip(*found[0], strict=True):
            assert forced == (mask[0] if len(mask) == 1 else -1)


def test_forced_ids_where_rows_have_one_or_several():
    bare = TokenTableProcessor(TABLE, PROMPTS)
    a = TOKENIZER.encode("abc")
    assert len(a) == 1
    assert bare.forced(after(a, [ONE])).tolist() == [END, END]
    assert bare.forced(after([], [])).tolist() == [-1, -1]


# ---------------------------------------------------------------- constraints of several kinds


def test_each_prompt_has_the_ends_of_its_own_constraint():
    pair = [constraint("abc", ends=(END,)), constraint("abc", ends=(STOP, PAD))]
    masks = ConstraintLogitsProcessor(pair, PROMPTS, prefix=False)
    (abc,) = TOKENIZER.encode("abc")
    for tail in ([], [0]):
        rows = after([abc, END, *tail], [abc, STOP, *tail])
        assert finite(masks(rows, ZEROS)) == [[END], [STOP, PAD]]
    assert finite(masks(after([abc], [abc]), ZEROS)) == [[END], [STOP, PAD]]
    for order in (1, -1):
        pair = [constraint("abc"), constraint("abc", ends=())][::order]
        with pytest.raises(DecodingError, match=f"constraint {max(order, 0)} has no end"):
            ConstraintLogitsProcessor(pair, PROMPTS, prefix=False)
        ConstraintLogitsProcessor(pair, PROMPTS, prefix=False, pad_id=PAD)


def test_what_is_no_constraint_over_the_one_tokenizer_is_refused():
    other = of_another_tokenizer("abab")
    with pytest.raises(ArgumentError, match="constraint 1 is over"):
        ConstraintLogitsProcessor([OURS, other], PROMPTS, prefix=False)
    with pytest.raises(ArgumentError, match="constraint 0 is 'abc'"):
        ConstraintLogitsProcessor("abc", PROMPTS)
    with pytest.raises(ArgumentError, match="constraint 1 is 'abc'"):
        ConstraintLogitsProcessor([OURS, "abc"], PROMPTS, prefix=False)
    with pytest.raises(ArgumentError, match="is a Constraint: give a TokenTable"):
        TokenTableProcessor(OURS, PROMPTS)
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


# ---------------------------------------------------------------- continuous batching

OPTIONS = {"max_new_tokens": 4, "eos_token_id": END, "pad_token_id": PAD}


@pytest.fixture
def model():
    pytest.importorskip("transformers.generation.continuous_batching")
    return tiny()


@pytest.fixture
def batches(model, monkeypatch):
    """What reaches continuous batching itself, which needs more of a machine than a test has."""
    seen = []

    def generate_batch(inputs, generation_config=None, **rest):
        seen.append(rest)
        model.init_continuous_batching(generation_config)
        outputs = {}
        for number, ids in enumerate(inputs):
            outputs[f"req_{number}"] = type("Output", (), {"prompt_ids": ids})()
            outputs[f"req_{number}"].generated_tokens = [1, 1]
        return outputs

    monkeypatch.setattr(model, "generate_batch", generate_batch)
    return seen


def test_transformers_hands_no_processor_on_and_never_asks_it(model, batches):
    """The fact that `only_plain_batching` is for; if this fails, transformers has become better."""
    inputs, masks = processor([0])
    out = model.generate(
        **inputs, logits_processor=[masks], cache_implementation="paged", **OPTIONS
    )
    assert len(batches) == 1
    assert "logits_processor" not in batches[0]
    width = inputs["input_ids"].shape[1]
    with pytest.raises(UnsupportedFeatureError, match="without the constraint"):
        masks.result(TOKENIZER, 0, out[0, 0, width:].tolist())


def test_every_entry_is_refused_inside_the_guard(model):
    inputs, masks = processor([0])
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


def test_the_guard_comes_off_after_an_error_and_nests(model):
    with only_plain_batching(model):
        with pytest.raises(KeyError), only_plain_batching(model):
            raise KeyError
        with pytest.raises(UnsupportedFeatureError):
            model.init_continuous_batching()
    assert "init_continuous_batching" not in vars(model)


class Wrapping(torch.nn.Module):
    """As PEFT does: `generate`, and whatever else it lacks, is the inner model's."""

    def __init__(self, model, seen=True):
        super().__init__()
        if seen:
            self.inner = model
        else:
            vars(self)["inner"] = model

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(vars(self).get("inner") or self._modules["inner"], name)


class Lending(Wrapping):
    """Here `generate` is a method of its own."""

    def generate(self, *args, **options):
        return self.inner.generate(*args, **options)


@pytest.mark.parametrize("wrapped", [Wrapping, Lending, lambda one: Wrapping(one, seen=False)])
def test_the_guard_reaches_a_model_inside_another(wrapped, model, batches):
    inputs, masks = processor([0])
    outer = wrapped(model)
    with (
        only_plain_batching(outer),
        pytest.raises(UnsupportedFeatureError, match="continuous batching"),
    ):
        outer.generate(**inputs, logits_processor=[masks], cache_implementation="paged", **OPTIONS)
    assert "init_continuous_batching" not in {*vars(model), *vars(outer)}


@pytest.mark.parametrize("how", ["option", "configuration", "model"])
def test_generate_of_this_package_refuses_it(how, model):
    paged = {"cache_implementation": "paged"}
    if how == "configuration":
        paged = {"generation_config": transformers.GenerationConfig(**paged)}
    if how == "model":
        model.generation_config.cache_implementation = "paged"
        paged = {}
    with pytest.raises(UnsupportedFeatureError, match="continuous batching"):
        generate(model, TOKENIZER, "ab ", REGEXES[0], **paged)


def test_transformers_itself_refuses_the_function(model):
    inputs, _ = processor([0])
    allowed = prefix_allowed_tokens_fn(constraint(REGEXES[0]), **inputs)
    with pytest.raises(NotImplementedError, match="prefix_allowed_tokens_fn"):
        model.generate(
            **inputs, prefix_allowed_tokens_fn=allowed, cache_implementation="paged", **OPTIONS
        )


def test_a_manager_that_does_find_the_processor_is_refused():
    """`_validate_processors` reads an attribute of each, and would then drop or keep it."""
    lists = pytest.importorskip("transformers.generation.continuous_batching.cb_logits_processors")
    _, masks = processor([0])
    for drop in (True, False):
        with pytest.raises(UnsupportedFeatureError, match="continuous batching"):
            lists.ContinuousBatchingLogitsProcessorList(
                transformers.LogitsProcessorList([masks]), drop_unsupported_processors=drop
            )


def test_a_manager_that_calls_the_processor_is_refused():
    """It gives one id per sequence, without what came before: a vector."""
    _, masks = processor([0])
    with pytest.raises(UnsupportedFeatureError, match="one id per sequence"):
        masks(torch.tensor([3]), torch.zeros(1, 99))


@pytest.mark.long
@pytest.mark.parametrize("overridden", [False, True])
def test_the_real_thing(overridden):
    """Threads and a paged cache: without a word the constraint is dropped; a model that is made to
    hand the processor on is refused before anything runs."""
    configs = pytest.importorskip("transformers.generation.configuration_utils")
    model = tiny().float()
    inputs, masks = processor([0])
    own = model._get_logits_processor
    if overridden:
        model._get_logits_processor = lambda config: transformers.LogitsProcessorList(
            [*own(config), masks]
        )
    options = {
        "continuous_batching_config": configs.ContinuousBatchingConfig(
            num_blocks=16, max_batch_tokens=32
        ),
        "max_new_tokens": 4,
        "logits_processor": [masks],
    }
    model.generation_config.eos_token_id = END
    prompts = inputs["input_ids"].tolist()
    if overridden:
        with pytest.raises(UnsupportedFeatureError, match="continuous batching"):
            model.generate_batch(prompts, **options)
        return
    (output,) = model.generate_batch(prompts, **options).values()
    assert len(output.generated_tokens) == 4
    with pytest.raises(UnsupportedFeatureError, match="without the constraint"):
        masks.result(TOKENIZER, 0, output.generated_tokens)
