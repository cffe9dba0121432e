"""GGUF files: small ones are written and read back, and compared with what they were made of."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bpe_automata.errors import (
    BrokenTokenizerError,
    MissingDependencyError,
    TokenizerError,
    UnsupportedTokenizerError,
)
from bpe_automata.tokenizer.sources import TABLE, gguf, read_named, read_path
from bpe_automata.tokenizer.sources.gguf import gpt2_json, pretokenizer_of, read_fields, read_gguf
from bpe_automata.tokenizer.sources.json_vocabulary import byte_to_char

library = pytest.importorskip("gguf")

BYTES = list(byte_to_char())
GPT2 = {
    "model": "gpt2",
    "pre": "gpt-2",
    "tokens": [*BYTES, "ab", "abc", "<|end|>"],
    "token_type": [1] * 258 + [3],
    "merges": ["a b", "ab c"],
    "eos_token_id": 258,
}
LLAMA = {
    "model": "llama",
    "pre": "default",
    "tokens": ["<unk>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "▁", "a", "b", "ab", "  "],
    "token_type": [2, 3, *[6] * 256, 1, 1, 1, 1, 4],
    "scores": [0.0] * 258 + [-9.0, -8.0, -7.0, -1.0, -1000.0],
    "add_space_prefix": False,
    "unknown_token_id": 0,
    "eos_token_id": 1,
}


def write(path: Path, fields: dict[str, Any]) -> Path:
    writer = library.GGUFWriter(path, "llama")
    for name, value in fields.items():
        key = f"tokenizer.ggml.{name}"
        if isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        else:
            writer.add_string(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_fields_are_what_the_package_reads(tmp_path) -> None:
    path = write(tmp_path / "x.gguf", {**LLAMA, "empty": ["x"], "flags": [True, False]})
    fields, theirs = read_fields(path), library.GGUFReader(path)
    for name in theirs.fields:
        assert fields(name) == theirs.get_field(name).contents(), name
    assert fields("tokenizer.ggml.tokens") == LLAMA["tokens"]
    assert fields("none", 3) == 3
    with pytest.raises(BrokenTokenizerError, match="has no field 'none'"):
        fields("none")


def test_gpt2_is_a_tokenizer_json(tmp_path) -> None:
    data = gpt2_json(read_fields(write(tmp_path / "x.gguf", GPT2)), "x")
    assert data["model"]["merges"] == [["a", "b"], ["ab", "c"]]
    assert data["model"]["vocab"]["abc"] == 257
    (added,) = data["added_tokens"]
    assert (added["id"], added["content"], added["special"]) == (258, "<|end|>", True)


def test_gpt2_is_run_by_tokenizers(tmp_path) -> None:
    source = read_path(write(tmp_path / "x.gguf", GPT2))
    assert source.backend.encode("abc ab<|end|>") == [257, 32, 256, 258]
    assert source.eos_ids == (258,)
    assert source.backend.name.startswith("tokenizers")


@pytest.mark.parametrize(
    ("word", "ignores"),
    [("gpt-2", False), ("smollm", False), ("llama-bpe", True), ("qwen2", False), ("tekken", True)],
)
def test_words_for_pretokenizers(tmp_path, word: str, ignores: bool) -> None:
    data = gpt2_json(read_fields(write(tmp_path / "x.gguf", {**GPT2, "pre": word})), "x")
    assert data["pre_tokenizer"] == pretokenizer_of(word)[0]
    assert data["model"]["ignore_merges"] is ignores


def test_a_file_without_a_word(tmp_path) -> None:
    """As llama.cpp's own files of GPT-NeoX and Aquila: the reader of the file says it."""
    fields = {name: value for name, value in GPT2.items() if name != "pre"}
    path = write(tmp_path / "x.gguf", fields)
    with pytest.raises(UnsupportedTokenizerError, match="pretokenizer='gpt-2'"):
        read_path(path)
    assert read_path(path, pretokenizer="gpt-neox").backend.encode("abc ab") == [257, 32, 256]
    with pytest.raises(UnsupportedTokenizerError, match=r"known are gpt-2, .* load that instead"):
        read_path(path, pretokenizer="x")
    with pytest.raises(TokenizerError, match="takes no options: pattern"):
        read_path(path, pattern="x")
    with pytest.raises(TokenizerError, match="llama model, which takes no pretokenizer"):
        read_path(write(tmp_path / "y.gguf", LLAMA), pretokenizer="gpt-2")


def test_padding_of_unknown_type_is_unused(tmp_path) -> None:
    """Phi-3's vocabulary is filled up so; sentencepiece knows one unknown piece."""
    pytest.importorskip("sentencepiece")
    fields = {
        **LLAMA,
        "tokens": [*LLAMA["tokens"], "[PAD1]", "[PAD2]"],
        "scores": [*LLAMA["scores"], -1000.0, -1000.0],
        "token_type": [*LLAMA["token_type"], 2, 2],
        "unknown_token_id": 0,
    }
    source = read_path(write(tmp_path / "x.gguf", fields))
    n_ids = len(LLAMA["tokens"])
    assert source.backend.encode("ab") == read_path(
        write(tmp_path / "y.gguf", LLAMA)
    ).backend.encode("ab")
    assert n_ids not in source.backend.encode("[PAD1]")


def test_deepseek_splits_as_its_tokenizer_json_does() -> None:
    import json

    try:
        data = json.loads(TABLE["deepseek"].find().read_text(encoding="utf-8"))
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert pretokenizer_of("deepseek-v3") == (data["pre_tokenizer"], False)


def test_llama_is_a_sentencepiece_model(tmp_path) -> None:
    pytest.importorskip("sentencepiece")
    source = read_path(write(tmp_path / "x.gguf", LLAMA))
    assert source.backend.encode("ab  a") == [261, 262, 259]
    assert source.eos_ids == (1,)
    (added,) = source.description.added
    assert (added.id, added.content) == (262, "  ")


def test_llama_gives_the_model_that_it_was_made_of(tmp_path) -> None:
    pytest.importorskip("sentencepiece")
    from bpe_automata.tokenizer.sources.sentencepiece import model_proto

    try:
        source = read_named("mistral-v3")
    except MissingDependencyError as error:
        pytest.skip(str(error))
    proto = model_proto()
    proto.ParseFromString(TABLE["mistral-v3"].find().read_bytes())
    fields = {
        "model": "llama",
        "tokens": [p.piece for p in proto.pieces],
        "token_type": [p.type for p in proto.pieces],
        "scores": [p.score for p in proto.pieces],
        "eos_token_id": 2,
    }
    same = read_path(write(tmp_path / "x.gguf", fields))
    assert same.description.tokens == source.description.tokens
    assert (same.description.merges == source.description.merges).all()
    assert same.description.added == source.description.added
    assert same.description.prefix is source.description.prefix


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "t5"}, "GGUF tokenizer model 't5'"),
        ({"pre": "default"}, "GGUF pretokenizer 'default'"),
    ],
)
def test_refused(tmp_path, changes, message: str) -> None:
    with pytest.raises(UnsupportedTokenizerError, match=message):
        read_gguf(write(tmp_path / "x.gguf", {**GPT2, **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"token_type": [1, 1]}, "263 tokens, but 2 types"),
        ({"token_type": [9] * 263}, "of an unknown type"),
        ({"scores": [0.0]}, "263 tokens, but 1 scores"),
    ],
)
def test_broken(tmp_path, changes, message: str) -> None:
    pytest.importorskip("sentencepiece")
    with pytest.raises(BrokenTokenizerError, match=message):
        read_gguf(write(tmp_path / "x.gguf", {**LLAMA, **changes}))


def test_no_normalizer_of_sentencepiece_is_lost(tmp_path) -> None:
    pytest.importorskip("sentencepiece")
    for changes in ({"remove_extra_whitespaces": True}, {"precompiled_charsmap": [1, 2, 3]}):
        with pytest.raises(UnsupportedTokenizerError, match="SentencePiece"):
            read_gguf(write(tmp_path / "x.gguf", {**LLAMA, **changes}))


def test_a_file_that_ends_early(tmp_path) -> None:
    whole = write(tmp_path / "x.gguf", LLAMA).read_bytes()
    for size in [5, 23, 40, 200, 1000, 4000, len(whole) // 2, len(whole) - 200]:
        (tmp_path / "cut.gguf").write_bytes(whole[:size])
        with pytest.raises(BrokenTokenizerError, match=r"cut\.gguf"):
            read_gguf(tmp_path / "cut.gguf")


def test_gguf_is_missing(tmp_path, monkeypatch) -> None:
    path = write(tmp_path / "x.gguf", GPT2)
    gguf._metadata_reader.cache_clear()
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bpe-automata\[gguf\]'"):
        read_gguf(path)
