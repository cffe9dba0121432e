"""Loading a tokenizer: the kind of a file is told by its content, hostile files fail with typed
errors, and the library is compared with on sample texts.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers
from support import files

from bpe_automata import Tokenizer, constrain
from bpe_automata.canonical.canonical import (
    CanonicalAutomaton,
    build_parts,
    canonical_automaton,
    try_automaton,
)
from bpe_automata.errors import (
    BrokenTokenizerError,
    TokenizerError,
    TokenizerMismatchError,
    UnsupportedTokenizerError,
)
from bpe_automata.testing import byte_level, small_tokenizer
from bpe_automata.testing._small import byte_spelling
from bpe_automata.tokenizer.source import Source
from bpe_automata.tokenizer.sources.detect import path_origin

RANKS = files.rank_lines(files.ranks())
RANK_OPTIONS = {"pattern": r"\S+|\s+", "special_tokens": {"<e>": 300}}


def tokenizer_json() -> bytes:
    return json.dumps(files.tokenizer_json()).encode()


def tekken() -> bytes:
    return json.dumps(files.tekken_json()).encode()


def write(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def library(path: Path, **options: object) -> str:
    return path_origin(path, **options).read().backend.name.partition(" ")[0]


@pytest.mark.parametrize("name", ["tokenizer.json", "x.model", "x.tiktoken", "x"])
def test_kinds_by_content(tmp_path, name: str) -> None:
    pytest.importorskip("tiktoken")
    assert library(write(tmp_path, name, tokenizer_json())) == "tokenizers"
    assert library(write(tmp_path, name, b"\xef\xbb\xbf \n" + tokenizer_json())) == "tokenizers"
    assert library(write(tmp_path, name, tekken())) == "tiktoken"
    if name != "tokenizer.json":
        assert library(write(tmp_path, name, RANKS), **RANK_OPTIONS) == "tiktoken"
        assert library(write(tmp_path, name, b"\r\n" + RANKS), **RANK_OPTIONS) == "tiktoken"


def test_a_folder_gives_its_tokenizer_json_first(tmp_path) -> None:
    pytest.importorskip("tiktoken")
    write(tmp_path, "a.tiktoken", RANKS)
    assert library(tmp_path, **RANK_OPTIONS) == "tiktoken"
    write(tmp_path, "tekken_1.json", tekken())
    assert library(tmp_path) == "tiktoken"
    write(tmp_path, "tokenizer.json", tokenizer_json())
    assert library(tmp_path) == "tokenizers"
    assert path_origin(tmp_path).read().name == str(tmp_path / "tokenizer.json")


def test_the_ids_that_end_a_generation_are_named_beside(tmp_path) -> None:
    data = json.loads(small_tokenizer(["a"], [], byte_level(), ["<e>", "<f>"]).to_json())
    write(tmp_path, "tokenizer.json", json.dumps(data).encode())
    for named, known in (([2, 1], (2, 1)), (1, (1,)), (None, ()), ([9, -1, 1], (1,))):
        write(tmp_path, "generation_config.json", json.dumps({"eos_token_id": named}).encode())
        assert path_origin(tmp_path).read().eos_ids == known
    write(tmp_path, "generation_config.json", b'{"eos_token_id": [1, 2]}')
    write(tmp_path, "tokenizer_config.json", b'{"eos_token": "<f>"}')
    assert Tokenizer.load(tmp_path).eos_ids == (2, 1)
    for broken in (b"[]", b'{"eos_token_id": "<e>"}', b'{"eos_token_id": [1.5]}'):
        write(tmp_path, "generation_config.json", broken)
        with pytest.raises(BrokenTokenizerError, match=r"generation_config\.json"):
            path_origin(tmp_path).read()


# ---------------------------------------------------------------- hostile files


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


@pytest.mark.parametrize("kind", ["json", "ranks", "tekken", "gguf of gpt2"])
def test_mutations_of_small_files_are_read_or_refused_with_a_type(kind, tmp_path, request):
    path, options = files.KINDS[kind](tmp_path)
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


@pytest.mark.parametrize("step", [{"type": "Whitespace"}, byte_level(True), None])
def test_without_a_decoder_ids_are_not_decoded_to_their_text(step):
    """tokenizers joins the tokens with spaces: `i`, `d` is decoded to `i d`."""
    good = json.loads(small_tokenizer(BYTES, pretokenizer=step).to_json())
    data = {**good, "decoder": None}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    assert theirs.decode(theirs.encode("id").ids) == "i d"
    with pytest.raises(UnsupportedTokenizerError, match=r"decoder None .* set the decoder"):
        Tokenizer.from_json(data)


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
