"""Decoding with forced ids draws what transformers draws without, in fewer passes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import END, ON, PAD, processor, tiny  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from support import examples  # noqa: E402

from bpe_automata.errors import UnsupportedFeatureError  # noqa: E402
from bpe_automata.integrations.transformers import ForcedDecoding  # noqa: E402
from bpe_automata.integrations.transformers._model import CACHE  # noqa: E402

MODELS = {kind: tiny(kind) for kind in ("llama", "gpt2", "mistral")}
OPTIONS = {"max_new_tokens": 25, "eos_token_id": [END], "pad_token_id": PAD}
WARPERS = [
    {"do_sample": False},
    {},
    {"temperature": 0.5, "top_k": 4},
    {"top_p": 0.6, "top_k": 0},
    {"temperature": 1.7, "min_p": 0.1, "repetition_penalty": 1.3},
    {"typical_p": 0.7},
    {"epsilon_cutoff": 0.05, "renormalize_logits": True},
    {"eta_cutoff": 0.05},
    {"top_h": 0.4, "top_k": 0},
]
"""Rows beyond the first are sampled."""


class Counted:
    """How often a model's forward method was called, and with how many ids."""

    def __init__(self, model):
        self.widths = []
        self.handle = model.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, module, args, kwargs):
        self.widths.append(kwargs["input_ids"].shape[1])


def placed(kind, device):
    return MODELS[kind] if device == "cpu" else tiny(kind).to(device)


def both(model, numbers, seed=0, **options):
    """What `generate` gives without forced ids and with, the generator after, and the loop."""
    options = {**OPTIONS, "do_sample": True, **options}
    results, generator = [], torch.cuda if model.device.type == "cuda" else torch.random
    for forced in (False, True):
        inputs, masks = processor(numbers)
        inputs = {name: values.to(model.device) for name, values in inputs.items()}
        loop = ForcedDecoding(masks) if forced else None
        torch.manual_seed(seed)
        counted = Counted(model)
        output = model.generate(**inputs, logits_processor=[masks], custom_generate=loop, **options)
        counted.handle.remove()
        results.append((output, generator.get_rng_state(), counted.widths))
    (one, state, _), (other, state_after, widths) = results
    assert loop.passes == len(widths)
    assert torch.equal(state, state_after)
    return one, other, loop, [len(result[2]) for result in results]


@ON
@pytest.mark.parametrize("kind", MODELS)
@examples(12)
@given(
    numbers=st.lists(st.integers(0, 24), min_size=1, max_size=4),
    seed=st.integers(0, 2**40),
    options=st.sampled_from(WARPERS),
    limit=st.integers(1, 30),
)
def test_the_same_ids_and_the_same_generator_after_in_no_more_passes(
    device, kind, numbers, seed, options, limit
):
    one, other, loop, (without, with_forced) = both(
        placed(kind, device), numbers, seed, max_new_tokens=limit, **options
    )
    assert one.tolist() == other.tolist()
    assert loop.passes == with_forced
    assert loop.saved == without - with_forced >= 0
    width = other.shape[1] - without
    for count, row in zip(loop.forced, other[:, width:].tolist(), strict=True):
        assert count <= (row.index(END) + 1 if END in row else len(row))


def test_stopping_criteria_see_every_position_and_are_honoured():
    model, calls = MODELS["llama"], []

    class AfterThree(transformers.StoppingCriteria):
        """Ends the first row after three ids, the others after six."""

        def __call__(self, input_ids, scores, **_):
            seen.append(input_ids.tolist())
            length = input_ids.shape[1] - width
            limits = torch.tensor([3] + [6] * (len(input_ids) - 1))
            return length >= limits

    for forced in (False, True):
        inputs, masks = processor([0, 6, 17, 3])
        width, seen = inputs["input_ids"].shape[1], []
        out = model.generate(
            **inputs,
            logits_processor=[masks],
            custom_generate=ForcedDecoding(masks) if forced else None,
            stopping_criteria=[AfterThree()],
            **OPTIONS,
        )
        calls.append((seen, out.tolist()))
    assert calls[0] == calls[1]
    assert out.shape[1] == width + 6
    assert (out[0, width + 3 :] == PAD).all()


class TheSame(transformers.LogitsProcessor):
    """A logits processor about which nothing is known."""

    def __call__(self, input_ids, scores):
        return scores


@pytest.mark.parametrize(
    ("options", "feature"),
    [
        ({"num_beams": 2}, "beam_search"),
        ({"prompt_lookup_num_tokens": 2}, "assisted"),
        ({"min_new_tokens": 3}, "MinLength"),
        ({"bad_words_ids": [[4]]}, "NoBadWords"),
        ({"no_repeat_ngram_size": 2}, "NoRepeatNGram"),
        ({"output_scores": True, "return_dict_in_generate": True}, "output_scores"),
        ({"output_hidden_states": True, "return_dict_in_generate": True}, "output_hidden_states"),
        ({"more": [TheSame()]}, "TheSame"),
        ({"prefill_chunk_size": 2}, "prefill_chunk_size"),
        ({CACHE: transformers.DynamicCache()}, "a cache of one's own"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_what_may_not_be_equal_is_refused(options, feature):
    inputs, masks = processor([0])
    others = options.get("more", [])
    options = {name: value for name, value in options.items() if name != "more"}
    with pytest.raises(UnsupportedFeatureError, match=feature):
        MODELS["llama"].generate(
            **inputs,
            custom_generate=ForcedDecoding(masks),
            logits_processor=[masks, *others],
            **OPTIONS,
            **options,
        )
