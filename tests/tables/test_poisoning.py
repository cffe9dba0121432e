"""A mis-tokenized word: its other ids, the distributions after it, and what is said of them."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from tiny import tiny_llama

from bpe_automata.errors import ArgumentError
from experiments import models
from experiments.run.artefact import ARTEFACTS
from experiments.run.config import plain
from experiments.run.tables import frame
from experiments.shared.shown import estimate
from experiments.statistics import weighted_mean
from experiments.study.poisoning import artefact as poisoning
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
from experiments.study.poisoning.estimates import ALL_WAYS, MEDIAN, measured, of_way, of_words
from experiments.study.poisoning.words import (
    ANOTHER,
    CUT,
    NOISE,
    OWN,
    SMALLEST,
    TEMPLATES,
    WAYS,
    WORDS,
    OrdinaryTokens,
    SentenceError,
    other_ways,
    sentence,
    templates_of,
    with_another_word,
)

torch = pytest.importorskip("torch")


def spelled(tokenizer, ids):
    return b"".join(map(tokenizer.token_bytes, ids))


@pytest.mark.parametrize("category", WORDS)
def test_every_word_stands_in_templates_that_are_long_enough(category, smollm2_tokenizer):
    assert len(WORDS[category]) == len(set(WORDS[category])) >= 20
    places = poisoning.Config().distances[-1] + 1
    for word, (_, before, after) in product(WORDS[category], TEMPLATES[category]):
        text = sentence(smollm2_tokenizer, before, word, after)
        whole = [*text.before, *text.word, *text.after]
        assert whole == smollm2_tokenizer.encode(before + word + after)
        assert word.encode() in spelled(smollm2_tokenizer, text.word)
        assert len(text.word) <= len(word.encode()) + 1
        assert len(text.after) >= places


@pytest.mark.parametrize("category", WORDS)
def test_templates_take_turns_and_are_shared_by_name(category):
    every = TEMPLATES[category]
    assert len({*every}) == len(every) >= 6
    chosen = poisoning.Config()
    found = [templates_of(category, k, chosen.templates) for k in range(chosen.words)]
    assert found[1] == every[1:4]
    assert found[len(every) - 1] == [every[-1], *every[:2]]
    assert all(len({*some}) == 3 for some in found)
    assert sorted(templates_of(category, 5, 99)) == sorted(every)
    texts = {template.name: template for each in TEMPLATES.values() for template in each}
    assert all(texts[template.name] == template for template in every)


def test_other_ways_spell_the_same(smollm2_tokenizer):
    for word in (" weasel", " library", "学校", " вода", " getUserName", " cat"):
        own = smollm2_tokenizer.encode(word)
        ways = other_ways(smollm2_tokenizer, own, random.Random(1))
        assert set(ways) <= set(WAYS)
        assert len({tuple(own), *ways.values()}) == 1 + len(ways)
        for ids in ways.values():
            assert spelled(smollm2_tokenizer, ids) == word.encode()
            assert smollm2_tokenizer.encode(word) != list(ids)
        if CUT in ways:
            assert len(ways[CUT]) == len(own) + 1
        if SMALLEST in ways:
            assert len(ways[SMALLEST]) >= max(map(len, (own, *ways.values())))


def test_another_word_leaves_the_rest_as_it_is(smollm2_tokenizer):
    own = sentence(smollm2_tokenizer, "See the", " cat", " over there")
    name, other = with_another_word(
        smollm2_tokenizer, own, "See the", ["se", " dog"], " over there", 2
    )
    assert name == " dog"
    assert other.before == own.before
    assert other.after == own.after
    assert with_another_word(smollm2_tokenizer, own, "See the", ["se"], " over there", 2) is None


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


def test_a_cell(loaded, monkeypatch):
    monkeypatch.setattr(models, "opened", lambda *_: loaded)
    chosen = poisoning.Config(distances=(0, 2))
    template, other = templates_of("rare", 0, 2)
    row = poisoning.changed("tiny", "rare", 0, template, chosen)
    assert row == poisoning.changed("tiny", "rare", 0, template, chosen)
    assert (row["word"], row["template"]) == ("weasel", "plain 0")
    again = poisoning.changed("tiny", "rare", 0, other, chosen)
    assert again["template"] == "plain 1"
    assert all(again["found"][way]["ids"] == row["found"][way]["ids"] for way in (OWN, *WAYS))
    assert {OWN, ANOTHER} < set(row["found"])
    assert max(row["found"].pop(NOISE)["tv"]) < 1e-9
    assert all(len(found["loss"]) == 2 for found in row["found"].values())
    assert NOISE not in poisoning.changed("tiny", "rare", 1, template, chosen)["found"]


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


ROWS = [
    word("m", "a", [1.0, 1.0], {CUT: ([0.1, 0.0], [2.0, 1.0]), SMALLEST: ([0.3, 0.1], [3.0, 1.0])}),
    word("m", "b", [1.0, 2.0], {CUT: ([0.2, 0.0], [1.0, 2.0]), ANOTHER: ([0.9, 0.8], [5.0, 5.0])}),
    {"key": "c", "failure": "no"},
]
CHOSEN = poisoning.Config(models=("m", "n"), categories=("rare",), distances=(0, 16))
MANIFEST = {"config": plain(CHOSEN), "models": {"m": {"model": "The M", "note": ""}}}


ARTEFACT = ARTEFACTS["poisoning"]


def test_estimates_by_hand():
    """All three ways of both words: 0.1, 0.3 and 0.2 right after; KL is 4 times the variation."""
    words = measured(frame(ROWS), MANIFEST)
    near = words[words["d"] == 0]
    ways = of_way(near, ALL_WAYS)
    assert of_words(MEDIAN, "tv")(ways)[0] == pytest.approx(0.2)
    assert of_words(MEDIAN, "kl")(ways)[0] == pytest.approx(0.8)
    assert of_words(weighted_mean, "extra")(of_way(near, CUT))[0] == pytest.approx(0.5)
    assert of_words(MEDIAN, "tv")(of_way(near, ANOTHER)) == (0.9, 0.9, 0.9)
    assert of_words(MEDIAN, "tv")(of_way(near, "no such way")) is None


@pytest.mark.parametrize("unit", ["word", "template"])
def test_words_and_templates_are_both_drawn_again(unit):
    """Where only one of them makes a difference, the interval is as wide as for that one alone."""
    rows = [
        word("m", f"w{k}", [1.0, 1.0], {CUT: ([value / 8] * 2, [1.0, 1.0])}, f"plain {j}")
        for k in range(8)
        for j in range(8)
        for value in [k if unit == "word" else j]
    ]
    near = measured(frame(rows), MANIFEST).query("d == 0 and way == @CUT")
    _, low, high = of_words(weighted_mean, "tv")(near)
    alone = estimate(weighted_mean, "tv", unit)(near)
    assert high - low == pytest.approx(alone[2] - alone[1], rel=0.1)
    assert high - low > 0.3


def test_a_report_of_some_rows():
    ways = [["`shark`", 0.25], ["`s`+`hark`", 0.5], ["`s`+`har`+`k`", 0.125]]
    example = {"key": "e", "model": "m", "animal": "cow", "ways": ways, "split": 2}
    made = ARTEFACT.report([*ROWS, example], MANIFEST)
    assert made.facts["models"]["The M"]["words"] == 2
    assert made.facts["models"]["The M"]["templates"] == 1
    assert made.facts["models"]["The M"][ALL_WAYS]["0"][0] == pytest.approx(0.2)
    assert made.facts["example"]["The M"]["cow"] == {"own": 0.25, "others": 2, "raised": 1}
    farthest = [(line[0], line[4], line[5]) for line in made.tables[-1].rows]
    assert farthest == [("a", SMALLEST, "0.300"), ("b", CUT, "0.200"), ("a", CUT, "0.100")]


def test_the_order_of_rows_changes_nothing():
    rng = random.Random(8)
    rows = [
        word("m", f"w{k}", [1.0, 1.0], {CUT: ([rng.random(), rng.random()], [2.0, 1.5])}, f"p {j}")
        for k in range(9)
        for j in range(k % 3 + 1)
    ]
    made = ARTEFACT.report(rows, MANIFEST)
    for _ in range(3):
        rng.shuffle(rows)
        again = ARTEFACT.report(rows, MANIFEST)
        assert (again.tables, again.facts) == (made.tables, made.facts)


def test_what_cannot_be_measured_is_named():
    with pytest.raises(ArgumentError, match="--categories 'cake' is none of common, rare"):
        poisoning.check(poisoning.Config(categories=("rare", "cake")))
    for far in ((2, 1), (0, 0), (-1, 3), ()):
        with pytest.raises(ArgumentError, match=r"--distances .* ascending"):
            poisoning.check(poisoning.Config(distances=far))


def test_tokens_that_do_not_spell_their_text_are_refused(smollm2_tokenizer, monkeypatch):
    """As those of a SentencePiece model that puts a space before each text: the word would be
    looked for one byte too early."""
    encode = smollm2_tokenizer.encode
    monkeypatch.setattr(type(smollm2_tokenizer), "encode", lambda _, text: encode(" " + text))
    with pytest.raises(SentenceError, match="spell ' See the cat there'"):
        sentence(smollm2_tokenizer, "See the", " cat", " there")
