"""A tokenizer that is understood completely: its description beside its own `encode`."""

from __future__ import annotations

import json
import pickle
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar
from weakref import WeakValueDictionary

from bpe_automata.arguments import integer, sequence_of_ids, short
from bpe_automata.budget import READING, Budget, spending
from bpe_automata.errors import ArgumentError, TokenizerError, TokenOutOfRangeError
from bpe_automata.limits import NUMBERS, check_fits
from bpe_automata.sharing import Immutable, Lock, cached, locked
from bpe_automata.tokenizer import kept
from bpe_automata.tokenizer.backend import Backend, Source
from bpe_automata.tokenizer.description import Description, Prefix
from bpe_automata.tokenizer.kept import Origin
from bpe_automata.tokenizer.sources.detect import at_path
from bpe_automata.tokenizer.sources.encodings import at_encoding, at_named_encoding, is_encoding
from bpe_automata.tokenizer.sources.named import at_name
from bpe_automata.tokenizer.sources.optional import fingerprint

T = TypeVar("T")
AddedTokens = Literal["plain"] | bool
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRIPPED = (Prefix.TEXT, Prefix.PIECE, Prefix.FIRST_UNLESS_SPACE, Prefix.PIECE_UNLESS_SPACE)
_EACH_PIECE = (Prefix.PIECE, Prefix.PIECE_UNLESS_SPACE)


class Tokenizer(Immutable):
    """An immutable tokenizer; make one with `Tokenizer.load`. Any number of threads may use it, and
    all that is made of it, at once; what they find out is kept with it, under its `lock`. Pickled,
    it is what it was made from; a process that gets the same one again keeps the first.

    Attributes: `description`; `backend`, the library that encodes; `eos_ids`, what the source calls
    end of sequence (may be empty); `name`, where it came from; `fingerprint`, sha256 (hex) of the
    tokenizer's own bytes.
    """

    def __init__(self, source: Source) -> None:
        self.description: Description = source.description
        self.backend: Backend = source.backend
        self.name, self.fingerprint = source.name, source.fingerprint
        self.eos_ids = source.eos_ids
        self._json = source.json
        self.lock = Lock()
        self._derived: dict[str, object] = {}
        if not source.tried:
            from bpe_automata.tokenizer.trial import try_decoding

            try_decoding(self)

    @classmethod
    def load(cls, source: object, *, budget: Budget = READING, **options: Any) -> Tokenizer:
        """Read a tokenizer.

        `source`: a path (a `tokenizer.json`, a SentencePiece `.model`, a tiktoken rank file, a
        Mistral `tekken.json`, a `.gguf` file, or a folder that holds one), a name out of
        `bpe_automata.tokenizer.sources.names()`, a `tokenizers.Tokenizer`, a fast tokenizer of
        transformers, a `tiktoken.Encoding`, or the name of one, or of a model that has one, where
        there is no such path. `options`: what a file does not hold; for tiktoken rank files
        `pattern` and `special_tokens`. budget: of reading it.

        What was read is tried on some 300 texts: ids must spell what the library decodes them to.
        That the automaton agrees with `encode` on them is tried when it is built. What was read
        and tried once is taken out of the disk cache, where its content is what it was then.

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
        if known := kept.load(origin):
            return cls(known)
        read = origin.read()
        tokenizer = cls(read)
        kept.store(origin, read)
        return tokenizer

    @classmethod
    def from_json(
        cls, data: dict[str, Any], eos_ids: Iterable[int] = (), name: str = "tokenizer"
    ) -> Tokenizer:
        """The tokenizer that `data`, the content of a `tokenizer.json`, describes. Raises
        BrokenTokenizerError, UnsupportedTokenizerError, TokenizerMismatchError."""
        from bpe_automata.tokenizer.read_json import read_json

        return cls(read_json(data, tuple(eos_ids), name))

    @property
    def n_ids(self) -> int:
        """One more than the largest id."""
        return self.description.n_ids

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, by the tokenizer itself; nothing is added around them.

        Raises TokenizerError for a text with a lone surrogate, which has no UTF-8; EncodingError
        where the library itself gives up; ArgumentError for what is no text.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"the text is {short(text)}: give a str")
        if not text.isascii() and (lone := _SURROGATE.search(text)):
            raise TokenizerError(
                f"the text has a lone surrogate, {lone.group()!r}, at position {lone.start()}: "
                "that is no character, so it cannot be encoded"
            )
        return self.backend.encode(text)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """`encode` of many texts."""
        return self.backend.encode_batch(texts)

    def decode(self, ids: Sequence[int], after: Sequence[int] = ()) -> str:
        """The text that the ids spell, added tokens included; broken UTF-8 becomes U+FFFD. A space
        that `encode` puts before a text is taken away; control ids spell nothing. `after`: ids that
        come before, whose text is left out. Raises TokenOutOfRangeError, ArgumentError."""
        return self.text_bytes(ids, after).decode("utf-8", "replace")

    def text_bytes(self, ids: Sequence[int], after: Sequence[int] = ()) -> bytes:
        """What `decode` gives, as bytes."""
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
        return self.description.prefix in _EACH_PIECE and before in self.added_ids

    def puts_space(self, first: int) -> bool:
        """Does `encode` put a space before a text that begins with this id?"""
        prefix = self.description.prefix
        return prefix is Prefix.TEXT or (prefix is not Prefix.NONE and first not in self.added_ids)

    def last_text(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The ids of the text that is under way: those after the last control id."""
        controls = self.description.controls
        last = max((k for k, token in enumerate(ids) if token in controls), default=-1)
        return tuple(ids[last + 1 :])

    @cached
    def added_ids(self) -> frozenset[int]:
        """The ids of the added tokens."""
        return frozenset(token.id for token in self.description.added)

    def added_as_text(self, which: AddedTokens) -> frozenset[int]:
        """The ids of the added tokens that may be read as the text that they spell: "plain", those
        that are not special; True, all; False, none."""
        if which == "plain":
            return frozenset(token.id for token in self.description.added if not token.special)
        return self.added_ids if which else frozenset()

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that one id spells, with the space that it may begin with.

        Raises TokenOutOfRangeError, ArgumentError."""
        if type(token_id) is not int:
            token_id = integer(token_id, "the id")
        if not 0 <= token_id < self.n_ids:
            raise TokenOutOfRangeError(f"id {token_id} is not in 0 .. {self.n_ids - 1}")
        return self.spellings[token_id]

    @cached
    def spellings(self) -> tuple[bytes, ...]:
        """For each id its bytes; an added token spells its content. Raises BudgetExceededError for
        more than 2**31 - 1 bytes in all."""
        spelled = [token or b"" for token in self.description.tokens]
        for added in self.description.added:
            spelled[added.id] = added.content.encode("utf-8")
        advice = "more than is numbered: leave out the longest tokens"
        check_fits("bytes of all tokens", sum(map(len, spelled)), NUMBERS, advice)
        return tuple(spelled)

    def derived(self, name: str, build: Callable[[Tokenizer], T]) -> T:
        """What `build` makes of this tokenizer, made once and kept under `name`."""
        if name not in self._derived:
            self._derive(name, build)
        return self._derived[name]  # type: ignore[return-value]

    @locked
    def _derive(self, name: str, build: Callable[[Tokenizer], object]) -> None:
        if name not in self._derived:
            self._derived[name] = build(self)

    def to_json(self) -> str:
        """The `tokenizer.json` that this tokenizer is. Raises TokenizerError where it is none:
        a SentencePiece model or a rank file."""
        if self._json is None:
            raise TokenizerError(
                f"{self.name} runs on {self.backend.name}, there is no tokenizer.json that is equal"
            )
        return self._json() if callable(self._json) else self._json

    def __reduce__(self) -> tuple[object, ...]:
        return _arrived, (self.fingerprint, self.name, self.eos_ids, self._parcel)

    @cached
    def _parcel(self) -> bytes:
        """What it was made from, compressed: its `tokenizer.json`, or what its reader made of it.
        Raises TokenizerError for a backend that cannot be pickled."""
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


def _origin(source: object, options: dict[str, Any]) -> Origin:
    """What there is to be read. Raises TokenizerError for what is no source, and for options to
    what takes none."""
    if isinstance(source, str) and (named := at_name(source, **options)):
        return named
    is_new = isinstance(source, str) and not (options or Path(source).exists())
    if is_new and (encoding := at_named_encoding(str(source))):
        return encoding
    if isinstance(source, str | Path):
        return at_path(Path(source), **options)
    if options:
        raise TokenizerError(
            f"{type(source).__name__} holds all of a tokenizer, so {', '.join(options)} cannot "
            "be given"
        )
    if is_encoding(source):
        return at_encoding(source)
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
    return Origin(fingerprint("tokenizers", text, repr(eos)), name, read, read)


def _read_text(text: str, eos_ids: tuple[int, ...], name: str) -> Source:
    from bpe_automata.tokenizer.read_json import read_json

    return read_json(json.loads(text), eos_ids, name, text)


_tokenizers: WeakValueDictionary[tuple[object, ...], Tokenizer] = WeakValueDictionary()
"""Those that came from other processes: the constraints that come after one another share it."""


def _arrived(fingerprint: str, name: str, eos_ids: tuple[int, ...], parcel: bytes) -> Tokenizer:
    """The tokenizer that was pickled."""
    key = fingerprint, name, eos_ids
    if (known := _tokenizers.get(key)) is not None:
        return known
    made_from = pickle.loads(zlib.decompress(parcel))
    if isinstance(made_from, str):
        from bpe_automata.tokenizer.read_json import read_json

        source = read_json(json.loads(made_from), eos_ids, name, made_from)
    else:
        description, backend = made_from
        source = Source(description, backend, name, fingerprint, eos_ids)
    return _tokenizers.setdefault(key, Tokenizer(source))
