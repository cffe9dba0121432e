"""Decoding with forced ids draws what transformers draws without, in fewer passes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import CONSTRAINTS, END, ON, PAD, STOP, N, batch, constraint, processor, tiny  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from support import examples  # noqa: E402

from bpe_automata._decoding.token_table import TokenTable  # noqa: E402
from bpe_automata.errors import ArgumentError, UnsupportedFeatureError  # noqa: E402
from bpe_automata.integrations.transformers import (  # noqa: E402
    ConstraintLogitsProcessor,
    ForcedDecoding,
    TokenTableProcessor,
    padded,
)
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


@ON
@pytest.mark.parametrize("options", WARPERS)
def test_each_way_of_sampling(device, options):
    for seed in range(4):
        one, other, loop, _ = both(placed("llama", device), [0, 6, 17], seed, **options)
        assert one.tolist() == other.tolist()
        assert loop.saved > 0


def test_what_is_forced_from_the_prompt_on_goes_with_it_in_one_pass():
    """`{"n` ... : the first choice comes after eight ids or so, one pass later than none."""
    model = MODELS["llama"]
    inputs, masks = processor([0])
    width = inputs["input_ids"].shape[1]
    counted = Counted(model)
    loop = ForcedDecoding(masks)
    out = model.generate(**inputs, custom_generate=loop, logits_processor=[masks], **OPTIONS)
    counted.handle.remove()
    run = counted.widths[0] - width
    assert run > 3
    assert sum(counted.widths) <= out.shape[1]
    assert loop.forced[0] + loop.passes == out.shape[1] - width


@pytest.mark.parametrize("sampling", [False, True])
def test_a_text_without_any_choice_costs_at_most_the_pass_that_tells_the_width(sampling):
    model = MODELS["llama"]
    only = constraint(r"\{true: abc\}")
    inputs, _ = processor([0, 1])
    masks = ConstraintLogitsProcessor(only, **inputs)
    loop = ForcedDecoding(masks)
    outputs = []
    for custom in (None, loop):
        torch.manual_seed(3)
        found = model.generate(
            **inputs,
            custom_generate=custom,
            logits_processor=[masks],
            **OPTIONS,
            do_sample=sampling,
        )
        outputs.append((found.tolist(), torch.rand(1).item()))
    assert outputs[0] == outputs[1]
    assert loop.passes == int(sampling)
    assert loop.forced == (7, 7)  # the end of sequence is one of them


def test_two_ends_of_sequence_are_a_choice():
    model = MODELS["llama"]
    inputs, _ = processor([0])
    masks = ConstraintLogitsProcessor(constraint("abc", ends=(END, STOP)), **inputs)
    loop = ForcedDecoding(masks)
    model.generate(
        **inputs,
        custom_generate=loop,
        logits_processor=[masks],
        eos_token_id=[END, STOP],
        pad_token_id=PAD,
        max_new_tokens=9,
    )
    assert (loop.passes, loop.forced) == (1, (1,))


class Recorder:
    """A streamer, and a stopping criterion beside."""

    def __init__(self):
        self.events = []

    def put(self, ids):
        self.events.append(ids.tolist())

    def end(self):
        self.events.append("end")


def test_the_streamer_sees_the_same():
    model = MODELS["gpt2"]
    events = []
    for forced in (False, True):
        inputs, masks = processor([0])
        recorder = Recorder()
        loop = ForcedDecoding(masks, streamer=recorder) if forced else None
        plain = {} if forced else {"streamer": recorder}
        model.generate(**inputs, logits_processor=[masks], custom_generate=loop, **plain, **OPTIONS)
        events.append(recorder.events)
    assert events[0] == events[1]
    assert events[0][-1] == "end"


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


@pytest.mark.parametrize(
    "options",
    [
        {"use_cache": False},
        {"cache_implementation": "static", "disable_compile": True},
        {"prefill_chunk_size": 1},
        {"prefill_chunk_size": 3},
        {"num_return_sequences": 3},
        {"eos_token_id": None},
        {"eos_token_id": STOP},
        {"max_new_tokens": 1},
    ],
    ids=str,
)
def test_each_way_of_generating(options):
    for seed in range(2):
        one, other, loop, counts = both(MODELS["llama"], [0, 6, 17, 3], seed, **options)
        assert one.tolist() == other.tolist()
        assert loop.saved == counts[0] - counts[1]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("theirs", [False, True])
def test_a_cache_that_is_given_back_holds_the_same(kind, theirs):
    model, caches = MODELS[kind], []
    for forced in (False, True):
        inputs, masks = processor([0, 6, 17, 3])
        cache = transformers.DynamicCache(config=model.config)
        found = model.generate(
            **inputs,
            logits_processor=[masks],
            custom_generate=ForcedDecoding(masks) if forced else None,
            return_dict_in_generate=not theirs,
            **({CACHE: cache} if theirs else {}),
            **{**OPTIONS, "max_new_tokens": 4},
        )
        caches.append(cache if theirs else found[CACHE])
    one, other = caches
    assert one.get_seq_length() == other.get_seq_length() > 0
    for left, right in zip(one.layers, other.layers, strict=True):
        torch.testing.assert_close(left.keys, right.keys, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(left.values, right.values, rtol=1e-9, atol=1e-9)


def test_a_cache_that_holds_a_beginning_of_the_prompt():
    model, outputs = MODELS["llama"], []
    for forced in (False, True):
        inputs = padded([[3, 9, 5, 25]] * 2, PAD)
        masks = ConstraintLogitsProcessor(CONSTRAINTS[0], **inputs, prefix=False)
        cache = transformers.DynamicCache(config=model.config)
        with torch.no_grad():
            begun = {name: tensor[:, :2] for name, tensor in inputs.items()}
            model(**begun, **{CACHE: cache})
        loop = ForcedDecoding(masks) if forced else None
        options = {"logits_processor": [masks], CACHE: cache, "do_sample": True}
        torch.manual_seed(1)
        counted = Counted(model)
        found = model.generate(**inputs, custom_generate=loop, **options, **OPTIONS)
        counted.handle.remove()
        outputs.append(found.tolist())
        assert 2 + sum(counted.widths) < found.shape[1]  # nothing is read twice
    assert outputs[0] == outputs[1]
    assert loop.saved > 0


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


def test_models_that_may_not_be_equal_are_refused():
    inputs, masks = processor([0])
    options = {"custom_generate": ForcedDecoding(masks), "logits_processor": [masks], **OPTIONS}
    with pytest.raises(UnsupportedFeatureError, match="MambaForCausalLM"):
        tiny("mamba").generate(**inputs, **options)
    with pytest.raises(UnsupportedFeatureError, match="training mode"):
        tiny().train().generate(**inputs, **options)
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    model = tiny(rope_parameters=rope, max_position_embeddings=20)
    with pytest.raises(UnsupportedFeatureError, match="up to 20 ids"):
        model.generate(**inputs, **options)
    model.generate(**inputs, **{**options, "max_new_tokens": 10})
    embedded = MODELS["llama"].get_input_embeddings()(inputs["input_ids"]).detach()
    with pytest.raises(UnsupportedFeatureError, match="inputs_embeds"):
        MODELS["llama"].generate(inputs_embeds=embedded, **options)


@pytest.mark.parametrize("sampling", [False, True])
def test_a_token_table_forces_what_it_leaves_no_choice_about(sampling):
    table = TokenTable.of(constraint(r"\{true: (abc|[a-d]{2}): true,").automaton(), [END], N)
    inputs, _ = batch([0, 6, 17])
    found = []
    for forced in (False, True):
        masks = TokenTableProcessor(table, inputs["input_ids"])
        loop = ForcedDecoding(masks) if forced else None
        torch.manual_seed(5)
        counted = Counted(MODELS["llama"])
        out = MODELS["llama"].generate(
            **inputs, logits_processor=[masks], custom_generate=loop, do_sample=sampling, **OPTIONS
        )
        counted.handle.remove()
        found.append((out.tolist(), torch.rand(1).item(), len(counted.widths)))
    assert found[0][:2] == found[1][:2]
    assert loop.passes == found[1][2]
    assert loop.saved == found[0][2] - found[1][2] > 3


def test_the_processor_must_be_there_and_say_what_is_forced():
    with pytest.raises(UnsupportedFeatureError, match="TheSame with forced ids"):
        MODELS["llama"].generate(
            **processor([0])[0], custom_generate=ForcedDecoding(TheSame()), **OPTIONS
        )
    inputs, masks = processor([0])
    with pytest.raises(ArgumentError, match="logits_processor"):
        MODELS["llama"].generate(**inputs, custom_generate=ForcedDecoding(masks), **OPTIONS)


@pytest.mark.parametrize("pad_id", [None, PAD])
def test_a_row_that_has_ended_holds_no_one_up_and_counts_no_more(pad_id):
    """The first row ends at once; all that is allowed there after, an end or padding, is no choice
    to wait for. Before that, both rows are forced."""
    model = MODELS["llama"]
    inputs = padded([[5], [5]], PAD)
    chosen = [constraint("ab"), constraint(r"\{true: abc\}(ab|, )")]
    masks = ConstraintLogitsProcessor(chosen, **inputs, prefix=False, pad_id=pad_id)
    loop = ForcedDecoding(masks)
    model.generate(**inputs, custom_generate=loop, logits_processor=[masks], **OPTIONS)
    assert loop.passes == 1
    assert loop.forced[0] == 2  # the id and the end of sequence
    assert loop.forced[1] >= 7


def test_rows_of_different_lengths_wait_for_each_other():
    """A run is what is forced in all rows: a free row beside one that is forced costs its passes,
    until it has ended."""
    model = MODELS["llama"]
    free = constraint(r"[abd0-9]{12}")
    alone = {}
    for name, chosen in {"forced": [CONSTRAINTS[0]], "both": [CONSTRAINTS[0], free]}.items():
        inputs = padded([[N - 4, 5]] * len(chosen), PAD)
        masks = ConstraintLogitsProcessor(chosen, **inputs, prefix=False)
        alone[name] = loop = ForcedDecoding(masks)
        model.generate(**inputs, custom_generate=loop, logits_processor=[masks], **OPTIONS)
    assert alone["both"].passes > alone["forced"].passes
