"""Small tokenizer files of every kind."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_automata.testing import byte_level
from bpe_automata.tokenizer.sources.json_vocabulary import byte_to_char
from bpe_automata.tokenizer.sources.published import GPT2
from support.making import make

Json = dict[str, Any]
TEXT = ("a", "b", "ab", " ", "  ", "é", "1", "\n", "abc", "'s", ".")
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
WRITTEN = [f"<0x{byte:02X}>" for byte in range(256)]
MADE = (b"ab", b" a", b"abc", b"  ", "é".encode(), b"'s")
MERGES = ["a b", "Ġ a", "ab c", "Ġ Ġ", "Ã ©", "' s"]
PIECES = [
    *((piece, -100.0 - at, NORMAL) for at, piece in enumerate("▁abc1\n.'s")),
    *(("ab", -1.0, NORMAL), ("▁a", -2.0, NORMAL), ("abc", -3.0, NORMAL), ("▁▁", -4.0, NORMAL)),
]


def tokenizer_json(**parts: Any) -> Json:
    step = byte_level(True)
    return make(TEXT, byte_level=True, pretokenizer=step, decoder=byte_level(), **parts)


def ranks(tokens: Sequence[bytes] = MADE) -> dict[bytes, int]:
    """All bytes, then these."""
    whole = [*(bytes([byte]) for byte in range(256)), *tokens]
    return {token: rank for rank, token in enumerate(whole)}


def rank_lines(ranks: dict[bytes, int]) -> bytes:
    """The token without bytes is written `=`, as in Whisper's file."""
    written = {base64.b64encode(token) or b"=": rank for token, rank in ranks.items()}
    return b"".join(token + b" %d\n" % rank for token, rank in written.items())


def tekken_json(
    tokens: Sequence[bytes] = MADE,
    special: Sequence[str] = ("<s>", "</s>"),
    n_special: int = 2,
    pattern: str = GPT2,
    kept: int | None = None,
) -> Json:
    """`n_special` ids come before the vocabulary, of which `kept` tokens are in use."""
    known = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for token, rank in ranks(tokens).items()
    ]
    size = n_special + (len(known) if kept is None else kept)
    config = {"default_vocab_size": size, "default_num_special_tokens": n_special}
    data = {"config": {"pattern": pattern, **config}, "vocab": known}
    named = [{"rank": rank, "token_str": text} for rank, text in enumerate(special)]
    return {**data, "special_tokens": named} if special else data


def sentencepiece_proto(pieces: list[Any], fallback: bool = True, **changes: Any) -> Any:
    """A BPE model without a prefix; `changes`: `normalizer_spec__name="x"` and the like."""
    pytest.importorskip("sentencepiece")
    pytest.importorskip("google.protobuf")
    from bpe_automata.tokenizer.sources.sentencepiece import model_proto

    proto = model_proto()
    hidden = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    hidden += [(text, 0.0, BYTE) for text in WRITTEN if fallback]
    for text, score, kind in [*hidden, *pieces]:
        proto.pieces.add(piece=text, score=score, type=kind)
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.trainer_spec.byte_fallback = fallback
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    for place, value in changes.items():
        part, _, field = place.partition("__")
        setattr(getattr(proto, part), field, value)
    return proto


def gpt2_fields(word: str = "gpt-2") -> Json:
    tokens = [*byte_to_char(), *(pair.replace(" ", "") for pair in MERGES), "<|end|>"]
    return {
        "model": "gpt2",
        "pre": word,
        "tokens": tokens,
        "token_type": [NORMAL] * (len(tokens) - 1) + [CONTROL],
        "merges": MERGES,
        "eos_token_id": len(tokens) - 1,
    }


def llama_fields() -> Json:
    pieces = [("<unk>", 0.0, UNKNOWN), ("</s>", 0.0, CONTROL)]
    pieces += [*((text, 0.0, BYTE) for text in WRITTEN), *PIECES]
    tokens, scores, kinds = map(list, zip(*pieces, strict=True))
    return {
        "model": "llama",
        "pre": "default",
        "tokens": tokens,
        "scores": scores,
        "token_type": kinds,
        "unknown_token_id": 0,
        "eos_token_id": 1,
    }


def gemma4_fields() -> Json:
    """Characters, some bytes written out, and merges of characters."""
    merges = ["a b", "▁ a", "ab c", "▁ ▁", "▁▁ ▁▁"]
    made = [merge.replace(" ", "") for merge in merges]
    tokens = ["<unk>", "<eos>", *WRITTEN, *"▁abc1\n.'s<", *made]
    return {
        "model": "gemma4",
        "tokens": tokens,
        "token_type": [UNKNOWN, CONTROL] + [BYTE] * 256 + [NORMAL] * (len(tokens) - 258),
        "merges": merges,
        "unknown_token_id": 0,
        "eos_token_id": 1,
    }


def gguf_file(folder: Path, fields: Json, weights: Any = None) -> Path:
    gguf = pytest.importorskip("gguf")
    path = folder / "x.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    add = {list: writer.add_array, bool: writer.add_bool, int: writer.add_uint32}
    for field, value in fields.items():
        add.get(type(value), writer.add_string)(f"tokenizer.ggml.{field}", value)
    if weights is not None:
        writer.add_tensor("weights", weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


# ---------------------------------------------------------------- a file of each kind

Written = tuple[Path, dict[str, Any]]
"""The path, and options of `Tokenizer.load`."""


def json_file(folder: Path, data: Json | None = None) -> Written:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(data or tokenizer_json()))
    return path, {}


def rank_file(folder: Path, special: dict[str, int] | None = None, **options: Any) -> Written:
    pytest.importorskip("tiktoken")
    path = folder / "x.tiktoken"
    path.write_bytes(rank_lines(ranks()))
    return path, {"pattern": GPT2, "special_tokens": special or {}, **options}


def tekken_file(folder: Path) -> Written:
    pytest.importorskip("tiktoken")
    (folder / "tekken.json").write_text(json.dumps(tekken_json()))
    return folder / "tekken.json", {}


def sentencepiece_file(folder: Path, pieces: list[Any] = PIECES, **changes: Any) -> Written:
    proto = sentencepiece_proto(pieces, **changes)
    (folder / "x.model").write_bytes(proto.SerializeToString())
    return folder / "x.model", {}


def gguf_of(fields: Callable[[], Json]) -> Callable[[Path], Written]:
    return lambda folder: (gguf_file(folder, fields()), {})


KINDS: dict[str, Callable[[Path], Written]] = {
    "json": json_file,
    "ranks": rank_file,
    "tekken": tekken_file,
    "sentencepiece": sentencepiece_file,
    "gguf of gpt2": gguf_of(gpt2_fields),
    "gguf of llama": gguf_of(llama_fields),
    "gguf of gemma4": gguf_of(gemma4_fields),
}
