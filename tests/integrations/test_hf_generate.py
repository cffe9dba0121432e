"""`generate`: the ids are those of a matcher, with a safe end too; prompts of every kind."""

import pickle
import re

import pytest
import torch
from hf_tiny import PROMPTS, REGEXES, counted, hosted, tiny
from served import END, PAD, START, constraint, tokenizer
from tokenizers import processors

from bpe_automata import Tokenizer, TokenTable, compile_grammar, constrain
from bpe_automata.errors import ArgumentError, BudgetTooSmallError, DecodingError, PromptError
from bpe_automata.integrations.transformers import generate
from bpe_automata.models import character_tokenizer

MODEL, TOKENIZER, PROMPTS = tiny(), tokenizer(), PROMPTS[:3]


def by_hand(prompt, made, steps):
    """Greedy decoding with a matcher: the definition that `generate` must meet."""
    ids, written = TOKENIZER.encode(prompt), []
    matcher = made.matcher(ids)
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
    constraints = [constrain(TOKENIZER, one, method, [END]) for one in languages]
    options = {"max_new_tokens": 12, "do_sample": False}
    prompts = PROMPTS * 2
    batch = generate(MODEL, prompts, constraints, **options)
    for prompt, one, found in zip(prompts, constraints, batch, strict=True):
        assert found.ids == by_hand(prompt, one, 12)
        assert found == generate(MODEL, prompt, one, **options)


def test_samples_match_are_canonical_and_follow_the_seed():
    prompts, regexes = PROMPTS * 4, [REGEXES[0], REGEXES[1], "[ab]{2,5}z?|c{1,9}"] * 4
    constraints = [constraint(regex) for regex in regexes]
    options = {"max_new_tokens": 40, "do_sample": True, "top_k": 0, "seed": 11}
    before = torch.random.get_rng_state()
    found = generate(MODEL, prompts, constraints, **options)
    assert torch.equal(before, torch.random.get_rng_state())
    assert found == generate(MODEL, prompts, constraints, **options)
    assert found != generate(MODEL, prompts, constraints, **{**options, "seed": 12})
    assert len(set(found)) > 6
    for prompt, regex, one in zip(prompts, regexes, found, strict=True):
        assert re.fullmatch(regex, one.text)
        assert (one.complete, one.finish_reason) == (True, "complete")
        assert TOKENIZER.decode(one.ids) == one.text
        assert TOKENIZER.encode(prompt + one.text) == [*TOKENIZER.encode(prompt), *one.ids]


@pytest.mark.parametrize("forced", [False, True])
def test_with_a_safe_end_every_text_is_complete(forced):
    constraints = [constraint(regex) for regex in (REGEXES[2], "[ab]{2,}z?|c*", "(12|0)+x")]
    for seed in range(6):
        options = {"do_sample": True, "seed": seed, "close": True, "forced": forced}
        most = 4 + seed
        for one in generate(MODEL, PROMPTS, constraints, max_new_tokens=most, **options):
            assert (one.complete, one.finish_reason) == (True, "complete")
            assert len(one.ids) <= most


def test_a_budget_too_small_is_refused_before_the_model_is_asked():
    options = {"close": True, "max_new_tokens": 5}
    with counted(MODEL) as passes, pytest.raises(BudgetTooSmallError) as caught:
        generate(MODEL, "ab ", constraint(REGEXES[0]), **options)
    assert (caught.value.given, passes) == (5, [])
    options["max_new_tokens"] = caught.value.needed
    found = generate(MODEL, "ab ", constraint(REGEXES[0]), **options)
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
    """The constraint is wrong too, and would be told about if it were read first."""
    with counted(MODEL) as passes, pytest.raises(ArgumentError, match=next(iter(options))):
        generate(MODEL, "0", "(", **options)
    assert not passes


CLOSE = {"close": True, "max_new_tokens": 5}


@pytest.mark.parametrize(
    ("prompts", "regexes", "options", "error", "match"),
    [
        (["0", "ab "], ["[0-9]", REGEXES[0]], CLOSE, BudgetTooSmallError, "prompt 1: .* takes"),
        (["0", "a"], ["[0-9]", "b"], {}, PromptError, "prompt 1: "),
        (["0a", "a"], "bb", {"heal": 1}, PromptError, "prompt 1: healing would give back all"),
        (["0", ""], "bb", {"heal": 1}, PromptError, "prompt 1 is empty"),
        (["0", 3], "b", {}, ArgumentError, "prompt 1 is 3: give a str"),
        (["0", [{"role": "user"}]], "b", {}, ArgumentError, "prompt 1 .* apply_chat_template"),
        ([{"role": "user"}], "b", {}, ArgumentError, "prompt 0 .* apply_chat_template"),
    ],
)
def test_errors_say_which_prompt(prompts, regexes, options, error, match):
    with pytest.raises(error, match=match):
        generate(MODEL, prompts, [*map(constraint, regexes)], **options)


ANY = constraint("a")
TABLE = TokenTable.of(ANY.automaton(), [END], TOKENIZER.n_ids)


@pytest.mark.parametrize(
    ("constraints", "error", "match"),
    [
        ("a", ArgumentError, r"constraint 0 is 'a': make one with constrain\(tokenizer"),
        ([ANY, None], ArgumentError, "constraint 1 is None"),
        ([ANY], ArgumentError, "1 constraints for 2 prompts: give one for all"),
        ([ANY, TABLE], ArgumentError, "constraint 1 is a TokenTable"),
        ([ANY, constrain(TOKENIZER, "a", eos_ids=[END, PAD])], ArgumentError, "same eos_ids"),
        ([ANY, constrain(TOKENIZER, "a", eos_ids=[])], DecodingError, "constraint 1 has no end"),
        ([ANY, constrain(character_tokenizer("0a"), "a", eos_ids=[])], ArgumentError,
         "constraint 1 is over .* one tokenizer"),
    ],
)  # fmt: skip
def test_constraints_that_do_not_go_together_are_refused(constraints, error, match):
    with counted(MODEL) as passes, pytest.raises(error, match=match):
        generate(MODEL, ["0", "1"], constraints)
    assert not passes


def with_beginning():
    """`hosted`, with an id put before a prompt."""
    hf = hosted()
    hf.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<start> $A", special_tokens=[("<start>", START)]
    )
    return hf


def read_by_model(tokenizer, prompts):
    """The results, and the ids that the model read for the prompts."""
    model, seen = tiny("gpt2"), []
    asked = model.generate
    model.generate = lambda **given: (seen.append(given["input_ids"].tolist()), asked(**given))[1]
    digits = constrain(Tokenizer.load(tokenizer), "[0-9]{3}", eos_ids=[END])
    found = generate(model, prompts, digits, max_new_tokens=4)
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


def test_the_ids_of_a_chat_template_are_read_as_they_are():
    hf, messages = with_beginning(), [{"role": "user", "content": "a0"}]
    hf.chat_template = "<start>{% for one in messages %}{{ one.content }}<pad>{% endfor %}ab"
    given = hf.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    ids = [START, *TOKENIZER.encode("a0"), PAD, *TOKENIZER.encode("ab")]
    found, seen = read_by_model(hf, given)
    assert given == ids
    assert seen == [ids]
    assert read_by_model(hf, [given]) == ([found], seen)
