"""tiktoken rank files and tekken.json: random small ones compared with tiktoken, and refusals."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata import Tokenizer
from bpe_automata.errors import (
    BrokenTokenizerError,
    MissingDependencyError,
    MissingFileError,
    TokenizerError,
    UnsupportedTokenizerError,
)
from bpe_automata.reference.encode import Encoder
from bpe_automata.tokenizer.source import Source
from bpe_automata.tokenizer.sources.published import GPT2, LLAMA3, TEKKEN
from bpe_automata.tokenizer.sources.tiktoken import read_tekken, read_tiktoken

tiktoken = pytest.importorskip("tiktoken")

BYTES = [bytes([byte]) for byte in range(256)]
Json = dict[str, Any]


def lines(ranks: dict[bytes, int]) -> bytes:
    """The token without bytes is written `=`, as in Whisper's file."""
    written = {base64.b64encode(token) or b"=": rank for token, rank in ranks.items()}
    return b"".join(token + f" {rank}\n".encode() for token, rank in written.items())


def numbered(tokens: list[bytes]) -> dict[bytes, int]:
    return {token: rank for rank, token in enumerate([*BYTES, *tokens])}


def read(ranks: dict[bytes, int], pattern: str = GPT2, **options: Any) -> Source:
    options.setdefault("special_tokens", {"<|end|>": max(ranks.values()) + 1})
    return read_tiktoken(lines(ranks), "x.tiktoken", pattern=pattern, **options)


PIECES = st.text("ab 1é\n", min_size=2, max_size=5).map(lambda text: text.encode())
TEXTS = st.lists(st.text("ab 1é\n'sX\u0301日", max_size=14), min_size=5, max_size=20)
PATTERNS = st.sampled_from([GPT2, LLAMA3, TEKKEN, r"[ab ]+|\d", r"a+b?"])


@examples(200)
@given(st.lists(PIECES, unique=True, max_size=20), PATTERNS, TEXTS, st.booleans(), st.booleans())
def test_random_ranks_are_read_exactly(tokens, pattern, checked, reverse, normalize) -> None:
    """In any order, so that most tables are improper; some patterns leave gaps."""
    ranks = numbered(tokens)
    if reverse:
        ranks = {token: len(ranks) - 1 - rank for token, rank in ranks.items()}
    source = read(ranks, pattern, normalize="NFC" if normalize else None)
    encode = Encoder(source.description, "fancy-regex")
    for text in [*checked, "<|end|>".join(checked[:3]), "<|end|>\u0338"]:
        assert encode(text) == source.backend.encode(text)
    assert source.backend.encode_batch(checked) == list(map(source.backend.encode, checked))


def test_what_is_read() -> None:
    source = read(numbered([b"ab", b"", b"abc", b"bc"]), eos=("<|end|>",))
    description = source.description
    assert description.n_ids == 261
    assert description.tokens[256:] == (b"ab", None, b"abc", b"bc", None)
    splits = [[97, 98, 256], [97, 259, 258], [256, 99, 258], [98, 99, 259]]
    assert description.merges.tolist() == splits
    assert (source.eos_ids, source.name, source.json) == ((260,), "x.tiktoken", None)
    assert description.ignore_merges
    assert description.byte_level


def test_ids_with_holes() -> None:
    ranks = {**numbered([]), b"ab": 300}
    source = read(ranks, special_tokens={"<|end|>": 400})
    assert source.description.n_ids == 401
    assert source.backend.encode("ab<|end|>") == [300, 400]
    assert Encoder(source.description, "fancy-regex")("ab<|end|>") == [300, 400]


def test_the_fingerprint_covers_what_the_file_does_not_hold() -> None:
    ranks = numbered([b"ab"])
    variants = [
        read(ranks),
        read(ranks, LLAMA3),
        read(ranks, special_tokens={}),
        read(ranks, normalize="NFC"),
        read(ranks, normalize="NFD"),
        read(numbered([b"ac"])),
    ]
    assert len({source.fingerprint for source in variants}) == len(variants)
    assert read(ranks).fingerprint == variants[0].fingerprint


# ---------------------------------------------------------------- encodings of tiktoken


def tiny(special_tokens: dict[str, int]) -> tiktoken.Encoding:
    ranks = numbered([b"ab", b"abc"])
    return tiktoken.Encoding(
        "tiny", pat_str=GPT2, mergeable_ranks=ranks, special_tokens=special_tokens
    )


def test_an_encoding_is_its_rank_file() -> None:
    specials = {"<|endoftext|>": 258, "<|fim|>": 300}
    ours = Tokenizer.load(tiny(specials))
    file = read(numbered([b"ab", b"abc"]), special_tokens=specials)
    assert ours.fingerprint == file.fingerprint
    assert (ours.name, ours.eos_ids, ours.n_ids) == ("tiny", (258,), 301)
    assert ours.encode("abcab<|fim|>") == [257, 256, 300]
    assert Tokenizer.load(tiny({})).eos_ids == ()


def test_names_of_encodings_and_of_models(monkeypatch, tmp_path) -> None:
    """As `get_encoding` and `encoding_for_model` take them; what is a path stays one."""
    asked: list[str] = []

    def at_hand(name: str) -> tiktoken.Encoding:
        asked.append(name)
        return tiny({"<|endoftext|>": 258})

    monkeypatch.setattr(tiktoken, "get_encoding", at_hand)
    for name in ("o200k_base", "gpt-4o", "gpt-4o-2024-08-06", "gpt-3.5-turbo"):
        assert Tokenizer.load(name).name == "tiny"
    assert asked == ["o200k_base"] * 3 + ["cl100k_base"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt-4o").mkdir()
    for name in ("gpt-4o", "gpt-nothing"):
        with pytest.raises(MissingFileError, match="name of an encoding of tiktoken"):
            Tokenizer.load(name)


@pytest.mark.parametrize("error", [ConnectionError("no network"), ValueError("hash mismatch")])
def test_ranks_that_cannot_be_downloaded(monkeypatch, error: Exception) -> None:
    def fails(name: str) -> tiktoken.Encoding:
        raise error

    monkeypatch.setattr(tiktoken, "get_encoding", fails)
    with pytest.raises(MissingFileError, match=f"{error}.*TIKTOKEN_CACHE_DIR"):
        Tokenizer.load("cl100k_base")


def test_an_encoding_takes_no_options() -> None:
    with pytest.raises(TokenizerError, match="pattern cannot be given"):
        Tokenizer.load(tiny({}), pattern="x")


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"YQ== x\n", "line 1: "),
        (b"IQ== 0\n!!! 1\n", "line 2: "),
        (b"IQ== 0 1\n", "line 1: "),
        (lines(numbered([])).rsplit(b"\n", 3)[0], "no token is the byte 0xFE"),
        (lines(numbered([])) + b"IQ== 999\n", "lists 1 token"),
        (lines(numbered([])) + b"YWI= 3\n", "same rank"),
        (lines(numbered([])) + b"YWI= -3\n", "negative"),
    ],
)
def test_broken_rank_files(content: bytes, message: str) -> None:
    with pytest.raises(BrokenTokenizerError, match=message) as caught:
        read_tiktoken(content, "b.tiktoken", pattern=GPT2, special_tokens={})
    assert str(caught.value).startswith("b.tiktoken")


@pytest.mark.parametrize("special_tokens", [{"": 300}, {"x": 3}, {"x": 300, "y": 300}, {"x": -1}])
def test_broken_special_tokens(special_tokens: dict[str, int]) -> None:
    with pytest.raises(BrokenTokenizerError, match="is empty, or its id"):
        read(numbered([]), special_tokens=special_tokens)


def test_refused_options() -> None:
    with pytest.raises(UnsupportedTokenizerError, match="one begins the other"):
        read(numbered([]), special_tokens={"<a>": 300, "<a>b": 301, "<": 302})
    with pytest.raises(UnsupportedTokenizerError, match="tiktoken rejects it"):
        read(numbered([]), "(a")
    with pytest.raises(UnsupportedTokenizerError, match="normalize 'nfc'"):
        read(numbered([]), normalize="nfc")
    with pytest.raises(BrokenTokenizerError, match="eos '<e>' is none"):
        read(numbered([]), eos=("<e>",))


def test_tiktoken_is_missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bpe-automata\[tiktoken\]'"):
        read(numbered([]))


# ---------------------------------------------------------------- tekken


def tekken(tokens: list[bytes], keep: int | None = None) -> Json:
    vocabulary = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for token, rank in numbered(tokens).items()
    ]
    config = {
        "pattern": TEKKEN,
        "num_vocab_tokens": len(vocabulary),
        "default_vocab_size": 10 + (len(vocabulary) if keep is None else 256 + keep),
        "default_num_special_tokens": 10,
        "version": "v3",
    }
    return {"config": config, "vocab": vocabulary}


def load(data: Json) -> Source:
    return read_tekken(data, json.dumps(data).encode(), "tekken.json")


def test_tekken_shifts_the_ids_and_cuts_the_vocabulary() -> None:
    source = load(tekken([b"ab", b"abc", b"bc"], keep=2))
    assert source.description.n_ids == 10 + 256 + 2
    assert source.description.tokens[:10] == (None,) * 10
    assert source.description.tokens[266:] == (b"ab", b"abc")
    assert source.description.merges.tolist() == [[107, 108, 266], [266, 109, 267]]
    assert source.backend.encode("abcbc") == [267, 108, 109]
    assert source.eos_ids == (2,)
    for text in ("abc</s>", "bcab ab\u0301", "<s>"):  # special tokens are not read out of text
        assert Encoder(source.description, "fancy-regex")(text) == source.backend.encode(text)


def test_tekken_with_its_own_special_tokens() -> None:
    special = [{"rank": 0, "token_str": "<unk>"}, {"rank": 7, "token_str": "</s>"}]
    assert load({**tekken([]), "special_tokens": special}).eos_ids == (7,)


def test_broken_tekken_files() -> None:
    good = tekken([b"ab"])
    swapped = [*good["vocab"][:254], good["vocab"][255], good["vocab"][254]]
    twice = [*good["vocab"], {**good["vocab"][256], "rank": 257}]
    for vocabulary in (good["vocab"][:100], swapped, twice, [{}] * 257, [3] * 257):
        config = {**good["config"], "default_vocab_size": 10 + max(256, len(vocabulary))}
        with pytest.raises(BrokenTokenizerError, match=r"tekken\.json"):
            load({"config": config, "vocab": vocabulary})
    with pytest.raises(BrokenTokenizerError, match="default_vocab_size"):
        load({"config": {"pattern": "a", "default_num_special_tokens": 1}, "vocab": []})
