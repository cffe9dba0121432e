"""The logits processor and `generate`, on a random model over SmolLM2's vocabulary."""

from __future__ import annotations

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from bpe_automata import constrain  # noqa: E402
from bpe_automata.errors import (  # noqa: E402
    ArgumentError,
    BufferShapeError,
    DecodingError,
    LogitsError,
    PromptError,
)
from bpe_automata.integrations.bitmask import unpacked  # noqa: E402
from bpe_automata.integrations.transformers import (  # noqa: E402
    ConstraintLogitsProcessor,
    generate,
)
from bpe_automata.kernels.bits import packed  # noqa: E402

VOCABULARY = 49_152
REGEXES = [r"[0-9]{1,3}(\.[0-9]{2})?", r" (yes|no|maybe) (sir|madam)", r'\{"a": (true|false)\}']
PROMPTS = ["A number:", "Answer the question, please:", "J"]


@pytest.fixture(scope="module")
def model():
    """16 more logits than the tokenizer has ids, as padded vocabularies do."""
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY + 16,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        initializer_range=0.4,
        bos_token_id=1,
        eos_token_id=[2, 0],
        pad_token_id=2,
    )
    return transformers.LlamaForCausalLM(config).eval()


def is_canonical(tokenizer, prompt, ids):
    whole = tokenizer.encode(prompt) + list(ids)
    return tokenizer.encode(tokenizer.decode(whole)) == whole


def next_logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0, -1]


def by_hand(model, tokenizer, prompt, regex, method, steps):
    """Greedy decoding with a Matcher: the definition that `generate` must meet."""
    ids = tokenizer.encode(prompt)
    matcher = constrain(tokenizer, regex, method=method, eos_ids=(0, 2)).matcher(prefix=ids)
    written = []
    for _ in range(steps):
        allowed = torch.from_numpy(matcher.mask())
        logits = next_logits(model, ids + written)[: len(allowed)]
        token = int(logits.masked_fill(~allowed, -torch.inf).argmax())
        matcher.advance(token)
        if matcher.is_finished:
            break
        written.append(token)
    return tuple(written)


@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_a_batch_of_different_regexes_equals_the_matcher_row_by_row(
    method, model, smollm2_tokenizer
):
    options = {"method": method, "max_new_tokens": 12, "do_sample": False}
    batch = generate(model, smollm2_tokenizer, PROMPTS, REGEXES, **options)
    for prompt, regex, found in zip(PROMPTS, REGEXES, batch, strict=True):
        assert found.ids == by_hand(model, smollm2_tokenizer, prompt, regex, method, 12)
        assert found == generate(model, smollm2_tokenizer, prompt, regex, **options)


def test_samples_match_are_canonical_and_follow_the_seed(model, smollm2_tokenizer):
    prompts = [prompt for prompt in PROMPTS for _ in range(4)]
    regexes = [regex for regex in REGEXES for _ in range(4)]
    options = {"max_new_tokens": 30, "do_sample": True, "top_k": 0, "seed": 11}
    before = torch.random.get_rng_state()
    found = generate(model, smollm2_tokenizer, prompts, regexes, **options)
    assert torch.equal(before, torch.random.get_rng_state())
    assert found == generate(model, smollm2_tokenizer, prompts, regexes, **options)
    for prompt, regex, one in zip(prompts, regexes, found, strict=True):
        assert re.fullmatch(regex, one.text)
        assert (one.complete, one.finish_reason) == (True, "complete")
        assert smollm2_tokenizer.decode(one.ids) == one.text
        assert is_canonical(smollm2_tokenizer, prompt, one.ids)


@pytest.mark.parametrize("beams", [2, 5])
def test_beam_search_matches_and_is_canonical(beams, model, smollm2_tokenizer):
    """The second regex has six texts and few first ids: fewer continuations than beams."""
    found = generate(model, smollm2_tokenizer, PROMPTS, REGEXES, max_new_tokens=30, num_beams=beams)
    for prompt, regex, one in zip(PROMPTS, REGEXES, found, strict=True):
        assert re.fullmatch(regex, one.text)
        assert one.complete
        assert is_canonical(smollm2_tokenizer, prompt, one.ids)


def test_beams_of_a_batch_equal_beams_alone(model, smollm2_tokenizer):
    options = {"max_new_tokens": 30, "num_beams": 3}
    batch = generate(model, smollm2_tokenizer, PROMPTS, REGEXES, **options)
    alone = [
        generate(model, smollm2_tokenizer, prompt, regex, **options)
        for prompt, regex in zip(PROMPTS, REGEXES, strict=True)
    ]
    assert batch == alone


def test_a_text_that_runs_out_of_tokens_is_truncated(model, smollm2_tokenizer):
    found = generate(model, smollm2_tokenizer, "x", "[a-z]{200}", max_new_tokens=3)
    assert len(found.ids) == 3
    assert (found.complete, found.finish_reason) == (False, "truncated")
    assert re.fullmatch("[a-z]{3,}", found.text)


def test_a_text_that_nothing_can_follow_is_complete_without_its_end(model, smollm2_tokenizer):
    found = generate(model, smollm2_tokenizer, "Answer:", " yes", max_new_tokens=1)
    assert (found.text, found.complete, found.finish_reason) == (" yes", True, "complete")


def test_a_truncated_text_may_match(model, smollm2_tokenizer):
    found = generate(model, smollm2_tokenizer, "n", "[0-9]{3,}", max_new_tokens=3)
    assert len(found.ids) == 3
    assert (found.complete, found.finish_reason) == (True, "truncated")


def test_completion_alone_or_after_the_prompt(model, smollm2_tokenizer):
    """After a space, `yes` is never canonical: the tokenizer would have joined them."""
    options = {"max_new_tokens": 8}
    with pytest.raises(PromptError):
        generate(model, smollm2_tokenizer, "Answer: ", "yes", **options)
    found = generate(model, smollm2_tokenizer, "Answer: ", "yes", prefix=False, **options)
    assert found.text == "yes"


@pytest.fixture(scope="module")
def number(smollm2_tokenizer):
    return constrain(smollm2_tokenizer, "[0-9]{2}", eos_ids=(0, 2))


def allowed_ids(scores):
    return [np.flatnonzero(torch.isfinite(row).numpy()).tolist() for row in scores]


def test_the_state_comes_from_the_ids_not_from_the_calls(number, smollm2_tokenizer):
    prompt = torch.tensor([smollm2_tokenizer.encode("n:")] * 2)
    processor = ConstraintLogitsProcessor(number, prompt)
    digits = [smollm2_tokenizer.encode(digit)[0] for digit in "0123456789"]
    scores = torch.zeros(2, VOCABULARY)

    def call(*rows):
        return allowed_ids(processor(torch.cat([prompt, torch.tensor(rows)], 1), scores))

    first = call([digits[3]], [digits[4]])
    assert first == [sorted(digits)] * 2
    assert call([digits[3], digits[1]], [digits[4], digits[1]]) == [[0, 2]] * 2
    assert call([digits[4]], [digits[3]]) == first


@pytest.mark.parametrize("end", [0, 2])
def test_a_row_that_has_ended_allows_only_ends(end, number, smollm2_tokenizer):
    prompt = torch.tensor([smollm2_tokenizer.encode("n:")])
    processor = ConstraintLogitsProcessor(number, prompt, pad_id=17)
    ids = [*smollm2_tokenizer.encode("42"), end]
    for tail in ([], [17], [17, 17]):
        row = torch.cat([prompt, torch.tensor([ids + tail])], 1)
        assert allowed_ids(processor(row, torch.zeros(1, VOCABULARY + 5))) == [[0, 2, 17]]


@pytest.mark.parametrize("wrong", [5, VOCABULARY + 3])
def test_a_row_with_a_refused_id_never_makes_softmax_nan(wrong, number, smollm2_tokenizer):
    prompt = torch.tensor([smollm2_tokenizer.encode("n:")])
    processor = ConstraintLogitsProcessor(number, prompt)
    scores = processor(torch.cat([prompt, torch.tensor([[wrong]])], 1), torch.zeros(1, VOCABULARY))
    assert not scores.softmax(-1).isnan().any()


def test_logits_wider_and_narrower_than_the_vocabulary(number, smollm2_tokenizer):
    prompt = torch.tensor([smollm2_tokenizer.encode("n:")])
    processor = ConstraintLogitsProcessor(number, prompt)
    scores = processor(prompt, torch.zeros(1, VOCABULARY + 100))
    assert torch.isneginf(scores[0, VOCABULARY:]).all()
    with pytest.raises(LogitsError, match="49152 ids"):
        processor(prompt, torch.zeros(1, 100))


def test_numbers_that_do_not_fit_are_refused(number, model, smollm2_tokenizer):
    prompts = torch.tensor([smollm2_tokenizer.encode("n:")] * 2)
    with pytest.raises(BufferShapeError, match="3 constraints for 2 prompts"):
        ConstraintLogitsProcessor([number] * 3, prompts)
    processor = ConstraintLogitsProcessor(number, prompts)
    with pytest.raises(BufferShapeError, match="3 rows"):
        processor(torch.cat([prompts, prompts[:1]]), torch.zeros(3, VOCABULARY))
    with pytest.raises(PromptError, match="prompt 1 is empty"):
        generate(model, smollm2_tokenizer, ["a", ""], "b")
    with pytest.raises(ArgumentError, match="repeat the prompt"):
        generate(model, smollm2_tokenizer, "a", "b", num_return_sequences=2)
    with pytest.raises(DecodingError, match="eos_ids"):
        generate(model, smollm2_tokenizer, "a", "b", eos_ids=())


def test_packed_masks_are_read_back(rng_bits):
    row = packed(np.flatnonzero(rng_bits), len(rng_bits))
    assert row.dtype == np.int32
    for width in (len(rng_bits), len(rng_bits) + 200):
        bits = unpacked(torch.from_numpy(row)[None], width)[0].numpy()
        assert np.array_equal(bits, np.pad(rng_bits, (0, width - len(rng_bits))))


@pytest.fixture
def rng_bits():
    return np.random.default_rng(3).random(997) < 0.5
