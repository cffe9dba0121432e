"""The exactness table: complete and without exceptions; an exception is shown and is an error."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tiny_schemas import TABLE, measured, write_tokenizer

from bpe_automata.constructions import CanonicalAutomaton
from bpe_automata.errors import MissingFileError, UnsupportedTokenizerError
from experiments.laws import exact_measure, exactness
from experiments.laws.exact_measure import ADVERSARIAL, LAWS, OTHERS, STRINGS, TRIES, Work
from experiments.laws.exactness import Config
from experiments.run.executors import FAILURE
from experiments.run.measuring import read_run
from experiments.shared.corpus import Corpus, Source

N = 60
CODE = Source("a line", "code", ('{"a": [1,\r\n\t2]}  # 12\n',))


@pytest.fixture(scope="module", autouse=True)
def few():
    """Few regexes, one text."""
    pytest.importorskip("rich")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_measure, "VARIED", {"numbers": r"-?[0-9]+(\.[0-9]+)?"})
        patch.setattr(exact_measure, "FINITE", {"some": r"tru(e|th)? ?a?"})
        patch.setattr(exact_measure, "own_finite", lambda tokenizer: {})
        corpus = Corpus((CODE,), ("multilingual text without anything: find some",))
        patch.setattr(exact_measure, "open_corpus", lambda seed, text: corpus)
        exact_measure.corpus.cache_clear()
        yield
    exact_measure.corpus.cache_clear()


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> str:
    return write_tokenizer(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def config(tokenizer) -> Config:
    return Config(tokenizer=tokenizer, n=N, repeats=1)


@pytest.fixture(scope="module")
def finished(config, tmp_path_factory):
    """(rows, manifest) of a run without exceptions."""
    folder = tmp_path_factory.mktemp("results")
    measured(exactness, config, folder)
    return read_run(folder)


def run_of(config, folder):
    """(what is said, the manifest)."""
    measured(exactness, config, folder)
    rows, manifest = read_run(folder)
    return exactness.render(rows, manifest), manifest


def laws_of(rows, law):
    return [each for row in rows for each in row.get("laws", ()) if each["law"] == law]


def markdown(made) -> str:
    return "\n".join(table.markdown() for table in made.tables)


def test_every_law_is_tried_without_exceptions(finished):
    rows, manifest = finished
    laws = [law for row in rows for law in row.get("laws", ())]
    assert {law["law"] for law in laws} == set(LAWS)
    assert [law["exceptions"] for law in laws] == [0] * 7
    assert all(law["counts"]["tried"] for law in laws)
    assert rows[0]["facts"]["rectangles"] > 0
    assert manifest["complete"]
    assert exactness.render(rows, manifest).wrong == []


def test_strings_are_shared_among_the_kinds_and_counted_apart(finished):
    for law in (STRINGS, OTHERS):
        tried = {each["kind"]: each["counts"]["tried"] for each in laws_of(finished[0], law)}
        assert tried == {ADVERSARIAL: N // 2, "code": N // 2}
    text = markdown(exactness.render(*finished))
    assert "multilingual text without anything: find some" in text
    assert "code text: a line (1)" in text
    assert exact_measure.shares(8, ["a", "b", "c"]) == {"a": 3, "b": 3, "c": 2}


def test_tokenizers_are_named_and_their_hashes_are_kept(finished, tokenizer):
    rows, manifest = finished
    name = tokenizer.rpartition("/")[2]
    assert list(manifest["tokenizers"]) == [name]
    assert len(manifest["tokenizers"][name]) == 64
    assert tokenizer not in json.dumps(rows)
    assert tokenizer not in markdown(exactness.render(rows, manifest))


def believed(monkeypatch):
    """Else the automaton would be refused when it is made."""
    monkeypatch.setattr("bpe_automata.constructions.canonical.try_automaton", lambda it: None)


def test_an_exception_is_shown_in_full_and_is_wrong(config, tmp_path, monkeypatch):
    """An automaton that accepts everything."""
    monkeypatch.setattr(CanonicalAutomaton, "accepts", lambda automaton, ids: True)
    believed(monkeypatch)
    made, _ = run_of(config, tmp_path)
    found = laws_of(read_run(tmp_path)[0], OTHERS)
    assert all(each["counts"]["false accept"] == each["exceptions"] > 0 for each in found)
    first = found[0]["first"][0]
    assert first["encode"] != first["ids"]
    assert any(str(first["ids"]) in line for line in made.wrong)


def test_an_automaton_that_refuses_everything_is_found_out(config, tmp_path, monkeypatch):
    monkeypatch.setattr(CanonicalAutomaton, "accepts", lambda automaton, ids: False)
    believed(monkeypatch)
    made, _ = run_of(config, tmp_path)
    found = laws_of(read_run(tmp_path)[0], STRINGS)
    assert all(e["counts"]["false reject"] == e["counts"]["canonical"] > 0 for e in found)
    assert made.wrong


def test_the_approximations_are_tried_on_the_same_ids(finished):
    rows, manifest = finished
    for law in laws_of(rows, STRINGS) + laws_of(rows, OTHERS):
        assert list(law["approximations"]) == ["pairs of BPE", "re-encoded pairs"]
        for counts in law["approximations"].values():
            assert counts["false accept"] <= law["counts"]["tried"] - law["counts"]["canonical"]
            assert counts["false reject"] <= law["counts"]["canonical"]
    made = exactness.render(rows, manifest)
    assert "What exactness buys" in markdown(made)
    (own,) = made.facts["tokenizers"].values()
    assert list(own["approximations"]) == ["pairs of BPE", "re-encoded pairs"]


def test_the_readme_has_a_line_for_each_tokenizer(finished, tokenizer):
    said = exactness.readme(exactness.render(*finished).facts)
    name = tokenizer.rpartition("/")[2]
    lines = [line for line in said["exactness"].splitlines() if line.startswith(f"| {name} |")]
    assert f"| texts | {N} | rejected **0** |" in said["exactness in short"]
    assert len(lines) == 2
    assert lines[0].startswith(f"| {name} | {N}, **0** | {N}, **0** | 2, **0** |")
    assert lines[1].count("%") + lines[1].count("-") >= 6


def test_law_by_law_is_in_the_order_of_the_laws_however_they_came_in(finished):
    rows, manifest = finished
    once, again = (exactness.render(some, manifest) for some in (rows, [rows[0], *rows[:0:-1]]))
    assert markdown(once) == markdown(again)


def test_partial_rows_are_rendered(finished):
    rows, manifest = finished
    for n in range(len(rows)):
        made = exactness.render(rows[:n], manifest | {"complete": False})
        assert len(made.tables[0].rows) == (n > 0)
        exactness.readme(made.facts)


def test_the_first_regexes_of_each_sort():
    work = Work("x", 1, 0, most_regexes=0)
    assert exact_measure.regexes(work, TRIES, TABLE) == {}
    every = exact_measure.regexes(replace(work, most_regexes=None), TRIES, TABLE)
    assert [*every] == ["some"]


# ---------------------------------------------------------------- several tokenizers


@pytest.fixture
def several(config, tokenizer, monkeypatch, tmp_path):
    """What is said of two tokenizers of which loading the first raises an error."""

    def said(error):
        real = exact_measure.loaded

        def loaded(source):
            if source == "other":
                raise error
            return real(source)

        monkeypatch.setattr(exact_measure, "loaded", loaded)
        monkeypatch.setattr(Config, "tokenizers", lambda self: ("other", tokenizer))
        return run_of(replace(config, tokenizer="all"), tmp_path)

    return said


@pytest.mark.parametrize(
    ("error", "why_not"),
    [
        (MissingFileError("pip install it"), "not installed"),
        (UnsupportedTokenizerError("dropout", 0.1, "encode is random"), "refused"),
    ],
)
def test_among_all_tokenizers_one_that_cannot_be_tried_is_named(several, error, why_not):
    made, manifest = several(error)
    assert manifest["complete"]
    assert made.wrong == []
    assert made.tables[0].rows[0][0] == f"other: {why_not}"
    assert f"other: {error}" in made.tables[0].notes
    assert len(made.tables[0].rows) == 2
    assert "| other" not in exactness.readme(made.facts)["exactness"]


def test_among_all_tokenizers_one_that_fails_is_wrong(several):
    made, manifest = several(IndexError("a bug"))
    assert made.wrong == ["other: facts could not be tried: IndexError: a bug"]
    assert manifest["complete"]
    assert len(made.tables[0].rows) == 1, "the others are measured all the same"


def test_a_law_that_cannot_be_tried_is_wrong(config, tmp_path, monkeypatch):
    monkeypatch.setattr(exact_measure, "_tried", lambda *_: 1 / 0)
    made, manifest = run_of(config, tmp_path)
    assert manifest["failures"] == len(made.wrong) == 3
    assert all("ZeroDivisionError" in line for line in made.wrong)
    monkeypatch.undo()
    measured(exactness, config, tmp_path, retry=True)
    rows, manifest = read_run(tmp_path)
    assert (manifest["failures"], manifest["complete"]) == (0, True)
    assert not any(row.get(FAILURE) for row in rows)


def test_a_tokenizer_alone_that_is_absent_is_an_error(tmp_path):
    with pytest.raises(MissingFileError):
        measured(exactness, Config(tokenizer=str(tmp_path / "none.json")), tmp_path / "results")


# ---------------------------------------------------------------- times


def test_the_timings_leave_the_cache_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path))
    with exact_measure.empty_cache():
        inside = exact_measure.os.environ["BPE_AUTOMATA_CACHE"]
        assert inside != str(tmp_path)
    assert exact_measure.os.environ["BPE_AUTOMATA_CACHE"] == str(tmp_path)
    monkeypatch.delenv("BPE_AUTOMATA_CACHE")
    with exact_measure.empty_cache():
        assert "BPE_AUTOMATA_CACHE" in exact_measure.os.environ
    assert "BPE_AUTOMATA_CACHE" not in exact_measure.os.environ
