"""What becomes of the constraint under continuous batching, in the installed transformers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import END, PAD, REGEXES, TOKENIZER, constraint, processor, tiny  # noqa: E402

from bpe_automata.errors import UnsupportedFeatureError  # noqa: E402
from bpe_automata.integrations.transformers import (  # noqa: E402
    generate,
    only_plain_batching,
    prefix_allowed_tokens_fn,
)

OPTIONS = {"max_new_tokens": 4, "eos_token_id": END, "pad_token_id": PAD}
pytest.importorskip("transformers.generation.continuous_batching")


@pytest.fixture
def model():
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
