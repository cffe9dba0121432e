"""The experiment on banned words with a tiny model; that its check can fail."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bpe_automata import constrain
from bpe_automata.banning import Ban
from bpe_automata.sampling.banned import free
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
def test_a_text_that_there_is_not_becomes_a_row(wrong, options, tmp_path, capsys):
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

    rows, manifest = read_run(options)
    broken = [{**one, **row} for one in rows]
    again = Options("banned", model="tiny", render_only=True, results=tmp_path)
    banned_report.render(broken, manifest, again)
    shown = again.folder.joinpath("table.md").read_text()
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
