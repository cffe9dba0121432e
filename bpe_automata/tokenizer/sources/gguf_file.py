"""The tokenizer inside a GGUF file.

Two kinds are read: `gpt2`, byte-level BPE with its merges, is the same as a `tokenizer.json`;
`llama`, pieces with scores, is the same as a SentencePiece model. GGUF says less than either: the
pretokenizer is one word (`gguf_pretokenizers`), and no normalizer is named, so none is applied (as
in llama.cpp).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.backend import Source
from bpe_automata.tokenizer.read_json import read_json
from bpe_automata.tokenizer.sources.gguf_fields import Fields, read_fields
from bpe_automata.tokenizer.sources.gguf_pretokenizers import BYTE_LEVEL, pretokenizer
from bpe_automata.tokenizer.sources.sentencepiece_model import model_proto, source_of
from bpe_automata.tokenizer.sources.sentencepiece_pieces import SPACE, Kind

Json = dict[str, Any]


def read_gguf(path: Path, name: str | None = None) -> Source:
    """The tokenizer of a GGUF file; `name`: what it is called instead of its path.

    Raises MissingDependencyError without the packages that read it, BrokenTokenizerError for a file
    that is not GGUF or holds no tokenizer, UnsupportedTokenizerError for other kinds."""
    fields = read_fields(path)
    model = fields("tokenizer.ggml.model")
    if model == "gpt2":
        return read_json(gpt2_json(fields, str(path)), _eos(fields), name or str(path))
    if model == "llama":
        proto = sentencepiece_proto(fields, str(path))
        return source_of(proto, proto.SerializeToString(), name or str(path), _eos(fields))
    raise UnsupportedTokenizerError(
        "GGUF tokenizer model", model, "gpt2 (BPE with merges) and llama (SentencePiece) are read"
    )


def _eos(fields: Fields) -> tuple[int, ...]:
    number = fields("tokenizer.ggml.eos_token_id", None)
    return () if number is None else (int(number),)


def _tokens(fields: Fields, where: str) -> tuple[list[str], list[Kind]]:
    tokens: list[str] = fields("tokenizer.ggml.tokens")
    types: list[int] = fields("tokenizer.ggml.token_type")
    if len(tokens) != len(types):
        raise BrokenTokenizerError(f"{where} has {len(tokens)} tokens, but {len(types)} types")
    try:
        return tokens, [Kind(number) for number in types]
    except ValueError as error:
        raise BrokenTokenizerError(
            f"{where} has a token of a type that is none: {error}"
        ) from error


# ---------------------------------------------------------------- gpt2


def gpt2_json(fields: Fields, where: str) -> Json:
    """The content of the `tokenizer.json` that a gpt2 model is equal to."""
    splitter, ignore_merges = pretokenizer(fields("tokenizer.ggml.pre"))
    tokens, kinds = _tokens(fields, where)
    added = [
        _added(number, tokens[number], kind)
        for number, kind in enumerate(kinds)
        if kind in (Kind.CONTROL, Kind.USER_DEFINED)
    ]
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": splitter,
        "post_processor": None,
        "decoder": BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "ignore_merges": ignore_merges,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in fields("tokenizer.ggml.merges")],
        },
    }


def _added(number: int, content: str, kind: Kind) -> Json:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, **flags, "special": kind is Kind.CONTROL}


# ---------------------------------------------------------------- llama


def sentencepiece_proto(fields: Fields, where: str) -> Any:
    """The SentencePiece model that a llama model is equal to.

    The converters to GGUF write user-defined pieces with plain spaces and the others with `▁`, and
    some call the unknown piece a control piece and give its id beside."""
    tokens, kinds = _tokens(fields, where)
    scores: list[float] = fields("tokenizer.ggml.scores")
    if len(scores) != len(tokens):
        raise BrokenTokenizerError(f"{where} has {len(tokens)} tokens, but {len(scores)} scores")
    unknown = fields("tokenizer.ggml.unknown_token_id", None)
    if unknown is not None and 0 <= unknown < len(kinds):
        kinds[unknown] = Kind.UNKNOWN
    proto = model_proto()
    for token, score, kind in zip(tokens, scores, kinds, strict=True):
        text = token.replace(" ", SPACE) if kind is Kind.USER_DEFINED else token
        proto.pieces.add(piece=text, score=score, type=int(kind))
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.trainer_spec.byte_fallback = Kind.BYTE in kinds
    normalizer = proto.normalizer_spec
    normalizer.name = "identity"
    normalizer.add_dummy_prefix = bool(fields("tokenizer.ggml.add_space_prefix", True))
    normalizer.remove_extra_whitespaces = bool(
        fields("tokenizer.ggml.remove_extra_whitespaces", False)
    )
    normalizer.precompiled_charsmap = bytes(fields("tokenizer.ggml.precompiled_charsmap", ()))
    return proto
