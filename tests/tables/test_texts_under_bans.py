"""Texts that a model writes under bans, timed side by side."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from bpe_automata import constrain
from bpe_automata.banning import Ban
from bpe_automata.sampling._banned import free
from bpe_automata.testing import byte_spelling, small_tokenizer
from experiments import models
from experiments.models import LoadedModel
from experiments.run.measuring import Run, Settings, read_run
from experiments.run.tables import frame
from experiments.serving import banned
from experiments.serving.banned import WordList, wanting_model

LETTERS = [" t", "ta", "alk", "lis", "ten", "you", " f", "uck", "Can we ", "é", "日本"]
PIECES = ['{"', '":', '":"', '","', '"}', "na", "me", "name", "title", " a", "ab", "12"]
MERGES = [("n", "a"), ("m", "e"), ("na", "me"), ("{", '"'), ('"', ":"), ('":', '"'), ("a", "b")]


def spelled(pieces, merges):
    """A tokenizer of all bytes and of these pieces, that does not cut texts beforehand."""
    data = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in pieces]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    added = ["<end>", "<|im_start|>", "<|im_end|>"]
    vocabulary = [byte_spelling(one) for one in data]
    return small_tokenizer(vocabulary, merges, {**byte_level, "use_regex": False}, added)


TOKENIZER = spelled(PIECES, MERGES)
END = 256 + len(PIECES)


@pytest.fixture(scope="module")
def tiny():
    return spelled(LETTERS, ())


# ---------------------------------------------------------------- banned words


@pytest.fixture(scope="module")
def banned_rows(tiny, tmp_path_factory):
    """Of a stub that is drawn to the article's words."""
    folder = tmp_path_factory.mktemp("banned")
    loaded = LoadedModel("tiny", "", None, tiny, (), "cpu", 0.0)
    model = wanting_model(tiny, WordList(banned.WORDS, "anywhere", ""), 0, ())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "opened", lambda *_: loaded)
        patch.setattr(banned, "causal", lambda loaded: model)
        patch.setattr(LoadedModel, "provenance", lambda self: {"model": self.name, "note": ""})
        config = banned.Config(new_tokens=12, lists=8)
        banned.measure(run := Run("banned", 1, config, folder, Settings()))
        run.finish()
    return read_run(folder)


def test_nothing_banned_gets_through(banned_rows):
    rows, manifest = banned_rows
    assert manifest["failures"] == 0
    spellings = [row["spellings"] for row in rows if row["kind"] == "list"]
    assert [one is None for one in spellings] == [False] + 7 * [True]
    assert any(row["free"]["banned"] for row in rows)
    assert any(row["rollback"].get("rollbacks") for row in rows if row["kind"] == "article")
    assert banned.wrong(frame(rows), manifest) == []
    facts = banned.facts(frame(rows), manifest)
    assert (facts["lists"], facts["let_through"]) == (8, 0)


def test_a_banned_word_is_wrong(banned_rows):
    rows, manifest = copy.deepcopy(banned_rows)
    rows[0]["rollback"]["banned"] = ["talk"]
    (line,) = banned.wrong(frame(rows), manifest)
    assert line.startswith("article 0, rollback: talk in ")
    assert banned.facts(frame(rows), manifest)["let_through"] == 1


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
        row = banned.runs(model, tiny, ban, plain, prompt, "", turn, max_new_tokens=3, seed=0)
        turns = [row[mode]["turn"] for mode in banned.MODES]
        assert turns == [(k - turn) % 3 for k in range(3)]
        assert all(row[mode]["prepared"] > 0 for mode in ("exact", "rollback"))
    assert [name for name, _, _ in clocks] == [names[k % 3] for k in (0, 1, 2, 1, 2, 3, 2, 3, 4)]
    assert all(last == [tuple(prompt)] for _, last, _ in clocks)
    assert len({id(constraint) for constraint in given}) == 9


@pytest.mark.parametrize("wrong", ["no mass", "fails", "nothing left"])
def test_a_text_that_there_is_not_becomes_a_row(tiny, wrong, banned_rows):
    """And the tables show it."""
    plain, ban = free(tiny), Ban(["talk"])
    if wrong == "nothing left":
        ban = Ban(regexes=[r"[\s\S]"])
        plain = constrain(tiny, "a", "lift", added_tokens=False)

    def model(ids):
        if wrong == "fails" and len(ids) > 1:
            raise RuntimeError("out of memory")
        return np.full(tiny.n_ids, -np.inf if wrong == "no mass" else 0.0)

    prompt = tiny.encode("C")
    row = banned.runs(model, tiny, ban, plain, prompt, "", max_new_tokens=3, seed=0)
    names = {"no mass": "LogitsError", "fails": "ModelError", "nothing left": "EmptyLanguageError"}
    failed = [mode for mode in banned.MODES if "error" in row[mode]]
    assert failed == list(banned.MODES[wrong == "nothing left" :])
    assert {row[mode]["raised"] for mode in failed} == {names[wrong]}

    rows, manifest = banned_rows
    tables = banned.tables(frame([one | row for one in rows]), manifest)
    assert any(f"{names[wrong]}: " in table.markdown() for table in tables)


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
    assert banned.found([word], text, before, whole, any_case) == [word] * stands
