"""The added tokens of a `tokenizer.json`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bpe_automata.budget import check
from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.description import AddedToken, Prefix
from bpe_automata.tokenizer.read_model import spelled_in_bytes
from bpe_automata.tokenizer.read_normalizer import Normalizer

Json = dict[str, Any]


def read_added(entries: list[Json]) -> tuple[AddedToken, ...]:
    """Those that are not empty. Raises UnsupportedTokenizerError for what is not modelled."""
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


def told_apart(
    added: tuple[AddedToken, ...],
    normalizer: Normalizer,
    byte_level: bool,
    space: str | None,
    fallback: dict[int, int],
) -> tuple[tuple[AddedToken, ...], tuple[AddedToken, ...]]:
    """(tokens whose ids spell their content, tokens that are lost), as text has them: those that
    are looked for in normalized text stand for spaces where they have what the normalizer writes
    spaces as. `space`: what a space is written as; `fallback`: byte tokens, by byte.

    The decoder takes an added token for an ordinary one: what is written in the byte alphabet for
    bytes, `▁▁` for spaces, `<0x41>` for a byte."""
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
    """Does ByteLevel decode it to other bytes than those of its own UTF-8?"""
    return spelled_in_bytes(content) not in (None, content.encode("utf-8"))


def check_normalized(added: tuple[AddedToken, ...], normalizer: Normalizer) -> None:
    """A token with normalized=True is looked for, normalized, in normalized text. Raises
    UnsupportedTokenizerError where that is not the token's own content."""
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
                f"spaces are written {normalizer.space!r} before it is looked for, which is no "
                "white space that it could swallow; make it normalized=False",
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
    """Where a single word is found inside a longer one, `tokenizers` goes on after it, past other
    tokens that begin in it. So it must not overlap with any."""
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
    ends = (content[k:] for k in range(1, len(content)))
    return next((end for end in ends if content.startswith(end)), None)


def _check_stripping(tokens: tuple[AddedToken, ...]) -> None:
    """Tokens that swallow white space beside tokens that begin or end with it: who gets it depends
    on the order of the matches."""
    strips = next((t.content for t in tokens if t.lstrip or t.rstrip), None)
    spaced = next((t.content for t in tokens if t.content != t.content.strip()), None)
    if strips is not None and spaced is not None:
        raise UnsupportedTokenizerError(
            f"added token {strips!r}", "lstrip or rstrip", f"{spaced!r} has white space at its rim"
        )


def _overlap(ones: set[str], others: set[str]) -> tuple[str, str] | None:
    """A pair such that an occurrence of the other can begin inside an occurrence of the one."""
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
