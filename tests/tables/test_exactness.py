"""The exactness table: complete and without exceptions; an exception is shown and is an error."""

from __future__ import annotations

import contextlib
import io
import json
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from bpe_automata.constructions import CanonicalAutomaton
from bpe_automata.errors import MissingFileError, UnsupportedTokenizerError
from experiments import exact_facts, exact_measure, exactness
from experiments.corpus import Corpus, Source
from experiments.exact_measure import ADVERSARIAL, LAWS, OTHERS, STRINGS
from experiments.exact_options import ExactOptions
from experiments.runner import Options

N = 60
CODE = Source("a line", "code", ('{"a": [1,\r\n\t2]}  # 日本\n',))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module", autouse=True)
def few():
    """Few regexes, one text."""
    pytest.importorskip("rich")
    with pytest.MonkeyPatch.context() as monkeypatch:
        patch(monkeypatch)
        yield


def patch(monkeypatch):
    monkeypatch.setattr(exact_measure, "VARIED", {"numbers": r"-?[0-9]+(\.[0-9]+)?"})
    monkeypatch.setattr(exact_measure, "FINITE", {"contractions": r"it'(s|ll|re)? ?a?"})
    monkeypatch.setattr(exact_measure, "own_finite", lambda tokenizer: {})
    corpus = Corpus((CODE,), ("multilingual text without anything: find some",))
    monkeypatch.setattr(exactness, "open_corpus", lambda seed, text: corpus)
    monkeypatch.setattr(exact_facts, "REPEATS", 1)


@pytest.fixture(scope="module")
def finished(folder, smollm2_gguf):
    """(options of a run without exceptions, what it printed)."""
    options = ExactOptions("exactness", n=N, results=folder)
    with io.StringIO() as printed, contextlib.redirect_stdout(printed):
        exactness.run(options)
        return options, printed.getvalue()


@pytest.fixture
def options(tmp_path, smollm2_gguf):
    return ExactOptions("exactness", n=20, results=tmp_path)


def rows(options):
    lines = (options.folder / "rows.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def manifest(options):
    return json.loads((options.folder / "manifest.json").read_text())


def test_every_law_is_tried_without_exceptions(finished):
    options, printed = finished
    facts, *laws = rows(options)
    assert {row["law"] for row in laws} == set(LAWS)
    assert [row["exceptions"] for row in laws] == [0] * 7
    assert all(row["counts"]["tried"] for row in laws)
    assert facts["facts"]["rectangles"] > 40_000
    assert facts["facts"]["unreachable"] == 0
    assert manifest(options)["complete"]
    assert "EXCEPTION" not in printed
    assert "INCOMPLETE" not in printed


def test_strings_are_shared_among_the_kinds_and_counted_apart(finished):
    options, _ = finished
    for law in (STRINGS, OTHERS):
        tried = {row["kind"]: row["counts"]["tried"] for row in rows(options) if row["law"] == law}
        assert tried == {ADVERSARIAL: N // 2, "code": N // 2}
    table = (options.folder / "table.md").read_text()
    assert "multilingual text without anything: find some" in table
    assert "code text: a line (1)" in table


def test_the_manifest_names_tokenizers_by_name_and_hash(finished, smollm2_gguf):
    options, _ = finished
    tokenizers = manifest(options)["tokenizers"]
    assert list(tokenizers) == ["smollm2"]
    assert len(tokenizers["smollm2"]) == 64
    by_path = ExactOptions("exactness", n=4, results=options.results, tokenizer=str(smollm2_gguf))
    exactness.run(by_path)
    assert list(manifest(by_path)["tokenizers"]) == [smollm2_gguf.name]
    for path in by_path.folder.iterdir():
        assert str(smollm2_gguf.parent) not in path.read_text()


def test_an_exception_is_shown_in_full_and_ends_with_1(options, monkeypatch, capsys):
    """An automaton that accepts everything."""
    monkeypatch.setattr(CanonicalAutomaton, "accepts", lambda automaton, ids: True)
    with pytest.raises(SystemExit) as caught:
        exactness.run(options)
    assert caught.value.code == 1
    found = [row for row in rows(options) if row["law"] == OTHERS]
    assert all(row["counts"]["false accept"] == row["exceptions"] > 0 for row in found)
    case = found[0]["first"][0]
    assert case["encode"] != case["ids"]
    assert str(case["ids"]) in capsys.readouterr().out


def test_an_automaton_that_refuses_everything_is_found_out(options, monkeypatch):
    monkeypatch.setattr(CanonicalAutomaton, "accepts", lambda automaton, ids: False)
    with pytest.raises(SystemExit):
        exactness.run(options)
    found = [row for row in rows(options) if row["law"] == STRINGS]
    assert all(row["counts"]["false reject"] == row["counts"]["canonical"] > 0 for row in found)


def test_the_approximations_are_tried_on_the_same_ids(finished):
    options, _ = finished
    laws = [row for row in rows(options) if row["law"] in (STRINGS, OTHERS)]
    for row in laws:
        assert list(row["approximations"]) == ["pairs of BPE", "re-encoded pairs"]
        for counts in row["approximations"].values():
            assert counts["false accept"] <= row["counts"]["tried"] - row["counts"]["canonical"]
            assert counts["false reject"] <= row["counts"]["canonical"]
    assert "What exactness buys" in (options.folder / "table.md").read_text()


@pytest.fixture
def several(finished, tmp_path, monkeypatch):
    """Options of two tokenizers: the first raises an error, of the second the rows are known."""

    def options(error):
        def measured(source, work, progress):
            if source == "other":
                raise error
            for row in rows(finished[0]):
                assert row.pop("tokenizer") == "smollm2"
                yield row

        monkeypatch.setattr(ExactOptions, "tokenizers", lambda self: ("other", "smollm2"))
        monkeypatch.setattr(exactness, "measured", measured)
        return ExactOptions("exactness", n=N, results=tmp_path, tokenizer="all")

    return options


def test_among_all_tokenizers_one_that_is_absent_is_named(several):
    options = several(MissingFileError("pip install it"))
    exactness.run(options)
    assert rows(options)[0]["why_not"] == "not installed"
    assert manifest(options)["complete"]
    assert "other: pip install it" in (options.folder / "table.md").read_text()


def test_among_all_tokenizers_one_that_is_refused_is_named(several):
    options = several(UnsupportedTokenizerError("dropout", 0.1, "encode is random"))
    exactness.run(options)
    assert "encode is random" in rows(options)[0]["error"]
    assert "other: refused" in (options.folder / "table.md").read_text()


def test_among_all_tokenizers_one_that_fails_ends_with_1(several):
    options = several(IndexError("a bug"))
    with pytest.raises(SystemExit) as caught:
        exactness.run(options)
    assert caught.value.code == 1
    assert "a bug" in rows(options)[0]["error"]
    assert len(rows(options)) > 1, "the others are measured all the same"


def test_a_process_that_was_killed_is_a_failure():
    """Not the end of the others."""
    done = Future()
    done.set_exception(BrokenProcessPool("terminated abruptly"))
    (row,) = exactness.result_of(done)
    assert row["why_not"] == "failed"
    assert "terminated abruptly" in row["error"]


def test_a_tokenizer_alone_that_is_absent_is_an_error(tmp_path):
    with pytest.raises(MissingFileError):
        exactness.run(
            ExactOptions("exactness", results=tmp_path, tokenizer=str(tmp_path / "none.json"))
        )


def test_folders():
    assert ExactOptions("exactness").folder.name == "exactness"
    assert ExactOptions("exactness", tokenizer="all").folder.name == "exactness-all"
    assert ExactOptions("exactness", tokenizer="a/b.json").folder.name == "exactness-b.json"


def test_options_of_other_experiments_will_do(tmp_path, smollm2_gguf):
    """As the command line makes them where it knows nothing of tokenizers."""
    exactness.run(Options("exactness", n=4, results=tmp_path))
    assert (tmp_path / "exactness" / "table.md").is_file()


def test_the_timings_leave_the_cache_alone(smollm2_gguf, monkeypatch, tmp_path):
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path))
    with exact_facts.empty_cache():
        inside = exact_facts.os.environ["BPE_AUTOMATA_CACHE"]
        assert inside != str(tmp_path)
    assert exact_facts.os.environ["BPE_AUTOMATA_CACHE"] == str(tmp_path)
    monkeypatch.delenv("BPE_AUTOMATA_CACHE")
    with exact_facts.empty_cache():
        assert "BPE_AUTOMATA_CACHE" in exact_facts.os.environ
    assert "BPE_AUTOMATA_CACHE" not in exact_facts.os.environ
