"""Decoding with forced ids draws what transformers draws without, in fewer passes."""

import pytest
import torch
import transformers
from hf_tiny import ON, counted, processor, tiny
from hypothesis import given
from hypothesis import strategies as st
from served import END, PAD
from support import examples

from bpe_automata.errors import UnsupportedFeatureError
from bpe_automata.integrations.transformers import ForcedDecoding
from bpe_automata.integrations.transformers._model import CACHE

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


def both(model, numbers, seed=0, **options):
    """(ids after the prompts, state of the generator after, passes) without forced ids and with,
    and the loop of the latter."""
    options = {**OPTIONS, "do_sample": True, **options}
    found, generator = [], torch.cuda if model.device.type == "cuda" else torch.random
    for forced in (False, True):
        inputs, masks = processor(numbers)
        inputs = {name: values.to(model.device) for name, values in inputs.items()}
        loop = ForcedDecoding(masks) if forced else None
        torch.manual_seed(seed)
        with counted(model) as passes:
            ids = model.generate(
                **inputs, logits_processor=[masks], custom_generate=loop, **options
            )
        written = ids[:, inputs["input_ids"].shape[1] :].tolist()
        found.append((written, generator.get_rng_state().tolist(), len(passes)))
    return *found, loop


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
    model = MODELS[kind] if device == "cpu" else tiny(kind).to(device)
    without, forced, loop = both(model, numbers, seed, max_new_tokens=limit, **options)
    assert forced[:2] == without[:2]
    assert loop.passes == forced[2]
    assert loop.saved == without[2] - forced[2] >= 0
    for count, row in zip(loop.forced, forced[0], strict=True):
        assert count <= (row.index(END) + 1 if END in row else len(row))


def test_ids_that_leave_no_choice_take_no_pass():
    """Each text begins with four forced ids, `name` or `de 1`."""
    (_, _, without), (_, _, with_forced), loop = both(MODELS["llama"], [0, 0])
    assert min(loop.forced) >= 4
    assert with_forced <= without - 4


def test_stopping_criteria_see_every_position_and_are_honoured():
    """The first row ends after three ids, the others after six."""
    seen = []

    class AfterThree(transformers.StoppingCriteria):
        def __call__(self, input_ids, scores, **_):
            seen.append(input_ids.tolist())
            return input_ids.shape[1] >= width + torch.tensor([3] + [6] * (len(input_ids) - 1))

    width = processor([0, 6, 17, 3])[0]["input_ids"].shape[1]
    (without, *_), (ids, *_), _ = both(
        MODELS["llama"], [0, 6, 17, 3], do_sample=False, stopping_criteria=[AfterThree()]
    )
    assert ids == without
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]
    assert len(ids[0]) == 6
    assert ids[0][3:] == [PAD] * 3


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
    given = {"custom_generate": ForcedDecoding(masks), **OPTIONS, **options}
    given["logits_processor"] = [masks, *given.pop("more", [])]
    with pytest.raises(UnsupportedFeatureError, match=feature):
        MODELS["llama"].generate(**inputs, **given)
