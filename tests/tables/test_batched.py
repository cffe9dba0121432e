"""Batches of texts are drawn as the library's own loop draws them, with the same weights."""

from __future__ import annotations

import numpy as np
import pytest

from bpe_automata import constrain
from bpe_automata.sampling import decode
from bpe_automata.testing import byte_level, small_tokenizer
from experiments.batched import sample_batch
from experiments.graphed import Graphed

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
MERGES = ["a b", "ab c", "b c", "c a", "a a"]
TOKENS = [*"abcĠ", *(merge.replace(" ", "") for merge in MERGES)]
TOKENIZER = small_tokenizer(
    TOKENS, [tuple(merge.split()) for merge in MERGES], byte_level(), added=["<end>"]
)
END = len(TOKENS)
PROMPT = [0, 3]  # "a "
REGEXES = [r"(abc|ca|bb){1,3}", r"[abc]{2}", r"a*b"]


DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def tiny(dtype=torch.float64, extra=3):
    """A random llama with logits beyond the tokenizer's ids."""
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=TOKENIZER.n_ids + extra,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.2,
    )
    return transformers.LlamaForCausalLM(config).to(dtype).eval()


@pytest.fixture(scope="module")
def model():
    return tiny()


@pytest.fixture(scope="module")
def logits_of(model):
    """The model as the library's loops ask it: no cache, no batch."""

    def logits(ids):
        with torch.no_grad():
            return model(torch.tensor([list(ids)])).logits[0, -1].numpy()

    return logits


@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("regex", REGEXES)
@pytest.mark.parametrize(("batch", "temperature"), [(64, 1.0), (3, 0.7), (1, 1.3)])
def test_each_sample_is_the_one_of_decode(model, logits_of, regex, method, batch, temperature):
    constraint = constrain(TOKENIZER, regex, method, eos_ids=[END])
    given = {"max_new_tokens": 6, "temperature": temperature}
    found = sample_batch(model, PROMPT, constraint, 10, seed=5, batch=batch, **given)
    for k, text in enumerate(found):
        rng = np.random.default_rng((5, k))
        expected = decode(logits_of, constraint, PROMPT, seed=rng, **given)
        assert text.ids == expected.ids
        assert text.ended == (expected.log_weight is not None)
        wanted = -np.inf if expected.log_weight is None else expected.log_weight
        assert text.log_weight == pytest.approx(wanted, abs=1e-9)
    assert len({text.ids for text in found}) > 1


def test_probabilities_are_those_of_the_model(model, logits_of):
    constraint = constrain(TOKENIZER, r"(abc|ca|bb){1,2}", eos_ids=[END])
    for text in sample_batch(model, PROMPT, constraint, 5, max_new_tokens=9):
        ids = [*text.ids, END] if text.ended else text.ids
        read = [logits_of([*PROMPT, *ids[:at]]) for at in range(len(ids))]
        logs = [one[i] - np.logaddexp.reduce(one) for one, i in zip(read, ids, strict=True)]
        assert text.log_prob == pytest.approx(sum(logs), abs=1e-9)


def test_without_a_constraint_the_distribution_is_that_of_the_model(model, logits_of):
    found = sample_batch(model, PROMPT, None, 4000, max_new_tokens=1, eos_ids=[END], batch=4000)
    expected = np.exp(logits_of(PROMPT) - np.logaddexp.reduce(logits_of(PROMPT)))
    counts = np.zeros(len(expected))
    for text in found:
        counts[text.ids[0] if text.ids else END] += 1
        assert text.log_weight == (0 if text.ended else -np.inf)
        assert text.ended == (not text.ids)
    error = np.sqrt(expected * (1 - expected) / 4000)
    assert (abs(counts / 4000 - expected) < 5 * error + 1e-3).all()


@pytest.fixture(scope="module")
def whole(logits_of):
    """Of a constraint's texts: its constraint, and the model's probability of each id sequence."""
    constraint = constrain(TOKENIZER, r"(abc|ca|bb){1,2}", "lift", eos_ids=[END])
    found = {}

    def walk(matcher, log_prob):
        logits = logits_of([*PROMPT, *matcher.ids])
        logs = logits - np.logaddexp.reduce(logits)
        for token in matcher.allowed_ids().tolist():
            if token == END:
                found[matcher.ids] = np.exp(log_prob + logs[END])
                continue
            after = matcher.copy()
            after.advance(token)
            walk(after, log_prob + logs[token])

    walk(constraint.matcher(PROMPT), 0.0)
    return constraint, found


def test_ids_beyond_the_tokenizer_are_mass_that_masks_take_away(whole):
    """A padded vocabulary: no masked text has such an id, and the weights know what it took."""
    wide = tiny()
    with torch.no_grad():
        wide.lm_head.weight[TOKENIZER.n_ids :] *= 3
    for text in sample_batch(wide, PROMPT, whole[0], 20, max_new_tokens=9):
        assert max(text.ids) < TOKENIZER.n_ids
        read, log_prob = list(PROMPT), 0.0
        for token in (*text.ids, END):
            with torch.no_grad():
                expected = torch.log_softmax(wide(torch.tensor([read])).logits[0, -1], 0)
            log_prob += float(expected[token])
            read.append(token)
        assert text.log_prob == pytest.approx(log_prob)
    free = sample_batch(wide, PROMPT, None, 200, max_new_tokens=4, batch=200, eos_ids=[END])
    assert max(max(text.ids, default=0) for text in free) >= TOKENIZER.n_ids


@pytest.mark.parametrize("device", DEVICES)
def test_passes_as_a_graph_draw_the_same(device):
    """Slots of texts that have ended are given up in between."""
    model = tiny().to(device)
    constraint = constrain(TOKENIZER, REGEXES[0], eos_ids=[END])
    asked = {"max_new_tokens": 12, "seed": 3, "batch": 7}
    graphed = Graphed(model, len(PROMPT) + 12)
    for language in (constraint, None):
        expected = sample_batch(model, PROMPT, language, 20, eos_ids=[END], **asked)
        found = sample_batch(graphed, PROMPT, language, 20, eos_ids=[END], **asked)
        assert [text.ids for text in found] == [text.ids for text in expected]
        weights = [text.log_weight for text in expected]
        assert [text.log_weight for text in found] == pytest.approx(weights, abs=1e-9)
