"""The experiment on banned words with a tiny model; that its check can fail."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bpe_automata.testing import byte_spelling, small_tokenizer
from experiments import banned, banned_report, banned_runs
from experiments.banned_lists import WordList, wanting_model, word_lists
from experiments.runner import Options, read_run

LETTERS = [" t", "ta", "alk", "lis", "ten", "you", " f", "uck", "Can we ", "é", "日本"]


def tiny():
    data = [bytes([byte]) for byte in range(256)] + [text.encode() for text in LETTERS]
    vocabulary = [byte_spelling(spelled) for spelled in data]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    added = ["<end>", "<|im_start|>", "<|im_end|>"]
    return small_tokenizer(vocabulary, (), {**byte_level, "use_regex": False}, added)


@pytest.fixture(scope="module")
def options(tmp_path_factory) -> Options:
    made = Options("banned", model="tiny", n=8, results=tmp_path_factory.mktemp("banned"))
    tokenizer = tiny()
    words = WordList(banned.WORDS, "anywhere", "")
    model = wanting_model(tokenizer, words, 0, ())
    banned.measure(made, tokenizer, model, {"model": "tiny", "note": ""}, 8, new_tokens=12)
    return made


def test_nothing_banned_gets_through(options, capsys):
    rows, manifest = read_run(options)
    assert manifest["complete"]
    assert len([row for row in rows if row["kind"] == "list"]) == 8
    assert any(row["free"]["banned"] for row in rows)
    assert any(row["rollback"].get("rollbacks") for row in rows if row["kind"] == "article")
    assert banned_report.passed(rows) == 0
    banned.run(Options("banned", model="tiny", render_only=True, results=options.results))
    shown = capsys.readouterr().out
    assert "Log of the rollbacks" in shown
    assert "gemma-2-2b-it" in shown
    assert (options.folder / "banned.md").exists()


def test_a_banned_word_is_the_exit_code(options, tmp_path):
    rows, manifest = read_run(options)
    rows[0]["rollback"]["banned"] = ["talk"]
    again = Options("banned", model="tiny", render_only=True, results=tmp_path)
    again.folder.mkdir()
    (again.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (again.folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SystemExit) as ended:
        banned.run(again)
    assert ended.value.code == 1


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
