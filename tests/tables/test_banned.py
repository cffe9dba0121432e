"""Texts that a model writes under bans, searched by strings alone."""

import pandas as pd
import pytest

from bpe_automata.banning import Ban
from bpe_automata.testing import byte_level, byte_spelling, small_tokenizer
from experiments.artefacts import banned
from experiments.models import LoadedModel

LETTERS = [" t", "ta", "alk", "lis", "ten", "you", " f", "uck", "Can we ", "é", "日本"]


@pytest.fixture(scope="module")
def tiny():
    """A tokenizer of all bytes and of these pieces, that does not cut texts beforehand."""
    data = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in LETTERS]
    added = ["<end>", "<|im_start|>", "<|im_end|>"]
    return small_tokenizer([*map(byte_spelling, data)], (), byte_level(), added)


def test_nothing_banned_gets_through(tiny, monkeypatch):
    model = banned.wanting_model(tiny, banned.WORDS, "", 0, ())
    monkeypatch.setattr(banned, "opened", lambda *_: LoadedModel("tiny", None, tiny, ()))
    monkeypatch.setattr(banned, "causal", lambda loaded: model)
    config = banned.Config(new_ids=12, lists=8)
    rows = pd.DataFrame(
        [cell | row for cell in banned.cells(config) for row in banned.measure(config, **cell)]
    )
    texts = banned.written(rows)
    assert texts[texts["mode"] == "free"]["holds"].any()
    assert not texts[texts["mode"] != "free"]["holds"].any()
    assert (texts[texts["number"].isna()]["acted"] > 0).any()
    assert "neither the mask nor going back" in banned.numbers(rows)["banned"]
    rows.at[2, "banned"] = ["talk"]
    assert "1 texts hold" in banned.numbers(rows)["banned"]


@pytest.mark.parametrize(
    ("word", "text", "before", "whole", "any_case", "stands"),
    [
        ("talk", "a talking", "", False, False, True),
        ("talk", "a talking", "", True, False, False),
        ("talk", "TALK", "", True, True, True),
        ("talk", "lk", "we ta", True, False, True),
        ("talk", " now", "we talk", True, False, False),
        ("strasse", "Straße", "", True, True, True),
        ("sa", "ßa", "", False, True, False),
        ("aa", "aaa", "a", False, False, True),
    ],
)
def test_the_search_for_banned_words(word, text, before, whole, any_case, stands):
    assert banned.found(Ban([word], (), whole, any_case), text, before) == [word] * stands
