"""Loading a tokenizer: the kind of a file is told by its content, hostile files fail with typed
errors, and the library is compared with on sample texts.
"""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers
from support import files
from support.steps import metaspace

from bpe_automata import Tokenizer, constrain
from bpe_automata._core.canonical import (
    CanonicalAutomaton,
    build_parts,
    canonical_automaton,
    try_automaton,
)
from bpe_automata._tokenizer.sample_texts import fixed_texts
from bpe_automata._tokenizer.source import Source
from bpe_automata._tokenizer.sources.detect import read_path
from bpe_automata._tokenizer.tokenizer import sample_texts
from bpe_automata.errors import (
    BrokenTokenizerError,
    EncodingError,
    MissingFileError,
    TokenizerError,
    TokenizerMismatchError,
    UnsupportedTokenizerError,
)
from bpe_automata.testing import added_token, byte_level, small_tokenizer, split
from bpe_automata.testing._small import byte_spelling

RANKS = files.rank_lines(files.ranks())
RANK_OPTIONS = {"pattern": r"\S+|\s+", "special_tokens": {"<e>": 300}}


def tokenizer_json() -> bytes:
    return json.dumps(files.tokenizer_json()).encode()


def tekken() -> bytes:
    return json.dumps(files.tekken_json()).encode()


def sentencepiece_model(first_piece: str = "<unk>") -> bytes:
    from bpe_automata._tokenizer.sources.sentencepiece import model_proto

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
    from bpe_automata._tokenizer.sources.sentencepiece import model_proto

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
    with pytest.raises(MissingFileError, match=r"smollm2, gpt2, .*AutoTokenizer"):
        Tokenizer.load(tmp_path / "none")
    with pytest.raises(MissingFileError, match="AutoTokenizer"):
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


def test_end_of_sequence_is_named_beside(tmp_path) -> None:
    data = json.loads(small_tokenizer(["a"], [], byte_level(), ["<e>", "<f>"]).to_json())
    path = write(tmp_path, "tokenizer.json", json.dumps(data).encode())
    assert read_path(path).eos_ids == ()
    for token in ("<f>", {"content": "<f>"}):
        write(tmp_path, "tokenizer_config.json", json.dumps({"eos_token": token}).encode())
        assert read_path(tmp_path).eos_ids == (2,)


def test_the_ids_that_end_a_generation_are_named_beside(tmp_path) -> None:
    data = json.loads(small_tokenizer(["a"], [], byte_level(), ["<e>", "<f>"]).to_json())
    write(tmp_path, "tokenizer.json", json.dumps(data).encode())
    for named, known in (([2, 1], (2, 1)), (1, (1,)), (None, ()), ([9, -1, 1], (1,))):
        write(tmp_path, "generation_config.json", json.dumps({"eos_token_id": named}).encode())
        assert read_path(tmp_path).eos_ids == known
    write(tmp_path, "generation_config.json", b'{"eos_token_id": [1, 2]}')
    write(tmp_path, "tokenizer_config.json", b'{"eos_token": "<f>"}')
    assert Tokenizer.load(tmp_path).eos_ids == (2, 1)
    for broken in (b"[]", b'{"eos_token_id": "<e>"}', b'{"eos_token_id": [1.5]}'):
        write(tmp_path, "generation_config.json", broken)
        with pytest.raises(BrokenTokenizerError, match=r"generation_config\.json"):
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


# ---------------------------------------------------------------- sample texts
# Decoding is compared when a tokenizer is loaded, encoding before its automaton is stored.

BYTES = [byte_spelling(bytes([byte])) for byte in range(256)]


def whole(**parts):
    """Every text has ids here."""
    merges = [("a", "b"), ("Ġ", "ab"), ("e", "Ġ")]
    return small_tokenizer(
        [*BYTES, *map("".join, merges)], merges, byte_level(True), ["<|endoftext|>"], **parts
    )


def source_of(tokenizer, **changes):
    source = Source(tokenizer.description, tokenizer.backend, "made", tokenizer.fingerprint)
    return replace(source, **changes)


def test_the_texts_are_always_the_same_and_hold_every_kind_of_byte():
    texts = fixed_texts()
    assert len(texts) == len(set(texts)) > 300
    used = {byte for text in texts for byte in text.encode("utf-8")}
    assert used == {*range(0xC0), *range(0xC2, 0xF5)}
    assert any("a<|endoftext|>b" in text for text in sample_texts(whole()))


@pytest.mark.parametrize("step", [{"type": "Whitespace"}, byte_level(True), None])
def test_without_a_decoder_ids_are_not_decoded_to_their_text(step):
    """tokenizers joins the tokens with spaces: `i`, `d` is decoded to `i d`."""
    good = json.loads(small_tokenizer(BYTES, pretokenizer=step).to_json())
    data = {**good, "decoder": None}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    assert theirs.decode(theirs.encode("id").ids) == "i d"
    with pytest.raises(UnsupportedTokenizerError, match=r"decoder None .* set the decoder"):
        Tokenizer.from_json(data)


def test_a_decoder_that_drops_inner_spaces_of_the_first_token_is_refused():
    step = metaspace("always", False)
    table = ["a", "b", "▁", "▁a", "▁a▁"], [("▁", "a"), ("▁a", "▁")]
    with pytest.raises(UnsupportedTokenizerError, match=r"drops all spaces .*'▁a▁'"):
        small_tokenizer(*table, step, decoder=step)
    tokenizer = small_tokenizer(*table, step)
    assert tokenizer.decode(tokenizer.encode("a ab")) == "a ab"
    small_tokenizer(*table, {**step, "split": True}, decoder={**step, "split": True})


def test_a_description_that_spells_an_id_otherwise_is_refused_with_the_first_difference():
    tokenizer = whole()
    number = tokenizer.encode("q")[0]
    tokens = list(tokenizer.description.tokens)
    tokens[number] = b"p"
    wrong = replace(tokenizer.description, tokens=tuple(tokens))
    with pytest.raises(TokenizerMismatchError, match="Tried on the text 'The quick") as caught:
        Tokenizer(source_of(tokenizer, description=wrong))
    error = caught.value
    assert (error.ours, error.theirs) == ("The puick brown fox", "The quick brown fox")
    assert tokenizer.encode(error.text) == list(error.ids)


@pytest.mark.parametrize(
    "changes",
    [
        {"splitters": ()},
        {"merges": whole().description.merges[:1]},
        {"merges": whole().description.merges[::-1].copy()},
        {"ignore_merges": True},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_automaton_that_differs_from_encode_is_not_kept(changes):
    """Each wrong part shows on the texts, the order of two merges that never meet excepted."""
    tokenizer = whole()
    wrong = replace(tokenizer.description, **changes)
    read = Tokenizer(source_of(tokenizer, description=wrong))
    if len(changes.get("merges", ())) == 3 or "ignore_merges" in changes:
        assert canonical_automaton(read).accepts(tokenizer.encode("ab ab"))
        return
    for _ in range(2):  # nothing of it is believed the second time
        with pytest.raises(TokenizerMismatchError, match="canonical"):
            constrain(read, "a")


def test_other_ids_of_a_text_must_be_rejected():
    tokenizer = whole()
    automaton = CanonicalAutomaton(tokenizer, build_parts(tokenizer))
    automaton.allowed = lambda left, right: True
    with pytest.raises(TokenizerMismatchError) as caught:
        try_automaton(automaton)
    error = caught.value
    assert (error.ours, error.theirs) == ("canonical", "not canonical")
    assert tokenizer.decode(error.ids) == error.text
    assert tokenizer.encode(error.text) != list(error.ids)


# ---------------------------------------------------------------- the library gives up


def test_a_pattern_that_the_engine_gives_up_on_is_a_typed_error():
    """Oniguruma stops after so many steps, and tokenizers panics: no `Exception` at all."""
    pattern = split({"Regex": r"(?:b|b)+[c\d]|b"})
    tokenizer = small_tokenizer("abc", pretokenizer=pattern)
    with pytest.raises(EncodingError, match="64 characters, 'bbb"):
        tokenizer.encode("b" * 64)
    with pytest.raises(EncodingError, match="gives up"):
        tokenizer.encode_batch(["a", "b" * 64])
    assert issubclass(EncodingError, TokenizerError)


def test_a_tokenizer_that_fails_on_ordinary_text_is_refused():
    with pytest.raises(EncodingError, match="another split pattern"):
        small_tokenizer(
            "abc", pretokenizer=split({"Regex": r"(?:a|a)+[c\d]|a"}), added=[added_token("<x>")]
        )
