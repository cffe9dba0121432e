"""`generate`: the ids are those of a matcher, with a safe end too; prompts of every kind."""

import pickle
import re

import pytest
import torch
from hf_tiny import PROMPTS, REGEXES, counted, hosted, tiny
from served import END, PAD, START, tokenizer
from tokenizers import processors

from bpe_automata import Tokenizer, compile_grammar, constrain
from bpe_automata.errors import ArgumentError, BudgetTooSmallError, PromptError
from bpe_automata.integrations.transformers import generate

MODEL, TOKENIZER, PROMPTS = tiny(), tokenizer(), PROMPTS[:3]


def by_hand(prompt, language, method, steps):
    """Greedy decoding with a matcher: the definition that `generate` must meet."""
    ids, written = TOKENIZER.encode(prompt), []
    matcher = constrain(TOKENIZER, language, method, eos_ids=[END]).matcher(ids)
    for _ in range(steps):
        with torch.no_grad():
            logits = MODEL(torch.tensor([ids + written])).logits[0, -1, : TOKENIZER.n_ids]
        token = int(logits.masked_fill(~torch.from_numpy(matcher.mask()), -torch.inf).argmax())
        matcher.advance(token)
        if matcher.is_finished:
            break
        written.append(token)
    return tuple(written)


@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_a_batch_of_all_that_constrain_takes_equals_the_matcher_row_by_row(method):
    languages = [*REGEXES[:3], {"const": 10}, {"yes", "ab"}, compile_grammar('start: "a" | "no"')]
    options = {"method": method, "max_new_tokens": 12, "do_sample": False, "eos_ids": [END]}
    prompts = PROMPTS * 2
    batch = generate(MODEL, TOKENIZER, prompts, languages, **options)
    for prompt, language, found in zip(prompts, languages, batch, strict=True):
        assert found.ids == by_hand(prompt, language, method, 12)
        assert found == generate(MODEL, TOKENIZER, prompt, language, **options)


def test_samples_match_are_canonical_and_follow_the_seed():
    prompts, regexes = PROMPTS * 4, [REGEXES[0], REGEXES[1], "[ab]{2,5}z?|c{1,9}"] * 4
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
    regexes = [REGEXES[2], "[ab]{2,}z?|c*", "(12|0)+x"]
    for seed in range(6):
        options = {"do_sample": True, "seed": seed, "close": True, "forced": forced}
        most = 4 + seed
        for one in generate(MODEL, TOKENIZER, PROMPTS, regexes, max_new_tokens=most, **options):
            assert (one.complete, one.finish_reason) == (True, "complete")
            assert len(one.ids) <= most


def test_a_budget_too_small_is_refused_before_the_model_is_asked():
    options = {"close": True, "max_new_tokens": 5}
    with counted(MODEL) as passes, pytest.raises(BudgetTooSmallError) as caught:
        generate(MODEL, TOKENIZER, "ab ", REGEXES[0], **options)
    assert (caught.value.given, passes) == (5, [])
    options["max_new_tokens"] = caught.value.needed
    found = generate(MODEL, TOKENIZER, "ab ", REGEXES[0], **options)
    assert found.complete
    assert len(found.ids) == caught.value.needed
    assert re.fullmatch(REGEXES[0], found.text)
    assert PAD not in found.ids


@pytest.mark.parametrize(
    "options",
    [
        {"custom_generate": print},
        {"pad_token_id": 0},
        {"return_dict_in_generate": True},
        {"max_length": 9},
        {"max_new_tokens": 0},
        {"eos_token_id": 0},
        {"num_return_sequences": 2},
        {"attention_mask": torch.ones(1, 3)},
        {"inputs_embeds": torch.ones(1, 3, 16)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_are_set_here_are_named(options):
    """The regex is wrong too, and would be told about if it were read first."""
    with counted(MODEL) as passes, pytest.raises(ArgumentError, match=next(iter(options))):
        generate(MODEL, TOKENIZER, "0", "(", **options)
    assert not passes


CLOSE = {"close": True, "max_new_tokens": 5}


@pytest.mark.parametrize(
    ("prompts", "regexes", "options", "error", "match"),
    [
        (["0", "ab "], ["[0-9]", REGEXES[0]], CLOSE, BudgetTooSmallError, "prompt 1: .* takes"),
        (["0", "a"], ["[0-9]", "b"], {}, PromptError, "prompt 1: "),
        (["0a", "a"], "b", {"heal": 1}, PromptError, "prompt 1: healing would give back all"),
        (["0", ""], "b", {"heal": 1}, PromptError, "prompt 1 is empty"),
        ("0", None, {}, ArgumentError, "give a regex"),
    ],
)
def test_errors_say_which_prompt(prompts, regexes, options, error, match):
    with pytest.raises(error, match=match):
        generate(MODEL, TOKENIZER, prompts, regexes, **options)


def with_beginning():
    """`hosted`, with an id put before a prompt, and a chat template."""
    hf = hosted()
    hf.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<start> $A", special_tokens=[("<start>", START)]
    )
    hf.chat_template = (
        "<start>{% for one in messages %}{{ one.content }}<pad>{% endfor %}"
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
    assert seen == [hf("ab ").input_ids] == [[START, *TOKENIZER.encode("ab ")]]
    own = Tokenizer.load(hf)
    assert own.encode("ab ") == TOKENIZER.encode("ab ")
    for loaded in (own, pickle.loads(pickle.dumps(own))):
        assert read_by_model(loaded, "ab ") == (found, seen)
    assert read_by_model(TOKENIZER, "ab ")[1] == [TOKENIZER.encode("ab ")]
    assert own.encode(own.decode(seen[0]) + found.text)[: len(seen[0])] == seen[0]


def test_prompts_are_taken_as_chat_messages():
    hf, messages = with_beginning(), [{"role": "user", "content": "a0"}]
    ids = [START, *TOKENIZER.encode("a0"), PAD, *TOKENIZER.encode("ab")]
    found, seen = read_by_model(hf, messages)
    assert seen == [ids]
    assert read_by_model(hf, [messages]) == ([found], seen)
    assert read_by_model(TOKENIZER, messages, hf_tokenizer=hf) == (found, seen)
    with pytest.raises(ArgumentError, match=r"prompt 0 .* chat template is known"):
        generate(MODEL, hosted(), messages, "a")
    with pytest.raises(ArgumentError, match=r"prompt 1: .*no b"):
        generate(MODEL, hf, [messages, [{"role": "b", "content": ""}]], "a")
