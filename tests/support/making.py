"""What a case of the support matrix is, how its tokenizer is made, and what "exact" means.

A case is one value of one component, which is read exactly or refused by name. Its tokenizer is
small, trained as a whole, and given that component. Exact means, on texts that are drawn the same
way each time:

sequences: the canonical automaton accepts ids iff encode(decode(ids)) == ids;
masks: every mask at every prefix of a finite regex is the trie of `encode`.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from bpe_automata import Tokenizer, constrain
from bpe_automata.errors import BpeAutomataError, UnsupportedTokenizerError
from bpe_automata.testing import added_token
from bpe_automata.testing._small import matching_decoder
from support.laws import accepted_iff_encode_gives_the_ids_back, ids_of, neighbours
from support.laws import every_mask_is_that_of_the_trie_of_encode as masks_are_right

TEXTS, REGEXES, RESPELLINGS = 200, 3, 2


def texts_of(pieces: Sequence[str], n: int = TEXTS, seed: int = 0) -> list[str]:
    """`n` texts of up to eight pieces."""
    rng = random.Random(seed)
    return ["".join(rng.choices(pieces, k=rng.randint(0, 8))) for _ in range(n)]


def regexes_of(pieces: Sequence[str], n: int = REGEXES) -> list[str]:
    """`n` regexes, each of the 84 texts of one to three out of four pieces."""
    rng = random.Random(1)
    chosen = [rng.sample(pieces, min(4, len(pieces))) for _ in range(n)]
    return ["({}){{1,3}}".format("|".join(map(re.escape, some))) for some in chosen]


def obey(tokenizer: Tokenizer, pieces: Sequence[str]) -> None:
    """Both laws, on texts of these pieces; and they are not empty: some ids are canonical, some
    are not, and some regex can be written."""
    tried = some_ids(tokenizer, pieces)
    canonical = accepted_iff_encode_gives_the_ids_back(tokenizer, tried)
    assert 20 < canonical < len(tried) - 20
    assert sum(masks_are_right(tokenizer, regex) for regex in regexes_of(pieces)) > 0


def some_ids(tokenizer: Tokenizer, pieces: Sequence[str]) -> list[list[int]]:
    """What `encode` gives for the texts, other ids for the same bytes, and ids that spell the text
    as it is, even if the normalizer would change it."""
    rng, found = random.Random(2), list[list[int]]()
    for text in texts_of(pieces):
        own = tokenizer.encode(text)
        found += [own, *neighbours(tokenizer, own)[:RESPELLINGS]]
        found.append(_spelling(text.encode(), ids_of(tokenizer), rng))
    return found


def _spelling(data: bytes, spelled: dict[bytes, list[int]], rng: random.Random) -> list[int]:
    """Random ids for the bytes, up to where no token goes on."""
    parts = [data[:k] for k in range(1, len(data) + 1) if data[:k] in spelled]
    if not parts:
        return []
    part = rng.choice(parts)
    return [rng.choice(spelled[part]), *_spelling(data[len(part) :], spelled, rng)]


@dataclass(frozen=True)
class Case:
    """section: row of the matrix; name: as Markdown, as the file format spells it; refused: which
    column; check: what must hold, given an empty folder (raises AssertionError, or skips); variant:
    tells cases of one name apart; long: only run with --long."""

    section: str
    name: str
    refused: bool
    check: Callable[[Path], None]
    variant: str = ""
    long: bool = False

    @property
    def id(self) -> str:
        words = (self.section, self.name, self.variant, "refused" if self.refused else "")
        return " - ".join(word.replace("`", "") for word in words if word)


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
    trainer = trainers.BpeTrainer(vocab_size=60, show_progress=False, max_token_length=6)
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]


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
    around: Json | None = None,
    **model: Any,
) -> Json:
    """The content of a `tokenizer.json`. `vocabulary`, `merges`: instead of trained ones; `more`:
    tokens that no merge makes; `added`: contents or entries without ids; `decoder`: if not given,
    the one that matches; `around`: other fields; `model`: its fields."""
    fallback = bool(model.get("byte_fallback"))
    known, pairs = trained(tuple(pieces), byte_level, space)
    tokens = [*(vocabulary or sorted(known, key=known.__getitem__)), *more]
    entries = [added_token(entry) if isinstance(entry, str) else entry for entry in added]
    ids = {t: i for i, t in enumerate(dict.fromkeys([*tokens, *(e["content"] for e in entries)]))}
    numbered = [{"id": ids[entry["content"]], **entry} for entry in entries]
    table = (() if vocabulary else pairs) if merges is None else merges
    data: Json = json.loads(tokenizers.Tokenizer(models.BPE()).to_str())
    data["model"] |= {"vocab": {token: ids[token] for token in tokens}, "merges": table, **model}
    return data | {
        "added_tokens": sorted(numbered, key=lambda entry: int(entry["id"])),
        "normalizer": normalizer,
        "pre_tokenizer": pretokenizer,
        "decoder": decoder or matching_decoder(normalizer, pretokenizer, fallback),
        **(around or {}),
    }


def as_json(component: Any) -> Json:
    """A part of a tokenizer of `tokenizers`, as the file spells it."""
    return dict(json.loads(component.__getstate__()))


def library(data: Json) -> tokenizers.Tokenizer:
    """The tokenizer as `tokenizers` itself reads it."""
    return tokenizers.Tokenizer.from_str(json.dumps(data))


def encodes_otherwise(data: Json, without: Json, pieces: Sequence[str]) -> bool:
    """Does the component change the ids of some text?"""
    both = (library(made).encode_batch(texts_of(pieces)) for made in (data, without))
    return any(one.ids != other.ids for one, other in zip(*both, strict=True))


def never(data: Json, without: Json, pieces: Sequence[str]) -> bool:
    """For values that mean that nothing is done."""
    return not encodes_otherwise(data, without, pieces)


@dataclass(frozen=True)
class Section:
    """A row of the matrix. key: the argument of `make` that its values are of, "" where a value
    is several arguments; matters: how it shows that a value does something."""

    title: str
    key: str = ""
    pieces: Sequence[str] = PLAIN
    matters: Callable[[Json, Json, Sequence[str]], bool] = encodes_otherwise

    def reads(
        self,
        name: str,
        value: Any,
        variant: str = "",
        pieces: Sequence[str] | None = None,
        matters: Callable[[Json, Json, Sequence[str]], bool] | None = None,
        **base: Any,
    ) -> Case:
        """A tokenizer of `base` and the value (arguments of `make`) obeys the laws, and without the
        value it would be another one."""
        part, pieces = self._part(value), pieces or self.pieces

        def check(folder: Path) -> None:
            data, without = make(pieces, **{**base, **part}), make(pieces, **base)
            obey(Tokenizer.from_json(data), pieces)
            assert (matters or self.matters)(data, without, pieces), "it changes nothing here"

        return Case(self.title, name, False, check, variant)

    def refuses(
        self,
        name: str,
        value: Any,
        component: str,
        says: str = "",
        variant: str = "",
        **base: Any,
    ) -> Case:
        """`tokenizers` reads it, and the package refuses it with an error of that component and
        message; without the value it is accepted."""
        part = self._part(value)

        def read(folder: Path) -> None:
            library(make(self.pieces, **{**base, **part}))
            used(make(self.pieces, **base))

        def act(folder: Path) -> None:
            used(make(self.pieces, **{**base, **part}))

        return refused(self.title, name, act, component, says, variant, read)

    def _part(self, value: Any) -> Json:
        return {self.key: value} if self.key else value


def used(data: Json) -> None:
    """A tokenizer is read and put to work: some refusals are told only then."""
    assert constrain(Tokenizer.from_json(data), "a").engine is not None


def refused(
    section: str,
    name: str,
    act: Callable[[Path], object],
    component: str,
    says: str = "",
    variant: str = "",
    read: Callable[[Path], object] = Path.exists,
    error: type[BpeAutomataError] = UnsupportedTokenizerError,
) -> Case:
    """`act(folder)` ends with an error that says which component it is, and what about it;
    `read(folder)`, the same without it where it is given, does not."""

    def check(folder: Path) -> None:
        read(folder)
        with pytest.raises(error) as caught:
            act(folder)
        assert getattr(caught.value, "component", component) == component
        assert component in str(caught.value)
        assert says in str(caught.value)

    return Case(section, name, True, check, variant)
