"""The BPE model of a `tokenizer.json`: its vocabulary, spelled as text, and its merges."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from bpe_automata.errors import ONLY_BPE, BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.byte_level import byte_to_char, char_to_byte
from bpe_automata.tokenizer.description import AddedToken

Json = dict[str, Any]

MOST_HOLES = 1_000_000
"""Ids below the largest that may have no token: each costs memory in every table of ids."""

_NEUTRAL = {
    "dropout": (None, 0, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
}
_WHY = {
    "dropout": "encoding is random, so no sequence is canonical",
    "continuing_subword_prefix": "decoding writes spaces between words that encoding does not read",
    "end_of_word_suffix": "decoding writes spaces between words that encoding does not read",
}


def read_model(data: Json) -> Json:
    """The model, checked. Raises BrokenTokenizerError, UnsupportedTokenizerError."""
    model = data.get("model")
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict | list):
        raise BrokenTokenizerError("the tokenizer has no model with a vocabulary")
    kind = model.get("type") or "BPE"
    if kind != "BPE" or not isinstance(model["vocab"], dict):
        raise UnsupportedTokenizerError("model", kind, ONLY_BPE)
    for field, neutral in _NEUTRAL.items():
        if model.get(field) not in neutral:
            raise UnsupportedTokenizerError(f"model.{field}", model[field], _WHY[field])
    return model


def refuse_fused_unknown(model: Json, added: tuple[AddedToken, ...]) -> None:
    """With `fuse_unk` a run of unknown characters becomes one unknown token. If all characters of
    that token's own text are unknown, the token is canonical without being BPE's."""
    unknown = model.get("unk_token")
    if not unknown or not model.get("fuse_unk") or unknown in {token.content for token in added}:
        return
    if not any(c in model["vocab"] for c in unknown):
        raise UnsupportedTokenizerError(
            "model.fuse_unk", unknown, "no token spells any character of this unknown token"
        )


def byte_tokens(model: Json, byte_level: bool) -> dict[int, int]:
    """byte -> id of its token `<0x..>`, with byte fallback; else empty."""
    if not model.get("byte_fallback") or byte_level:
        # With the byte alphabet only bytes without a token would fall back, as mapped characters.
        return {}
    vocabulary: dict[str, int] = model["vocab"]
    written = {byte: f"<0x{byte:02X}>" for byte in range(256)}
    for rank, entry in enumerate(model.get("merges") or []):
        parts = entry.split(" ") if isinstance(entry, str) else entry
        if not {*parts, "".join(parts)}.isdisjoint(written.values()):
            raise UnsupportedTokenizerError(
                "model.byte_fallback", parts, f"merge {rank} makes or uses a byte token"
            )
    return {byte: vocabulary[token] for byte, token in written.items() if token in vocabulary}


def check_ids(vocabulary: dict[str, int], added: tuple[AddedToken, ...]) -> int:
    """One more than the largest id. An id below it that no token has, a hole, is never allowed.

    Raises BrokenTokenizerError for an id that two tokens have, and for holes beyond number."""
    ids = set(vocabulary.values())
    if len(ids) < len(vocabulary):
        seen: dict[int, str] = {}
        for token, number in vocabulary.items():
            if number in seen:
                raise BrokenTokenizerError(
                    f"id {number} stands for two tokens, {seen[number]!r} and {token!r}"
                )
            seen[number] = token
    ids.update(token.id for token in added)
    if not ids or min(ids) < 0:
        raise BrokenTokenizerError("the vocabulary is empty, or has negative ids")
    n_ids = max(ids) + 1
    if n_ids - len(ids) > MOST_HOLES:
        raise BrokenTokenizerError(
            f"the largest id is {n_ids - 1}, but only {len(ids)} ids have a token; up to "
            f"{MOST_HOLES:,} may have none: number the tokens closer together"
        )
    return n_ids


def spelled_tokens(
    vocabulary: dict[str, int],
    n_ids: int,
    byte_level: bool,
    space: str | None,
    fallback: dict[int, int],
) -> tuple[bytes | None, ...]:
    """For each id the bytes of text that it spells. `space`: what a space is written as."""
    tokens: list[bytes | None] = [None] * n_ids
    for token, number in vocabulary.items():
        tokens[number] = spelled_in_bytes(token) if byte_level else _as_text(token, space)
    for byte, number in fallback.items():
        tokens[number] = bytes([byte])
    return tuple(tokens)


def spelled_in_bytes(token: str) -> bytes | None:
    """None for a token that is not spelled in the byte alphabet: BPE never makes it."""
    try:
        return token.translate(char_to_byte()).encode("latin-1")
    except UnicodeEncodeError:
        return None


def _as_text(token: str, space: str | None) -> bytes | None:
    """None for a token that holds a space where all spaces are replaced: nothing can make it."""
    if space is not None:
        if " " in token:
            return None
        token = token.replace(space, " ")
    return token.encode("utf-8", "surrogatepass")


def base_symbols(
    vocabulary: dict[str, int], byte_level: bool, space: str | None
) -> dict[bytes, int]:
    """The base symbols that BPE starts from: tokens of one character."""
    single = {token: number for token, number in vocabulary.items() if len(token) == 1}
    if byte_level:
        written = byte_to_char()
        return {bytes([b]): single[c] for b, c in enumerate(written) if c in single}
    spelled = ((_as_text(token, space), number) for token, number in single.items())
    return {symbol: number for symbol, number in spelled if symbol is not None}


def read_merges(entries: list[Any], vocabulary: dict[str, int]) -> np.ndarray:
    """int32 [m, 3], in order of rank. A pair that is listed several times has the rank of its last
    mention, as in `tokenizers`; the others stay in the table, where nothing uses them."""
    pairs = [entry.split(" ") if isinstance(entry, str) else entry for entry in entries]
    try:
        rows = [(vocabulary[a], vocabulary[b], vocabulary[a + b]) for a, b in pairs]
    except (KeyError, ValueError):
        _refuse_merge(pairs, vocabulary)
    return np.array(rows, dtype=np.int32).reshape(-1, 3)


def _refuse_merge(pairs: list[Any], vocabulary: dict[str, int]) -> NoReturn:
    """Name the first merge that is no pair of tokens that makes a token."""
    for rank, parts in enumerate(pairs):
        if len(parts) != 2:
            raise BrokenTokenizerError(f"merge {rank} is {parts!r}, not a pair of tokens")
        left, right = parts
        for part in (left, right, left + right):
            if part not in vocabulary:
                raise BrokenTokenizerError(
                    f"merge {rank} ({left!r} + {right!r}) names {part!r}, which is not a token"
                )
    raise BrokenTokenizerError("the merge table is not a list of pairs of tokens")
