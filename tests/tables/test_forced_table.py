"""The experiment on forced tokens: counts against hand, failures as rows, tables, generation."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from bpe_automata import constrain
from bpe_automata.decoding.chop import chop
from bpe_automata.errors import MissingFileError
from bpe_automata.testing import small_tokenizer
from experiments import forced, forced_generation, forced_report, forced_walks
from experiments.forced_inputs import Source, item_of, regexes_of, sampled, schemas_of
from experiments.forced_options import ForcedOptions
from experiments.forced_walks import METHODS, Counts, walked
from experiments.runner import read_run

VOCABULARY = [*"abcdefghx", "bc", "abc", "bd", "abd"]
MERGES = [("b", "c"), ("a", "bc"), ("b", "d"), ("a", "bd")]
TOKENIZER = small_tokenizer(VOCABULARY, MERGES, added=["<end>"])
SOURCES = [
    Source("one", "g", regex="xab(c|d)", texts=("xabc", "xabd", "nothing")),
    Source("two", "g", regex="e(f|g)+h", texts=("efgh",)),
    Source("bad", "g", regex="(", texts=("a",)),
    Source("all other", "g", regex="a", texts=("b",)),
]
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    path = tmp_path_factory.mktemp("forced")
    made = ForcedOptions("forced", n=0, results=path, generate=False)
    forced.measure(made, SOURCES, {"tiny": TOKENIZER})
    return made


def counts(dfa_of, method):
    """Counts of a method along all texts of a source."""
    item = item_of(dfa_of, "as given")
    found = walked(TOKENIZER, item.dfa, item.texts)
    assert tuple(found["methods"]) == METHODS
    return Counts(**found["methods"][method])


def test_counts_by_hand():
    """x,abc and x,abd: x is certain; the heuristic adds a b, of which neither is in any text that
    matches. At 1 it keeps a, at 2 none. No id after x is certain, and the lift has x a b."""
    one = SOURCES[0]
    assert counts(one, "canonical") == Counts(ids=4, known=2, runs=2)
    wrong = Counts(ids=4, known=2, runs=2, departing=2, no_match=2)
    assert counts(one, "chop 0") == wrong
    assert counts(one, "chop 1") == wrong
    assert counts(one, "chop 2") == counts(one, "chop 4") == counts(one, "canonical")
    assert counts(one, "lift") == counts(one, "canonical")
    two = SOURCES[1]
    for method in METHODS:
        assert counts(two, method) == Counts(ids=4, known=1, runs=1)


def test_ids_that_no_text_has():
    """b c is never two ids, whatever comes: that is a run of no text at all."""
    source = Source("x", "g", regex="hb(ce|cf)", texts=("hbce",))
    assert counts(source, "chop 0") == Counts(ids=3, known=2, runs=1)
    given = Source("x", "g", regex="(b|x)(c|x)(e|f)", texts=("bce",))
    assert counts(given, "canonical") == Counts(ids=2)


def test_the_heuristic_in_the_table_is_the_one_of_the_package():
    """At each place of each text, for each count."""
    found = set()
    for source in SOURCES[:2]:
        item = item_of(source, "as given")
        engines = [
            constrain(TOKENIZER, item.dfa, method).engine for method in ("canonical", "lift")
        ]
        for text in item.texts:
            walk = forced_walks._walk(TOKENIZER, *engines, text)
            methods = forced_walks._methods(walk, *engines)
            for most in forced_walks.CHOPS:
                for k, state in enumerate(walk.canonical):
                    run = chop(engines[0], state, walk.ids[:k], most)
                    assert methods[f"chop {most}"](k) == run
                    found.add(len(run))
    assert found == {0, 1, 2, 3}


def test_rows_and_failures(options):
    rows, manifest = read_run(options)
    assert manifest["complete"]
    assert [row["id"] for row in rows] == ["one", "two", "bad", "all other"]
    assert [row["failure"] is None for row in rows] == [True, True, False, True]
    assert "RegexSyntaxError" in rows[2]["failure"]
    assert (rows[0]["texts"], rows[0]["other"], rows[3]["texts"], rows[3]["other"]) == (2, 1, 0, 1)


def test_the_table(options, capsys):
    rows, manifest = read_run(options)
    forced_report.render(rows, manifest, options)
    shown, markdown = capsys.readouterr().out, (options.folder / "forced.md").read_text()
    for text in (shown, markdown):
        assert "20.4 %" in text
        assert "4.0 %" in text
        assert "97 %" in text
        assert "all 4; without a regex: 1 (RegexSyntaxError 1)" in text
        assert "3 valid instances match their regex and are walked; 2 do not" in text
        assert "INCOMPLETE" not in text
    lines = [line for line in markdown.splitlines() if line.startswith("| tiny, chop 0")]
    assert "| 2 (66.7 %) | 2 (66.7 %) | 0 |" in lines[0]
    cells = {line.count(" | ") for line in markdown.splitlines() if line.startswith("| tiny")}
    assert cells == {7}


def test_an_incomplete_run_says_so(options):
    rows, manifest = read_run(options)
    table = forced_report.shares("as given", rows[:-1], manifest)
    assert "INCOMPLETE: 1 schema" in table.notes[0]


def test_samples_and_folders(options):
    assert sampled(SOURCES, 2, 1) == sampled(SOURCES, 2, 1)
    assert len(sampled(SOURCES, 2, 1)) == 2
    assert sampled(SOURCES, 0, 1) == sampled(SOURCES, 9, 1) == SOURCES
    assert options.folder.name == "forced"
    assert ForcedOptions("forced", tokenizer="tekken").folder.name == "forced-tekken"
    assert ForcedOptions("forced").figures.name == "paper_figures"
    assert ForcedOptions("forced", tokenizer="tekken").figures.name == "forced-tekken"


def test_schemas_from_files(tmp_path):
    """Gzipped or not; instances that are not valid are left out."""
    tests = [{"valid": True, "data": {"a": True}}, {"valid": False, "data": {}}]
    row = json.dumps({"id": "s", "schema": SCHEMA, "tests": tests})
    (tmp_path / "plain.jsonl").write_text(row + "\n")
    with gzip.open(tmp_path / "zipped.jsonl.gz", "wt") as file:
        file.write(row + "\n\n")
    found = schemas_of(tmp_path)
    assert [source.group for source in found] == ["plain", "zipped"]
    assert found[0].texts_in("compact") == ('{"a":true}',)
    assert found[0].texts_in("spaced") == ('{"a": true}',)
    pytest.importorskip("outlines_core")
    for style, text in (("compact", '{"a":true}'), ("spaced", '{"a": true}')):
        item = item_of(found[0], style)
        assert item.texts == (text,)
        assert item.dfa.accepts(b'{"a": true}') == (style == "spaced")
    refused = item_of(Source("s", "g", schema={"type": "nonsense"}), "compact")
    assert refused.failure.startswith("outlines-core: ")


def test_regexes_from_files(tmp_path):
    path = tmp_path / "regexes.jsonl"
    path.write_text('{"id": "r", "group": "g", "regex": "a+", "valid": ["aa"]}\n')
    assert regexes_of(path) == [Source("r", "g", regex="a+", texts=("aa",))]
    path.write_text('{"id": "r"}\n')
    with pytest.raises(MissingFileError, match="regex"):
        regexes_of(path)
    with pytest.raises(MissingFileError, match="schemas"):
        schemas_of(tmp_path / "nowhere")


class Stub:
    """A model that has one opinion, and counts."""

    def __init__(self):
        self.passes = 0

    def __call__(self, ids):
        self.passes += 1
        return np.linspace(0, 1, TOKENIZER.n_ids) + len(ids) % 3


class Loaded:
    name, tokenizer, eos_ids = "stub", TOKENIZER, (13,)
    model = Stub


@pytest.fixture(scope="module")
def hosted():
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=TOKENIZER.n_ids + 2,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        bos_token_id=None,
        eos_token_id=13,
    )
    return transformers.LlamaForCausalLM(config).double().eval()


def table_of(*rows):
    manifest = {"config": {"generation": forced_generation.CONFIG}, "seed": 3}
    return forced_report.passes(rows, manifest)


@pytest.mark.parametrize("mode", forced_generation.MODES)
@pytest.mark.parametrize("loop", forced_generation.LOOPS)
def test_generation_with_and_without(loop, mode, monkeypatch, request):
    if loop == "generate":
        monkeypatch.setattr(Loaded, "hosted", request.getfixturevalue("hosted"), raising=False)
    monkeypatch.setattr(forced_generation, "prompt_of", lambda item: "h")
    item = item_of(SOURCES[0], "as given")
    row = forced_generation.compared(Loaded, item, loop, mode, 3, True)
    assert row["failure"] is None
    assert row["same"]
    assert row["without"]["passes"] == 3  # x, abc or abd, the end
    assert row["with"]["passes"] == 1
    assert row["with"]["forced"] == 2
    row["without"]["seconds"], row["with"]["seconds"] = 4.0, 1.0
    title = {"decode": "decode", "generate": "transformers' generate"}[loop]
    line = [f"{title}, {mode}", "1", "2", "2", "3", "1", "66.7 %", "4.0", "1.0", "0.25", "1 of 1"]
    assert table_of(row).rows == [line]


def test_what_cannot_be_generated_is_a_row():
    """The row has the whole message, the table its beginning, without a path of the machine."""
    item = item_of(SOURCES[0], "as given")
    message = "no weights at /srv/cache/models/x, nor at ~/y: " + "give a folder; " * 9

    def missing():
        raise MissingFileError(message)

    row = forced_generation.compared(missing, item, "decode", "greedy", 0, False)
    assert row["failure"] == f"MissingFileError: {message}"
    note = table_of(row).notes[-1]
    start = "one, decode, greedy: MissingFileError: no weights at ..., nor at ... give a folder;"
    assert note.startswith(start)
    assert note.endswith(" ...")
    assert len(note) <= len("one, decode, greedy: ") + 80


def test_what_is_no_path_stays():
    for text in ("E: either/or 1/2", "E: no id a/b"):
        assert forced_report.shown(text) == text
    for path in ("/srv/x y", "'/srv/x' y", "../x/z y", "https://host/x y"):
        assert "x" not in forced_report.shown(f"E: {path}").replace("https", "")


def test_jobs_are_some_small_schemas_in_both_modes_and_loops():
    items = [item_of(source, "as given") for source in SOURCES]
    chosen = forced_generation.chosen(items, 0)
    assert {item.source.id for item in chosen} == {"one", "two", "all other"}
    jobs = forced_generation.jobs(ForcedOptions("forced"), chosen)
    assert len(jobs) == 4 * len(chosen)
