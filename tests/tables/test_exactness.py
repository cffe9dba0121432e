"""The exactness table finds an automaton that is wrong."""

from __future__ import annotations

import pytest
from tiny import measured, write_tokenizer

from bpe_automata._core.canonical import CanonicalAutomaton
from experiments.laws import exact_measure, exactness
from experiments.laws.exact_measure import OTHERS, STRINGS
from experiments.laws.exactness import Config
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


def run_of(config, folder):
    """(what is said, the manifest)."""
    measured(exactness, config, folder)
    rows, manifest = read_run(folder)
    return exactness.render(rows, manifest), manifest


def laws_of(rows, law):
    return [each for row in rows for each in row.get("laws", ()) if each["law"] == law]


@pytest.mark.parametrize("said", [True, False])
def test_an_automaton_that_says_the_same_of_all_is_found_out(config, tmp_path, monkeypatch, said):
    """Each exception is counted, and the first ones are shown in full."""
    monkeypatch.setattr(CanonicalAutomaton, "accepts", lambda automaton, ids: said)
    # Else it would be refused when it is made.
    monkeypatch.setattr("bpe_automata._core.canonical.try_automaton", lambda it: None)
    made, _ = run_of(config, tmp_path)
    found = laws_of(read_run(tmp_path)[0], OTHERS if said else STRINGS)
    kind = "false accept" if said else "false reject"
    assert all(each["counts"][kind] == each["exceptions"] > 0 for each in found)
    first = found[0]["first"][0]
    assert (first["encode"] != first["ids"]) == said
    assert any(str(first["ids"]) in line for line in made.wrong)
