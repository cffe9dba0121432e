"""A tokenizer that was loaded once is loaded from the cache: nothing is parsed or checked again,
and it is the same tokenizer.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import files

from bpe_automata import Tokenizer
from bpe_automata._storage import CorruptCacheWarning
from bpe_automata._tokenizer import stored
from bpe_automata._tokenizer import tokenizer as loading
from bpe_automata._tokenizer.description import Description
from bpe_automata._tokenizer.sources import detect, named
from bpe_automata.testing import added_token, byte_level, small_tokenizer
from bpe_automata.testing._small import byte_spelling

BYTES = [byte_spelling(bytes([byte])) for byte in range(256)]
RANKS = {bytes([b]): b for b in range(256)} | {b"ab": 256, b" ab": 257, b"": 258}
PATTERN = r"\s?\S+|\s+"
TEXTS = ("ab ab  AB", "é<end>a", "日本 a\n", "")
NORMALIZERS = [
    {"type": "NFC"},
    {"type": "Lowercase"},
    {"type": "Strip", "strip_left": True, "strip_right": False},
    {"type": "Replace", "pattern": {"String": "q"}, "content": "ab"},
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(stored, "FEWEST_IDS", 0)
    return tmp_path / "cache"


def written(**parts: Any) -> str:
    merges = [("a", "b"), ("Ġ", "ab")]
    tokens = [*BYTES, *map("".join, merges)]
    added = [added_token("<end>", special=True), added_token("<x>", normalized=True)]
    return small_tokenizer(tokens, merges, byte_level(), added, **parts).to_json()


def json_path(folder: Path) -> tuple[Any, dict[str, Any]]:
    (folder / "tokenizer.json").write_text(written())
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    return folder, {}


def rank_path(folder: Path) -> tuple[Any, dict[str, Any]]:
    pytest.importorskip("tiktoken")
    path = folder / "x.tiktoken"
    path.write_bytes(files.rank_lines(RANKS))
    special = {"<end>": 300, "<x>": 301}
    return path, {"pattern": PATTERN, "special_tokens": special, "normalize": "NFC"}


def tekken_path(folder: Path) -> tuple[Any, dict[str, Any]]:
    pytest.importorskip("tiktoken")
    data = files.tekken_json((b"ab", b" ab"), (), 10, PATTERN)
    (folder / "tekken.json").write_text(json.dumps(data))
    return folder, {}


def sentencepiece_path(folder: Path) -> tuple[Any, dict[str, Any]]:
    pieces = [("▁", -9.0, 1), ("a", -8.0, 1), ("b", -7.0, 1), ("ab", -1.0, 1), ("é", -9.0, 1)]
    proto = files.sentencepiece_proto(pieces, normalizer_spec__add_dummy_prefix=True)
    (folder / "x.model").write_bytes(proto.SerializeToString())
    return folder / "x.model", {}


def gguf_path(folder: Path) -> tuple[Any, dict[str, Any]]:
    fields = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": [*BYTES, "ab", "Ġab", "<end>"],
        "token_type": [1] * 258 + [3],
        "merges": ["a b", "Ġ ab"],
        "eos_token_id": 258,
    }
    return files.gguf_file(folder, fields, weights=np.zeros(1000, dtype=np.float32)), {}


def encoding(folder: Path) -> tuple[Any, dict[str, Any]]:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {token: rank for token, rank in RANKS.items() if token}
    special = {"<|endoftext|>": 400}
    return tiktoken.Encoding(
        "x", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special
    ), {}


def tokenizers_object(folder: Path) -> tuple[Any, dict[str, Any]]:
    import tokenizers

    return tokenizers.Tokenizer.from_str(written()), {}


def normalizing(folder: Path) -> tuple[Any, dict[str, Any]]:
    sequence = {"type": "Sequence", "normalizers": NORMALIZERS}
    (folder / "y.json").write_text(written(normalizer=sequence))
    return folder / "y.json", {}


KINDS = [
    *(json_path, rank_path, tekken_path, sentencepiece_path, gguf_path, encoding),
    *(tokenizers_object, normalizing),
]


def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no tokenizer may be read, nor tried."""

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("it is read again")

    monkeypatch.setattr(detect, "_read", forbidden)
    monkeypatch.setattr(named, "read_encoding", forbidden)
    monkeypatch.setattr(loading, "_read_text", forbidden)
    monkeypatch.setattr(loading, "check_decoding", forbidden)


def same(one: Tokenizer, other: Tokenizer) -> None:
    assert (one.fingerprint, one.eos_ids, one.n_ids) == (
        other.fingerprint,
        other.eos_ids,
        other.n_ids,
    )
    assert one.backend.name == other.backend.name
    assert one.backend.engine.name == other.backend.engine.name
    assert one.backend.engine.dialect == other.backend.engine.dialect
    for field in fields(Description):
        ours, theirs = (getattr(t.description, field.name) for t in (one, other))
        if field.name == "normalizers":
            ours, theirs = (
                [{**vars(s), "apply": s.apply("Qe\u0301")} for s in v] for v in (ours, theirs)
            )
        if isinstance(ours, np.ndarray):
            assert ours.dtype == theirs.dtype
            ours, theirs = ours.tolist(), theirs.tolist()
        assert ours == theirs, field.name
        assert list(ours) == list(theirs) if isinstance(ours, dict) else True
    for text in TEXTS:
        assert one.encode(text) == other.encode(text)
        assert one.decode(one.encode(text)) == other.decode(other.encode(text))
    assert one.encode_batch(list(TEXTS)) == other.encode_batch(list(TEXTS))
    assert one.spellings == other.spellings


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_loaded_once_is_not_read_again_and_is_the_same(kind, tmp_path, monkeypatch):
    source, options = kind(tmp_path)
    first = Tokenizer.load(source, **options)
    no_reading(monkeypatch)
    second = Tokenizer.load(source, **options)
    assert isinstance(second.backend, stored._StoredBackend)
    same(first, second)
    assert second.name == first.name
    monkeypatch.undo()
    same(first, pickle.loads(pickle.dumps(Tokenizer.load(source, **options))))
    if first._json:
        assert second.to_json() == first.to_json()


def test_content_options_and_what_stands_beside_are_all_part_of_it(tmp_path):
    folder, _ = json_path(tmp_path)
    (folder / "generation_config.json").write_text('{"eos_token_id": [258, 259]}')
    assert Tokenizer.load(folder).eos_ids == (258, 259)
    (folder / "generation_config.json").unlink()
    assert Tokenizer.load(folder).eos_ids == (258,)
    (folder / "tokenizer_config.json").write_text("{}")
    assert Tokenizer.load(folder).eos_ids == ()
    (folder / "tokenizer_config.json").unlink()
    (folder / "tokenizer.json").write_text(written().replace("<x>", "<y>"))
    assert Tokenizer.load(folder).encode("<y>") == [259]
    path, options = rank_path(tmp_path)
    assert Tokenizer.load(path, **options).encode("ab ab") == [256, 257]
    assert Tokenizer.load(path, **{**options, "pattern": r"\S|\s"}).encode("ab") == [97, 98]
    gguf, _ = gguf_path(tmp_path)
    whole = Tokenizer.load(gguf)
    data = gguf.read_bytes().replace(b"<end>", b"<eos>")
    gguf.write_bytes(data)
    assert Tokenizer.load(gguf).encode("<eos>") == [258]
    gguf.write_bytes(data[:-10] + b"0123456789")  # a tensor plays no part
    assert Tokenizer.load(gguf).encode("<eos>") == [258]
    assert whole.encode("<eos>") != [258]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [0.3, 0.6, 0.99])
def test_a_flipped_bit_is_found_and_the_tokenizer_read_again(kind, place, tmp_path, cache):
    source, options = kind(tmp_path)
    first = Tokenizer.load(source, **options)
    (path,) = (cache / "tokenizer").iterdir()
    data = bytearray(path.read_bytes())
    data[int(len(data) * place)] ^= 8
    path.write_bytes(data)
    with pytest.warns(CorruptCacheWarning, match="checksum"):
        same(first, Tokenizer.load(source, **options))
    same(first, Tokenizer.load(source, **options))  # it was kept anew


def test_other_libraries_or_sources_read_it_again(tmp_path, monkeypatch):
    folder, _ = json_path(tmp_path)
    Tokenizer.load(folder)
    read: list[object] = []
    reading = detect._read
    monkeypatch.setattr(detect, "_read", lambda *a, **k: read.append(a) or reading(*a, **k))
    Tokenizer.load(folder)
    assert not read
    with monkeypatch.context() as patch:
        patch.setattr(stored, "_is_installed", lambda library: False)
        Tokenizer.load(folder)
    assert len(read) == 1
    with monkeypatch.context() as patch:
        patch.setattr(stored, "_stamp", lambda: "other sources")
        Tokenizer.load(folder)
    assert len(read) == 2
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", "off")
    Tokenizer.load(folder)
    assert len(read) == 3
