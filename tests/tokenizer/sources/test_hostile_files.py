"""Files made to break their reader: each is a typed error, in little time and memory."""

from __future__ import annotations

import base64
import json
import random

import pytest
from support import files

from bpe_automata import Tokenizer
from bpe_automata.errors import BrokenTokenizerError, TokenizerError


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
