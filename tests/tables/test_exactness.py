"""The exactness table has no exceptions, and any would be wrong; the two approximations are right
where they are exact, and wrong where they are known to be."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import tokenizers
from tiny_schemas import TABLE, measured, write_tokenizer

from bpe_automata import Tokenizer
from bpe_automata.constructions import CanonicalAutomaton
from bpe_automata.errors import MissingFileError, UnsupportedTokenizerError
from experiments.laws import exact_measure, exact_sequences, exactness
from experiments.laws.exact_measure import ADVERSARIAL, LAWS, OTHERS, STRINGS, TRIES, Work
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


def test_strings_are_shared_among_the_kinds_and_counted_apart(finished):
    for law in (STRINGS, OTHERS):
        tried = {each["kind"]: each["counts"]["tried"] for each in laws_of(finished[0], law)}
        assert tried == {ADVERSARIAL: N // 2, "code": N // 2}
    assert exact_measure.shares(8, ["a", "b", "c"]) == {"a": 3, "b": 3, "c": 2}


def test_tokenizers_are_named_and_their_hashes_are_kept(finished, tokenizer):
    rows, manifest = finished
    name = tokenizer.rpartition("/")[2]
    assert list(manifest["tokenizers"]) == [name]
    assert len(manifest["tokenizers"][name]) == 64
    assert tokenizer not in json.dumps(rows)


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
    (own,) = made.facts["tokenizers"].values()
    assert list(own["approximations"]) == ["pairs of BPE", "re-encoded pairs"]


def test_the_readme_has_a_line_for_each_tokenizer(finished, tokenizer):
    said = exactness.readme(exactness.render(*finished).facts)
    name = tokenizer.rpartition("/")[2]
    lines = [line for line in said["exactness"].splitlines() if line.startswith(f"| {name} |")]
    assert len(lines) == 2
    assert lines[0].startswith(f"| {name} | {N}, **0** | {N}, **0** | 2, **0** |")
    assert f"| texts | {N} | rejected **0** |" in said["exactness in short"]


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
    assert made.facts["tokenizers"]["other"]["why_not"] == why_not
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


# ---------------------------------------------------------------- approximations


@pytest.fixture(scope="module")
def rivals(smollm2_tokenizer):
    return approximations(smollm2_tokenizer)


def test_plain_words_pass_both(smollm2_tokenizer, rivals):
    ids = smollm2_tokenizer.encode("The quick brown fox")
    for rival in rivals:
        assert rival.accepted([ids, [], ids[:1]]) == [True] * 3


def test_a_merge_that_was_left_out_fails_both(smollm2_tokenizer, rivals):
    ids = [*smollm2_tokenizer.encode("t"), *smollm2_tokenizer.encode("he")]
    assert smollm2_tokenizer.encode("the") != ids
    for rival in rivals:
        assert rival.accepted([ids]) == [False]


def spelled(tokenizer, *tokens):
    """Ids of one token each."""
    return [tokenizer.spellings.index(token) for token in tokens]


def test_bpe_knows_nothing_of_pretokens(smollm2_tokenizer, rivals):
    """`\\s+(?!\\S)` leaves the last space to the word, yet BPE would rather merge all spaces."""
    rejected = spelled(smollm2_tokenizer, b"\n   ", b" i")
    accepted = spelled(smollm2_tokenizer, b"    ", b"s")
    assert smollm2_tokenizer.encode("\n    i") == rejected
    assert smollm2_tokenizer.encode("    s") != accepted
    bpe, reencoded = rivals
    assert bpe.accepted([rejected, accepted]) == [False, True]
    assert reencoded.accepted([rejected, accepted]) == [True, False]


def test_a_pair_that_is_encoded_alone_sees_no_further(smollm2_tokenizer, rivals):
    """Two line ends at the end of a text are one token, and so are two before a space."""
    ids = spelled(smollm2_tokenizer, b"\n", b"\n", b"cl")
    assert smollm2_tokenizer.encode("\n\ncl") == ids
    assert rivals[1].accepted([ids]) == [False]


def test_what_is_wrong_is_counted_beside_what_is_right(smollm2_tokenizer, rivals):
    tally = Tally()
    right = smollm2_tokenizer.encode_batch(["\n    i", "\n\ncl", "plain"])
    wrong = [spelled(smollm2_tokenizer, b"    ", b"s")]
    judge(smollm2_tokenizer, right + wrong, tally, rivals)
    assert (tally.counts["tried"], tally.counts["canonical"], tally.wrong) == (4, 3, [])
    counts = tally.approximations
    assert dict(counts["pairs of BPE"]) == {"false reject": 2, "false accept": 1}
    assert dict(counts["re-encoded pairs"]) == {"false reject": 1, "false accept": 0}


def test_what_is_no_text_is_left_to_bpe(smollm2_tokenizer, rivals):
    """The bytes of a character without a token of its own."""
    ids = smollm2_tokenizer.encode("🜁")
    assert len(ids) > 1
    with pytest.raises(UnicodeDecodeError):
        smollm2_tokenizer.token_bytes(ids[0]).decode("utf-8")
    assert [rival.accepted([ids]) for rival in rivals] == [[True], [True]]


def test_added_tokens_go_with_everything_but_themselves_in_pieces(smollm2_tokenizer, rivals):
    added = smollm2_tokenizer.description.added[0]
    ids = smollm2_tokenizer.encode(f"a{added.content}b")
    assert added.id in ids
    assert [rival.accepted([ids]) for rival in rivals] == [[True], [True]]


def test_what_is_forgotten_is_tried_again(smollm2_tokenizer, monkeypatch):
    monkeypatch.setattr(exact_sequences, "MOST_KNOWN", 2)
    texts = ["The quick brown fox", "\n    i", "\n\ncl"]
    sequences = [*smollm2_tokenizer.encode_batch(texts), spelled(smollm2_tokenizer, b"t", b"he")]
    bpe, reencoded = approximations(smollm2_tokenizer)
    for _ in range(2):
        assert bpe.accepted(sequences) == [True, False, False, False]
        assert reencoded.accepted(sequences) == [True, True, False, False]


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
    assert json.loads(json.dumps(tokenizer.decode([3, 2, 6, 1]))) == "abbca"
