"""The experiment on banned words with a tiny model; that its check can fail."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from bpe_automata import constrain
from bpe_automata.banning import Ban
from bpe_automata.sampling.banned import free
from bpe_automata.testing import byte_spelling, small_tokenizer
from experiments.run.measuring import Run, Settings, read_run
from experiments.serving import banned, banned_runs
from experiments.serving.banned_runs import WordList, wanting_model, word_lists
from experiments.shared import models
from experiments.shared.models import LoadedModel

LETTERS = [" t", "ta", "alk", "lis", "ten", "you", " f", "uck", "Can we ", "é", "日本"]


def tiny():
    data = [bytes([byte]) for byte in range(256)] + [text.encode() for text in LETTERS]
    vocabulary = [byte_spelling(spelled) for spelled in data]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    added = ["<end>", "<|im_start|>", "<|im_end|>"]
    return small_tokenizer(vocabulary, (), {**byte_level, "use_regex": False}, added)


@pytest.fixture(scope="module")
def rows_and_manifest(tmp_path_factory):
    """Of a stub that is drawn to the article's words."""
    folder, tokenizer = tmp_path_factory.mktemp("banned"), tiny()
    loaded = LoadedModel("tiny", "", None, tokenizer, (), "cpu", 0.0)
    model = wanting_model(tokenizer, WordList(banned_runs.WORDS, "anywhere", ""), 0, ())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "opened", lambda *_: loaded)
        patch.setattr(banned_runs, "causal", lambda loaded: model)
        patch.setattr(LoadedModel, "provenance", lambda self: {"model": self.name, "note": ""})
        config = banned.Config(new_tokens=12, lists=8)
        banned.measure(run := Run("banned", 1, config, folder, Settings()))
        run.finish()
    return read_run(folder)


def test_nothing_banned_gets_through(rows_and_manifest):
    rows, manifest = rows_and_manifest
    assert manifest["complete"]
    assert manifest["failures"] == 0
    assert len([row for row in rows if row["kind"] == "list"]) == 8
    assert [row["spellings"] is None for row in rows if row["kind"] == "list"] == [False] + 7 * [
        True
    ]
    assert any(row["free"]["banned"] for row in rows)
    assert any(row["rollback"].get("rollbacks") for row in rows if row["kind"] == "article")
    report = banned.render(rows, manifest)
    assert [*report.wrong] == []
    shown = "\n".join(table.markdown() for table in report.tables)
    assert "Log of the rollbacks" in shown
    assert "gemma-2-2b-it" in shown
    assert report.facts["lists"] == 8
    assert "In 8 random lists neither the mask nor going back let a word through" in banned.readme(
        report.facts
    )


def test_a_banned_word_is_wrong(rows_and_manifest):
    rows, manifest = copy.deepcopy(rows_and_manifest)
    rows[0]["rollback"]["banned"] = ["talk"]
    report = banned.render(rows, manifest)
    (line,) = report.wrong
    assert line.startswith("article 0, rollback: talk in ")
    assert "1 texts hold a banned word" in banned.readme(report.facts)


def test_nothing_measured_yet(rows_and_manifest):
    _, manifest = rows_and_manifest
    for rows in ([], [{"key": "article 0", "failure": "MemoryError: "}]):
        report = banned.render(rows, manifest)
        assert [*report.wrong] == []
        assert len(report.tables) == 1
        assert "In 0 random lists" in banned.readme(report.facts)


def test_each_mode_begins_alike_and_the_order_rotates(monkeypatch):
    """Before each clock the model has read the prompt, and each mode has what it needs of its
    own: nothing that a mode before it has made."""
    tokenizer = tiny()
    plain, ban, prompt = (
        free(tokenizer),
        Ban(["talk"], whole_word=True),
        tokenizer.encode("Can we "),
    )
    asked, clocks, given = [], [], []

    def model(ids):
        asked.append(tuple(ids))
        return np.zeros(tokenizer.n_ids)

    def noted(name):
        mode = getattr(banned_runs, name)

        def call(*args, **options):
            clocks.append((name, asked[-1:], len(asked)))
            given.append(options.get("constraint") or args[1])
            return mode(*args, **options)

        return call

    names = ("decode", "decode_allowed", "decode_without")
    for name in names:
        monkeypatch.setattr(banned_runs, name, noted(name))
    for turn in range(3):
        row = banned_runs.runs(
            model, tokenizer, ban, plain, prompt, "", turn, max_new_tokens=3, seed=0
        )
        turns = [row[mode]["turn"] for mode in banned_runs.MODES]
        assert turns == [(k - turn) % 3 for k in range(3)]
        assert all(row[mode]["prepared"] > 0 for mode in ("exact", "rollback"))
    assert [name for name, _, _ in clocks] == [names[k % 3] for k in (0, 1, 2, 1, 2, 3, 2, 3, 4)]
    assert all(last == [tuple(prompt)] for _, last, _ in clocks)
    assert len({id(constraint) for constraint in given}) == 9


@pytest.mark.parametrize("wrong", ["no mass", "fails", "nothing left"])
def test_a_text_that_there_is_not_becomes_a_row(wrong, rows_and_manifest):
    """And the tables show it."""
    tokenizer, plain = tiny(), free(tiny())
    ban = Ban(regexes=[r"[\s\S]"]) if wrong == "nothing left" else Ban(["talk"])
    if wrong == "nothing left":
        plain = constrain(tokenizer, "a", "lift", added_tokens=False)

    def model(ids):
        if wrong == "fails" and len(ids) > 1:
            raise RuntimeError("out of memory")
        return np.full(tokenizer.n_ids, -np.inf if wrong == "no mass" else 0.0)

    prompt = tokenizer.encode("C")
    row = banned_runs.runs(model, tokenizer, ban, plain, prompt, "", max_new_tokens=3, seed=0)
    names = {"no mass": "LogitsError", "fails": "ModelError", "nothing left": "EmptyLanguageError"}
    failed = [mode for mode in banned_runs.MODES if "error" in row[mode]]
    assert failed == list(banned_runs.MODES[wrong == "nothing left" :])
    assert {row[mode]["raised"] for mode in failed} == {names[wrong]}

    rows, manifest = rows_and_manifest
    shown = "\n".join(
        table.markdown() for table in banned.render([one | row for one in rows], manifest).tables
    )
    assert f"{names[wrong]}: " in shown
    other = 0 if wrong == "nothing left" else 6
    assert f"| {2 * len(failed) if wrong == 'nothing left' else 0} | {other} |" in shown


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
    assert banned_runs.found([word], text, before, whole, any_case) == [word] * stands


def test_lists_are_seeded_and_of_all_kinds():
    tokenizer = tiny()
    one, same, other = (word_lists(tokenizer, 16, seed) for seed in (3, 3, 4))
    assert one == same != other
    assert len({words.kind for words in one}) == 4
    assert any(words.before for words in one)
    assert any(not word.isascii() for words in one for word in words.words)
    assert np.all([words.ban().occurrence.accepts(words.words[0].encode()) for words in one])
