"""Batches of texts are drawn as the library's own loops draw them."""

from threading import Event

import numpy as np
import pytest
import torch
from support import tiny_llama
from tiny import drawn_by_hand, next_logits
from transformers.modeling_outputs import CausalLMOutputWithPast

from bpe_automata import constrain
from bpe_automata.sampling import decode
from bpe_automata.testing import byte_level, small_tokenizer
from experiments import batched
from experiments.batched import Free, drawn_uniforms, sample_batch

MERGES = [("a", "b"), ("ab", "c"), ("b", "c"), ("c", "a"), ("a", "a")]
TOKENS = [*"abcĠ", *map("".join, MERGES)]
TOKENIZER = small_tokenizer(TOKENS, MERGES, byte_level(), ["<end>"])
END = len(TOKENS)
PROMPT = [0, 3]  # "a "
REGEXES = [r"(abc|ca|bb){1,3}", r"[abc]{2}", r"a*b"]


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


@pytest.mark.parametrize("regexes", [REGEXES[:1], REGEXES])
def test_each_text_is_the_one_of_decode(model, logits_of, regexes):
    """Several constraints and temperatures in one batch; 0 takes the likeliest ids."""
    kinds = [(r, m) for r in regexes for m in ("canonical", "lift")]
    constraints = [constrain(TOKENIZER, r, m, eos_ids=[END]) for r, m in kinds for _ in range(8)]
    heats = [(1.0, 0.7, 1.3, 0.0)[k % 4] for k in range(len(constraints))]
    uniforms = drawn_uniforms(5, len(constraints), 6)
    found = sample_batch(
        model, [PROMPT] * len(kinds) * 8, constraints, uniforms, temperatures=heats
    )
    for k, text in enumerate(found):
        rng, options = np.random.default_rng((5, k)), {"max_new_tokens": 6, "temperature": heats[k]}
        expected = decode(logits_of, constraints[k], PROMPT, seed=rng, **options)
        assert text.ids == expected.ids
        assert text.ended == expected.complete
        assert text.log_weight == (0 if text.ended else -np.inf)
    assert len({text.ids for text in found}) > 4


def test_without_a_constraint_ids_are_those_of_the_model_and_of_the_numbers(model):
    """Any of its logits may be drawn, those beyond the tokenizer's ids too, after prompts of two
    lengths, each at its own temperature."""
    n, prompts = 200, [PROMPT, [1, 2, 3, 0, 2]] * 100
    uniforms, heats = drawn_uniforms(0, n, 2), [(0.8, 1.4, 1.0)[k % 3] for k in range(n)]
    free = Free([END])
    found = sample_batch(model, prompts, [None] * n, uniforms, temperatures=heats, free=free)
    for k, text in enumerate(found):
        numbers = uniforms[k][: len(text.ids) + text.ended]
        ids = drawn_by_hand(model, prompts[k], numbers, heats[k])
        assert ids == [*text.ids, *[END] * text.ended]
    assert max(max(text.ids, default=0) for text in found) >= TOKENIZER.n_ids


def test_a_text_without_a_constraint_ends_where_it_is_stopped(model):
    """Beside others, whose masks leave it all ids of the tokenizer."""
    constraints = [None, constrain(TOKENIZER, REGEXES[2], eos_ids=[END])] * 10
    uniforms = drawn_uniforms(1, 20, 8)
    prompts = [PROMPT] * 20
    free = Free(stop=lambda ids: len(ids) == 3)
    found = sample_batch(model, prompts, constraints, uniforms, free=free)
    assert all(len(text.ids) == 3 and text.ended for text in found[::2])
    alone = sample_batch(model, [PROMPT] * 10, constraints[1:2] * 10, uniforms[1::2])
    assert found[1::2] == alone


def test_populations_have_the_distribution_of_the_model(logits_of, model):
    """Of all tokenizations of a constraint, with the weights of all; beside texts in none."""
    constraint = constrain(TOKENIZER, r"(abc|ca|bb){1,2}", "lift", eos_ids=[END])
    law = {}
    for ids in constraint.automaton(PROMPT).enumerate():
        read = [*ids, END]
        logits = [logits_of([*PROMPT, *ids[:k]]) for k in range(len(read))]
        law[ids] = np.exp(
            sum(each[i] - np.logaddexp.reduce(each) for i, each in zip(read, logits, strict=True))
        )
    total, n, size = sum(law.values()), 40, 64
    groups = [*np.repeat(np.arange(n), size).tolist(), *[-1] * 20]
    uniforms = drawn_uniforms(2, len(groups), 9)
    given = [PROMPT] * len(groups), [constraint] * len(groups), uniforms
    texts = sample_batch(model, *given, populations=groups)
    weights = np.exp([text.log_weight for text in texts[:-20]])
    shares = dict.fromkeys(law, 0.0)
    for text, weight in zip(texts, weights / weights.sum(), strict=False):
        shares[text.ids] += weight
    assert weights.mean() == pytest.approx(total, rel=0.1)
    assert sum(abs(shares[ids] - p / total) for ids, p in law.items()) / 2 < 0.04
    assert all(text.ended and text.log_weight == 0 for text in texts[-20:])


class Told:
    """A model that tells when it is called, and then waits."""

    device = torch.device("cpu")

    def __init__(self, tell) -> None:
        self._tell = tell

    def batch_select_indices(self, _) -> None:
        """Of its cache, which is nothing."""

    def __call__(self, input_ids, **_):
        self._tell()
        logits = torch.zeros(len(input_ids), 1, TOKENIZER.n_ids)
        return CausalLMOutputWithPast(logits=logits, past_key_values=self)


@pytest.mark.parametrize("queued", [False, True])
def test_masks_are_made_while_the_model_reads(queued, monkeypatch):
    """Beside a model that computes, in another thread: here it goes on only when they are made.
    Where a device has a queue, after the call that fills it, and before anything waits for it."""
    order, made = list[str](), Event()
    made.set()

    def tell():
        order.append("model")
        assert queued or made.wait(60)
        made.clear()

    def read(texts, tokens, read=batched.Texts.read):
        read(texts, tokens)
        order.append("masks")
        made.set()

    def drawn(*given, draw=batched.draw):
        order.append("draw")
        return draw(*given)

    full = torch.full
    monkeypatch.setattr(batched, "is_queued", lambda _: queued)
    monkeypatch.setattr(torch, "full", lambda *given, pin_memory, **of: full(*given, **of))
    monkeypatch.setattr(batched, "draw", drawn)
    monkeypatch.setattr(batched.Texts, "read", read)
    constraints = [constrain(TOKENIZER, "[abc]{40}", eos_ids=[END])] * 4
    sample_batch(Told(tell), [PROMPT] * 4, constraints, drawn_uniforms(0, 4, 6))
    rounds = [order[at : at + 3] for at in range(1, len(order), 3)]
    expected = ["draw", "model", "masks"]
    assert order[0] == "model"
    assert [one if queued else sorted(one) for one in rounds[:-1]] == [
        expected if queued else sorted(expected)
    ] * 5
    assert rounds[-1] == ["draw", "masks"]
