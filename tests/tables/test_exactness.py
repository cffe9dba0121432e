"""The exactness table has no exceptions, and any would be wrong; the two approximations are right
where they are exact, and wrong where they are known to be."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tokenizers
from tiny import measured, write_tokenizer

from bpe_automata import Tokenizer
from bpe_automata._core.canonical import CanonicalAutomaton
from bpe_automata.errors import MissingFileError, UnsupportedTokenizerError
from experiments.laws import exact_measure, exact_sequences, exactness
from experiments.laws.exact_measure import LAWS, OTHERS, STRINGS
from experiments.laws.exact_sequences import BpePairs, ReencodedPairs, Tally, approximations, judge
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


def test_every_law_is_tried_without_exceptions(finished):
    rows, manifest = finished
    laws = [law for row in rows for law in row.get("laws", ())]
    assert {law["law"] for law in laws} == set(LAWS)
    assert [law["exceptions"] for law in laws] == [0] * 7
    assert all(law["counts"]["tried"] for law in laws)
    assert rows[0]["facts"]["rectangles"] > 0
    assert manifest["complete"]
    assert exactness.render(rows, manifest).wrong == []


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


@pytest.mark.parametrize(
    ("error", "why_not"),
    [
        (MissingFileError("pip install it"), "not installed"),
        (UnsupportedTokenizerError("dropout", 0.1, "encode is random"), "refused"),
        (IndexError("a bug"), None),
    ],
)
def test_a_tokenizer_that_cannot_be_tried_stops_no_other(
    config, tokenizer, tmp_path, monkeypatch, error, why_not
):
    """One that is not there or is refused is named; what else is raised is wrong."""
    real = exact_measure.loaded

    def loaded(source):
        if source == "other":
            raise error
        return real(source)

    monkeypatch.setattr(exact_measure, "loaded", loaded)
    monkeypatch.setattr(Config, "tokenizers", lambda self: ("other", tokenizer))
    made, manifest = run_of(replace(config, tokenizer="all"), tmp_path)
    assert manifest["complete"]
    found = made.facts["tokenizers"]
    assert found[tokenizer.rpartition("/")[2]]["strings"] == N
    assert found.get("other", {}).get("why_not") == why_not
    bug = ["other: facts could not be tried: IndexError: a bug"]
    assert made.wrong == ([] if why_not else bug)


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


# ---------------------------------------------------------------- approximations


@pytest.mark.parametrize("most_known", [2, 500_000])
def test_what_each_approximation_gets_wrong(smollm2_tokenizer, monkeypatch, most_known):
    """BPE would merge all spaces, though the last one is left to the word, and two line ends, which
    are one token where a text ends or a space follows: re-encoding a pair sees no further. A
    character without a token of its own is left to BPE; added tokens go with everything."""
    monkeypatch.setattr(exact_sequences, "MOST_KNOWN", most_known)
    added, spellings = smollm2_tokenizer.description.added[0], smollm2_tokenizer.spellings
    own = ["The quick brown fox", "🜁", f"a{added.content}b", "\n    i", "\n\ncl"]
    others = [[b"    ", b"s"], [b"t", b"he"]]
    sequences = smollm2_tokenizer.encode_batch(own)
    sequences += [[*map(spellings.index, tokens)] for tokens in others]
    bpe, reencoded = rivals = approximations(smollm2_tokenizer)
    tally = Tally()
    judge(smollm2_tokenizer, sequences, tally, rivals)
    assert (tally.counts["tried"], tally.counts["canonical"], tally.wrong) == (7, 5, [])
    assert bpe.accepted(sequences) == [True, True, True, False, False, True, False]
    assert reencoded.accepted(sequences) == [True, True, True, True, False, False, False]
    counts = tally.approximations
    assert dict(counts["pairs of BPE"]) == {"false reject": 2, "false accept": 1}
    assert dict(counts["re-encoded pairs"]) == {"false reject": 1, "false accept": 0}


def test_a_space_before_the_text_gets_the_benefit_of_the_doubt():
    """Metaspace: `a`, `b` in the middle of a text is not judged as `▁a`."""
    vocabulary = {"▁": 0, "a": 1, "b": 2, "▁a": 3, "\n": 4, "c": 5, "bc": 6}
    model = tokenizers.models.BPE(vocab=vocabulary, merges=[("▁", "a"), ("b", "c")])
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(
        prepend_scheme="always", split=False
    )
    backend.decoder = tokenizers.decoders.Metaspace(prepend_scheme="always", split=False)
    tokenizer = Tokenizer.load(backend)
    assert tokenizer.encode("abbca") == [3, 2, 6, 1]
    pairs = ReencodedPairs(tokenizer)
    assert pairs.accepted([[3, 2, 6, 1], [3, 2, 2, 5], [1, 2]]) == [True, False, False]
    assert BpePairs(tokenizer).accepted([[3, 2, 6, 1], [3, 2, 2, 5]]) == [True, False]
