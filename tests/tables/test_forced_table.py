"""Forced tokens: counts against those by hand, and what a model is saved by them."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import numpy as np
import pytest

from bpe_automata import constrain
from bpe_automata.errors import MissingFileError
from bpe_automata.testing import small_tokenizer
from experiments import models
from experiments.models import LoadedModel
from experiments.run.measuring import Run, Settings, read_run
from experiments.run.tables import frame
from experiments.schemas.inputs import Case
from experiments.serving import forced, forced_walks
from experiments.serving.forced_walks import (
    METHODS,
    chop,
    item_of,
    walked,
)

VOCABULARY = [*"abcdefghx", "bc", "abc", "bd", "abd"]
MERGES = [("b", "c"), ("a", "bc"), ("b", "d"), ("a", "bd")]
TOKENIZER = small_tokenizer(VOCABULARY, MERGES, added=["<end>"])


def given(name, regex, *texts):
    return Case(name, "g", {"regex": regex}, texts, (True,) * len(texts))


CASES = [
    given("one", "xab(c|d)", "xabc", "xabd", "nothing"),
    given("two", "e(f|g)+h", "efgh"),
    given("bad", "(", "a"),
    given("all other", "a", "b"),
]
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}},
    "required": ["a"],
    "additionalProperties": False,
}


# ---------------------------------------------------------------- what is known of given texts


@pytest.fixture(scope="module")
def rows_and_manifest(tmp_path_factory):
    """Of the tiny tokenizer, without a model."""
    folder = tmp_path_factory.mktemp("forced")
    path = folder / "given.jsonl"
    lines = [{"id": c.id, "group": "g", **c.source, "valid": c.texts} for c in CASES]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = forced.Config(regexes=path, sampled=0, tokenizers=("tiny",), texts=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forced, "tokenizer_of", lambda name: TOKENIZER)
        forced.measure(run := Run("forced", 1, config, folder, Settings(executor="inline")))
        run.finish()
    return read_run(folder)


def counts(dfa_of, method):
    """Counts of a method along all texts of a source."""
    item = item_of(dfa_of, "as given")
    found = walked(TOKENIZER, item.dfa, item.texts)
    assert tuple(found["methods"]) == METHODS
    return Counter(**found["methods"][method])


def test_counts_by_hand():
    """x,abc and x,abd: x is certain; the heuristic adds a b, of which neither is in any text that
    matches. At 1 it keeps a, at 2 none. No id after x is certain, and the lift has x a b."""
    one = CASES[0]
    assert counts(one, "canonical") == Counter(ids=4, known=2, runs=2)
    wrong = Counter(ids=4, known=2, runs=2, departing=2, no_match=2)
    assert counts(one, "chop 0") == wrong
    assert counts(one, "chop 1") == wrong
    assert counts(one, "chop 2") == counts(one, "chop 4") == counts(one, "canonical")
    assert counts(one, "lift") == counts(one, "canonical")
    two = CASES[1]
    for method in METHODS:
        assert counts(two, method) == Counter(ids=4, known=1, runs=1)


def test_the_heuristic_in_the_table_is_the_one_that_is_appended():
    """After each prefix of each text, for each count."""
    found = set()
    for source in CASES[:2]:
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


def test_what_is_known_is_a_share_of_all_ids(rows_and_manifest):
    """3 of 8 ids are certain, by either automaton; what has no automaton says why."""
    rows, manifest = rows_and_manifest
    facts = forced.facts(frame(rows), manifest)
    assert facts["known"]["canonical"] == facts["known"]["lift"] == [37.5, 37.5]
    assert facts["saved"] is None
    assert "no choice about 38 % of all ids, the lift about 38 % (" in forced.readme(facts)
    assert [row["refused"] is None for row in rows] == [True, True, False, True]
    assert "RegexSyntaxError" in rows[2]["refused"]
    assert [row.get("texts") for row in rows] == [2, 1, None, 0]
    assert [row.get("other") for row in rows] == [1, 0, None, 1]


def test_schemas_in_both_styles(tmp_path):
    """Gzipped or not; instances that are not valid are left out."""
    tests = [{"valid": True, "data": {"a": True}}, {"valid": False, "data": {}}]
    row = json.dumps({"id": "s", "schema": SCHEMA, "tests": tests})
    (tmp_path / "plain.jsonl").write_text(row + "\n")
    with gzip.open(tmp_path / "zipped.jsonl.gz", "wt") as file:
        file.write(row + "\n\n")
    cases = forced.Config(schemas=tmp_path).cases()
    assert [case.group for case in cases["compact"]] == ["plain", "zipped"]
    pytest.importorskip("outlines_core")
    for style, text in (("compact", '{"a":true}'), ("spaced", '{"a": true}')):
        item = item_of(cases[style][0], style)
        assert item.texts == cases[style][0].valid == (text,)
        assert item.dfa.accepts(b'{"a": true}') == (style == "spaced")
    refused = item_of(Case("s", "g", {"schema": {"type": "nonsense"}}, (), ()), "compact")
    assert refused.refused.startswith("outlines-core: ")


def test_a_line_that_lacks_something_is_named(tmp_path):
    path = tmp_path / "regexes.jsonl"
    path.write_text('{"id": "r"}\n')
    with pytest.raises(MissingFileError, match=r"regexes.jsonl has a line .*valid"):
        forced.Config(regexes=path).cases()


# ---------------------------------------------------------------- what a model writes


class Stub:
    """A model that has one opinion, and counts."""

    def __init__(self):
        self.passes = 0

    def __call__(self, ids):
        self.passes += 1
        return np.linspace(0, 1, TOKENIZER.n_ids) + len(ids) % 3


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


@pytest.fixture
def opened(request, monkeypatch):
    """Both the stub, for `decode`, and the model of transformers, for `generate`."""
    loaded = LoadedModel("stub", "", request.getfixturevalue("hosted"), TOKENIZER, (13,), "cpu", 0)
    monkeypatch.setattr(models, "opened", lambda *_: loaded)
    monkeypatch.setattr(forced, "causal", lambda loaded: Stub())
    monkeypatch.setattr(forced, "prompt_of", lambda item: "h")


def written(source, loop, mode):
    return forced.compared(forced.Config(seed=3), source, "as given", loop, mode, True)


@pytest.mark.parametrize("mode", forced.MODES)
@pytest.mark.parametrize("loop", forced.LOOPS)
def test_generation_with_and_without(loop, mode, opened):
    row = written(CASES[0], loop, mode)
    assert row["same"]
    assert row["without"]["passes"] == 3  # x, abc or abd, the end
    assert row["with"]["passes"] == 1
    assert row["with"]["forced"] == 2
    facts = forced.facts(frame([row]), {"model": "stub"})
    assert facts["saved"] == pytest.approx([200 / 3, 200 / 3])


def test_one_more_schema_that_fits_displaces_at_most_one_other():
    """Its row failed before: a key means what it meant."""
    made, pairs = forced.Config(texts=2), [(given(f"{k}", "a"), "as given") for k in range(20)]
    for k in range(2, len(pairs)):
        before, after = (
            {cell.key: cell.arguments[1:5] for cell in forced.cells(pairs[:n], made)}
            for n in (k, k + 1)
        )
        kept = before.keys() & after.keys()
        assert all(before[key] == after[key] for key in kept)
        assert len(kept) >= len(before) // 2
