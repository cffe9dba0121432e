"""A mis-tokenized word: its other ids, the distributions after it, and what is said of them."""

import random
from itertools import product

import pandas as pd
import pytest
from tiny import next_logits

from experiments import words
from experiments.artefacts import poisoning
from experiments.artefacts.poisoning import compared, of_way, of_words, ratios
from experiments.statistics import weighted_mean
from experiments.words import ANOTHER, CUT, OWN, SMALLEST, TEMPLATES, WAYS, WORDS


@pytest.mark.parametrize("category", WORDS)
def test_every_word_stands_in_templates_that_are_long_enough(category, smollm2_tokenizer):
    assert len(WORDS[category]) == len(set(WORDS[category])) >= 20
    places = poisoning.Config().distances[-1] + 1
    for word, (_, before, after) in product(WORDS[category], TEMPLATES[category]):
        text = words.sentence(smollm2_tokenizer, before, word, after)
        whole = [*text.before, *text.word, *text.after]
        assert whole == smollm2_tokenizer.encode(before + word + after)
        assert word.encode() in smollm2_tokenizer.text_bytes(text.word)
        assert len(text.word) <= len(word.encode()) + 1
        assert len(text.after) >= places


def test_other_ways_spell_the_same(smollm2_tokenizer):
    for word in (" weasel", " library", "学校", " вода", " getUserName", " cat"):
        own = smollm2_tokenizer.encode(word)
        ways = words.other_ways(smollm2_tokenizer, own, random.Random(1))
        assert set(ways) <= set(WAYS)
        assert len({tuple(own), *ways.values()}) == 1 + len(ways)
        for ids in ways.values():
            assert smollm2_tokenizer.text_bytes(ids) == word.encode()
            assert smollm2_tokenizer.encode(word) != list(ids)
        if CUT in ways:
            assert len(ways[CUT]) == len(own) + 1
        if SMALLEST in ways:
            assert len(ways[SMALLEST]) >= max(map(len, (own, *ways.values())))


def next_masses(loaded, *parts):
    return next_logits(loaded.model, [i for part in parts for i in part]).softmax(-1)


def test_a_word_against_one_pass_for_each_distance(loaded):
    text = words.sentence(loaded.tokenizer, "See the", " weasel", " over there, it runs")
    ways = words.other_ways(loaded.tokenizer, text.word, random.Random(1))
    spelled = {OWN: text.word, **ways}
    rows = {row["way"]: row for row in compared(loaded, text, spelled, (0, 1, 3))}
    for way, ids in spelled.items():
        for k, d in enumerate((0, 1, 3)):
            own, other = (
                next_masses(loaded, text.before, word, text.after[:d]) for word in (text.word, ids)
            )
            loss = float(-other[text.after[d]].log())
            assert rows[way]["loss"][k] == pytest.approx(loss, rel=1e-4)
            if way != OWN:
                tv = float((own - other).abs().sum() / 2)
                assert rows[way]["tv"][k] == pytest.approx(tv, rel=1e-4)
    assert "tv" not in rows[OWN]


def test_the_published_example_against_one_pass_for_each_way(loaded):
    row = ratios(loaded, "weasel")
    encode = loaded.tokenizer.encode
    mammal, fish = encode(" mammal")[0], encode(" fish")[0]
    ways = words.OrdinaryTokens(loaded.tokenizer).all_ways(b" shark")
    ways = sorted(ways, key=lambda ids: (len(ids), ids))
    own = encode("A weasel shark")[len(encode("A weasel")) :]
    assert len(row["ways"]) == len(ways) > 8
    for ids, (_, ratio) in [(own, row["ways"][0]), *zip(ways[1:3], row["ways"][1:3], strict=True)]:
        masses = next_masses(loaded, encode("A weasel"), ids, encode(" is a kind of"))
        assert ratio == pytest.approx(float(masses[mammal] / masses[fish]), rel=1e-4)
    assert row["ways"][row["split"]][0] == "`␣s`+`har`+`k`"


def test_estimates_by_hand():
    """All three ways of both words: 0.1, 0.3 and 0.2 right after."""

    def rows(word, losses, ways):
        said = {"model": "m", "source": "m", "category": "rare", "word": word, "d": [0]}
        own = said | {"template": "plain 0", "way": OWN, "loss": losses, "tv": None}
        return [own, *(own | {"way": w, "tv": [t], "loss": [x]} for w, t, x in ways)]

    every = rows("a", [1.0], [(CUT, 0.1, 2.0), (SMALLEST, 0.3, 3.0)])
    every += rows("b", [1.0], [(CUT, 0.2, 1.0), (ANOTHER, 0.9, 5.0)])
    near = poisoning.measured(pd.DataFrame(every))
    assert of_words(of_way(near, poisoning.ALL), poisoning.MEDIAN, "tv")[0] == pytest.approx(0.2)
    assert of_words(of_way(near, CUT), weighted_mean, "extra")[0] == pytest.approx(0.5)
    assert of_words(of_way(near, ANOTHER), poisoning.MEDIAN, "tv") == (0.9, 0.9, 0.9)
    assert of_words(of_way(near, "no such way"), poisoning.MEDIAN, "tv") is None


def test_tokens_that_do_not_spell_their_text_are_refused(smollm2_tokenizer, monkeypatch):
    """As those of a SentencePiece model that puts a space before each text: the word would be
    looked for one byte too early."""
    encode = smollm2_tokenizer.encode
    monkeypatch.setattr(type(smollm2_tokenizer), "encode", lambda _, text: encode(" " + text))
    with pytest.raises(words.SentenceError, match="spell ' See the cat there'"):
        words.sentence(smollm2_tokenizer, "See the", " cat", " there")
