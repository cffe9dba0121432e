"""Texts that a model writes under bans, timed side by side and searched by strings alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bpe_automata import constrain
from bpe_automata.banning import Ban
from bpe_automata.sampling._banned import free
from bpe_automata.testing import byte_spelling, small_tokenizer
from experiments.artefacts import banned
from experiments.artefacts.banned import MODES, wanting_model
from experiments.models import LoadedModel

LETTERS = [" t", "ta", "alk", "lis", "ten", "you", " f", "uck", "Can we ", "é", "日本"]


@pytest.fixture(scope="module")
def tiny():
    """A tokenizer of all bytes and of these pieces, that does not cut texts beforehand."""
    data = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in LETTERS]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    added = ["<end>", "<|im_start|>", "<|im_end|>"]
    vocabulary = [byte_spelling(one) for one in data]
    return small_tokenizer(vocabulary, (), {**byte_level, "use_regex": False}, added)


@pytest.fixture
def rows(tiny, monkeypatch):
    loaded = LoadedModel("tiny", "", None, tiny, ())
    model = wanting_model(tiny, banned.WORDS, "", 0, ())
    monkeypatch.setattr(banned, "opened", lambda *_: loaded)
    monkeypatch.setattr(banned, "causal", lambda loaded: model)
    config = banned.Config(new_ids=12, lists=8)
    return pd.DataFrame(
        [cell | row for cell in banned.cells(config) for row in banned.measure(config, **cell)]
    )


def test_nothing_banned_gets_through(rows):
    texts = banned.written(rows)
    lists = texts[texts["number"].notna()]
    assert lists[lists["spellings"].notna()]["number"].unique().tolist() == [0]
    assert texts[texts["mode"] == "free"]["holds"].any()
    assert not texts[texts["mode"] != "free"]["holds"].any()
    assert (texts[texts["number"].isna()]["acted"] > 0).any()
    assert "neither the mask nor going back" in banned.numbers(rows)["banned"]
    rows.at[2, "banned"] = ["talk"]
    assert "1 texts hold" in banned.numbers(rows)["banned"]


def test_each_mode_begins_alike_and_the_order_rotates(tiny, monkeypatch):
    """Before each clock the model has read the prompt, and each mode has what it needs of its
    own: nothing that a mode before it has made."""
    plain, ban, prompt = free(tiny), Ban(["talk"], whole_word=True), tiny.encode("Can we ")
    asked, clocks, given = [], [], []

    def model(ids):
        asked.append(tuple(ids))
        return np.zeros(tiny.n_ids)

    def noted(name):
        mode = getattr(banned, name)

        def call(*args, **options):
            clocks.append((name, asked[-1:], len(asked)))
            given.append(options.get("constraint") or args[1])
            return mode(*args, **options)

        return call

    names = ("decode", "decode_allowed", "decode_without")
    for name in names:
        monkeypatch.setattr(banned, name, noted(name))
    for turn in range(3):
        rows = banned.runs(model, tiny, ban, plain, prompt, "", turn, max_new_tokens=3, seed=0)
        assert [row["mode"] for row in rows] == [MODES[(k + turn) % 3] for k in range(3)]
        assert all(row["prepared"] > 0 for row in rows)
    assert [name for name, _, _ in clocks] == [names[k % 3] for k in (0, 1, 2, 1, 2, 3, 2, 3, 4)]
    assert all(last == [tuple(prompt)] for _, last, _ in clocks)
    assert len({id(constraint) for constraint in given}) == 9


@pytest.mark.parametrize("wrong", ["no mass", "fails", "nothing left"])
def test_a_text_that_there_is_not_becomes_a_row(tiny, wrong):
    plain, ban = free(tiny), Ban(["talk"])
    if wrong == "nothing left":
        ban = Ban(regexes=[r"[\s\S]"])
        plain = constrain(tiny, "a", "lift", added_tokens=False)

    def model(ids):
        if wrong == "fails" and len(ids) > 1:
            raise RuntimeError("out of memory")
        return np.full(tiny.n_ids, -np.inf if wrong == "no mass" else 0.0)

    prompt = tiny.encode("C")
    rows = banned.runs(model, tiny, ban, plain, prompt, "", max_new_tokens=3, seed=0)
    names = {"no mass": "LogitsError", "fails": "ModelError", "nothing left": "EmptyLanguageError"}
    failed = [row for row in rows if "error" in row]
    assert [row["mode"] for row in failed] == list(MODES[wrong == "nothing left" :])
    assert {row["raised"] for row in failed} == {names[wrong]}


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
