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
from support.making import library

from bpe_automata import Tokenizer
from bpe_automata._storage import CorruptCacheWarning
from bpe_automata.testing import added_token
from bpe_automata.tokenizer import stored
from bpe_automata.tokenizer import tokenizer as loading
from bpe_automata.tokenizer.description import Description
from bpe_automata.tokenizer.sources import detect, named

TEXTS = ("ab ab  ab", "é<end>a", "a\n1", "")
ADDED = [added_token("<end>", special=True), added_token("<x>", normalized=True)]
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


def in_folder(folder: Path) -> tuple[Any, dict[str, Any]]:
    files.json_file(folder, files.tokenizer_json(added=ADDED))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    return folder, {}


def normalizing(folder: Path) -> tuple[Any, dict[str, Any]]:
    sequence = {"type": "Sequence", "normalizers": NORMALIZERS}
    return files.json_file(folder, files.tokenizer_json(added=ADDED, normalizer=sequence))


def normalized_ranks(folder: Path) -> tuple[Any, dict[str, Any]]:
    return files.rank_file(folder, {"<end>": 300, "<x>": 301}, normalize="NFC")


def encoding(folder: Path) -> tuple[Any, dict[str, Any]]:
    tiktoken = pytest.importorskip("tiktoken")
    given = {"pat_str": r"\s?\S+|\s+", "special_tokens": {"<|endoftext|>": 400}}
    return tiktoken.Encoding("x", mergeable_ranks=files.ranks(), **given), {}


def tokenizers_object(folder: Path) -> tuple[Any, dict[str, Any]]:
    return library(files.tokenizer_json(added=ADDED)), {}


KINDS = {
    **{kind: files.KINDS[kind] for kind in ("tekken", "sentencepiece", "gguf of gpt2")},
    **{made.__name__: made for made in (in_folder, normalizing, normalized_ranks, encoding)},
    "tokenizers_object": tokenizers_object,
}


def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no tokenizer may be read, nor tried."""

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("it is read again")

    monkeypatch.setattr(detect, "_read", forbidden)
    monkeypatch.setattr(named, "read_encoding", forbidden)
    monkeypatch.setattr(loading, "_read_text", forbidden)
    monkeypatch.setattr(loading, "check_decoding", forbidden)


def told(tokenizer: Tokenizer) -> list[Any]:
    """All that there is to say about a tokenizer."""
    engine, said = tokenizer.backend.engine, list[Any]()
    for field in fields(Description):
        value = getattr(tokenizer.description, field.name)
        if field.name == "normalizers":
            value = [{**vars(step), "apply": step.apply("Qe\u0301")} for step in value]
        if isinstance(value, np.ndarray):
            value = value.dtype, value.tolist()
        said.append(list(value.items()) if isinstance(value, dict) else value)
    said += [tokenizer.fingerprint, tokenizer.eos_ids, tokenizer.n_ids, tokenizer.spellings]
    said += [tokenizer.backend.name, engine.name, engine.dialect]
    ids = [tokenizer.encode(text) for text in TEXTS]
    return [*said, ids, list(map(tokenizer.decode, ids)), tokenizer.encode_batch(list(TEXTS))]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_loaded_once_is_not_read_again_and_is_the_same(kind, tmp_path, monkeypatch):
    source, options = KINDS[kind](tmp_path)
    first = Tokenizer.load(source, **options)
    no_reading(monkeypatch)
    second = Tokenizer.load(source, **options)
    assert isinstance(second.backend, stored._StoredBackend)
    assert told(second) == told(first)
    assert second.name == first.name
    monkeypatch.undo()
    assert told(pickle.loads(pickle.dumps(Tokenizer.load(source, **options)))) == told(first)
    if first._json:
        assert second.to_json() == first.to_json()


def test_content_options_and_what_stands_beside_are_all_part_of_it(tmp_path):
    folder, _ = in_folder(tmp_path)
    (end, other) = (Tokenizer.load(folder).encode(text)[0] for text in ("<end>", "<x>"))
    (folder / "generation_config.json").write_text(f'{{"eos_token_id": [{end}, {other}]}}')
    assert Tokenizer.load(folder).eos_ids == (end, other)
    (folder / "generation_config.json").unlink()
    assert Tokenizer.load(folder).eos_ids == (end,)
    (folder / "tokenizer_config.json").write_text("{}")
    assert Tokenizer.load(folder).eos_ids == ()
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace("<x>", "<y>"))
    assert Tokenizer.load(path).encode("<y>") == [other]
    path, options = files.rank_file(tmp_path)
    assert Tokenizer.load(path, **options).encode("ab ab") == [256, 32, 256]
    assert Tokenizer.load(path, **{**options, "pattern": r"\S|\s"}).encode("ab") == [97, 98]
    fields = files.gpt2_fields()
    gguf = files.gguf_file(tmp_path, fields, weights=np.zeros(1000, dtype=np.float32))
    whole, end = Tokenizer.load(gguf), fields["eos_token_id"]
    data = gguf.read_bytes().replace(b"<|end|>", b"<|eos|>")
    gguf.write_bytes(data)
    assert Tokenizer.load(gguf).encode("<|eos|>") == [end]
    gguf.write_bytes(data[:-10] + b"0123456789")  # a tensor plays no part
    assert Tokenizer.load(gguf).encode("<|eos|>") == [end]
    assert whole.encode("<|eos|>") != [end]


@pytest.mark.parametrize("place", [0.3, 0.6, 0.99])
def test_a_flipped_bit_is_found_and_the_tokenizer_read_again(place, tmp_path, cache):
    source, _ = in_folder(tmp_path)
    first = told(Tokenizer.load(source))
    (path,) = (cache / "tokenizer").iterdir()
    data = bytearray(path.read_bytes())
    data[int(len(data) * place)] ^= 8
    path.write_bytes(data)
    with pytest.warns(CorruptCacheWarning, match="checksum"):
        assert told(Tokenizer.load(source)) == first
    assert told(Tokenizer.load(source)) == first  # it was kept anew


def test_other_libraries_or_sources_read_it_again(tmp_path, monkeypatch):
    folder, _ = in_folder(tmp_path)
    Tokenizer.load(folder)
    read: list[object] = []
    reading = detect._read
    monkeypatch.setattr(detect, "_read", lambda *a, **k: read.append(a) or reading(*a, **k))
    Tokenizer.load(folder)
    assert not read
    for number, (name, made) in enumerate(
        (("_is_installed", lambda library: False), ("_stamp", lambda: "other sources"))
    ):
        with monkeypatch.context() as patch:
            patch.setattr(stored, name, made)
            Tokenizer.load(folder)
        assert len(read) == number + 1
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", "off")
    Tokenizer.load(folder)
    assert len(read) == 3
