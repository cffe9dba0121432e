"""A mis-tokenized word: the distributions after it, against single passes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tiny import tiny_llama

from experiments.study.poisoning.artefact import (
    canonical_next,
    compared,
    divergences,
    losses,
    next_log_probs,
    outside,
    ratios,
    variations,
)
from experiments.study.poisoning.words import (
    ANOTHER,
    NOISE,
    OWN,
    OrdinaryTokens,
    other_ways,
    sentence,
)

torch = pytest.importorskip("torch")


def test_a_padded_batch_has_the_distributions_of_each_sequence_alone(tiny_model):
    start, batch = [3, 1], [[0, 1, 2, 3, 4], [5, 6, 7], [1, 1, 2, 3, 4, 5, 6, 7]]
    found = next_log_probs(tiny_model, start, batch, (0, 2))
    for ids, logs in zip(batch, found, strict=True):
        with torch.no_grad():
            alone = tiny_model(torch.tensor([[*start, *ids]])).logits[0].log_softmax(-1)
        assert torch.allclose(logs, alone[[-3, -1]], atol=1e-9)


def test_distances_by_hand():
    one = torch.tensor([[0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3]]).double()
    two = torch.tensor([[0.25, 0.25, 0.5], [1 / 3, 1 / 3, 1 / 3]]).double()
    assert variations(one, two) == pytest.approx([0.25, 0])
    found = divergences(one, one.log(), two.log())
    assert found == pytest.approx([0.25 * np.log(2), 0], abs=1e-6)
    assert losses(one.log(), [0, 2]) == pytest.approx([np.log(2), np.log(3)], abs=1e-5)
    kept = torch.tensor([[1, 1, 0], [0, 1, 0]]).double()
    assert outside(one, kept) == pytest.approx([0.25, 2 / 3], abs=1e-5)


@pytest.fixture(scope="module")
def loaded(smollm2_tokenizer):
    return tiny_llama(smollm2_tokenizer)


def next_masses(loaded, ids):
    with torch.no_grad():
        return loaded.model(torch.tensor([ids])).logits[0, -1].softmax(-1)


def test_a_word_against_one_pass_for_each_distance(loaded):
    text = sentence(loaded.tokenizer, "See the", " weasel", " over there, it runs")
    ways = other_ways(loaded.tokenizer, text.word, random.Random(1))
    found = compared(loaded, text, {OWN: text.word, **ways}, (0, 1, 3))
    for name, ids in {OWN: text.word, **ways}.items():
        for k, d in enumerate((0, 1, 3)):
            own, other = (
                next_masses(loaded, [*text.before, *word, *text.after[:d]])
                for word in (text.word, ids)
            )
            loss = float(-other[text.after[d]].log())
            assert found[name]["loss"][k] == pytest.approx(loss, rel=1e-4)
            if name != OWN:
                tv = (own - other).abs().sum() / 2
                assert found[name]["tv"][k] == pytest.approx(float(tv), rel=1e-4)
    assert "tv" not in found[OWN]


def test_what_goes_on_canonically(loaded):
    """After the word and after what follows, against encoding continuations with more behind."""
    encode = loaded.tokenizer.encode
    text = sentence(loaded.tokenizer, "See the", " weasel", " over there, it runs")
    allowed = canonical_next(loaded, text, (0, 2))
    assert allowed.shape == (2, loaded.tokenizer.n_ids)
    assert allowed[:, 2].all()
    for row, d in enumerate((0, 2)):
        before = [*text.before, *text.word, *text.after[:d]]
        assert allowed[row, text.after[d]]
        for token in {*encode(" s is 1.\nel a weasels e")}:
            goes_on = [*before, token]
            more = encode(loaded.tokenizer.decode(goes_on) + " and")
            assert allowed[row, token] == (more[: len(goes_on)] == goes_on)


def test_the_published_example_against_one_pass_for_each_way(loaded):
    row = ratios(loaded, "weasel")
    encode = loaded.tokenizer.encode
    mammal, fish = encode(" mammal")[0], encode(" fish")[0]
    tokens = OrdinaryTokens(loaded.tokenizer)
    ways = sorted(tokens.all_ways(b" shark"), key=lambda ids: (len(ids), ids))
    own = encode("A weasel shark")[len(encode("A weasel")) :]
    assert len(row["ways"]) == len(ways) > 8
    for ids, (_, ratio) in [(own, row["ways"][0]), *zip(ways[1:3], row["ways"][1:3], strict=True)]:
        masses = next_masses(loaded, [*encode("A weasel"), *ids, *encode(" is a kind of")])
        assert ratio == pytest.approx(float(masses[mammal] / masses[fish]), rel=1e-4)
    assert row["ways"][row["split"]][0] == "`␣s`+`har`+`k`"
    shown = [tokens for tokens, _ in row["ways"]]
    assert len(set(shown)) == len(shown)


def word(model, name, own, ways, template="plain 0"):
    found = {OWN: {"loss": own, "outside": [0.0] * len(own), "tokens": "own"}}
    for way, (tv, loss) in ways.items():
        kl = [4 * value for value in tv]
        found[way] = {"tv": tv, "kl": kl, "loss": loss, "outside": [0.5] * len(own), "tokens": way}
    found[NOISE] = {"tv": [1e-7] * len(own)}
    row = {"key": f"{name} {template}", "model": model, "category": "rare", "word": name}
    row |= {"template": template, "found": found}
    return row | {"another": "other" if ANOTHER in ways else None}
