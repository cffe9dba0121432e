"""`generate`: the ids are those of a matcher, with a safe end too; prompts of every kind."""

from __future__ import annotations

import pickle
import re

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hf_tiny import END, PAD, REGEXES, STOP, TOKENIZER, N, constraint, tiny  # noqa: E402

from bpe_automata import Tokenizer, compile_grammar, constrain  # noqa: E402
from bpe_automata.errors import (  # noqa: E402
    ArgumentError,
    BudgetTooSmallError,
    BufferShapeError,
    PromptError,
    UnsupportedFeatureError,
)
from bpe_automata.integrations.transformers import ConstraintLogitsProcessor, generate  # noqa: E402
from bpe_automata.schemas import json_schema  # noqa: E402

MODEL = tiny()
PROMPTS = ["ab ", "trf a0", "0"]


def by_hand(prompt, regex, method, steps):
    """Greedy decoding with a matcher: the definition that `generate` must meet."""
    ids, written = TOKENIZER.encode(prompt), []
    matcher = constrain(TOKENIZER, regex, method, eos_ids=[END]).matcher(ids)
    for _ in range(steps):
        with torch.no_grad():
            logits = MODEL(torch.tensor([ids + written])).logits[0, -1, :N]
        token = int(logits.masked_fill(~torch.from_numpy(matcher.mask()), -torch.inf).argmax())
        matcher.advance(token)
        if matcher.is_finished:
            break
        written.append(token)
    return tuple(written)


@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_a_batch_of_different_regexes_equals_the_matcher_row_by_row(method):
    options = {"method": method, "max_new_tokens": 12, "do_sample": False, "eos_ids": [END]}
    batch = generate(MODEL, TOKENIZER, PROMPTS, REGEXES[:3], **options)
    for prompt, regex, found in zip(PROMPTS, REGEXES, batch, strict=False):
        assert found.ids == by_hand(prompt, regex, method, 12)
        assert found == generate(MODEL, TOKENIZER, prompt, regex, **options)


def test_samples_match_are_canonical_and_follow_the_seed():
    prompts, regexes = PROMPTS * 4, [REGEXES[0], REGEXES[1], r"[ab]{2,5}!?|c{1,9}"] * 4
    options = {"max_new_tokens": 40, "do_sample": True, "top_k": 0, "seed": 11}
    before = torch.random.get_rng_state()
    found = generate(MODEL, TOKENIZER, prompts, regexes, **options)
    assert torch.equal(before, torch.random.get_rng_state())
    assert found == generate(MODEL, TOKENIZER, prompts, regexes, **options)
    assert found != generate(MODEL, TOKENIZER, prompts, regexes, **{**options, "seed": 12})
    assert len(set(found)) > 6
    for prompt, regex, one in zip(prompts, regexes, found, strict=True):
        assert re.fullmatch(regex, one.text)
        assert (one.complete, one.finish_reason) == (True, "complete")
        assert TOKENIZER.decode(one.ids) == one.text
        assert TOKENIZER.encode(prompt + one.text) == [*TOKENIZER.encode(prompt), *one.ids]


@pytest.mark.parametrize("forced", [False, True])
def test_with_a_safe_end_every_text_is_complete(forced):
    for seed in range(6):
        options = {"do_sample": True, "seed": seed, "close": True, "forced": forced}
        found = generate(
            MODEL, TOKENIZER, PROMPTS, [REGEXES[2], r"[ab]{2,}!?|c*", r"(12|0)+:"],
            max_new_tokens=4 + seed, **options,
        )  # fmt: skip
        for one in found:
            assert (one.complete, one.finish_reason) == (True, "complete")
            assert len(one.ids) <= 4 + seed


@pytest.fixture
def asked():
    """How often the model was asked."""
    calls = []
    handle = MODEL.register_forward_pre_hook(lambda *_: calls.append(1))
    yield calls
    handle.remove()


def test_a_budget_too_small_is_refused_before_the_model_is_asked(asked):
    with pytest.raises(BudgetTooSmallError) as caught:
        generate(MODEL, TOKENIZER, "ab ", REGEXES[0], close=True, max_new_tokens=5)
    assert not asked
    assert caught.value.given == 5
    needed = caught.value.needed
    found = generate(MODEL, TOKENIZER, "ab ", REGEXES[0], close=True, max_new_tokens=needed)
    assert found.complete
    assert len(found.ids) == needed
    assert re.fullmatch(REGEXES[0], found.text)
    assert PAD not in found.ids


@pytest.mark.parametrize(
    "options",
    [
        {"custom_generate": print},
        {"pad_token_id": 0},
        {"eos_token_id": 0},
        {"return_dict_in_generate": True},
        {"num_return_sequences": 2},
        {"max_length": 9},
        *({"max_new_tokens": most} for most in (0, -1, 2.0)),
        {"attention_mask": torch.ones(1, 3)},
        {"inputs_embeds": torch.ones(1, 3, 16)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_are_set_here_are_named(options, asked):
    """The regex is wrong too, and would be told about if it were read first."""
    with pytest.raises(ArgumentError, match=next(iter(options))):
        generate(MODEL, TOKENIZER, "0", "(", **options)
    assert not asked


@pytest.mark.parametrize(
    ("prompts", "regexes", "options", "error", "match"),
    [
        (["0", "ab "], ["[0-9]", REGEXES[0]], {"close": True, "max_new_tokens": 5},
         BudgetTooSmallError, r"prompt 1: .* takes 13"),
        (["0", "a"], ["[0-9]", "b"], {}, PromptError, "prompt 1: "),
        (["0a", "a"], "b", {"heal": 1}, PromptError, "prompt 1: healing would give back all"),
        (["0", ""], "b", {"heal": 1}, PromptError, "prompt 1 is empty"),
        ("0", None, {}, ArgumentError, "give a regex"),
    ],
)  # fmt: skip
def test_errors_say_which_prompt(prompts, regexes, options, error, match):
    with pytest.raises(error, match=match):
        generate(MODEL, TOKENIZER, prompts, regexes, **options)


def hosted():
    """TOKENIZER as transformers has it."""
    from tokenizers import Tokenizer

    backend = Tokenizer.from_str(TOKENIZER.to_json())
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend)


def with_beginning():
    """`hosted`, with an id put before a prompt, and a chat template."""
    from tokenizers import processors

    hf = hosted()
    template = processors.TemplateProcessing(single="<stop> $A", special_tokens=[("<stop>", STOP)])
    hf.backend_tokenizer.post_processor = template
    hf.chat_template = (
        "<stop>{% for one in messages %}{{ one.content }}<pad>{% endfor %}"
        "{% if add_generation_prompt %}ab{% endif %}{% if messages[0].role == 'b' %}"
        "{{ raise_exception('no b') }}{% endif %}"
    )
    return hf


def read_by_model(tokenizer, prompts, **options):
    """The results, and the ids that the model read for the prompts."""
    model, seen = tiny("gpt2"), []
    asked = model.generate
    model.generate = lambda **given: (seen.append(given["input_ids"].tolist()), asked(**given))[1]
    found = generate(model, tokenizer, prompts, "[0-9]{3}", max_new_tokens=4, **options)
    return found, *seen


def test_prompts_are_read_with_the_ids_that_their_tokenizer_puts_before_them():
    hf = with_beginning()
    found, seen = read_by_model(hf, "ab ")
    assert seen == [hf("ab ").input_ids] == [[STOP, *TOKENIZER.encode("ab ")]]
    own = Tokenizer.load(hf)
    assert own.encode("ab ") == TOKENIZER.encode("ab ")
    for tokenizer in (own, pickle.loads(pickle.dumps(own))):
        assert read_by_model(tokenizer, "ab ") == (found, seen)
    assert read_by_model(TOKENIZER, "ab ")[1] == [TOKENIZER.encode("ab ")]
    assert own.encode(own.decode(seen[0]) + found.text)[: len(seen[0])] == seen[0]


def test_prompts_are_taken_as_chat_messages():
    hf, messages = with_beginning(), [{"role": "user", "content": "a0"}]
    ids = [STOP, *TOKENIZER.encode("a0"), PAD, *TOKENIZER.encode("ab")]
    found, seen = read_by_model(hf, messages)
    assert seen == [ids]
    assert read_by_model(hf, [messages]) == ([found], seen)
    assert read_by_model(TOKENIZER, messages, hf_tokenizer=hf) == (found, seen)
    for tokenizer in (TOKENIZER, hosted()):
        with pytest.raises(ArgumentError, match=r"prompt 0 .* chat template is known"):
            generate(MODEL, tokenizer, messages, "a")
    with pytest.raises(ArgumentError, match=r"prompt 1: .*no b"):
        generate(MODEL, hf, [messages, [{"role": "b", "content": ""}]], "a")


def test_encoder_decoder_models_are_refused_by_name():
    sizes = {"d_model": 8, "d_ff": 8, "num_layers": 1, "num_heads": 1, "d_kv": 8}
    config = transformers.T5Config(vocab_size=N, decoder_start_token_id=0, **sizes)
    model = transformers.T5ForConditionalGeneration(config).eval()
    with pytest.raises(UnsupportedFeatureError, match="T5ForConditionalGeneration, an encoder-dec"):
        generate(model, TOKENIZER, "0", "a", eos_ids=[END])
    ids = torch.tensor([TOKENIZER.encode("0, ab")])
    masks = ConstraintLogitsProcessor(constraint("a"), ids)
    with pytest.raises(BufferShapeError, match="encoder-decoder"):
        model.generate(ids, logits_processor=[masks], max_new_tokens=4)


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ({"a", "ab"}, {"a", "ab"}),
        (compile_grammar('start: "a" | "b"'), {"a", "b"}),
        ({"const": 0}, {"0"}),
        (json_schema({"const": 0}), {"0"}),
    ],
)
def test_whatever_constrain_takes_is_generated(language, texts):
    found = generate(MODEL, TOKENIZER, "0", language, eos_ids=[END], max_new_tokens=9)
    assert found.text in texts
