"""What experiments are given: the corpus of named sources, which is the same for the same seed and
names what is absent; the prompts of the distortion table; the regexes of the exactness experiments.
"""

from __future__ import annotations

import random
import unicodedata

import pytest

from bpe_automata import compile_regex
from bpe_automata.errors import MissingFileError
from experiments.answers.cases import PROMPTS, AnswerSetError, Case
from experiments.shared import corpus as module
from experiments.shared.corpus import KINDS, LONGEST, Corpus, Source, open_corpus
from experiments.shared.walks import FINITE, VARIED

POEM = "def f():\r\n    return 1\n\n\n    # Ünïcödé e\u0301\n"


@pytest.fixture(scope="module")
def rng_free_corpus():
    return Corpus((Source("one", "code", (POEM,)), Source("two", "code", ("abc",))))


def test_the_corpus_that_is_installed():
    """Python itself has code, and words of all scripts can always be made up."""
    corpus = open_corpus(0)
    for kind in KINDS:
        texts = list(corpus.strings(kind, 50, random.Random(0)))
        assert len(texts) == 50
        assert all(0 < len(text) <= LONGEST for text in texts)
        assert texts == list(corpus.strings(kind, 50, random.Random(0)))
    described = corpus.described()
    assert any(name.startswith("the standard library (") for name in described["code"])
    absent = [name for name, *_ in module.readers(None)]
    found = {source.name for source in corpus.sources}
    assert len(corpus.missing) == len(set(absent) - found)


def test_windows_are_cut_from_the_documents_anywhere(rng_free_corpus):
    rng = random.Random(1)
    windows = [rng_free_corpus.sources[0].window(rng) for _ in range(2000)]
    assert all(window in POEM for window in windows)
    starts = {window[0] for window in windows}
    assert {"\n", " ", "\u0301", "r"} <= starts, "line ends, indents, marks and letters"
    assert any(window.startswith("\n\n\n    #") for window in windows), "a whole run of line ends"
    assert any(window.endswith("\r") for window in windows), "inside CR LF"


def test_sources_take_turns(rng_free_corpus):
    texts = list(rng_free_corpus.strings("code", 10, random.Random(0)))
    assert all(text in "abc" for text in texts[1::2])
    assert not all(text in "abc" for text in texts[::2])
    assert list(rng_free_corpus.strings("multilingual", 10, random.Random(0))) == []


def test_a_folder_of_text(tmp_path):
    with pytest.raises(MissingFileError, match="UTF-8"):
        open_corpus(0, tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.txt").write_bytes("日本\r\n".encode())
    (tmp_path / "b.html").write_text("<p>Один &amp; <b>два</b></p>\n\n", encoding="utf-8")
    (tmp_path / "c.bin").write_bytes(b"\xff\xfe\x00")
    found = module.folder(tmp_path, random.Random(0))
    assert sorted(found) == ["Один & два\n", "日本\r\n"]
    corpus = open_corpus(0, tmp_path)
    assert corpus.sources[0].name == f"text of {tmp_path.name}"


def test_what_is_absent_is_named(monkeypatch):
    def readers(text):
        yield "nothing", "code", lambda rng: [], "install something"
        yield "blank", "code", lambda rng: ["", "x"], "-"

    monkeypatch.setattr(module, "readers", readers)
    corpus = open_corpus(0)
    assert corpus.missing == ("code text without nothing: install something",)
    assert corpus.sources[0].documents == ("x",)


def test_made_up_words_are_of_many_scripts():
    letters = "".join(module.made_up(random.Random(0)))
    scripts = {unicodedata.name(c, "?").split()[0] for c in letters if not c.isspace()}
    assert {"DEVANAGARI", "HANGUL", "CYRILLIC", "TAMIL", "ARABIC", "CJK"} <= scripts


@pytest.mark.parametrize("answers", [("a",), ("a", "ab"), ("x", "x"), ("", "y")])
def test_answers_must_be_several_and_prefix_free(answers):
    with pytest.raises(AnswerSetError, match="bad: "):
        Case("bad", "prompt", answers)


@pytest.mark.parametrize("case", PROMPTS, ids=lambda case: case.name)
def test_the_prompt_stays_as_it_is_when_an_answer_follows(case, smollm2_tokenizer):
    prompt = smollm2_tokenizer.encode(case.prompt)
    for answer in case.answers:
        assert smollm2_tokenizer.encode(case.prompt + answer)[: len(prompt)] == prompt


def test_regexes_are_finite_where_they_say_so():
    assert len(FINITE) > 30
    assert len(VARIED) > 20
    for regex in FINITE.values():
        assert [*compile_regex(regex).strings(20_000)]
