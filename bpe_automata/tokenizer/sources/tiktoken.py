"""The readers of tiktoken rank files (`.tiktoken`, the `tokenizer.model` of Llama-3) and of
Mistral's `tekken.json`; both are run by tiktoken.

A rank file has a line for each token: its bytes in base64, a space, its rank, which is also its id.
It contains neither the pattern that splits the text nor the special tokens. tiktoken cuts out the
special tokens, splits the text between them by the pattern and drops text outside the matches. A
pretoken that is a token becomes that token (`ignore_merges`); in any other, the neighbours whose
joined bytes have the least rank are merged, leftmost first. Ranks are unique, so the merge table
consists of all splits of each token in the order of their ranks (`implied_merges`).

A `tekken.json` is read as mistral-common reads it. `config.pattern` splits the text; the first
`default_num_special_tokens` ids are special tokens, and the vocabulary, whose ranks come after
them, is cut off at `default_vocab_size` ids in all. `Tekkenizer.encode` gives tiktoken no special
tokens: they are never read out of text.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from bpe_automata._budget import check
from bpe_automata._optional import require
from bpe_automata.errors import (
    BrokenTokenizerError,
    UnsupportedTokenizerError,
)
from bpe_automata.tokenizer.description import AddedToken, Description, Normalization, SplitRule
from bpe_automata.tokenizer.engines import FancyRegex
from bpe_automata.tokenizer.source import INSTALL_TIKTOKEN, CharacterEngine, Source, fingerprint
from bpe_automata.tokenizer.sources.implied_merges import all_splits, sort_by
from bpe_automata.tokenizer.unicode_forms import python_form

_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_MOST_HOLES = 1 << 16  # ids without a token; deployed tables have some hundreds


class Tiktoken:
    """A rank table run by tiktoken; a `Backend`."""

    def __init__(
        self,
        ranks: dict[bytes, int],
        pattern: str,
        special_tokens: dict[str, int],
        normalization: Normalization | None = None,
        shift: int = 0,
        encoding: Any = None,
    ) -> None:
        """`normalization`: of the whole text, before anything else; `shift`: added to each rank to
        make its id; `encoding`: the `tiktoken.Encoding` with these ranks, if there is one. Raises
        UnsupportedTokenizerError for a pattern that tiktoken rejects."""
        package = require("tiktoken", INSTALL_TIKTOKEN)
        self.name = f"tiktoken {package.__version__}"
        self.engine: CharacterEngine = FancyRegex()
        self._normalization, self._shift = normalization, shift
        self._settings = {
            "pattern": pattern,
            "special_tokens": special_tokens,
            "shift": shift,
            "empty": ranks.get(b""),
        }
        # The common prefix of all special tokens. tiktoken takes time for each special token at
        # each call, so text that cannot contain any is encoded without them.
        self._prefix = _common_prefix(special_tokens) if special_tokens else None
        if encoding is not None:
            self._encoding = encoding
            return
        try:
            self._encoding = package.Encoding(
                "ranks", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special_tokens
            )
        except ValueError as error:
            raise UnsupportedTokenizerError(
                "tiktoken pattern", pattern, f"tiktoken rejects it: {error}"
            ) from error
        # The copy of the table is only for pickling: 9 MB for Llama-3's 128,000 tokens.
        self._encoding._mergeable_ranks = {}

    def __reduce__(self) -> tuple[object, ...]:
        made, given, settings = self._encoding, None, self._settings
        if made._mergeable_ranks:
            given, ranks = made, {} if settings["empty"] is None else {b"": settings["empty"]}
        else:
            tokens = made.token_byte_values()
            ranks = dict(zip(tokens, map(made.encode_single_token, tokens), strict=True))
        how = settings["pattern"], settings["special_tokens"], self._normalization, self._shift
        return Tiktoken, (ranks, *how, given)

    def made_from(self) -> tuple[dict[str, Any], bytes]:
        """(settings, content) from which `made_again` makes it, together with its description."""
        return self._settings, b""

    @classmethod
    def made_again(
        cls,
        described: Description,
        pattern: str,
        special_tokens: dict[str, int],
        shift: int,
        empty: int | None,
    ) -> Tiktoken:
        """The backend with the settings of `made_from`; `empty`: the rank of the empty token."""
        tokens = enumerate(described.tokens)
        ranks = {token: number - shift for number, token in tokens if token is not None}
        if empty is not None:
            ranks[b""] = empty
        step = described.normalizers[0] if described.normalizers else None
        return cls(ranks, pattern, special_tokens, step, shift)

    def encode(self, text: str) -> list[int]:
        if self._normalization is not None:
            text = self._normalization.apply(text)
        encoding = self._encoding
        special = self._prefix is not None and self._prefix in text
        ids: list[int] = (
            encoding.encode(text, allowed_special="all")
            if special
            else encoding.encode_ordinary(text)
        )
        return [number + self._shift for number in ids] if self._shift else ids

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return list(map(self.encode, texts))

    def decode(self, ids: list[int]) -> str:
        return str(self._encoding.decode([number - self._shift for number in ids]))


def _common_prefix(texts: Iterable[str]) -> str:
    """The longest common prefix."""
    first, last = min(texts), max(texts)
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((k for k, (a, b) in pairs if a != b), min(len(first), len(last)))]


def read_tiktoken(
    content: bytes,
    where: str,
    *,
    pattern: str,
    special_tokens: Mapping[str, int],
    normalize: str | None = None,
    eos: tuple[str, ...] = (),
) -> Source:
    """The tokenizer of a rank file.

    `pattern`: the regex of tiktoken (syntax of fancy-regex) whose matches are the pretokens;
    `special_tokens`: text -> id; `normalize`: "NFC", "NFD", "NFKC" or "NFKD", applied with Python's
    unicodedata to the whole text before special tokens are searched for, as dashscope does for
    Qwen; `eos`: the special tokens that end a sequence. `where`: name in errors.

    Raises MissingDependencyError, BrokenTokenizerError, UnsupportedTokenizerError."""
    ranks = parse_ranks(content, where)
    steps = () if normalize is None else (unicode_form(normalize),)
    return source_of(ranks, content, where, pattern, special_tokens, steps, eos)


def source_of(
    ranks: dict[bytes, int],
    content: bytes,
    where: str,
    pattern: str,
    special_tokens: Mapping[str, int],
    steps: tuple[Normalization, ...],
    eos: tuple[str, ...],
    encoding: Any = None,
) -> Source:
    """The tokenizer of checked ranks. `content`: the lines of the rank file. Raises like
    `read_tiktoken`."""
    check_special_tokens(special_tokens, ranks, where)
    if unknown := set(eos).difference(special_tokens):
        raise BrokenTokenizerError(f"{where}: eos {min(unknown)!r} is none of the special tokens")
    specials, step = dict(special_tokens), steps[0] if steps else None
    backend = Tiktoken(ranks, pattern, specials, step, encoding=encoding)
    added = tuple(
        AddedToken(number, text, special=True, normalized=bool(steps))
        for text, number in special_tokens.items()
    )
    facts: list[Any] = [pattern, sorted(special_tokens.items()), [step.library for step in steps]]
    normalize = step.kind.upper() if step else None
    key = fingerprint(backend.name, content, json.dumps([*facts, normalize]))
    ids = tuple(special_tokens[text] for text in eos)
    return Source(describe_ranks(ranks, pattern, added, steps), backend, where, key, ids)


def describe_ranks(
    ranks: Mapping[bytes, int],
    pattern: str,
    added: tuple[AddedToken, ...] = (),
    normalizers: tuple[Normalization, ...] = (),
    shift: int = 0,
) -> Description:
    """The description of tiktoken with these ranks. `shift`: added to each rank to make its id. An
    empty token (Whisper's file has one) is never the result of a merge."""
    n_ids = max([*(rank + shift for rank in ranks.values()), *(token.id for token in added)]) + 1
    tokens: list[bytes | None] = [None] * n_ids
    for token, rank in ranks.items():
        check()
        tokens[rank + shift] = token or None
    rows = all_splits(ranks) + np.int32(shift)
    return Description(
        tokens=tuple(tokens),
        merges=sort_by(rows, np.arange(n_ids)),
        base={token: rank + shift for token, rank in ranks.items() if len(token) == 1},
        byte_level=True,
        splitters=(SplitRule("regex", pattern, "removed", invert=True),),
        added=added,
        ignore_merges=True,
        byte_tokens={},
        normalizers=normalizers,
    )


def parse_ranks(content: bytes, where: str) -> dict[bytes, int]:
    """token -> rank, in the order of the ranks. Raises BrokenTokenizerError."""
    ranks: dict[bytes, int] = {}
    lines = 0
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=token != b"=")] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise BrokenTokenizerError(
                f"{where}, line {number}: {line[:60]!r} is not the base64 of a token and a rank"
            ) from error
        lines += 1
    if lines != len(ranks):
        raise BrokenTokenizerError(f"{where} lists {lines - len(ranks)} token(s) twice")
    return checked_ranks(ranks, where)


def checked_ranks(ranks: dict[bytes, int], where: str) -> dict[bytes, int]:
    """The ranks, ascending. Raises BrokenTokenizerError where tiktoken could not run them."""
    if len(set(ranks.values())) < len(ranks):
        raise BrokenTokenizerError(f"{where}: two tokens have the same rank")
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise BrokenTokenizerError(
            f"{where}: no token is the byte 0x{missing[0]:02X} ({len(missing)} bytes are missing); "
            "tiktoken fails on text that holds it"
        )
    if min(ranks.values()) < 0:
        raise BrokenTokenizerError(f"{where}: there are negative ranks")
    highest, most = max(ranks.values()), 2 * len(ranks) + _MOST_HOLES
    if highest > most:
        raise BrokenTokenizerError(
            f"{where}: {len(ranks):,} tokens have ranks up to {highest:.3g}; ranks are ids, and "
            f"with those above {most:,} nearly all ids would have no token"
        )
    return dict(sorted(ranks.items(), key=lambda item: item[1]))


def check_special_tokens(
    special_tokens: Mapping[str, int], ranks: Mapping[bytes, int], where: str
) -> None:
    """Refuse special tokens of which one is a prefix of another: tiktoken finds them with one
    regex, whose alternatives are in no fixed order. Raises UnsupportedTokenizerError,
    BrokenTokenizerError."""
    taken = set(ranks.values())
    for text, number in special_tokens.items():
        if not text or number in taken or number < 0:
            raise BrokenTokenizerError(
                f"{where}: special token {text!r} is empty, or its id {number} is taken"
            )
        taken.add(number)
    ordered = sorted(special_tokens)
    for shorter, longer in pairwise(ordered):
        if longer.startswith(shorter):
            raise UnsupportedTokenizerError(
                "special tokens",
                (shorter, longer),
                "one begins the other, and which of them tiktoken reads is left to chance",
            )


def unicode_form(form: str) -> Normalization:
    """A Unicode normalization form, by Python's unicodedata."""
    if form in _FORMS:
        return python_form(form.lower())
    raise UnsupportedTokenizerError("normalize", form, f"known are {', '.join(_FORMS)}")


# ---------------------------------------------------------------- tekken.json

_EOS = "</s>"
_EOS_BEFORE_V8 = 2  # files without a list of special tokens have mistral-common's own list


def is_tekken(data: Any) -> bool:
    """Is this the content of a tekken.json?"""
    config = data.get("config") if isinstance(data, dict) else None
    return isinstance(config, dict) and "pattern" in config and isinstance(data.get("vocab"), list)


def read_tekken(data: dict[str, Any], content: bytes, where: str) -> Source:
    """The tokenizer of a tekken.json; `content`: its bytes, `data`: the same parsed.

    Raises MissingDependencyError, BrokenTokenizerError, UnsupportedTokenizerError."""
    try:
        config = data["config"]
        n_special = int(config["default_num_special_tokens"])
        n_ids = int(config["default_vocab_size"])
        ranks = _ranks(data["vocab"], n_ids - n_special, where)
        eos_ids = _eos(data.get("special_tokens"))
        pattern = str(config["pattern"])
    except (AttributeError, KeyError, TypeError, binascii.Error) as error:
        raise BrokenTokenizerError(
            f"{where} does not have the form of a tekken.json: {type(error).__name__} {error}"
        ) from error
    backend = Tiktoken(ranks, pattern, {}, shift=n_special)
    description = replace(
        describe_ranks(ranks, pattern, shift=n_special), controls=frozenset(range(n_special))
    )
    return Source(description, backend, where, fingerprint(backend.name, content), eos_ids)


def _ranks(vocabulary: list[Any], size: int, where: str) -> dict[bytes, int]:
    if not 256 <= size <= len(vocabulary):
        raise BrokenTokenizerError(
            f"{where} has {len(vocabulary)} tokens, and its config asks for {size} of them"
        )
    ranks: dict[bytes, int] = {}
    for rank, entry in enumerate(vocabulary[:size]):
        token = base64.b64decode(entry["token_bytes"])
        if entry["rank"] != rank or (rank < 256 and token != bytes([rank])) or token in ranks:
            raise BrokenTokenizerError(
                f"{where}: entry {rank} of the vocabulary, {token!r} with rank {entry['rank']}, is "
                "listed before, or is not in its place (the first 256 are the bytes)"
            )
        ranks[token] = rank
    return checked_ranks(ranks, where)


def _eos(special_tokens: list[Any] | None) -> tuple[int, ...]:
    if special_tokens is None:
        return (_EOS_BEFORE_V8,)
    return tuple(entry["rank"] for entry in special_tokens if entry["token_str"] == _EOS)
