"""The reader of `tokenizer.json`; everything that is not modelled is refused.

The decoder must return the text that `encode` reads, or ids and text would not correspond.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_automata._budget import check
from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.description import AddedToken, Description, Normalization, Prefix
from bpe_automata.tokenizer.engines import HuggingFace, plain_json
from bpe_automata.tokenizer.source import CONFIG, Source, field_of
from bpe_automata.tokenizer.sources.json_normalizer import read_normalizer
from bpe_automata.tokenizer.sources.json_pretokenizer import SPLIT_SPACES, read_pretokenizer
from bpe_automata.tokenizer.sources.json_vocabulary import (
    base_symbols,
    byte_tokens,
    check_ids,
    check_normalized,
    partition_added,
    read_added,
    read_merges,
    read_model,
    refuse_fused_unknown,
    spelled_tokens,
)

Json = dict[str, Any]


def read_json_file(path: Path, content: bytes, name: str, config: bytes | None) -> Source:
    """The tokenizer of a JSON file, a `tokenizer.json` or Mistral's `tekken.json`; `content`: its
    bytes; `config`: the bytes of the `tokenizer_config.json` next to it, which names the end of
    sequence of a `tokenizer.json`, None if there is none.

    Raises BrokenTokenizerError, UnsupportedTokenizerError, MissingDependencyError."""
    try:
        text = content.decode("utf-8-sig")
        data = json.loads(text)
        check()
    except (ValueError, RecursionError) as error:
        raise BrokenTokenizerError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise BrokenTokenizerError(f"{path} is not a tokenizer.json: no object at the top")
    from bpe_automata.tokenizer.sources.tiktoken import is_tekken, read_tekken
    from bpe_automata.tokenizer.sources.tokenizer_json import read_json

    if is_tekken(data):
        return read_tekken(data, content, name)
    eos_ids = () if config is None else _eos(path.with_name(CONFIG), config, data)
    return read_json(data, eos_ids, name, text)


def _eos(path: Path, config: bytes, data: dict[str, Any]) -> tuple[int, ...]:
    token = field_of(path, config, "eos_token")
    content = token.get("content") if isinstance(token, dict) else token
    entries = data.get("added_tokens") or []
    return tuple(entry["id"] for entry in entries if entry["content"] == content)


def read_json(
    data: Json, eos_ids: tuple[int, ...] = (), name: str = "tokenizer", text: str | None = None
) -> Source:
    """The tokenizer of the content of a `tokenizer.json`, without truncation and padding; `text`:
    the same content, unparsed.

    Raises BrokenTokenizerError where the file contradicts itself, UnsupportedTokenizerError where
    a component changes `encode` in a way that is not modelled.
    """
    try:
        description = describe(data)
    except (AttributeError, KeyError, TypeError) as error:
        raise BrokenTokenizerError(
            f"{name} does not have the form of a tokenizer.json: "
            f"{type(error).__name__} {error}; write it anew with save_pretrained"
        ) from error
    check()
    text = plain_json(data, text)
    backend = HuggingFace(text, name)
    check()
    backend.check_added(read_added(data.get("added_tokens") or []), name)
    _refuse_reachable_unknown(data["model"], description, backend)
    fingerprint = hashlib.sha256(f"{backend.name}\n{text}".encode()).hexdigest()
    return Source(description, backend, name, fingerprint, eos_ids, text)


def describe(data: Json) -> Description:
    """The description alone; see `read_json`."""
    model = read_model(data)
    normalizer = read_normalizer(data.get("normalizer"))
    pretokenizer = read_pretokenizer(data.get("pre_tokenizer"), normalizer.space)
    space, byte_level = pretokenizer.space, pretokenizer.byte_level
    # Metaspace puts no space where the normalizer has put one.
    prefix = pretokenizer.prefix if normalizer.prefix is Prefix.NONE else normalizer.prefix
    vocabulary: dict[str, int] = model["vocab"]
    fallback = byte_tokens(model, byte_level)
    _check_written_space(space, vocabulary, fallback)
    spaced = None if SPLIT_SPACES in pretokenizer.splitters else _spaced(vocabulary, space)
    check_decoder(data.get("decoder"), byte_level, space, prefix, bool(fallback), spaced)
    listed = read_added(data.get("added_tokens") or [])
    _check_steps(normalizer.steps, prefix, space, bool(listed))
    check_normalized(listed, normalizer)
    added, lost = partition_added(listed, normalizer, byte_level, space, fallback)
    _check_stripped_prefix(listed, prefix)
    refuse_fused_unknown(model, added)
    n_ids = check_ids(vocabulary, listed)
    check()
    tokens = spelled_tokens(vocabulary, n_ids, byte_level, space, fallback)
    pretokenizer.check_split_bytes(tokens, bool(model.get("ignore_merges")))
    return Description(
        tokens=tokens,
        merges=read_merges(model.get("merges") or [], vocabulary),
        base=base_symbols(vocabulary, byte_level, space),
        byte_level=byte_level,
        splitters=pretokenizer.splitters,
        added=added,
        ignore_merges=bool(model.get("ignore_merges")),
        byte_tokens=fallback,
        normalizers=normalizer.steps,
        prefix=prefix,
        unreadable=space or "",
        lost=lost,
    )


def _refuse_reachable_unknown(model: Json, description: Description, backend: HuggingFace) -> None:
    """Refuse an unknown token whose own text is encoded as that token, because the steps before
    the model reduce it to an unknown character."""
    unknown, vocabulary = model.get("unk_token"), model["vocab"]
    added = {token.content for token in description.added}
    if not unknown or unknown in added or all(c in vocabulary for c in unknown):
        return
    ids = backend.encode(unknown)
    if vocabulary.get(unknown) in ids and backend.decode(ids) == unknown:
        raise UnsupportedTokenizerError(
            "model.unk_token",
            unknown,
            "the steps before the model remove the characters of its text that are tokens, so that "
            "text is encoded as this unknown token; make it an added token, as most tokenizers do",
        )


def _spaced(vocabulary: dict[str, int], space: str | None) -> str | None:
    """A token with a space that is not its first character, None if there is none."""
    return next((t for t in vocabulary if space is not None and space in t[1:]), None)


def _check_written_space(
    space: str | None, vocabulary: dict[str, int], fallback: dict[int, int]
) -> None:
    """Refuse byte fallback where a space is no token: a space would become the byte tokens of the
    character that is written for it."""
    if fallback and space is not None and space not in vocabulary:
        raise UnsupportedTokenizerError(
            "byte fallback",
            space,
            "spaces are written so, and it is no token: a space would become the byte tokens of "
            "that character, which are not decoded to a space",
        )


_PUTS_TEXT = {
    Prefix.SPACE_FIRST: ("ByteLevel.add_prefix_space", True),
    Prefix.PIECE_UNLESS_SPACE: ("Metaspace.prepend_scheme", "always"),
}
"""The settings under which a space is put before a piece, and decoding does not remove it."""


def _check_stripped_prefix(added: tuple[AddedToken, ...], prefix: Prefix) -> None:
    """Refuse `rstrip` where the space that it removes comes back as a prefix that is text."""
    strips = next((token.content for token in added if token.rstrip), None)
    if strips is not None and prefix in _PUTS_TEXT:
        raise UnsupportedTokenizerError(
            f"added token {strips!r}",
            "rstrip=True",
            f"{_PUTS_TEXT[prefix][0]} puts back the space that it removes; make it rstrip=False",
        )


def _check_steps(
    steps: tuple[Normalization, ...], prefix: Prefix, space: str | None, has_added: bool
) -> None:
    """Refuse normalizers that may remove a prefix that is text, or write the character that stands
    for a space."""
    is_text = prefix in _PUTS_TEXT and (has_added or prefix is Prefix.SPACE_FIRST)
    for step in steps:
        if is_text and step.kind in ("strip", "replace"):
            raise UnsupportedTokenizerError(
                *_PUTS_TEXT[prefix], f"{step.kind} may remove that space"
            )
        if space is not None and space in step.content:
            raise UnsupportedTokenizerError(
                "normalizer Replace", step.content, "it writes what stands for a space in tokens"
            )


# ---------------------------------------------------------------- the decoder

_CHANGES = (
    "it changes the text of tokens; set the decoder that belongs to the pretokenizer, such as "
    "decoders.ByteLevel(), or take an engine that masks any tokenization, such as llguidance"
)


@dataclass
class _Decoding:
    """What the steps of a decoder do. byte_level: bytes are read from characters; byte_fallback:
    byte tokens become bytes; spaces: the character that becomes a space; strips: it removes one
    space at the beginning; drops: it removes all spaces of the first token."""

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
    """Refuse a decoder that returns other text than the ids spell. `space`: how a space is written;
    `fallback`: are there byte tokens?; `spaced`: a possible first token that contains a space which
    is not its first character, None if there is none.

    Raises UnsupportedTokenizerError."""
    if decoder is None:
        raise UnsupportedTokenizerError(
            "decoder",
            None,
            "without one, tokenizers puts a space between any two tokens, so ids are not decoded "
            "to the text that they are made of; set the decoder that belongs to the pretokenizer, "
            "such as decoders.ByteLevel(), decoders.Metaspace() or decoders.Fuse()",
        )
    decoding, fault = _Decoding(), ""
    _read(decoder, decoding)
    if decoding.byte_level != byte_level:
        how = "without" if decoding.byte_level else "is missing, with"
        fault = f"ByteLevel decoding {how} a ByteLevel pretokenizer"
    elif decoding.spaces != space:
        fault = f"spaces are written {space!r}, but read from {decoding.spaces!r}"
    elif decoding.drops and spaced is not None:
        fault = (
            f"it drops all spaces of the first token, also those inside of {spaced!r}; "
            "use a Sequence of Replace, ByteFallback, Fuse and Strip instead"
        )
    elif decoding.byte_fallback < fallback:
        fault = "it leaves byte tokens as they are"
    elif decoding.strips != (prefix not in (Prefix.NONE, Prefix.SPACE_FIRST)):
        does = "takes away" if decoding.strips else "leaves"
        fault = f"it {does} a space at the beginning; put there: {prefix.value}"
    if fault:
        raise UnsupportedTokenizerError("decoder", decoder, fault)


def _read(decoder: Json, decoding: _Decoding) -> None:
    """Add what the steps of `decoder` do. Raises UnsupportedTokenizerError."""
    kind = decoder.get("type")
    if kind == "Sequence":
        for part in decoder.get("decoders") or []:
            _read(part, decoding)
    elif kind == "ByteLevel":
        decoding.byte_level = True
    elif kind == "ByteFallback":
        decoding.byte_fallback = True
    elif kind == "Metaspace":
        decoding.spaces = decoder.get("replacement", "▁")
        scheme = decoder.get("prepend_scheme")
        decoding.drops |= (
            decoder.get("add_prefix_space", True) if scheme is None else (scheme != "never")
        )
        decoding.strips |= decoding.drops
    elif kind == "Replace" and _is_space(decoder):
        decoding.spaces = decoder["pattern"]["String"]
    elif kind == "Strip" and _is_one_space(decoder):
        decoding.strips = True
    elif kind != "Fuse":
        raise UnsupportedTokenizerError("decoder", decoder, _CHANGES)


def _is_space(decoder: Json) -> bool:
    pattern = decoder.get("pattern") or {}
    return decoder.get("content") == " " and len(pattern.get("String", "")) == 1


def _is_one_space(decoder: Json) -> bool:
    return (decoder.get("content"), decoder.get("start"), decoder.get("stop")) == (" ", 1, 0)
