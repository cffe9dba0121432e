"""tiktoken rank files and tekken.json, against tiktoken; GGUF files, against what they were
made of.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, named
from support.files import gguf_file, llama_fields, rank_lines, tekken_json
from support.files import ranks as ranks_of

from bpe_automata import Tokenizer
from bpe_automata.errors import BrokenTokenizerError
from bpe_automata.reference._encode import Encoder
from bpe_automata.tokenizer.source import Source
from bpe_automata.tokenizer.sources.gguf import pretokenizer_of, read_fields, read_gguf
from bpe_automata.tokenizer.sources.published import GPT2, LLAMA3, TEKKEN
from bpe_automata.tokenizer.sources.tiktoken import read_tekken, read_tiktoken

tiktoken = pytest.importorskip("tiktoken")
library = pytest.importorskip("gguf")


Json = dict[str, Any]


def read(ranks: dict[bytes, int], pattern: str = GPT2, **options: Any) -> Source:
    options.setdefault("special_tokens", {"<|end|>": max(ranks.values()) + 1})
    return read_tiktoken(rank_lines(ranks), "x.tiktoken", pattern=pattern, **options)


PIECES = st.text("ab 1é\n", min_size=2, max_size=5).map(lambda text: text.encode())
TEXTS = st.lists(st.text("ab 1é\n'sX\u0301日", max_size=14), min_size=5, max_size=20)
PATTERNS = st.sampled_from([GPT2, LLAMA3, TEKKEN, r"[ab ]+|\d", r"a+b?"])


@examples(100)
@given(st.lists(PIECES, unique=True, max_size=20), PATTERNS, TEXTS, st.booleans(), st.booleans())
def test_random_ranks_are_read_exactly(tokens, pattern, checked, reverse, normalize) -> None:
    """In any order, so that most tables are improper; some patterns leave gaps."""
    ranks = ranks_of(tokens)
    if reverse:
        ranks = {token: len(ranks) - 1 - rank for token, rank in ranks.items()}
    source = read(ranks, pattern, normalize="NFC" if normalize else None)
    encode = Encoder(source.description, "fancy-regex")
    whole = [token.decode() for token in tokens]  # as a pretoken, also where no merges lead to it
    for text in [*checked, *whole, "<|end|>".join(checked[:3]), "<|end|>\u0338"]:
        assert encode(text) == source.backend.encode(text)
    assert source.backend.encode_batch(checked) == list(map(source.backend.encode, checked))


# ---------------------------------------------------------------- encodings of tiktoken


def tiny(special_tokens: dict[str, int]) -> tiktoken.Encoding:
    ranks = ranks_of([b"ab", b"abc"])
    return tiktoken.Encoding(
        "tiny", pat_str=GPT2, mergeable_ranks=ranks, special_tokens=special_tokens
    )


def test_an_encoding_is_its_rank_file() -> None:
    specials = {"<|endoftext|>": 258, "<|fim|>": 300}
    ours = Tokenizer.load(tiny(specials))
    file = read(ranks_of([b"ab", b"abc"]), special_tokens=specials)
    assert ours.fingerprint == file.fingerprint
    assert (ours.name, ours.eos_ids, ours.n_ids) == ("tiny", (258,), 301)
    assert ours.encode("abcab<|fim|>") == [257, 256, 300]
    assert Tokenizer.load(tiny({})).eos_ids == ()


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"YQ== x\n", "line 1: "),
        (b"IQ== 0\n!!! 1\n", "line 2: "),
        (b"IQ== 0 1\n", "line 1: "),
        (rank_lines(ranks_of([])).rsplit(b"\n", 3)[0], "no token is the byte 0xFE"),
        (rank_lines(ranks_of([])) + b"IQ== 999\n", "lists 1 token"),
        (rank_lines(ranks_of([])) + b"YWI= 3\n", "same rank"),
        (rank_lines(ranks_of([])) + b"YWI= -3\n", "negative"),
    ],
)
def test_broken_rank_files(content: bytes, message: str) -> None:
    with pytest.raises(BrokenTokenizerError, match=message) as caught:
        read_tiktoken(content, "b.tiktoken", pattern=GPT2, special_tokens={})
    assert str(caught.value).startswith("b.tiktoken")


# ---------------------------------------------------------------- tekken


def tekken(tokens: list[bytes], **options: int) -> Json:
    return tekken_json(tokens, (), 10, TEKKEN, **options)


def load(data: Json) -> Source:
    return read_tekken(data, json.dumps(data).encode(), "tekken.json")


def test_tekken_shifts_the_ids_and_cuts_the_vocabulary() -> None:
    source = load(tekken([b"ab", b"abc", b"bc"], kept=256 + 2))
    assert source.description.n_ids == 10 + 256 + 2
    assert source.description.tokens[:10] == (None,) * 10
    assert source.description.tokens[266:] == (b"ab", b"abc")
    assert source.description.merges.tolist() == [[107, 108, 266], [266, 109, 267]]
    assert source.backend.encode("abcbc") == [267, 108, 109]
    assert source.eos_ids == (2,)
    for text in ("abc</s>", "bcab ab\u0301", "<s>"):  # special tokens are not read out of text
        assert Encoder(source.description, "fancy-regex")(text) == source.backend.encode(text)


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


# ---------------------------------------------------------------- GGUF

LLAMA = llama_fields()
SIZE = len(LLAMA["tokens"])


def test_fields_are_what_the_package_reads(tmp_path) -> None:
    path = gguf_file(tmp_path, {**LLAMA, "empty": ["x"], "flags": [True, False]})
    fields, theirs = read_fields(path), library.GGUFReader(path)
    for name in theirs.fields.keys() - {"GGUF.version", "GGUF.tensor_count", "GGUF.kv_count"}:
        assert fields(name) == theirs.get_field(name).contents(), name
    assert fields("tokenizer.ggml.tokens") == LLAMA["tokens"]
    assert fields("none", 3) == 3
    with pytest.raises(BrokenTokenizerError, match="has no field 'none'"):
        fields("none")


def test_deepseek_splits_as_its_tokenizer_json_does() -> None:
    pipeline = json.loads(named("deepseek").to_json())["pre_tokenizer"]
    assert pretokenizer_of("deepseek-v3") == (pipeline, False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"token_type": [1, 1]}, f"{SIZE} tokens, but 2 types"),
        ({"token_type": [9] * SIZE}, "of an unknown type"),
        ({"scores": [0.0]}, f"{SIZE} tokens, but 1 scores"),
    ],
)
def test_broken(tmp_path, changes, message: str) -> None:
    pytest.importorskip("sentencepiece")
    with pytest.raises(BrokenTokenizerError, match=message):
        read_gguf(gguf_file(tmp_path, {**LLAMA, **changes}))


def test_a_file_that_ends_early(tmp_path) -> None:
    whole = gguf_file(tmp_path, LLAMA).read_bytes()
    for size in [5, 23, 40, 200, 1000, 4000, len(whole) // 2, len(whole) - 200]:
        (tmp_path / "cut.gguf").write_bytes(whole[:size])
        with pytest.raises(BrokenTokenizerError, match=r"cut\.gguf"):
            read_gguf(tmp_path / "cut.gguf")
