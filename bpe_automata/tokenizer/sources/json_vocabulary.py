"""The vocabulary of a `tokenizer.json`: tokens as text, merges, and added tokens.

ByteLevel tokenizers write every byte as one visible character, as GPT-2 does: bytes that are
visible Latin-1 characters stand for themselves, the others take the code points from 256 on.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from bpe_automata._budget import check
from bpe_automata.errors import ONLY_BPE, BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.description import AddedToken, Prefix
from bpe_automata.tokenizer.sources.json_normalizer import Normalizer

Json = dict[str, Any]

MOST_HOLES = 1_000_000
"""The most ids below the largest that may have no token: each takes memory in every table."""

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
    """With `fuse_unk` a run of unknown characters becomes one unknown token. If its own text
    consists of unknown characters, the token is canonical although BPE does not produce it."""
    unknown = model.get("unk_token")
    if not unknown or not model.get("fuse_unk") or unknown in {token.content for token in added}:
        return
    if not any(c in model["vocab"] for c in unknown):
        raise UnsupportedTokenizerError(
            "model.fuse_unk", unknown, "no token spells any character of this unknown token"
        )


def byte_tokens(model: Json, byte_level: bool) -> dict[int, int]:
    """byte -> id of its token `<0x..>`; empty without byte fallback."""
    if not model.get("byte_fallback") or byte_level:
        # In the byte alphabet only a byte without a token would fall back, as its character.
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
    """One more than the largest id. Ids below it that belong to no token (holes) are never allowed.

    Raises BrokenTokenizerError for two tokens of one id, and for more than MOST_HOLES holes."""
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
    """The bytes that each id spells, None if it spells none. `space`: how a space is written."""
    tokens: list[bytes | None] = [None] * n_ids
    for token, number in vocabulary.items():
        tokens[number] = spelled_in_bytes(token) if byte_level else _as_text(token, space)
    for byte, number in fallback.items():
        tokens[number] = bytes([byte])
    return tuple(tokens)


def spelled_in_bytes(token: str) -> bytes | None:
    """The bytes of a token in the byte alphabet; None for a token outside of it, which BPE never
    makes."""
    try:
        return token.translate(char_to_byte()).encode("latin-1")
    except UnicodeEncodeError:
        return None


def _as_text(token: str, space: str | None) -> bytes | None:
    """The UTF-8 of a token; None if it contains a space although all spaces are replaced, so that
    BPE cannot make it."""
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
    """int32 [m, 3], in order of rank. A pair that is listed several times has its last rank, as in
    `tokenizers`; its other entries remain in the table, unused. Raises BrokenTokenizerError for the
    first merge that is no pair of tokens making a token."""
    rows = []
    for rank, entry in enumerate(entries):
        parts = entry.split(" ") if isinstance(entry, str) else entry
        if len(parts) != 2:
            raise BrokenTokenizerError(f"merge {rank} is {parts!r}, not a pair of tokens")
        left, right = parts
        try:
            rows.append((vocabulary[left], vocabulary[right], vocabulary[left + right]))
        except KeyError as error:
            raise BrokenTokenizerError(
                f"merge {rank} ({left!r} + {right!r}) names {error.args[0]!r}, which is not a token"
            ) from error
    return np.array(rows, dtype=np.int32).reshape(-1, 3)


# ---------------------------------------------------------------- the byte alphabet


@cache
def byte_to_char() -> tuple[str, ...]:
    """The character for each of the 256 bytes."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = (byte for byte in range(256) if byte not in visible)
    written = {byte: 256 + index for index, byte in enumerate(hidden)}
    return tuple(chr(written.get(byte, byte)) for byte in range(256))


@cache
def char_to_byte() -> dict[int, int]:
    """For `str.translate`: a character of the alphabet -> its byte; other Latin-1 characters go to
    U+FFFF, so that encoding the result as Latin-1 fails for a token outside the alphabet."""
    table = dict.fromkeys(range(256), 0xFFFF)
    table.update((ord(character), byte) for byte, character in enumerate(byte_to_char()))
    return table


# ---------------------------------------------------------------- added tokens


def read_added(entries: list[Json]) -> tuple[AddedToken, ...]:
    """The tokens that are not empty. Raises UnsupportedTokenizerError for what is not modelled."""
    tokens = tuple(
        AddedToken(
            id=entry["id"],
            content=entry["content"],
            special=bool(entry.get("special")),
            lstrip=bool(entry.get("lstrip")),
            rstrip=bool(entry.get("rstrip")),
            single_word=bool(entry.get("single_word")),
            normalized=bool(entry.get("normalized")),
        )
        for entry in entries
    )
    tokens = tuple(token for token in tokens if token.content)
    _check_single_words(tokens)
    _check_stripping(tokens)
    return tokens


def partition_added(
    added: tuple[AddedToken, ...],
    normalizer: Normalizer,
    byte_level: bool,
    space: str | None,
    fallback: dict[int, int],
) -> tuple[tuple[AddedToken, ...], tuple[AddedToken, ...]]:
    """(tokens whose ids spell their content, tokens that are lost), with contents as in the text:
    a token that is cut out of normalized text spells spaces where it has the character that the
    normalizer writes for them. `space`: how a space is written; `fallback`: byte tokens, by byte.

    A token is lost if the decoder takes it for an ordinary one and returns other text: characters
    of the byte alphabet, `▁▁` for spaces, `<0x41>` for a byte."""
    if normalizer.space is not None:
        spaced = [token.content.replace(normalizer.space, " ") for token in added]
        pairs = zip(added, spaced, strict=True)
        added = tuple(replace(t, content=text) if t.normalized else t for t, text in pairs)
    lost = []
    for token in added:
        is_byte = fallback and token.content in {f"<0x{byte:02X}>" for byte in fallback}
        is_space = space is not None and space in token.content
        if is_byte or is_space or (byte_level and _written_bytes(token.content)):
            lost.append(token)
    return tuple(token for token in added if token not in lost), tuple(lost)


def _written_bytes(content: str) -> bool:
    """Does ByteLevel decode the content to other bytes than its own UTF-8?"""
    return spelled_in_bytes(content) not in (None, content.encode("utf-8"))


def check_normalized(added: tuple[AddedToken, ...], normalizer: Normalizer) -> None:
    """`tokenizers` normalizes the content of a token with normalized=True, and looks for it in
    normalized text. Raises UnsupportedTokenizerError if normalizing changes the content."""
    for token in added:
        if not token.normalized:
            continue
        if normalizer.prefix is not Prefix.NONE:
            raise UnsupportedTokenizerError(
                f"added token {token.content!r}",
                "normalized=True",
                "the normalizer puts a prefix before it; make it normalized=False",
            )
        if normalizer.space is not None and (token.lstrip or token.rstrip):
            raise UnsupportedTokenizerError(
                f"added token {token.content!r}",
                "normalized=True with lstrip or rstrip",
                f"spaces are written {normalizer.space!r} before it is searched for, which is no "
                "white space that it could remove; make it normalized=False",
            )
        text = token.content
        for step in normalizer.steps:
            text = step.apply(text)
        if text != token.content:
            raise UnsupportedTokenizerError(
                f"added token {token.content!r}",
                "normalized=True",
                f"the normalizer makes {text!r} of it, so its own text is not what it stands for",
            )


def _check_single_words(tokens: tuple[AddedToken, ...]) -> None:
    """Refuse `single_word` tokens that overlap others: where `tokenizers` finds one inside a longer
    word, it goes on after that token, and misses tokens that begin inside it."""
    contents = {token.content for token in tokens}
    for token in tokens:
        if not token.single_word:
            continue
        others, own = contents - {token.content}, {token.content}
        clash = _overlap(own, others) or _overlap(others, own) or _overlaps_itself(token.content)
        if clash:
            raise UnsupportedTokenizerError(
                f"added token {token.content!r}", "single_word=True", f"it overlaps {clash!r}"
            )


def _overlaps_itself(content: str) -> str | None:
    """A proper suffix of the content that is also a prefix, None if there is none."""
    ends = (content[k:] for k in range(1, len(content)))
    return next((end for end in ends if content.startswith(end)), None)


def _check_stripping(tokens: tuple[AddedToken, ...]) -> None:
    """Refuse tokens that remove white space together with tokens that begin or end with it: which
    of them takes a white space depends on the order of the matches."""
    strips = next((t.content for t in tokens if t.lstrip or t.rstrip), None)
    spaced = next((t.content for t in tokens if t.content != t.content.strip()), None)
    if strips is not None and spaced is not None:
        raise UnsupportedTokenizerError(
            f"added token {strips!r}", "lstrip or rstrip", f"{spaced!r} has white space at its rim"
        )


def _overlap(ones: set[str], others: set[str]) -> tuple[str, str] | None:
    """(one, other) such that an occurrence of `other` can begin inside one of `one`, or None."""
    begins = {other[:k]: other for other in others for k in range(1, len(other) + 1)}
    for one in ones:
        for i in range(len(one)):
            check()
            if one[i:] in begins:
                return one, begins[one[i:]]
            for j in range(i + 1, len(one)):
                if one[i:j] in others:
                    return one, one[i:j]
    return None
