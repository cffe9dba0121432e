"""Engines that turn a regex into masks, ours and others', behind one small interface.

The others are optional (`pip install 'bpe-automata[peers]'`) and inexact: like our
lift they admit tokenizations that the tokenizer itself would not produce. (llguidance not all of
them: where only one text can follow it chooses the ids, before it knows what comes after.)
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any, Protocol

import numpy as np

from bpe_automata import Constraint, Matcher, Tokenizer, constrain
from bpe_automata.decoding.constraint import Method
from bpe_automata.errors import TokenizerError

INSTALL = "pip install 'bpe-automata[peers]'"
Begin = Callable[[], "Session"]
"""Begins a sequence under what was compiled."""


class PeerError(Exception):
    """An engine is missing, or refuses a regex or an id. The message says why, in one line."""


class Session(Protocol):
    """One sequence under one compiled regex."""

    def mask(self, out: np.ndarray, /) -> object:
        """Write which ids may follow; `out`: packed int32 (1, ceil(V / 32))."""

    def advance(self, token: int, /) -> None:
        """Read one id."""


class Engine(Protocol):
    """`name`; `compile` makes a session from a regex, with nothing kept from an earlier one."""

    name: str

    def compile(self, regex: str) -> Session:
        """Raises PeerError."""


class Reusable(Engine, Protocol):
    """An engine whose compiled regexes serve several sessions."""

    def prepare(self, regex: str) -> Begin:
        """Compile, with nothing kept from an earlier regex. Raises PeerError."""


class Ours:
    """This package: "canonical" is exact, "lift" admits any tokenization."""

    def __init__(self, tokenizer: Tokenizer, method: Method, eos_ids: tuple[int, ...]) -> None:
        self.name: str = method
        self._tokenizer, self._method, self._eos_ids = tokenizer, method, eos_ids

    def compile(self, regex: str) -> Matcher:
        return self._constrain(regex).matcher()

    def prepare(self, regex: str) -> Begin:
        return self._constrain(regex).matcher

    def _constrain(self, regex: str) -> Constraint:
        return constrain(self._tokenizer, regex, self._method, eos_ids=self._eos_ids)


class Peer(ABC):
    """name: of the package that brings it; install: with what command."""

    name: str
    install = INSTALL

    @abstractmethod
    def prepare(self, regex: str) -> Begin:
        """See `Reusable`."""

    def compile(self, regex: str) -> Session:
        """See `Engine`."""
        return self.prepare(regex)()

    @classmethod
    def version(cls) -> str | None:
        """Of the installed package; None if there is none."""
        try:
            return metadata.version(cls.name)
        except metadata.PackageNotFoundError:
            return None

    @classmethod
    def module(cls, name: str | None = None) -> Any:
        """A module of it, the one of its name by default. Raises PeerError where it is missing."""
        try:
            return importlib.import_module(name or cls.name)
        except ImportError as error:
            raise PeerError(f"not installed: {cls.install}") from error


class OutlinesCore(Peer):
    """outlines-core: an index of every state, with all masks."""

    name = "outlines_core"

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        self._module = self.module()
        self._vocabulary = outlines_vocabulary(self._module, tokenizer, eos_ids)

    def prepare(self, regex: str) -> Begin:
        with refusals():
            index = self._module.Index(regex, self._vocabulary)
        return lambda: OutlinesSession(self._module.Guide, index)


def outlines_vocabulary(module: Any, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> Any:
    """The ids of each text, and one end of sequence. Raises PeerError where there is none."""
    ids_of: dict[bytes, list[int]] = {}
    for token, spelled in ordinary(tokenizer).items():
        ids_of.setdefault(spelled, []).append(token)
    return module.Vocabulary(one_eos(eos_ids), ids_of)


class OutlinesSession:
    """A guide of outlines-core through an index."""

    def __init__(self, guide_of: Callable[[Any], Any], index: Any) -> None:
        self._guide_of, self._index, self._made = guide_of, index, None

    @property
    def _guide(self) -> Any:
        """Made at the first mask: the time of compiling is that of the index alone."""
        if self._made is None:
            self._made = self._guide_of(self._index)
        return self._made

    def mask(self, out: np.ndarray) -> None:
        with refusals():
            self._guide.write_mask_into(out.ctypes.data, out.size, out.itemsize)

    def advance(self, token: int) -> None:
        with refusals():
            self._guide.advance(token, False)


class LLGuidance(Peer):
    """llguidance: derivatives of regexes, masks by a walk of the vocabulary's trie."""

    name = "llguidance"

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        module, end = self.module(), one_eos(eos_ids)
        self._matcher_of = module.LLMatcher
        try:
            self._tokenizer = module.LLTokenizer(tokenizer.to_json(), eos_token=end)
        except TokenizerError:  # there is no tokenizer.json that is equal
            plain = module.TokenizerWrapper(PlainTokenizer(tokenizer, end))
            self._tokenizer = module.LLTokenizer(plain, eos_token=end)

    def compile(self, regex: str) -> Session:
        return LLSession(self._compiled(regex))

    def prepare(self, regex: str) -> Begin:
        matcher = self._compiled(regex)
        LLSession(matcher)  # says what is wrong with the regex, if anything is
        return lambda: LLSession(matcher.deep_copy())

    def _compiled(self, regex: str) -> Any:
        with refusals():
            grammar = self._matcher_of.grammar_from_regex(regex)
            return self._matcher_of(self._tokenizer, grammar, log_level=0)


class PlainTokenizer:
    """A tokenizer as llguidance takes any: its bytes by id, and what encodes."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, end: int) -> None:
        self._encode, self.eos_token_id = tokenizer.encode, end
        self.tokens = list(tokenizer.spellings)
        self.special_token_ids = sorted(tokenizer.added_ids)
        for token in self.special_token_ids:  # 0xff is how it knows that they are no text
            self.tokens[token] = b"\xff" + self.tokens[token]

    def __call__(self, text: str) -> list[int]:
        return self._encode(text)


class LLSession:
    """A matcher of llguidance: it raises nothing, but goes into a state of error. Raises PeerError
    for one that is in it."""

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher
        self._check()

    def mask(self, out: np.ndarray) -> None:
        self._matcher.unsafe_compute_mask_ptr(out.ctypes.data, out.nbytes)
        self._check()

    def advance(self, token: int) -> None:
        self._matcher.consume_token(token)
        self._check()

    def _check(self) -> None:
        if self._matcher.is_error():
            raise PeerError(_first_line(self._matcher.get_error()))


class GLRMask(Peer):
    """glrmask: a regex is the one terminal of a Lark grammar. Its masks hold no end of sequence."""

    name = "glrmask"

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        self._grammar = self.module().Grammar
        self._vocab = self.module().Vocab.from_id_to_bytes(ordinary(tokenizer))

    def prepare(self, regex: str) -> Begin:
        terminal = regex.replace("/", "\\/")
        with refusals():
            compiled = self._grammar.from_lark(f"start: /{terminal}/").compile(self._vocab)
        return lambda: _GLRSession(compiled)


class _GLRSession:
    def __init__(self, constraint: Any) -> None:
        self._state = constraint.start()

    def mask(self, out: np.ndarray) -> None:
        self._state.fill_mask(out[0])

    def advance(self, token: int) -> None:
        if not self._state.commit_token(token):
            raise PeerError(f"id {token} is refused")

    def may_end(self) -> bool:
        return bool(self._state.is_accepting())


PEERS: tuple[Any, ...] = (OutlinesCore, LLGuidance, GLRMask)


def open_peers(
    tokenizer: Tokenizer, eos_ids: tuple[int, ...]
) -> tuple[list[Engine], dict[str, str]]:
    """(the engines that can be used, why the others cannot by name)."""
    opened: list[Engine] = []
    missing: dict[str, str] = {}
    for peer in PEERS:
        try:
            with refusals():
                opened.append(peer(tokenizer, eos_ids))
        except PeerError as error:
            missing[peer.name] = str(error)
    return opened, missing


def peer_versions() -> dict[str, str]:
    """The version of each peer that is installed."""
    versions = {peer.name: peer.version() for peer in PEERS}
    return {name: version for name, version in versions.items() if version}


@contextmanager
def refusals() -> Iterator[None]:
    """Whatever a peer raises, as a PeerError: Rust panics are not even an `Exception`."""
    try:
        yield
    except (PeerError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise PeerError(f"{type(error).__name__}: {_first_line(str(error))}") from error


def one_eos(eos_ids: tuple[int, ...]) -> int:
    """The one that peers are told of. Raises PeerError."""
    if not eos_ids:
        raise PeerError("needs an end-of-sequence id, and the tokenizer names none")
    return eos_ids[0]


def ordinary(tokenizer: Tokenizer) -> dict[int, bytes]:
    """The bytes of each id that is text and no added token."""
    added = {token.id for token in tokenizer.description.added}
    spellings = enumerate(tokenizer.spellings)
    return {i: spelled for i, spelled in spellings if spelled and i not in added}


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]
