"""Texts that a model writes, timed side by side: banned words, and what forced ids save."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from bpe_automata import constrain
from bpe_automata.banning import Ban
from bpe_automata.sampling import decode
from bpe_automata.sampling._banned import free
from bpe_automata.testing import byte_spelling, small_tokenizer
from experiments import models
from experiments.models import LoadedModel
from experiments.run.measuring import Run, Settings, read_run
from experiments.run.tables import frame
from experiments.serving import banned, speedup
from experiments.serving.banned import WordList, wanting_model
from experiments.serving.speedup import (
    WAYS,
    Config,
    Task,
    certain,
    nothing,
    passed_over,
    write,
)
from experiments.serving.speedup_report import families, in_runs, over_schemas, written

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


# ---------------------------------------------------------------- what forced ids save


class Opinion:
    """A model whose opinion depends on the length; it counts, and keeps what it was asked."""

    def __init__(self, seed=0):
        self.passes, self.asked = 0, []
        self.noise = np.random.default_rng(seed).normal(size=(32, TOKENIZER.n_ids))

    def __call__(self, ids):
        self.passes += 1
        self.asked.append(tuple(ids))
        return self.noise[len(ids) % 32]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("regex", [r'\{"name":"[a-z]{0,5}"\}', r"(ab|a)*12", r"name|12"])
def test_the_loop_is_that_of_decode(regex, method, temperature):
    """With and without forced ids: the ids, the passes, and what the model is asked."""
    for seed, (known, forced) in enumerate([(nothing, False), (certain, True)] * 3):
        constraint = constrain(TOKENIZER, regex, method, eos_ids=(END,), added_tokens=False)
        asked = {"max_new_tokens": 9, "temperature": temperature, "seed": seed}
        theirs, ours = Opinion(), Opinion()
        expected = decode(theirs, constraint, (1, 2), forced=forced, **asked)
        asked["most_ids"] = asked.pop("max_new_tokens")
        found = write(ours, constraint.engine, (1, 2), known, **asked)
        assert tuple(token for token in found.ids if token != END) == expected.ids
        assert found.passes == ours.passes == expected.passes
        assert ours.asked == theirs.asked
        assert sum(found.runs) == expected.forced
        assert found.seconds >= found.model + found.masks > 0


def row(family, schema, seed, passes, seconds):
    """Four ids; the canonical way with forced ids has these passes and seconds."""
    way = {"ids": 4, "bytes": 8, "seconds": 2.0, "passes": 4, "runs": []}
    way |= {"model": 1.0, "masks": 0.5}
    ours = way | {"passes": passes, "seconds": seconds, "runs": [4 - passes]}
    names = [one.name for one in WAYS]
    ways = {name: ours if name == "canonical forced" else way for name in names}
    return {"family": family, "schema": schema, "seed": seed, "ways": ways}


def test_seeds_of_a_schema_are_one_number():
    rows = [row("f", "a", 0, 1, 1.0), row("f", "a", 1, 3, 2.0), row("g", "a", 0, 2, 3.0)]
    texts = written(frame(rows))
    ours, lift = (texts[texts["way"] == way] for way in ("canonical forced", "lift forced"))
    assert over_schemas(ours, "saved")["value"] == 0.5
    assert over_schemas(lift, "saved")["value"] == 0
    assert over_schemas(ours, "wall")["value"] == (0.75 + 1.5) / 2
    assert over_schemas(ours, "wall")["n"] == 2
    assert [len(some) for _, some in families(ours)] == [2, 1, 3]
    shares = [in_runs(ours, least) for least in (1, 2, 3, 4)]
    assert shares == [6 / 12, 5 / 12, 3 / 12, 0]


def test_schemas_are_drawn_and_passed_over():
    fit, more = {"type": "boolean"}, {"type": "integer", "minimum": 0, "maximum": 99}
    alone, large = {"const": 1}, {"type": "string", "maxLength": 40}
    unfit = {"uniqueItems": True, "type": "array", "items": {"type": "string"}}
    tasks = [
        Task("f", str(k), json.dumps(one)) for k, one in enumerate([fit, more, alone, large, unfit])
    ]
    terms = Config(most_states=30)
    found, over = passed_over(tasks, terms, 5, "0")
    assert {task.id for task in found} == {"0", "1"}
    assert over == {"one text only": 1, "more than 30 states": 1, "UnsupportedSchemaError": 1}
    assert passed_over(tasks, terms, 5, "0") == (found, over)
    assert [len(passed_over(tasks, terms, count, "0")[0]) for count in (0, 1, 2)] == [0, 1, 2]


@pytest.fixture(scope="module")
def loaded():
    return LoadedModel("stub", "", None, TOKENIZER, (END,), "cpu", 0.0)


@pytest.fixture(scope="module")
def speedup_rows(loaded, tmp_path_factory):
    folder = tmp_path_factory.mktemp("speedup")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "opened", lambda *_: loaded)
        patch.setattr(speedup, "causal", lambda loaded: Opinion())
        patch.setattr(LoadedModel, "provenance", lambda self: {"model": "stub", "device": "none"})
        config = replace(speedup.SMOKE, each=2, seeds=2, most_ids=40)
        speedup.measure(run := Run("speedup", 1, config, folder, Settings()))
        run.finish()
    return read_run(folder)


def test_rows_add_up(speedup_rows):
    rows, manifest = speedup_rows
    assert manifest["complete"]
    assert manifest["failures"] == 0
    assert [row["turn"] for row in rows] == [0, 1, 2, 3]
    assert len({row["schema"] for row in rows}) == 2
    for one in rows:
        ways = one["ways"]
        assert set(ways) == {way.name for way in WAYS}
        assert one["same"] == {"lift": True, "canonical": True}
        for name, way in ways.items():
            assert way["passes"] + sum(way["runs"]) == way["ids"] <= 40
            assert bool(way["runs"]) == (name not in ("lift", "canonical"))
        for method in ("lift", "canonical"):
            assert ways[method]["text"] == ways[f"{method} forced"]["text"]
            assert ways["canonical"]["own"] is not False


def test_other_ids_than_those_of_encode_are_wrong(speedup_rows):
    rows, manifest = copy.deepcopy(speedup_rows)
    rows[1]["ways"]["canonical"]["own"] = False
    rows[1]["ways"]["lift"]["own"] = False
    (line,) = speedup.wrong(frame(rows), manifest)
    assert line.startswith(f"{rows[1]['key']}, canonical: ")
