"""Cases about `tokenizer.json`: small tokenizers, trained whole, and given one component."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from bpe_automata import Tokenizer, constrain
from bpe_automata.errors import BpeAutomataError, UnsupportedTokenizerError
from bpe_automata.testing import added_token
from bpe_automata.testing.small import matching_decoder
from support.case import Case
from support.laws import obey, texts_of

Json = dict[str, Any]
SPACE = "▁"
PLAIN = ("a", "b", "ab", "c", " ", "abc", " a", "ca", "bb")


@cache
def trained(pieces: tuple[str, ...], byte_level: bool, space: str) -> tuple[Json, list[Any]]:
    """(vocabulary, merges) of BPE trained on texts of the pieces, across all boundaries. `space`:
    what a space is written as."""
    rng = random.Random(3)
    texts = ["".join(rng.choices(pieces, k=8)).replace(" ", space) for _ in range(150)]
    tokenizer = tokenizers.Tokenizer(models.BPE())
    if byte_level:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(False, use_regex=False)
    alphabet = {c for text in texts for c in (_mapped(text) if byte_level else text)}
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + 40, show_progress=False, max_token_length=6
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]


def _mapped(text: str) -> str:
    pieces = pre_tokenizers.ByteLevel(False, use_regex=False).pre_tokenize_str(text)
    return "".join(piece for piece, _ in pieces)


def make(
    pieces: Sequence[str],
    byte_level: bool = False,
    space: str = " ",
    normalizer: Json | None = None,
    pretokenizer: Json | None = None,
    decoder: Json | None = None,
    added: Sequence[str | Json] = (),
    vocabulary: Sequence[str] = (),
    merges: Sequence[tuple[str, str]] | None = None,
    more: Sequence[str] = (),
    post_processor: Json | None = None,
    truncation: Json | None = None,
    padding: Json | None = None,
    **model: Any,
) -> Json:
    """The content of a `tokenizer.json`. `vocabulary`, `merges`: instead of trained ones; `more`:
    tokens that no merge makes; `added`: contents or entries without ids; `decoder`: if not given,
    the one that matches; `model`: its fields."""
    fallback = bool(model.get("byte_fallback"))
    decoder = decoder or matching_decoder(normalizer, pretokenizer, fallback)
    known, pairs = trained(tuple(pieces), byte_level, space)
    tokens = [*(vocabulary or sorted(known, key=lambda token: int(known[token]))), *more]
    entries = [added_token(entry) if isinstance(entry, str) else entry for entry in added]
    ids = {t: i for i, t in enumerate(dict.fromkeys([*tokens, *(e["content"] for e in entries)]))}
    numbered = [{"id": ids[entry["content"]], **entry} for entry in entries]
    table = (() if vocabulary else pairs) if merges is None else merges
    bpe = {"type": "BPE", "vocab": {token: ids[token] for token in tokens}}
    return {
        "version": "1.0",
        "truncation": truncation,
        "padding": padding,
        "post_processor": post_processor,
        "added_tokens": sorted(numbered, key=lambda entry: int(entry["id"])),
        "normalizer": normalizer,
        "pre_tokenizer": pretokenizer,
        "decoder": decoder,
        "model": {**bpe, "merges": [list(pair) for pair in table], **model},
    }


def library(data: Json) -> tokenizers.Tokenizer:
    """The tokenizer as `tokenizers` itself reads it."""
    return tokenizers.Tokenizer.from_str(json.dumps(data))


def encodes_otherwise(data: Json, without: Json, pieces: Sequence[str]) -> bool:
    """Does the component change the ids of some text?"""
    ours, theirs = library(data), library(without)
    return any(ours.encode(text).ids != theirs.encode(text).ids for text in texts_of(pieces))


def exact(
    section: str,
    name: str,
    pieces: Sequence[str],
    part: Json,
    base: Json | None = None,
    *,
    variant: str = "",
    matters: Callable[[Json, Json, Sequence[str]], bool] = encodes_otherwise,
) -> Case:
    """A tokenizer of `base` and `part` (arguments of `make`) obeys the laws, and without `part` it
    would be another one. `matters`: how that shows."""

    def check(folder: Path) -> None:
        data, without = make(pieces, **{**(base or {}), **part}), make(pieces, **(base or {}))
        obey(Tokenizer.from_json(data), pieces)
        assert matters(data, without, pieces), "the component changes nothing here"

    return Case(section, name, False, check, variant)


def never(data: Json, without: Json, pieces: Sequence[str]) -> bool:
    """For values that mean that nothing is done."""
    return not encodes_otherwise(data, without, pieces)


def refused(
    section: str,
    name: str,
    part: Json,
    component: str,
    says: str = "",
    base: Json | None = None,
    *,
    pieces: Sequence[str] = PLAIN,
    variant: str = "",
    error: type[BpeAutomataError] = UnsupportedTokenizerError,
) -> Case:
    """`tokenizers` reads it, and the package refuses it with an error of that type, component and
    message; without `part` it is accepted."""

    def check(folder: Path) -> None:
        assert used(make(pieces, **(base or {}))) is not None
        data = make(pieces, **{**(base or {}), **part})
        library(data)
        with pytest.raises(error) as caught:
            used(data)
        named(caught.value, component, says)

    return Case(section, name, True, check, variant)


def used(data: Json) -> Any:
    """A tokenizer that is read and put to work: some refusals are told only then."""
    return constrain(Tokenizer.from_json(data), "a").engine


def named(error: BpeAutomataError, component: str, says: str) -> None:
    """Does the error say which component it is, and what about it?"""
    if isinstance(error, UnsupportedTokenizerError):
        assert error.component == component, error
        assert error.why
    else:
        assert component in str(error)
    assert says in str(error)
