"""The reader of the tokenizer inside a GGUF file.

Three kinds of model are read: `gpt2` (byte-level BPE with merges) and `gemma4` (BPE of characters
with merges) are equal to a `tokenizer.json`; `llama` (pieces with scores) is equal to a
SentencePiece model. GGUF contains less than either: no normalizer is named, so none is applied (as
in llama.cpp; Qwen's, MPT and Command-R were trained with NFC), and the pretokenizer is one word.

The words, and which of them ignore merges, are those of llama.cpp, src/llama-vocab.cpp. Where
llama.cpp rewrites a model's pretokenizer for its own engine, we take the model's: the model was
trained with it, and llama.cpp's tests compare with it. Three of the rewritten ones differ:

    falcon    llama.cpp leaves out `Digits`, which separates a number from the space before it
    kimi-k2   llama.cpp does not split words where small letters are followed by capitals
    tekken    llama.cpp takes `[^a-z]` and `[^A-Z]` for the upper and lower case of its pattern

We read the metadata ourselves: the `GGUFReader` of the package `gguf` makes a NumPy view for each
number of each array, which takes ten seconds for a vocabulary of 262,144 tokens.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata._budget import check
from bpe_automata.errors import (
    ONLY_BPE,
    BrokenTokenizerError,
    TokenizerError,
    UnsupportedTokenizerError,
)
from bpe_automata.tokenizer.source import Source
from bpe_automata.tokenizer.sources import published
from bpe_automata.tokenizer.sources.sentencepiece import SPACE, PieceType, model_proto, source_of
from bpe_automata.tokenizer.sources.tokenizer_json import read_json

Json = dict[str, Any]


def read_gguf(path: Path, name: str | None = None, pretokenizer: str | None = None) -> Source:
    """The tokenizer of a GGUF file; `name`: what it is called instead of its path; `pretokenizer`:
    the word for its pretokenizer (one of `WORDS`), instead of the file's.

    Raises BrokenTokenizerError for a file that is not GGUF or holds no tokenizer,
    MissingDependencyError for a llama model without sentencepiece, UnsupportedTokenizerError for
    other kinds."""
    fields = read_fields(path)
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


def _tokens(fields: Fields, where: str) -> tuple[list[str], list[PieceType]]:
    tokens: list[str] = fields("tokenizer.ggml.tokens")
    types: list[int] = fields("tokenizer.ggml.token_type")
    if len(tokens) != len(types):
        raise BrokenTokenizerError(f"{where} has {len(tokens)} tokens, but {len(types)} types")
    try:
        return tokens, [PieceType(number) for number in types]
    except ValueError as error:
        raise BrokenTokenizerError(f"{where} has a token of an unknown type: {error}") from error


# ---------------------------------------------------------------- gpt2, gemma4


def gpt2_json(fields: Fields, where: str, word: str | None = None) -> Json:
    """The content of a `tokenizer.json` that is equal to a gpt2 model. `word`: for its
    pretokenizer, instead of the file's."""
    splitter, ignore_merges = pretokenizer_of(word or fields("tokenizer.ggml.pre", None))
    model = {"ignore_merges": ignore_merges}
    return _json(fields, where, model, pre_tokenizer=splitter, decoder=BYTE_LEVEL)


def gemma4_json(fields: Fields, where: str) -> Json:
    """The content of a `tokenizer.json` that is equal to a gemma4 model: spaces are written `▁`,
    and nothing is split."""
    tokens, kinds = _tokens(fields, where)
    model: Json = {"byte_fallback": PieceType.BYTE in kinds, "fuse_unk": True}
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
    """A `tokenizer.json` with the tokens and merges; `model`: further fields of its model."""
    tokens, kinds = _tokens(fields, where)
    added = [
        _added(number, tokens[number], kind)
        for number, kind in enumerate(kinds)
        if kind in (PieceType.CONTROL, PieceType.USER_DEFINED)
    ]
    merges: list[str] = fields("tokenizer.ggml.merges")
    none = dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder"))
    bpe = {
        "type": "BPE",
        "vocab": {token: number for number, token in enumerate(tokens)},
        "merges": [merge.split(" ") for merge in merges],
    }
    return {"version": "1.0", "added_tokens": added, **none, **parts, "model": bpe | model}


def _added(number: int, content: str, kind: PieceType) -> Json:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, **flags, "special": kind is PieceType.CONTROL}


# ---------------------------------------------------------------- llama


def sentencepiece_proto(fields: Fields, where: str) -> Any:
    """The SentencePiece model that is equal to a llama model.

    The converters to GGUF write user-defined pieces with plain spaces and all others with `▁`. Some
    mark the unknown piece as a control piece and give its id separately, and mark pieces that pad
    the vocabulary (Phi-3's `[PAD32011]`) as unknown; those are unused."""
    tokens, kinds = _tokens(fields, where)
    scores: list[float] = fields("tokenizer.ggml.scores")
    if len(scores) != len(tokens):
        raise BrokenTokenizerError(f"{where} has {len(tokens)} tokens, but {len(scores)} scores")
    unknown = fields("tokenizer.ggml.unknown_token_id", None)
    if unknown is not None and 0 <= unknown < len(kinds):
        kinds = [PieceType.UNUSED if kind is PieceType.UNKNOWN else kind for kind in kinds]
        kinds[unknown] = PieceType.UNKNOWN
    proto = model_proto()
    for token, score, kind in zip(tokens, scores, kinds, strict=True):
        text = token.replace(" ", SPACE) if kind is PieceType.USER_DEFINED else token
        proto.pieces.add(piece=text, score=score, type=int(kind))
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.trainer_spec.byte_fallback = PieceType.BYTE in kinds
    normalizer = proto.normalizer_spec
    normalizer.name = "identity"
    normalizer.add_dummy_prefix = bool(fields("tokenizer.ggml.add_space_prefix", True))
    normalizer.remove_extra_whitespaces = bool(
        fields("tokenizer.ggml.remove_extra_whitespaces", False)
    )
    normalizer.precompiled_charsmap = bytes(fields("tokenizer.ggml.precompiled_charsmap", ()))
    return proto


# ---------------------------------------------------------------- pretokenizers

BYTE_LEVEL: Json = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
_MAPPED: Json = {**BYTE_LEVEL, "use_regex": False}
_DIGITS: Json = {"type": "Digits", "individual_digits": True}
_NUMBERS: Json = {"type": "Digits", "individual_digits": False}
_PUNCTUATION: Json = {"type": "Punctuation", "behavior": "Contiguous"}


def _split(pattern: str) -> Json:
    regex = {"Regex": pattern}
    return {"type": "Split", "pattern": regex, "behavior": "Isolated", "invert": False}


def _sequence(*steps: Json) -> Json:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def _splits(*patterns: str) -> Json:
    return _sequence(*map(_split, patterns), _MAPPED)


_FALCON = _sequence(_PUNCTUATION, BYTE_LEVEL, _NUMBERS, _split("[0-9][0-9][0-9]"))
_DEEPSEEK_LLM = _sequence(*map(_split, published.DEEPSEEK_LLM), _DIGITS, _MAPPED)
_DEEPSEEK_CODER = _sequence(*map(_split, published.DEEPSEEK_CODER), _DIGITS, _MAPPED)
_VIKING = _sequence(_split(published.BLOOM), _DIGITS, _MAPPED)

_GROUPS: tuple[tuple[str, Json, bool], ...] = (
    ("gpt-2 phi-2 mpt gpt-neox aquila olmo jais gigachat a.x-4.0 mellum modern-bert exaone4 "
     "granite-docling trillion", BYTE_LEVEL, False),
    ("smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
     _sequence(_DIGITS, BYTE_LEVEL), False),
    ("falcon", _FALCON, False),
    ("llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2 midm-2.0 jina-v5-nano glm4 glm5",
     _splits(published.LLAMA3), True),
    ("dbrx smaug-bpe chatglm-bpe", _splits(published.LLAMA3), False),
    ("qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2",
     _splits(published.QWEN), False),
    ("qwen35", _splits(published.QWEN35), False),
    ("deepseek-llm", _DEEPSEEK_LLM, False),
    ("deepseek-coder", _DEEPSEEK_CODER, False),
    ("deepseek-v3 hunyuan-dense joyai-llm hy_v4", _splits(*published.DEEPSEEK_V3), False),
    ("tekken", _splits(published.TEKKEN), True),
    ("gpt-4o llama4 kanana2 talkie minimax-m2", _splits(published.O200K), False),
    ("kimi-k2", _splits(published.KIMI), False),
    ("exaone-moe", _splits(published.EXAONE_MOE), False),
    ("minicpm5", _splits(*published.MINICPM5), True),
    ("ufakzeka", _splits(published.UFAKZEKA), False),
    ("tiny_aya cohere2moe", _splits(published.GROUPED_DIGITS, published.O200K), False),
    ("bailingmoe bailingmoe2 llada-moe", _splits(published.BAILING), False),
    ("seed-coder", _splits(published.SEED_CODER), False),
    ("bloom poro-chat gpt3-finnish", _splits(published.BLOOM), False),
    ("viking", _VIKING, False),
)  # fmt: skip
"""(words, pretokenizer, does the model ignore merges?). gpt-neox and aquila are not words of
llama.cpp, but names of models whose files have no word."""

WORDS = {word: (step, ignores) for words, step, ignores in _GROUPS for word in words.split()}


def pretokenizer_of(word: str | None) -> tuple[Json, bool]:
    """(pretokenizer, does the model ignore merges?). Raises UnsupportedTokenizerError."""
    if word is None or word == "default":
        raise UnsupportedTokenizerError(
            "GGUF pretokenizer",
            word,
            "the file does not say how its model splits text; if you know which it is like, say "
            "so: Tokenizer.load(path, pretokenizer='gpt-2')",
        )
    if word not in WORDS:
        raise UnsupportedTokenizerError(
            "GGUF pretokenizer",
            word,
            f"known are {', '.join(WORDS)}; the model's tokenizer.json says how it splits text, "
            "load that instead",
        )
    return WORDS[word]


# ---------------------------------------------------------------- metadata

_REQUIRED = object()
_CODES = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}  # as `struct` writes them
_STRING, _ARRAY = 8, 9
_VERSIONS = (2, 3)

Fields = Callable[..., Any]
"""(name, default) -> value of a metadata field."""


def read_fields(path: Path) -> Fields:
    """The metadata fields by name. The returned function raises BrokenTokenizerError for a missing
    field, unless it is given a default.

    Raises BrokenTokenizerError."""
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            found = _Metadata(data).fields()
    except (ValueError, LookupError, OverflowError, struct.error) as error:
        raise BrokenTokenizerError(f"{path} is not a readable GGUF file: {error}") from error

    def field(name: str, absent: Any = _REQUIRED) -> Any:
        value = found.get(name, absent)
        if value is _REQUIRED:
            raise BrokenTokenizerError(f"{path} has no field {name!r}")
        return value

    return field


class _Metadata:
    """The beginning of a GGUF file, read value by value; the tensors come after it.

    Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md"""

    def __init__(self, data: mmap) -> None:
        """Raises ValueError for data that is no GGUF file."""
        if data[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        versions = {order: struct.unpack_from(f"{order}I", data, 4)[0] for order in "<>"}
        order = next((order for order in versions if versions[order] in _VERSIONS), None)
        if order is None:
            raise ValueError(f"its version is none of {_VERSIONS}")
        self._data, self._at, self._order = data, 8, order

    def fields(self) -> Json:
        """All fields. Raises ValueError, LookupError, struct.error."""
        _, count = self._number("Q"), self._number("Q")
        return {self._text(): self._value(self._number("I")) for _ in range(count)}

    def _number(self, code: str) -> Any:
        form = self._order + code
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return value

    def _text(self) -> str:
        begin = self._at + 8
        end = begin + self._number("Q")
        if end > len(self._data):
            raise ValueError("it ends inside a string")
        self._at = end
        return self._data[begin:end].decode("utf-8")

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            return self._number(_CODES[kind])
        item, count = self._number("I"), self._number("Q")
        if item not in _CODES:
            check()
            return [self._value(item) for _ in range(count)]
        numbers = np.frombuffer(self._data, self._order + _CODES[item], count, self._at)
        self._at += numbers.nbytes
        return numbers.tolist()
