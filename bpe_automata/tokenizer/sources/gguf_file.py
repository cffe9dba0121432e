"""The tokenizer inside a GGUF file.

Three kinds are read: `gpt2`, byte-level BPE with its merges, and `gemma4`, BPE of characters with
merges, are the same as a `tokenizer.json`; `llama`, pieces with scores, is the same as a
SentencePiece model. GGUF says less than either: the pretokenizer is one word
(`gguf_pretokenizers`), and no normalizer is named, so none is applied (as in llama.cpp).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bpe_automata.errors import (
    ONLY_BPE,
    BrokenTokenizerError,
    TokenizerError,
    UnsupportedTokenizerError,
)
from bpe_automata.tokenizer.backend import Source
from bpe_automata.tokenizer.read_json import read_json
from bpe_automata.tokenizer.sources.gguf_fields import Fields, read_metadata
from bpe_automata.tokenizer.sources.gguf_pretokenizers import BYTE_LEVEL, pretokenizer_of
from bpe_automata.tokenizer.sources.sentencepiece_model import model_proto, source_of
from bpe_automata.tokenizer.sources.sentencepiece_pieces import SPACE, Kind

Json = dict[str, Any]


def read_gguf(path: Path, name: str | None = None, pretokenizer: str | None = None) -> Source:
    """The tokenizer of a GGUF file; `name`: what it is called instead of its path; `pretokenizer`:
    the word for it (one of `gguf_pretokenizers`), if the file has none or another.

    Raises MissingDependencyError without the packages that read it, BrokenTokenizerError for a file
    that is not GGUF or holds no tokenizer, UnsupportedTokenizerError for other kinds."""
    fields, extent = read_metadata(path)
    return replace(_source(fields, path, name, pretokenizer), extent=extent)


def _source(fields: Fields, path: Path, name: str | None, pretokenizer: str | None) -> Source:
    model = fields("tokenizer.ggml.model")
    if model == "gpt2":
        data = gpt2_json(fields, str(path), pretokenizer)
        return read_json(data, _eos(fields), name or str(path))
    if pretokenizer is not None:
        raise TokenizerError(f"{path} holds a {model} model, which takes no pretokenizer")
    if model == "gemma4":
        return read_json(gemma4_json(fields, str(path)), _eos(fields), name or str(path))
    if model == "llama":
        proto = sentencepiece_proto(fields, str(path))
        return source_of(proto, proto.SerializeToString(), name or str(path), _eos(fields))
    raise UnsupportedTokenizerError(
        "GGUF tokenizer model",
        model,
        f"gpt2 and gemma4 (BPE with merges) and llama (SentencePiece) are read. {ONLY_BPE}",
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


# ---------------------------------------------------------------- gpt2, gemma4


def gpt2_json(fields: Fields, where: str, word: str | None = None) -> Json:
    """The content of the `tokenizer.json` that a gpt2 model is equal to. `word`: for its
    pretokenizer, instead of the file's."""
    splitter, ignore_merges = pretokenizer_of(word or fields("tokenizer.ggml.pre", None))
    model = {"ignore_merges": ignore_merges}
    return _json(fields, where, model, pre_tokenizer=splitter, decoder=BYTE_LEVEL)


def gemma4_json(fields: Fields, where: str) -> Json:
    """The same of a gemma4 model: spaces are written `▁`, and nothing is split."""
    tokens, kinds = _tokens(fields, where)
    model: Json = {"byte_fallback": Kind.BYTE in kinds, "fuse_unk": True}
    unknown = fields("tokenizer.ggml.unknown_token_id", None)
    if unknown is not None and 0 <= unknown < len(tokens):
        model["unk_token"] = tokens[unknown]
    back = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
    decoders = [back, {"type": "ByteFallback"}, {"type": "Fuse"}]
    return _json(
        fields,
        where,
        model,
        normalizer={"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        decoder={"type": "Sequence", "decoders": decoders},
    )


def _json(fields: Fields, where: str, model: Json, **parts: Json) -> Json:
    """A `tokenizer.json` of the tokens and merges; `model`: more fields of it."""
    tokens, kinds = _tokens(fields, where)
    added = [
        _added(number, tokens[number], kind)
        for number, kind in enumerate(kinds)
        if kind in (Kind.CONTROL, Kind.USER_DEFINED)
    ]
    merges: list[str] = fields("tokenizer.ggml.merges")
    none = dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder"))
    bpe = {
        "type": "BPE",
        "vocab": {token: number for number, token in enumerate(tokens)},
        "merges": [merge.split(" ") for merge in merges],
    }
    return {"version": "1.0", "added_tokens": added, **none, **parts, "model": bpe | model}


def _added(number: int, content: str, kind: Kind) -> Json:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, **flags, "special": kind is Kind.CONTROL}


# ---------------------------------------------------------------- llama


def sentencepiece_proto(fields: Fields, where: str) -> Any:
    """The SentencePiece model that a llama model is equal to.

    The converters to GGUF write user-defined pieces with plain spaces and the others with `▁`, and
    some call the unknown piece a control piece and give its id beside. What fills up a vocabulary
    (Phi-3's `[PAD32011]`) they call unknown too; it is unused."""
    tokens, kinds = _tokens(fields, where)
    scores: list[float] = fields("tokenizer.ggml.scores")
    if len(scores) != len(tokens):
        raise BrokenTokenizerError(f"{where} has {len(tokens)} tokens, but {len(scores)} scores")
    unknown = fields("tokenizer.ggml.unknown_token_id", None)
    if unknown is not None and 0 <= unknown < len(kinds):
        kinds = [Kind.UNUSED if kind is Kind.UNKNOWN else kind for kind in kinds]
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
