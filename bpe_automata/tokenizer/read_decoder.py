"""The decoder of a `tokenizer.json`: it must give the text that `encode` reads, or ids and text
would not correspond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.description import Prefix

Json = dict[str, Any]
_CHANGES = (
    "it changes the text of tokens; set the decoder that belongs to the pretokenizer, such as "
    "decoders.ByteLevel(), or take an engine that masks any tokenization, such as llguidance"
)


@dataclass
class _Seen:
    """What the steps of a decoder do, as far as they were read."""

    byte_level: bool = False
    byte_fallback: bool = False
    spaces: str | None = None
    strips: bool = False
    drops: bool = False


def check_decoder(
    decoder: Json | None,
    byte_level: bool,
    space: str | None,
    prefix: Prefix,
    fallback: bool,
    spaced: str | None,
) -> None:
    """Refuse a decoder that gives other text than the ids spell. `space`: what a space is written
    as; `fallback`: are there byte tokens?; `spaced`: a token that can be the first and holds a
    space that is not its first character, if there is one.

    Raises UnsupportedTokenizerError."""
    if decoder is None:
        raise UnsupportedTokenizerError(
            "decoder",
            None,
            "without one, tokenizers puts a space between any two tokens, so ids are not decoded "
            "to the text that they are made of; set the decoder that belongs to the pretokenizer, "
            "such as decoders.ByteLevel(), decoders.Metaspace() or decoders.Fuse()",
        )
    seen = _Seen()
    _read(decoder, seen)
    if seen.byte_level != byte_level:
        said = "without" if seen.byte_level else "is missing, with"
        raise UnsupportedTokenizerError(
            "decoder", decoder, f"ByteLevel decoding {said} a ByteLevel pretokenizer"
        )
    if seen.spaces != space:
        raise UnsupportedTokenizerError(
            "decoder", decoder, f"spaces are written {space!r}, but read from {seen.spaces!r}"
        )
    if seen.drops and spaced is not None:
        raise UnsupportedTokenizerError(
            "decoder",
            decoder,
            f"it drops all spaces of the first token, also those inside of {spaced!r}; "
            "use a Sequence of Replace, ByteFallback, Fuse and Strip instead",
        )
    if seen.byte_fallback < fallback:
        raise UnsupportedTokenizerError("decoder", decoder, "it leaves byte tokens as they are")
    if seen.strips != (prefix not in (Prefix.NONE, Prefix.SPACE_FIRST)):
        does = "takes away" if seen.strips else "leaves"
        raise UnsupportedTokenizerError(
            "decoder", decoder, f"it {does} a space at the beginning; put there: {prefix.value}"
        )


def _read(decoder: Json, seen: _Seen) -> None:
    kind = decoder.get("type")
    if kind == "Sequence":
        for part in decoder.get("decoders") or []:
            _read(part, seen)
    elif kind == "ByteLevel":
        seen.byte_level = True
    elif kind == "ByteFallback":
        seen.byte_fallback = True
    elif kind == "Metaspace":
        seen.spaces = decoder.get("replacement", "▁")
        scheme = decoder.get("prepend_scheme")
        seen.drops |= (
            decoder.get("add_prefix_space", True) if scheme is None else (scheme != "never")
        )
        seen.strips |= seen.drops
    elif kind == "Replace" and _is_space(decoder):
        seen.spaces = decoder["pattern"]["String"]
    elif kind == "Strip" and _is_one_space(decoder):
        seen.strips = True
    elif kind != "Fuse":
        raise UnsupportedTokenizerError("decoder", decoder, _CHANGES)


def _is_space(decoder: Json) -> bool:
    pattern = decoder.get("pattern") or {}
    return decoder.get("content") == " " and len(pattern.get("String", "")) == 1


def _is_one_space(decoder: Json) -> bool:
    return (decoder.get("content"), decoder.get("start"), decoder.get("stop")) == (" ", 1, 0)
