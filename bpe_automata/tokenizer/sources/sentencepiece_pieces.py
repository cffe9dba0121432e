"""The pieces of a SentencePiece BPE model to a `Description`.

What sentencepiece does with them (its `bpe_model.cc`, `normalizer.cc`, `model_interface.cc`, and
tried with 0.2.3): a space is written `▁`; user-defined pieces are cut out of the text, longest
first, and never merged; the rest starts as single characters; the neighbours whose joined text is
the piece of highest score are merged, leftmost first; a character that is no piece becomes its
UTF-8 bytes (`byte_fallback`) or the unknown piece. Options of the trainer such as `split_digits` do
nothing here. Control pieces, the unknown piece and byte pieces are never read out of text.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.description import AddedToken, Description, Prefix
from bpe_automata.tokenizer.sources.splits import all_splits
from bpe_automata.tokenizer.sources.ties import rank_by_score

SPACE = "\u2581"
_MOST_NESTED = 64


class Kind(IntEnum):
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
    kind: Kind


def describe(
    pieces: list[Piece], *, byte_fallback: bool, dummy_prefix: bool, unknown_text: str
) -> Description:
    """The description of the pieces, in the order of their ids.

    `unknown_text`: what the unknown piece is decoded to. Raises UnsupportedTokenizerError,
    BrokenTokenizerError."""
    ordinary = {p.text: n for n, p in enumerate(pieces) if p.kind in (Kind.NORMAL, Kind.UNUSED)}
    rows = all_splits({text.encode("utf-8"): number for text, number in ordinary.items()})
    _check_pieces(pieces, ordinary, rows)
    if not byte_fallback:
        _refuse_written_unknown(unknown_text, ordinary)
    scores = np.array([piece.score for piece in pieces])
    merges, tied = rank_by_score(rows, scores, [piece.text for piece in pieces])
    byte_tokens = {_byte(p.text): n for n, p in enumerate(pieces) if p.kind is Kind.BYTE}
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
        controls=frozenset(n for n, piece in enumerate(pieces) if piece.kind == Kind.CONTROL),
        tied=tied,
    )


def _text_bytes(text: str) -> bytes:
    return text.replace(SPACE, " ").encode("utf-8")


def _spelled(piece: Piece) -> bytes | None:
    """The text of a piece; None if BPE never makes it, as where it holds a plain space: the text
    that BPE sees has none."""
    text, _, kind = piece
    if kind is Kind.NORMAL or kind is Kind.UNUSED:
        return None if " " in text else _text_bytes(text)
    return bytes([_byte(text)]) if kind is Kind.BYTE else None


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
    """Refuse what makes sentencepiece look up another piece than the one that it merged."""
    made = set(rows[:, 2].tolist())
    for number, piece in enumerate(pieces):
        if math.isnan(piece.score):
            raise BrokenTokenizerError(f"piece {number}, {piece.text!r}, has no score but NaN")
        if piece.kind is Kind.NORMAL:
            continue
        if piece.kind is Kind.UNUSED and number in made:
            raise UnsupportedTokenizerError(
                "SentencePiece unused piece",
                piece.text,
                "sentencepiece makes it and then splits it again, which is not modelled",
            )
        hidden = piece.kind in (Kind.UNKNOWN, Kind.CONTROL, Kind.BYTE)
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
    """An id of the unknown piece is decoded to text, which is encoded again. If that text holds a
    character that is a piece, each turn makes the text longer, so no such sequence is canonical."""
    if not any(c in ordinary for c in unknown_text.replace(" ", SPACE)):
        raise UnsupportedTokenizerError(
            "SentencePiece unk_surface", unknown_text, "none of its characters is a piece"
        )


def _user_defined(pieces: list[Piece], dummy_prefix: bool) -> tuple[AddedToken, ...]:
    added = []
    for number, piece in enumerate(pieces):
        if piece.kind is not Kind.USER_DEFINED:
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
    """sentencepiece looks at no more than 64 user-defined pieces that begin one another."""
    begun: list[str] = []
    for symbol in sorted(symbols):
        while begun and not symbol.startswith(begun[-1]):
            begun.pop()
        begun.append(symbol)
        if len(begun) > _MOST_NESTED:
            raise UnsupportedTokenizerError(
                "SentencePiece user-defined piece",
                symbol,
                f"more than {_MOST_NESTED} others begin it, and sentencepiece does not see it then",
            )
