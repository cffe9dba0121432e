"""Batches of texts are drawn as the library's own loop draws them, with the same weights."""

from __future__ import annotations

import numpy as np
import pytest
from support import tiny_llama
from tiny import next_logits

from bpe_automata import constrain
from bpe_automata.sampling import decode
from bpe_automata.testing import byte_level, small_tokenizer
from experiments.batched import sample_batch
from experiments.graphed import Graphed

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
MERGES = ["a b", "ab c", "b c", "c a", "a a"]
TOKENS = [*"abcĠ", *(merge.replace(" ", "") for merge in MERGES)]
TOKENIZER = small_tokenizer(
    TOKENS, [tuple(merge.split()) for merge in MERGES], byte_level(), added=["<end>"]
)
END = len(TOKENS)
PROMPT = [0, 3]  # "a "
REGEXES = [r"(abc|ca|bb){1,3}", r"[abc]{2}", r"a*b"]


DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def tiny():
    """A random llama with three logits beyond the tokenizer's ids."""
    given = {"size": 32, "layers": 2, "initializer_range": 0.2}
    return tiny_llama(1, TOKENIZER.n_ids + 3, **given).double()


@pytest.fixture(scope="module")
def model():
    return tiny()


@pytest.fixture(scope="module")
def logits_of(model):
    """The model as the library's loops ask it: no cache, no batch."""
    return lambda ids: next_logits(model, ids).numpy()


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


def test_ids_beyond_the_tokenizer_are_mass_that_masks_take_away():
    """A padded vocabulary: no masked text has such an id, and its probability knows of them."""
    wide, lift = tiny(), constrain(TOKENIZER, r"(abc|ca|bb){1,2}", "lift", eos_ids=[END])
    with torch.no_grad():
        wide.lm_head.weight[TOKENIZER.n_ids :] *= 3
    for text in sample_batch(wide, PROMPT, lift, 20, max_new_tokens=9):
        assert max(text.ids) < TOKENIZER.n_ids
        read, log_prob = list(PROMPT), 0.0
        for token in (*text.ids, END):
            log_prob += float(next_logits(wide, read).log_softmax(-1)[token])
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
