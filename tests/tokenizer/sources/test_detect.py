"""The kind of a file is told by its content, whatever its name; hostile files fail with typed
errors.
"""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest
from support import files

from bpe_automata import Tokenizer
from bpe_automata.errors import BrokenTokenizerError, MissingFileError, TokenizerError
from bpe_automata.testing import byte_level, small_tokenizer
from bpe_automata.tokenizer.sources import read_path

RANKS = b"".join(base64.b64encode(bytes([b])) + f" {b}\n".encode() for b in range(256))
RANK_OPTIONS = {"pattern": r"\S+|\s+", "special_tokens": {"<e>": 256}}


def tokenizer_json() -> bytes:
    return small_tokenizer(["a", "b", "ab"], [("a", "b")], byte_level()).to_json().encode()


def tekken() -> bytes:
    vocabulary = [
        {"rank": b, "token_bytes": base64.b64encode(bytes([b])).decode(), "token_str": None}
        for b in range(256)
    ]
    config = {"pattern": "a", "default_vocab_size": 257, "default_num_special_tokens": 1}
    return json.dumps({"config": config, "vocab": vocabulary}).encode()


def sentencepiece_model(first_piece: str = "<unk>") -> bytes:
    from bpe_automata.tokenizer.sources.sentencepiece import model_proto

    proto = model_proto()
    proto.pieces.add(piece=first_piece, score=0.0, type=2)
    for text, score in (("▁", -2.0), ("a", -3.0)):
        proto.pieces.add(piece=text, score=score)
    proto.trainer_spec.model_type = 2
    proto.normalizer_spec.remove_extra_whitespaces = False
    return bytes(proto.SerializeToString())


def write(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def library(path: Path, **options: object) -> str:
    return read_path(path, **options).backend.name.partition(" ")[0]


@pytest.mark.parametrize("name", ["tokenizer.json", "x.model", "x.tiktoken", "x"])
def test_kinds_by_content(tmp_path, name: str) -> None:
    pytest.importorskip("tiktoken")
    assert library(write(tmp_path, name, tokenizer_json())) == "tokenizers"
    assert library(write(tmp_path, name, b"\xef\xbb\xbf \n" + tokenizer_json())) == "tokenizers"
    assert library(write(tmp_path, name, tekken())) == "tiktoken"
    if name != "tokenizer.json":
        assert library(write(tmp_path, name, RANKS), **RANK_OPTIONS) == "tiktoken"
        assert library(write(tmp_path, name, b"\r\n" + RANKS), **RANK_OPTIONS) == "tiktoken"


@pytest.mark.parametrize("first_piece", ["<unk>", "u" * 112])
def test_a_sentencepiece_model_by_content(tmp_path, first_piece: str) -> None:
    """With a first piece of 112 bytes the model begins with a new line and `{`, as JSON might."""
    pytest.importorskip("sentencepiece")
    content = sentencepiece_model(first_piece)
    assert library(write(tmp_path, "tokenizer.model.v1", content)) == "sentencepiece"


@pytest.mark.parametrize("first", ["trainer_spec", "normalizer_spec"])
def test_a_sentencepiece_model_whose_pieces_do_not_come_first(tmp_path, first: str) -> None:
    pytest.importorskip("sentencepiece")
    from bpe_automata.tokenizer.sources.sentencepiece import model_proto

    whole = model_proto()
    whole.ParseFromString(sentencepiece_model())
    begin, rest = model_proto(), model_proto()
    getattr(begin, first).CopyFrom(getattr(whole, first))
    rest.CopyFrom(whole)
    rest.ClearField(first)
    content = begin.SerializeToString() + rest.SerializeToString()
    assert not content.startswith(b"\n")
    assert library(write(tmp_path, "tokenizer.model", content)) == "sentencepiece"


def test_a_folder_gives_its_tokenizer_json_first(tmp_path) -> None:
    pytest.importorskip("tiktoken")
    write(tmp_path, "a.tiktoken", RANKS)
    assert library(tmp_path, **RANK_OPTIONS) == "tiktoken"
    write(tmp_path, "tekken_1.json", tekken())
    assert library(tmp_path) == "tiktoken"
    write(tmp_path, "tokenizer.json", tokenizer_json())
    assert library(tmp_path) == "tokenizers"
    assert read_path(tmp_path).name == str(tmp_path / "tokenizer.json")


def test_a_folder_with_several_or_none(tmp_path) -> None:
    with pytest.raises(MissingFileError, match="there is no tokenizer at"):
        read_path(tmp_path)
    write(tmp_path, "a.tiktoken", RANKS)
    write(tmp_path, "b.tiktoken", RANKS)
    with pytest.raises(MissingFileError, match=r"several tokenizers, a\.tiktoken, b\.tiktoken"):
        read_path(tmp_path)
    with pytest.raises(MissingFileError, match=r"names\(\)"):
        read_path(tmp_path / "none")


def test_a_rank_file_needs_what_it_does_not_hold(tmp_path) -> None:
    path = write(tmp_path, "tokenizer.model", RANKS)
    for options in ({}, {"pattern": "a"}, {"special_tokens": {}}):
        with pytest.raises(TokenizerError, match=r"Tokenizer\.load\('.*', pattern=r'\.\.\.', "):
            read_path(path, **options)
    with pytest.raises(TokenizerError, match=r"its options are pattern, .*, not eot"):
        read_path(path, **RANK_OPTIONS, eot="x")


def test_other_files_take_no_options(tmp_path) -> None:
    with pytest.raises(TokenizerError, match="takes no options: pattern"):
        read_path(write(tmp_path, "tokenizer.json", tokenizer_json()), pattern="a")


@pytest.mark.parametrize("content", [b"", b"hello there", b"\x00" * 40, b"PK\x03\x04"])
def test_something_else(tmp_path, content: bytes) -> None:
    with pytest.raises(BrokenTokenizerError, match=r"x\.bin is not a tokenizer of a kind"):
        read_path(write(tmp_path, "x.bin", content))


def test_json_that_is_none(tmp_path) -> None:
    for content in (b"", b"{", b"\xff\xfe\x00", b'{"a": 1,}'):
        with pytest.raises(BrokenTokenizerError, match="is not valid JSON"):
            read_path(write(tmp_path, "tokenizer.json", content))
    with pytest.raises(BrokenTokenizerError, match="no object at the top"):
        read_path(write(tmp_path, "tokenizer.json", b"[]"))


def test_end_of_sequence_is_named_beside(tmp_path) -> None:
    data = json.loads(small_tokenizer(["a"], [], byte_level(), ["<e>", "<f>"]).to_json())
    path = write(tmp_path, "tokenizer.json", json.dumps(data).encode())
    assert read_path(path).eos_ids == ()
    for token in ("<f>", {"content": "<f>"}):
        write(tmp_path, "tokenizer_config.json", json.dumps({"eos_token": token}).encode())
        assert read_path(tmp_path).eos_ids == (2,)
    write(tmp_path, "tokenizer_config.json", b"[]")
    with pytest.raises(BrokenTokenizerError, match=r"_config\.json is not a JSON object"):
        read_path(tmp_path)


# ---------------------------------------------------------------- hostile files


@pytest.mark.parametrize("rank", [10**6, 4 * 10**9, 10**23])
def test_ranks_far_apart_are_refused_before_there_are_arrays_of_them(rank, tmp_path):
    pytest.importorskip("tiktoken")
    path = files.rank_file(tmp_path)
    path.write_bytes(path.read_bytes() + base64.b64encode(b"zz") + b" %d\n" % rank)
    with pytest.raises(BrokenTokenizerError, match="ranks are ids"):
        Tokenizer.load(path, pattern=r"\S+|\s+", special_tokens={})


@pytest.mark.parametrize("text", ["[" * 200_000, '{"model":' * 100_000, "[" + "9" * 10_000 + "]"])
def test_json_that_python_does_not_read_is_typed(text, tmp_path):
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(BrokenTokenizerError, match=r"tokenizer\.json is not valid JSON"):
        Tokenizer.load(tmp_path)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """One to three bytes changed, a piece cut out or doubled, or the end cut off."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at, other = sorted(rng.randrange(len(data)) for _ in range(2))
        kind = rng.randrange(5)
        if kind == 0:
            del data[at : min(other, at + 40)]
        elif kind == 1:
            data[at:at] = data[at : min(other, at + 40)]
        elif kind == 2 and len(data) > 2:
            del data[other + 1 :]
        else:
            data[at] = rng.choice((0, 0xFF, 0x30, 0x2D, rng.randrange(256)))
        if not data:
            break
    return bytes(data)


def made(kind, folder):
    if kind == "json":
        (folder / "tokenizer.json").write_text(json.dumps(files.tokenizer_json()))
        return folder / "tokenizer.json", {}
    if kind == "ranks":
        pytest.importorskip("tiktoken")
        return files.rank_file(folder), {"pattern": r"\S+|\s+", "special_tokens": {}}
    if kind == "tekken":
        pytest.importorskip("tiktoken")
        return files.tekken(folder), {}
    pytest.importorskip("gguf")
    return files.gguf_file(folder, files.gpt2_fields()), {}


@pytest.mark.parametrize("kind", ["json", "ranks", "tekken", "gguf"])
def test_mutations_of_small_files_are_read_or_refused_with_a_type(kind, tmp_path, request):
    path, options = made(kind, tmp_path)
    content, rng = path.read_bytes(), random.Random(7)
    Tokenizer.load(path, **options)
    refused = 0
    n = 1000 if request.config.getoption("--long") else 40
    for number in range(n):
        bad = mutated(content, rng)
        path.write_bytes(bad)
        try:
            Tokenizer.load(path, **options)
        except TokenizerError:
            refused += 1
        except BaseException as error:
            (tmp_path / "found").write_bytes(bad)
            pytest.fail(f"mutation {number}: {type(error).__name__} {error}")
    assert refused
