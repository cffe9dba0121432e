"""`tokenizer.json` (a dict) to a `Source`; everything that is not modelled is refused."""

from __future__ import annotations

import hashlib
from typing import Any

from bpe_automata.budget import check
from bpe_automata.errors import BrokenTokenizerError, UnsupportedTokenizerError
from bpe_automata.tokenizer.backend import Source
from bpe_automata.tokenizer.description import AddedToken, Description, Normalization, Prefix
from bpe_automata.tokenizer.huggingface import HuggingFace, plain_json
from bpe_automata.tokenizer.read_added import check_normalized, read_added, told_apart
from bpe_automata.tokenizer.read_decoder import check_decoder
from bpe_automata.tokenizer.read_model import (
    base_symbols,
    byte_tokens,
    check_ids,
    read_merges,
    read_model,
    refuse_fused_unknown,
    spelled_tokens,
)
from bpe_automata.tokenizer.read_normalizer import read_normalizer
from bpe_automata.tokenizer.read_pretokenizer import SPLIT_SPACES, read_pretokenizer

Json = dict[str, Any]


def read_json(
    data: Json, eos_ids: tuple[int, ...] = (), name: str = "tokenizer", text: str | None = None
) -> Source:
    """The tokenizer given as the content of its `tokenizer.json`; `text`: the same, unparsed.
    Truncation and padding are left out.

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
    _refuse_unknown_left(data["model"], description, backend)
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
    _check_steps(normalizer.steps, prefix, space)
    every = read_added(data.get("added_tokens") or [])
    check_normalized(every, normalizer)
    added, lost = told_apart(every, normalizer, byte_level, space, fallback)
    _check_stripped_prefix(every, prefix)
    refuse_fused_unknown(model, added)
    n_ids = check_ids(vocabulary, every)
    check()
    tokens = spelled_tokens(vocabulary, n_ids, byte_level, space, fallback)
    pretokenizer.check_parted(tokens, bool(model.get("ignore_merges")))
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


def _refuse_unknown_left(model: Json, description: Description, backend: HuggingFace) -> None:
    """Refuse an unknown token whose own text is encoded as that token, as the steps before the
    model leave nothing but an unknown character of it."""
    unknown, vocabulary = model.get("unk_token"), model["vocab"]
    added = {token.content for token in description.added}
    if not unknown or unknown in added or all(c in vocabulary for c in unknown):
        return
    ids = backend.encode(unknown)
    if vocabulary.get(unknown) in ids and backend.decode(ids) == unknown:
        raise UnsupportedTokenizerError(
            "model.unk_token",
            unknown,
            "the steps before the model take away what tokens spell of its text, so that text is "
            "encoded as this unknown token itself; make it an added token, as most tokenizers do",
        )


def _spaced(vocabulary: dict[str, int], space: str | None) -> str | None:
    """A token with a space that is not its first character."""
    return next((t for t in vocabulary if space is not None and space in t[1:]), None)


def _check_written_space(
    space: str | None, vocabulary: dict[str, int], fallback: dict[int, int]
) -> None:
    """A space without a token falls back to the bytes of what it is written as."""
    if fallback and space is not None and space not in vocabulary:
        raise UnsupportedTokenizerError(
            "byte fallback",
            space,
            "spaces are written so, and it is no token: a space would be "
            "the byte tokens of that character, which decoding takes for something else",
        )


def _check_stripped_prefix(added: tuple[AddedToken, ...], prefix: Prefix) -> None:
    """The space after a token with rstrip is lost, and put back as the prefix of what follows."""
    strips = next((token.content for token in added if token.rstrip), None)
    if strips is not None and prefix is Prefix.SPACE_FIRST:
        raise UnsupportedTokenizerError(
            f"added token {strips!r}",
            "rstrip=True",
            "ByteLevel.add_prefix_space puts back the space that it takes away; not modelled",
        )


def _check_steps(steps: tuple[Normalization, ...], prefix: Prefix, space: str | None) -> None:
    """Refuse normalizers that touch what is put before the text after them, or write what stands
    for a space."""
    for step in steps:
        if prefix is Prefix.SPACE_FIRST and step.kind in ("strip", "replace"):
            raise UnsupportedTokenizerError(
                "ByteLevel.add_prefix_space", True, f"{step.kind} may take that space away again"
            )
        if space is not None and space in step.content:
            raise UnsupportedTokenizerError(
                "normalizer Replace", step.content, "it writes what stands for a space in tokens"
            )
