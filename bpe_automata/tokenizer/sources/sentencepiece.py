"""The reader of SentencePiece models of type BPE (Llama-2, Mistral, Gemma), run by sentencepiece.

What sentencepiece does (its `bpe_model.cc`, `normalizer.cc`, `model_interface.cc`, and tests of
0.2.3): a space is written `▁`; user-defined pieces are cut out of the text, longest first, and
never merged; the rest starts as single characters, and the neighbours whose joined text is the
piece of highest score are merged, leftmost first; a character that is no piece becomes its UTF-8
bytes (`byte_fallback`) or the unknown piece. Options of the trainer such as `split_digits` have no
effect here. Control pieces, the unknown piece and byte pieces are never read out of text. A text
that contains `▁` itself is encoded as if it were a space, so it is not decoded to itself.

The proto is read with the classes of the package `sentencepiece`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._optional import require
from bpe_automata.errors import ONLY_BPE, BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.description import AddedToken, Description, Prefix
from bpe_automata.tokenizer.source import Source, fingerprint
from bpe_automata.tokenizer.sources.implied_merges import all_splits, rank_by_score

SPACE = "\u2581"
_MOST_NESTED = 64
_ONLY_IDENTITY = "it replaces characters by rules; only identity is modelled"
_INSTALL = "pip install 'bpe-automata[sentencepiece]'"


class NoClasses:
    """The character engine of a library without character classes."""

    dialect = "none"

    def __init__(self, name: str) -> None:
        self.name = name

    def members(self, kind: str, pattern: str, text: str) -> Iterator[tuple[int, int]]:
        raise BrokenTokenizerError(f"{self.name} has no character class {pattern or kind!r}")


class SentencePiece:
    """A model run by sentencepiece; a `Backend`."""

    def __init__(self, content: bytes, where: str) -> None:
        """`content`: a serialized model. Raises BrokenTokenizerError, MissingDependencyError."""
        package = require("sentencepiece", _INSTALL)
        self.name = f"sentencepiece {package.__version__}"
        self.engine = NoClasses(self.name)
        self._content = content
        try:
            self._processor = package.SentencePieceProcessor(model_proto=content)
        except (RuntimeError, OSError) as error:
            raise BrokenTokenizerError(f"{where}: sentencepiece cannot load it: {error}") from error

    def made_from(self) -> tuple[dict[str, Any], bytes]:
        """(settings, content) from which `tokenizer.stored` makes it again."""
        return {}, self._content

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The id of the end-of-sequence piece, if there is one."""
        number = int(self._processor.eos_id())
        return (number,) if number >= 0 else ()

    def encode(self, text: str) -> list[int]:
        return list(self._processor.encode(text))

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return list(self._processor.encode(texts)) if texts else []

    def decode(self, ids: list[int]) -> str:
        return str(self._processor.decode(ids))


def model_proto() -> Any:
    """An empty ModelProto. Raises MissingDependencyError."""
    module = "sentencepiece.sentencepiece_model_pb2"
    require("google.protobuf", _INSTALL)
    return require(module, _INSTALL).ModelProto()


def read_sentencepiece(content: bytes, where: str) -> Source:
    """The tokenizer of a serialized SentencePiece model. `where`: its name in errors.

    Raises MissingDependencyError, BrokenTokenizerError, UnsupportedTokenizerError."""
    proto = model_proto()
    try:
        proto.ParseFromString(content)
    except Exception as error:  # protobuf has several implementations, each with its own error
        raise BrokenTokenizerError(f"{where} is not a SentencePiece model: {error}") from error
    return source_of(proto, content, where)


def source_of(
    proto: Any, content: bytes, where: str, eos_ids: tuple[int, ...] | None = None
) -> Source:
    """The tokenizer of a ModelProto; `content`: the same, serialized; `eos_ids`: instead of those
    of the model. Raises like `read_sentencepiece`."""
    _refuse_options(proto)
    kinds = {kind.value: kind for kind in PieceType}
    description = describe(
        [Piece(p.piece, p.score, kinds[p.type]) for p in proto.pieces],
        byte_fallback=proto.trainer_spec.byte_fallback,
        dummy_prefix=proto.normalizer_spec.add_dummy_prefix,
        unknown_text=proto.trainer_spec.unk_surface,
    )
    backend = SentencePiece(content, where)
    key = fingerprint(backend.name, content)
    return Source(description, backend, where, key, backend.eos_ids if eos_ids is None else eos_ids)


def _refuse_options(proto: Any) -> None:
    """Raises UnsupportedTokenizerError for options that change `encode` and are not modelled."""
    trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
    denormalizer = proto.denormalizer_spec
    model = type(trainer).ModelType.Name(trainer.model_type)
    unescaped = not normalizer.escape_whitespaces
    suffixed = trainer.treat_whitespace_as_suffix
    options = (
        (model != "BPE", "model_type", model, ONLY_BPE),
        (normalizer.precompiled_charsmap, "normalizer", normalizer.name, _ONLY_IDENTITY),
        (denormalizer.precompiled_charsmap, "denormalizer", denormalizer.name, "it changes text"),
        (normalizer.remove_extra_whitespaces, "remove_extra_whitespaces", True, "not modelled"),
        (unescaped, "escape_whitespaces", False, "spaces stay spaces; not modelled"),
        (suffixed, "treat_whitespace_as_suffix", True, "not modelled"),
    )
    for refused, option, value, why in options:
        if refused:
            raise UnsupportedTokenizerError(f"SentencePiece {option}", value, why)


# ---------------------------------------------------------------- pieces


class PieceType(IntEnum):
    """The type of a piece, as numbered by the model's proto and by GGUF."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Piece(NamedTuple):
    """A piece as the file writes it (with `▁` for a space)."""

    text: str
    score: float
    kind: PieceType


def describe(
    pieces: list[Piece], *, byte_fallback: bool, dummy_prefix: bool, unknown_text: str
) -> Description:
    """The description of a model with these pieces, in the order of their ids.

    `unknown_text`: what the unknown piece is decoded to. Raises UnsupportedTokenizerError,
    BrokenTokenizerError."""
    ordinary = {
        p.text: n for n, p in enumerate(pieces) if p.kind in (PieceType.NORMAL, PieceType.UNUSED)
    }
    rows = all_splits({text.encode("utf-8"): number for text, number in ordinary.items()})
    _check_pieces(pieces, ordinary, rows)
    if not byte_fallback:
        _refuse_written_unknown(unknown_text, ordinary)
    scores = np.array([piece.score for piece in pieces])
    merges, tied = rank_by_score(rows, scores, [piece.text for piece in pieces])
    byte_tokens = {_byte(p.text): n for n, p in enumerate(pieces) if p.kind is PieceType.BYTE}
    return Description(
        tokens=tuple(map(_spelled, pieces)),
        merges=merges,
        base={_text_bytes(text): n for text, n in ordinary.items() if len(text) == 1},
        byte_level=False,
        splitters=(),
        added=_user_defined(pieces, dummy_prefix),
        ignore_merges=False,
        byte_tokens=byte_tokens if byte_fallback else {},
        prefix=Prefix.TEXT if dummy_prefix else Prefix.NONE,
        unreadable=SPACE,
        controls=frozenset(n for n, piece in enumerate(pieces) if piece.kind == PieceType.CONTROL),
        tied=tied,
    )


def _text_bytes(text: str) -> bytes:
    return text.replace(SPACE, " ").encode("utf-8")


def _spelled(piece: Piece) -> bytes | None:
    """The text of a piece; None if BPE never makes it. (It never makes a plain space, as the text
    that it reads has none.)"""
    text, _, kind = piece
    if kind is PieceType.NORMAL or kind is PieceType.UNUSED:
        return None if " " in text else _text_bytes(text)
    return bytes([_byte(text)]) if kind is PieceType.BYTE else None


def _byte(text: str) -> int:
    """`<0xE6>` -> 0xE6. Raises BrokenTokenizerError."""
    try:
        value = int(text[3:5], 16)
    except ValueError:
        value = -1
    if text != f"<0x{value:02X}>":
        raise BrokenTokenizerError(f"byte piece {text!r} is not of the form <0xE6>")
    return value


def _check_pieces(pieces: list[Piece], ordinary: dict[str, int], rows: np.ndarray) -> None:
    """Refuse pieces for which sentencepiece looks up another piece than the one it merged."""
    made = set(rows[:, 2].tolist())
    for number, piece in enumerate(pieces):
        if math.isnan(piece.score):
            raise BrokenTokenizerError(f"piece {number}, {piece.text!r}, has no score but NaN")
        if piece.kind is PieceType.NORMAL:
            continue
        if piece.kind is PieceType.UNUSED and number in made:
            raise UnsupportedTokenizerError(
                "SentencePiece unused piece",
                piece.text,
                "sentencepiece makes it and then splits it again, which is not modelled",
            )
        hidden = piece.kind in (PieceType.UNKNOWN, PieceType.CONTROL, PieceType.BYTE)
        if hidden and (piece.text in ordinary or len(piece.text) == 1):
            raise UnsupportedTokenizerError(
                f"SentencePiece {piece.kind.name.lower()} piece",
                piece.text,
                "text can become a piece of the same name, and then has this id",
            )
    if SPACE not in ordinary:
        raise UnsupportedTokenizerError(
            "SentencePiece pieces", SPACE, "there is no ordinary piece for a single space"
        )


def _refuse_written_unknown(unknown_text: str, ordinary: dict[str, int]) -> None:
    """Refuse an unknown piece whose decoded text may be canonical. If that text contains a
    character that is a piece, decoding and encoding again makes the text longer, so no sequence
    with the unknown id is canonical."""
    if not any(c in ordinary for c in unknown_text.replace(" ", SPACE)):
        raise UnsupportedTokenizerError(
            "SentencePiece unk_surface", unknown_text, "none of its characters is a piece"
        )


def _user_defined(pieces: list[Piece], dummy_prefix: bool) -> tuple[AddedToken, ...]:
    added = []
    for number, piece in enumerate(pieces):
        if piece.kind is not PieceType.USER_DEFINED:
            continue
        if " " in piece.text or (dummy_prefix and piece.text.startswith(SPACE)):
            raise UnsupportedTokenizerError(
                "SentencePiece user-defined piece",
                piece.text,
                "its spaces meet the spaces that sentencepiece writes or puts before the text",
            )
        added.append(AddedToken(number, piece.text.replace(SPACE, " "), special=False))
    _refuse_deep([token.content for token in added])
    return tuple(added)


def _refuse_deep(symbols: list[str]) -> None:
    """Refuse chains of more than 64 user-defined pieces, each a prefix of the next, as
    sentencepiece ignores the longer ones."""
    prefixes: list[str] = []
    for symbol in sorted(symbols):
        while prefixes and not symbol.startswith(prefixes[-1]):
            prefixes.pop()
        prefixes.append(symbol)
        if len(prefixes) > _MOST_NESTED:
            raise UnsupportedTokenizerError(
                "SentencePiece user-defined piece",
                symbol,
                f"more than {_MOST_NESTED} others are its prefixes; sentencepiece then ignores it",
            )
