"""`Tokenizer`: the description of a tokenizer together with the library that runs it.

It is read from any source (`Tokenizer.load`), compared with its library on some 300 texts, and then
immutable.
"""

from __future__ import annotations

import json
import pickle
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar
from weakref import WeakValueDictionary

from bpe_automata._arguments import integer, sequence_of_ids, short
from bpe_automata._budget import READING, Budget, spending
from bpe_automata._limits import NUMBERS, check_fits
from bpe_automata._sharing import Immutable, Lock, cached, locked
from bpe_automata.errors import (
    ArgumentError,
    TokenizerError,
    TokenizerMismatchError,
    TokenOutOfRangeError,
)
from bpe_automata.tokenizer import stored
from bpe_automata.tokenizer.description import Description, Prefix
from bpe_automata.tokenizer.sample_texts import texts_with
from bpe_automata.tokenizer.source import Backend, Origin, Source, fingerprint
from bpe_automata.tokenizer.sources.detect import path_origin
from bpe_automata.tokenizer.sources.named import (
    encoding_origin,
    is_encoding,
    name_origin,
    named_encoding_origin,
    names,
)

T = TypeVar("T")
AddedTokens = Literal["plain"] | bool | tuple[str, ...]
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRIPPED = (Prefix.TEXT, Prefix.PIECE, Prefix.FIRST_UNLESS_SPACE, Prefix.PIECE_UNLESS_SPACE)
_MOST_IDS = 256  # ids whose own text is compared, spread over the vocabulary


class Tokenizer(Immutable):
    """An immutable tokenizer; make one with `Tokenizer.load`. Any number of threads may use it, and
    everything built from it, at the same time; derived values are cached on it, under its `lock`.
    A pickle holds what it was read from; a process that unpickles it twice gets one object.

    Attributes: `description`; `backend`, the library that encodes; `eos_ids`, the ids that the
    source names as end of sequence (may be empty); `name`, where it came from; `fingerprint`,
    sha256 (hex) of the tokenizer's own bytes.
    """

    def __init__(self, source: Source) -> None:
        self.description: Description = source.description
        self.backend: Backend = source.backend
        self.name, self.fingerprint = source.name, source.fingerprint
        self.eos_ids = source.eos_ids
        self._json = source.json
        self.lock = Lock()
        self._derived: dict[str, object] = {}
        if not source.checked:
            check_decoding(self)

    @classmethod
    def load(cls, source: object, *, budget: Budget = READING, **options: Any) -> Tokenizer:
        """Read a tokenizer.

        `source`: a path (a `tokenizer.json`, a SentencePiece `.model`, a tiktoken rank file, a
        Mistral `tekken.json`, a `.gguf` file, or a folder that holds one), a name out of
        `bpe_automata.tokenizer.sources.names()`, a `tokenizers.Tokenizer`, a fast tokenizer of
        transformers, a `tiktoken.Encoding`, or (if there is no such path) the name of an encoding
        of tiktoken or of its model. `options`: what a file does not hold; for tiktoken rank files
        `pattern` and `special_tokens`. budget: for reading it.

        End-of-sequence ids are those of the tokenizer itself, or of the `tokenizer_config.json`
        next to a `tokenizer.json`, and those of a `generation_config.json` next to any of these
        files (but a `.gguf`), if the tokenizer has them.

        Decoding is compared with the library's on some 300 texts (`check_decoding`); building the
        automaton compares `encode` on the same texts. A tokenizer that passed is stored in the
        disk cache, and loaded from there as long as its content stays the same.

        Raises MissingFileError, MissingDependencyError, BrokenTokenizerError,
        UnsupportedTokenizerError, ImproperMergeTableError, TokenizerMismatchError,
        BudgetExceededError.
        """
        with spending(budget):
            return cls._loaded(source, options)

    @classmethod
    def _loaded(cls, source: object, options: dict[str, Any]) -> Tokenizer:
        if isinstance(source, Tokenizer):
            return source
        origin = _origin(source, options)
        if loaded := stored.load(origin):
            return cls(loaded)
        source_read = origin.read()
        tokenizer = cls(source_read)
        stored.store(origin, source_read)
        return tokenizer

    @classmethod
    def from_json(
        cls, data: dict[str, Any], eos_ids: Iterable[int] = (), name: str = "tokenizer"
    ) -> Tokenizer:
        """The tokenizer that `data`, the content of a `tokenizer.json`, describes. Raises
        BrokenTokenizerError, UnsupportedTokenizerError, TokenizerMismatchError."""
        from bpe_automata.tokenizer.sources.tokenizer_json import read_json

        return cls(read_json(data, tuple(eos_ids), name))

    @property
    def n_ids(self) -> int:
        """One more than the largest id."""
        return self.description.n_ids

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, by the library itself, without ids put before or after.

        Raises TokenizerError for a text with a lone surrogate, which has no UTF-8; EncodingError
        where the library itself gives up; ArgumentError for anything but a str.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"the text is {short(text)}: give a str")
        if not text.isascii() and (lone := _SURROGATE.search(text)):
            raise TokenizerError(
                f"the text has a lone surrogate, {lone.group()!r}, at position {lone.start()}: "
                "that is no character, so it cannot be encoded"
            )
        return self.backend.encode(text)

    def encode_prompt(self, text: str) -> list[int]:
        """The ids of `text` as a prompt: with those that the post-processor of a `tokenizer.json`
        puts before and after, such as a beginning-of-text id. For sources without a post-processor
        (SentencePiece models, rank files, GGUF) this is `encode`. Raises as `encode` does."""
        ids = self.encode(text)
        around = getattr(self.backend, "around", None)
        return around(text) if around else ids

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """`encode` of many texts."""
        return self.backend.encode_batch(texts)

    def decode(self, ids: Sequence[int], after: Sequence[int] = ()) -> str:
        """The text that the ids spell, added tokens included; broken UTF-8 becomes U+FFFD. A space
        that `encode` puts before a text is removed; control ids spell nothing. `after`: the ids
        before these, whose text is not returned. Raises TokenOutOfRangeError, ArgumentError."""
        return self.text_bytes(ids, after).decode("utf-8", "replace")

    def text_bytes(self, ids: Sequence[int], after: Sequence[int] = ()) -> bytes:
        """The bytes of `decode`."""
        ids = ids if isinstance(ids, list | tuple) else sequence_of_ids(ids)
        spelled = list(map(self.token_bytes, ids))
        if self.description.prefix not in _STRIPPED:
            return b"".join(spelled)
        for k, token in enumerate(ids):
            before = ids[k - 1] if k else (after[-1] if after else None)
            if self._puts_prefix(before) and token not in self.added_ids:
                spelled[k] = spelled[k].removeprefix(b" ")
        return b"".join(spelled)

    def _puts_prefix(self, before: int | None) -> bool:
        """Does `encode` put a prefix after this id (None: at the beginning)?"""
        if before is None or before in self.description.controls:
            return True
        return self.description.prefix is Prefix.PIECE and before in self.added_ids

    def last_text(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The ids after the last control id: those of the text that is still being written."""
        controls = self.description.controls
        last = max((k for k, token in enumerate(ids) if token in controls), default=-1)
        return tuple(ids[last + 1 :])

    @cached
    def added_ids(self) -> frozenset[int]:
        """The ids of the added tokens."""
        return frozenset(token.id for token in self.description.added)

    def added_as_text(self, which: AddedTokens) -> frozenset[int]:
        """The ids of the added tokens that count as the text that they spell: for "plain" those
        that are not special; for a tuple of texts these tokens too; for True all; for False none.
        Raises ArgumentError for a text that is no added token."""
        if isinstance(which, bool):
            return self.added_ids if which else frozenset()
        named = () if which == "plain" else which
        added = {token.content: token for token in self.description.added}
        for text in named:
            if text not in added:
                why = f"{short(text)} is none of the tokenizer's {len(added)} added tokens"
                raise ArgumentError(f"{why}: {' '.join(list(added)[:20])}")
        return frozenset(t.id for t in added.values() if not t.special or t.content in named)

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that one id spells, including a space that it begins with.

        Raises TokenOutOfRangeError, ArgumentError."""
        if type(token_id) is not int:
            token_id = integer(token_id, "the id")
        if not 0 <= token_id < self.n_ids:
            raise TokenOutOfRangeError(f"id {token_id} is not in 0 .. {self.n_ids - 1}")
        return self.spellings[token_id]

    @cached
    def spellings(self) -> tuple[bytes, ...]:
        """The bytes of each id; an added token spells its content. Raises BudgetExceededError for
        more than 2**31 - 1 bytes in all."""
        spelled = [token or b"" for token in self.description.tokens]
        for added in self.description.added:
            spelled[added.id] = added.content.encode("utf-8")
        advice = "more than is numbered: leave out the longest tokens"
        check_fits("bytes of all tokens", sum(map(len, spelled)), NUMBERS, advice)
        return tuple(spelled)

    def derived(self, name: str, build: Callable[[Tokenizer], T]) -> T:
        """`build(self)`, computed once and cached under `name`."""
        if name not in self._derived:
            self._derive(name, build)
        return self._derived[name]  # type: ignore[return-value]

    @locked
    def _derive(self, name: str, build: Callable[[Tokenizer], object]) -> None:
        if name not in self._derived:
            self._derived[name] = build(self)

    def to_json(self) -> str:
        """The `tokenizer.json` that defines this tokenizer. Raises TokenizerError if there is none,
        as for a SentencePiece model or a rank file."""
        if self._json is None:
            raise TokenizerError(
                f"{self.name} runs on {self.backend.name}, there is no tokenizer.json that is equal"
            )
        return self._json() if callable(self._json) else self._json

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self.fingerprint, self.name, self.eos_ids, self._pickled)

    @cached
    def _pickled(self) -> bytes:
        """Its `tokenizer.json`, or else its description and backend, compressed. Raises
        TokenizerError for a backend that cannot be pickled."""
        made_from = self.to_json() if self._json else (self.description, self.backend)
        try:
            return zlib.compress(pickle.dumps(made_from, pickle.HIGHEST_PROTOCOL), 1)
        except (AttributeError, TypeError, ValueError, pickle.PicklingError) as error:
            raise TokenizerError(
                f"{self!r} cannot be pickled, for its {self.backend.name} cannot: {error}. Load it "
                "in each process, by its path or name"
            ) from error

    def __repr__(self) -> str:
        return f"Tokenizer({self.name!r}, n_ids={self.n_ids})"


# ---------------------------------------------------------------- compared with the library


def sample_texts(tokenizer: Tokenizer) -> list[str]:
    """The texts that are the same for all tokenizers, and some with this one's added tokens."""
    return texts_with([token.content for token in tokenizer.description.added])


def check_decoding(tokenizer: Tokenizer) -> None:
    """Compare `decode` with the library's, on the ids of the sample texts and on single ids spread
    over the vocabulary. Documented differences do not count: ids that spell no text (the unknown
    token), fragments of UTF-8, and the space that some libraries leave after an added token.

    Raises TokenizerMismatchError at the first difference."""
    texts = sample_texts(tokenizer)
    encoded = list(zip(texts, tokenizer.encode_batch(texts), strict=True))
    anchor = next((ids for text, ids in encoded if text == "a"), tokenizer.encode("a"))
    step = max(tokenizer.n_ids // _MOST_IDS, 1)
    encoded += [("", [*anchor, token]) for token in range(0, tokenizer.n_ids, step)]
    for text, ids in encoded:
        for run in _runs_of_text(tokenizer, ids):
            _check_decoded(tokenizer, text, run)


def _runs_of_text(tokenizer: Tokenizer, ids: list[int]) -> Iterator[list[int]]:
    """The runs of ids between added tokens, if `encode` puts a space before each of these; else all
    ids."""
    if tokenizer.description.prefix is not Prefix.PIECE:
        yield ids
        return
    run: list[int] = []
    for token in ids:
        if token in tokenizer.added_ids:
            yield run
            run = []
        else:
            run.append(token)
    yield run


def _check_decoded(tokenizer: Tokenizer, text: str, ids: list[int]) -> None:
    if ids and not 0 <= min(ids) <= max(ids) < tokenizer.n_ids:
        ours = f"ids below {tokenizer.n_ids}"
        raise TokenizerMismatchError(tokenizer.name, text, tuple(ids), ours, ids)
    spellings = tokenizer.spellings
    if not all(map(spellings.__getitem__, ids)):
        return
    try:
        spelled = tokenizer.text_bytes(ids).decode()
    except UnicodeDecodeError:
        return
    decoded = tokenizer.backend.decode(ids)
    if spelled != decoded:
        raise TokenizerMismatchError(tokenizer.name, text, tuple(ids), spelled, decoded)


# ---------------------------------------------------------------- sources


def _origin(source: object, options: dict[str, Any]) -> Origin:
    """Where to read a tokenizer from. Raises TokenizerError for an object that is no source, and
    for options to a source that takes none."""
    if isinstance(source, str) and (named := name_origin(source, **options)):
        return named
    is_new = isinstance(source, str) and not (options or Path(source).exists())
    if is_new and (encoding := named_encoding_origin(str(source))):
        return encoding
    if isinstance(source, str | Path):
        return path_origin(Path(source), names=names(), **options)
    if options:
        raise TokenizerError(
            f"{type(source).__name__} holds all of a tokenizer, so {', '.join(options)} cannot "
            "be given"
        )
    if is_encoding(source):
        return encoding_origin(source)
    backend = getattr(source, "backend_tokenizer", source)
    package = sys.modules.get("tokenizers")  # who has one of its tokenizers has imported it
    if package is None or not isinstance(backend, package.Tokenizer):
        raise TokenizerError(
            f"cannot read a tokenizer from {type(source).__name__}: give a path, a "
            "tokenizers.Tokenizer, a fast tokenizer of transformers or a tiktoken.Encoding"
        )
    if backend.encode_special_tokens:
        raise TokenizerError("a tokenizer with encode_special_tokens=True is not modelled")
    eos = getattr(source, "eos_token_id", None)
    name, text = str(getattr(source, "name_or_path", "") or "tokenizer"), backend.to_str()
    read = partial(_read_text, text, () if eos is None else (eos,), name)
    return Origin(fingerprint("tokenizers", text, repr(eos)), name, read)


def _read_text(text: str, eos_ids: tuple[int, ...], name: str) -> Source:
    from bpe_automata.tokenizer.sources.tokenizer_json import read_json

    return read_json(json.loads(text), eos_ids, name, text)


# ---------------------------------------------------------------- pickled

_unpickled_before: WeakValueDictionary[tuple[object, ...], Tokenizer] = WeakValueDictionary()
"""Tokenizers that were unpickled here, so that constraints from other processes share one."""


def _unpickled(fingerprint: str, name: str, eos_ids: tuple[int, ...], pickled: bytes) -> Tokenizer:
    """The tokenizer of a pickle."""
    key = fingerprint, name, eos_ids
    if (found := _unpickled_before.get(key)) is not None:
        return found
    made_from = pickle.loads(zlib.decompress(pickled))
    if isinstance(made_from, str):
        from bpe_automata.tokenizer.sources.tokenizer_json import read_json

        source = read_json(json.loads(made_from), eos_ids, name, made_from)
    else:
        description, backend = made_from
        source = Source(description, backend, name, fingerprint, eos_ids)
    return _unpickled_before.setdefault(key, Tokenizer(source))
