"""The experiment on masks: its texts are of its languages, engines agree, and rows become tables;
never how fast."""

from __future__ import annotations

import json
import re
import time

import numpy as np
import pytest

from bpe_automata import compile_regex
from bpe_automata.errors import ArgumentError
from bpe_automata.schemas import compile_json_schema
from experiments.laws.exact_measure import SMOKE_TOKENIZER
from experiments.run.executors import FAILURE
from experiments.run.measuring import Run, Settings, read_run
from experiments.schemas.inputs import SMOKE_SCHEMAS
from experiments.serving import masks, masks_profile
from experiments.serving.masks_cases import BATCHES, WARMING, constraints
from experiments.serving.masks_child import WHITESPACE, Worker, answered, spent
from experiments.serving.masks_numbers import all_measured, pooled, shared
from experiments.shared.engines import PeerError, filling, refusals
from experiments.shared.more_engines import PEERS, engine_of

CASES = {case.id: case for case in constraints(())}
TABLE = (  # issue 17's, which the goals are about
    "boolean",
    "president",
    "e-mail",
    "URL",
    "string of 200",
    "prose of 300",
    "line of 500",
    "function call",
    "nested object",
    "array of objects",
)


@pytest.mark.parametrize("name", CASES)
def test_texts_are_of_their_languages(name):
    source = CASES[name].source
    if "regex" in source:
        dfa = compile_regex(source["regex"])
        assert all(re.fullmatch(source["regex"], text) for text in CASES[name].texts)
    else:
        dfa = compile_json_schema(source["schema"], whitespace=WHITESPACE)
    for text in CASES[name].texts:
        assert dfa.accepts(text.encode())


def test_what_warms_is_none_of_what_is_timed():
    timed = [json.dumps(case.source) for case in CASES.values()]
    assert not {json.dumps(source) for source, _ in WARMING} & {*timed}
    assert len(CASES) >= 18
    assert {*TABLE, *(name for names in BATCHES.values() for name in names)} <= {*CASES}


def test_constraints_are_chosen_by_name():
    assert [case.id for case in constraints(("date", "boolean"))] == ["date", "boolean"]
    with pytest.raises(ArgumentError, match="'dates'"):
        constraints(("dates",))


@pytest.mark.parametrize("name", ["llguidance", "glrmask", "xgrammar", "outlines_core"])
@pytest.mark.parametrize("source", ["regex", "schema", "batch"])
def test_each_peer_makes_the_mask_of_the_lift(smollm2_tokenizer, name, source):
    """Where all of them are right; end of sequence is in none of these masks."""
    if PEERS[name].version() is None:
        pytest.skip(f"{name} is not installed")
    words = (smollm2_tokenizer.n_ids + 31) // 32
    masks_of = []
    for engine in (engine_of("lift", smollm2_tokenizer), engine_of(name, smollm2_tokenizer)):
        if source == "schema":
            begin = engine.prepare_schema('{"enum": ["ab", "c"]}', WHITESPACE)
        else:
            begin = engine.prepare(r"(true|false)")
        out = np.zeros((3, words), dtype=np.int32)
        if source == "batch":
            engine.batch([begin(), begin(), begin()], out)()
        else:
            filling(begin(), out[1:2])()
        masks_of.append(out)
    assert (masks_of[0] == masks_of[1]).all()
    assert masks_of[0].any()


def test_a_panic_is_a_refusal_of_one_line():
    with pytest.raises(PeerError, match=r"^BaseException: panicked$"), refusals():
        raise BaseException("panicked\nat x")
    with pytest.raises(KeyboardInterrupt), refusals():
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def worker(smollm2_tokenizer):
    return Worker("canonical", smollm2_tokenizer)


def asked(worker, tokenizer, regex, texts, **given):
    question = {"source": {"regex": regex}, "ids": [tokenizer.encode(text) for text in texts]}
    return answered(worker, question | {"hold": False} | given)


def test_cold_are_the_places_that_are_new(worker, smollm2_tokenizer):
    texts = ["2024-02-29", "2024-03-01", "2024-02-29"]
    row = asked(worker, smollm2_tokenizer, r"[0-9]{4}-[0-9]{2}-[0-9]{2}", texts)
    ids = [smollm2_tokenizer.encode(text) for text in texts]
    assert [len(text["cold"]) for text in row["texts"]] == [len(ids[0]), 4, 0]  # ... 2 0 2 4 - 0 |
    assert [len(text["warm"]) for text in row["texts"]] == [len(own) + 1 for own in ids]
    assert [len(text["advance"]) for text in row["texts"]] == [*map(len, ids)]
    assert {text["stopped"] for text in row["texts"]} == {None}


def test_texts_that_are_stopped_say_where(worker, smollm2_tokenizer):
    row = asked(worker, smollm2_tokenizer, r"(yes|no), (yes|no)", ["yes, maybe", "no,", "no, no"])
    ends = len(smollm2_tokenizer.encode("no,"))
    assert [text["stopped"] for text in row["texts"]] == [2, ends, None]


def test_a_refusal_is_a_row(worker, smollm2_tokenizer):
    assert "RegexSyntaxError" in asked(worker, smollm2_tokenizer, "(", ["a"])[FAILURE]


def test_schemas_are_kept_alive(worker, smollm2_tokenizer):
    rows = [asked(worker, smollm2_tokenizer, "a|b", ["a"], hold=True) for _ in range(2)]
    assert [row["held"] for row in rows] == [1, 2]


def test_a_batch_is_where_its_ids_have_led(worker, smollm2_tokenizer):
    ids = smollm2_tokenizer.encode("2024")
    place = {"source": {"regex": "[0-9]{4}"}, "ids": ids[:2]}
    assert len(answered(worker, {"batch": [place] * 3})["batch"]) == 21
    wrong = answered(worker, {"batch": [place | {"ids": smollm2_tokenizer.encode("x")}]})
    assert "is refused" in wrong[FAILURE]


def test_time_that_others_take_is_not_counted():
    assert spent(time.sleep, 0.05) < 25_000


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """Rows and manifest of a small run, with schemas or without."""

    def measured(schemas):
        folder = tmp_path_factory.mktemp("masks")
        config = masks.Config(
            engines=("canonical",),
            tokenizers=(SMOKE_TOKENIZER,),
            constraints=("boolean",),
            schemas=schemas,
            n=1,
            rounds=2,
        )
        masks.measure(run := Run("masks", 1, config, folder, Settings()))
        run.finish()
        return read_run(folder)

    return measured


def test_without_schemas_the_tables_say_so(run_of, tmp_path):
    rows, manifest = run_of(tmp_path / "none")
    assert manifest["complete"]
    assert manifest["failures"] == 0
    assert [row["name"] for row in rows] == ["", "boolean", "", "boolean"]
    report = masks.render(rows, manifest)
    assert any("schemas were left out" in note for t in report.tables for note in t.notes)
    assert str(tmp_path) not in "".join(table.markdown() for table in report.tables)
    assert "| canonical |" in masks.readme(report.facts)["masks"]


def test_engines_have_an_order_and_must_be_known(tmp_path):
    config = masks.Config(engines=("magic",), schemas=SMOKE_SCHEMAS)
    with pytest.raises(ArgumentError, match="'magic'"):
        masks.measure(Run("masks", 1, config, tmp_path, Settings()))


# ---------------------------------------------------------------- numbers


def answer_row(engine, name, number, cold, stopped=None, is_schema=False, **more):
    text = {"cold": cold, "warm": cold, "advance": cold, "stopped": stopped}
    whose = {"tokenizer": "t", "engine": engine, "name": name, "round": number}
    row = {"compile": 1.0, "first": 2.0, "texts": [text], "peak_mb": 1.0, "is_schema": is_schema}
    return whose | row | more


def start_row(engine):
    whose = {"tokenizer": "t", "engine": engine, "name": "", "round": 0}
    return whose | {"ready": 1.0, "process_mb": 100.0, "engine_mb": 10.0}


def failed_row(engine, name):
    whose = {"tokenizer": "t", "engine": engine, "name": name, "round": 0}
    return whose | {FAILURE: "over time: more than 1 s", "is_schema": True}


ROWS = [
    start_row("canonical"),
    start_row("xgrammar"),
    *(answer_row("canonical", "date", k, [us, 1.0]) for k, us in enumerate((30.0, 10.0, 20.0))),
    answer_row("xgrammar", "date", 0, [5.0], stopped=1),
    *(answer_row("canonical", name, 0, [7.0], is_schema=True) for name in "abc"),
    answer_row("xgrammar", "a", 0, [4.0], is_schema=True),
    answer_row("xgrammar", "b", 0, [4.0], stopped=0, is_schema=True),
    failed_row("xgrammar", "c"),
]
MANIFEST = {
    "constraints": ["date"],
    "schemas": 9,
    "no_schemas": None,
    "config": {"rounds": 3, "seconds": 1, "mb": 2, "patience": 3, "n": 3},
}


def test_medians_are_over_rounds_and_refused_texts_do_not_count():
    ours, theirs = all_measured(ROWS, {"xgrammar": "1.2"})
    assert ours.constraints["date"].texts[0]["cold"] == [20.0, 1.0]
    assert theirs.name == "xgrammar 1.2"
    assert theirs.constraints["date"].stopped == {0: 1}
    assert pooled(theirs.constraints, "cold", None) == []
    assert theirs.refused == {"c": "over time: more than 1 s"}


def test_schemas_are_compared_where_every_engine_read_the_text():
    measured = all_measured(ROWS, {})
    assert shared(measured) == {("a", 0)}
    only_ours = [one for one in measured if one.engine == "canonical"]
    assert shared(only_ours) == {("a", 0), ("b", 0), ("c", 0)}


def test_the_tables_name_what_was_refused():
    report = masks.render(ROWS, MANIFEST)
    refused = report.tables[-1]
    assert ["xgrammar", "t: c", "over time: more than 1 s"] in refused.rows
    assert ["xgrammar", "t: date, t: b", "texts stopped on the way"] in refused.rows
    assert [*report.wrong] == []
    assert [figure.name for figure in report.figures] == ["masks"]
    stopped = [row | {"texts": [row["texts"][0] | {"stopped": 0}]} for row in ROWS[2:5]]
    assert masks.render([ROWS[0], *stopped], MANIFEST).wrong


def test_the_readme_has_a_line_for_each_engine():
    said = masks.readme(masks.render(ROWS, MANIFEST).facts)
    for place in ("masks", "masks in short"):
        lines = [line for line in said[place].splitlines() if line.startswith("| ")]
        assert [line.split(" | ")[0] for line in lines[2:]] == ["| canonical", "| xgrammar"]
    assert masks.readme({"tokenizers": {}}) == {}


@pytest.mark.parametrize("method", ["canonical", "lift"])
def test_a_profile_tells_the_kernels_from_python(smollm2_tokenizer, method):
    found = masks_profile.masks(smollm2_tokenizer, "boolean", method)
    kernel = {"canonical": "product_row", "lift": "lift_row"}[method]
    assert any(kernel in mask.kernels for mask in found)
    assert all(mask.kernels.total() < mask.us for mask in found)
    assert any(f"{kernel} " in str(mask) for mask in found)
