"""Engines that turn a regex or a JSON Schema into masks, ours and others', behind one interface.

The others are optional (`pip install --group peers`) and inexact: like our
lift they admit tokenizations that the tokenizer itself would not produce. (llguidance not all of
them: where only one text can follow it chooses the ids, before it knows what comes after.)
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from typing import Any, Literal, Protocol

import numpy as np

from bpe_automata import ByteDFA, Constraint, Tokenizer, constrain
from bpe_automata.decoding import batch_masks
from bpe_automata.decoding.constraint import Method
from bpe_automata.errors import TokenizerError
from bpe_automata.schemas import compile_json_schema

INSTALL = "pip install --group peers"
Begin = Callable[[], "Session"]
"""Begins a sequence under what was compiled."""
Fill = Callable[[], object]
"""Writes one mask, or those of a batch."""
Whitespace = Literal["compact", "spaced", "flexible"]
SEPARATORS = {"compact": (",", ":"), "spaced": (", ", ": "), "flexible": (",", ":")}
"""Of items and of names; "flexible" texts have other white space besides."""


class PeerError(Exception):
    """An engine is missing, or refuses a regex or an id. The message says why, in one line."""


class Session(Protocol):
    """One sequence under one compiled regex."""

    def mask(self, out: np.ndarray, /) -> object:
        """Write which ids may follow; `out`: packed int32 (1, ceil(V / 32))."""

    def advance(self, token: int, /) -> None:
        """Read one id."""


class Engine(Protocol):
    """What is compiled serves several sessions; nothing is kept from one to the next."""

    def prepare(self, regex: str) -> Begin:
        """Compile a regex. Raises PeerError."""

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        """The same of the text of a JSON Schema."""

    def batch(self, sessions: Sequence[Any], out: np.ndarray) -> Fill:
        """What writes their masks into the rows of `out`, packed int32 [len(sessions), words], all
        cores at once where the engine can."""


def filling(session: Session, out: np.ndarray) -> Fill:
    """What writes the mask of a session into `out`: the engine's own call, with what a server does
    once for a buffer done beforehand."""
    own: Callable[[np.ndarray], Fill] | None = getattr(session, "filling", None)
    return own(out) if own else partial(session.mask, out)


class Ours:
    """This package: "canonical" is exact, "lift" admits any tokenization."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        method: Method,
        eos_ids: tuple[int, ...],
        within: int | None = None,
    ) -> None:
        """within: so many ids at most, and the text is complete."""
        self.name: str = method
        self._tokenizer, self._method, self._eos_ids = tokenizer, method, eos_ids
        self._within = within

    def prepare(self, regex: str) -> Begin:
        return self._bounded(self._constrain(regex))

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        with refusals():
            return self._bounded(
                self._constrain(compile_json_schema(schema, whitespace=whitespace))
            )

    def _bounded(self, constraint: Constraint) -> Begin:
        return (constraint if self._within is None else constraint.within(self._within)).matcher

    def batch(self, sessions: Sequence[Any], out: np.ndarray) -> Fill:
        return partial(batch_masks, sessions, out)

    def _constrain(self, language: str | ByteDFA) -> Constraint:
        return constrain(self._tokenizer, language, self._method, eos_ids=self._eos_ids)


class Peer(ABC):
    """name: of the package that brings it; install: with what command."""

    name: str
    install = INSTALL

    @abstractmethod
    def prepare(self, regex: str) -> Begin:
        """See `Engine`."""

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        """See `Engine`."""
        raise PeerError("it is asked for no schemas here")

    def batch(self, sessions: Sequence[Any], out: np.ndarray) -> Fill:
        """See `Engine`. One after the other: not all have a call for batches."""
        fills = [filling(session, out[k : k + 1]) for k, session in enumerate(sessions)]

        def fill() -> None:
            for one in fills:
                one()

        return fill

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
        return lambda: _OutlinesSession(self._module.Guide, index)

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        # It has no style with spaces after separators only; its default allows one anywhere.
        pattern = "" if whitespace == "compact" else None
        with refusals():
            regex = self._module.json_schema.build_regex_from_schema(schema, pattern)
        return self.prepare(regex)


def outlines_vocabulary(module: Any, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> Any:
    """The ids of each text, and one end of sequence. Raises PeerError where there is none."""
    ids_of: dict[bytes, list[int]] = {}
    for token, spelled in ordinary(tokenizer).items():
        ids_of.setdefault(spelled, []).append(token)
    return module.Vocabulary(one_eos(eos_ids), ids_of)


class _OutlinesSession:
    """A guide of outlines-core through an index."""

    def __init__(self, guide_of: Callable[[Any], Any], index: Any) -> None:
        self._guide_of, self._index, self._made = guide_of, index, None

    @property
    def _guide(self) -> Any:
        """Made at the first mask: the time of compiling is that of the index alone."""
        if self._made is None:
            self._made = self._guide_of(self._index)
        return self._made

    def filling(self, out: np.ndarray) -> Fill:
        return partial(self._guide.write_mask_into, out.ctypes.data, out.size, out.itemsize)

    def mask(self, out: np.ndarray) -> None:
        with refusals():
            self.filling(out)()

    def advance(self, token: int) -> None:
        try:  # quicker than `refusals`, for it is timed
            self._guide.advance(token, False)
        except Exception as error:
            raise PeerError(_first_line(str(error))) from error


class LLGuidance(Peer):
    """llguidance: derivatives of regexes, grammars of schemas, masks by a walk of the vocabulary's
    trie."""

    name = "llguidance"

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        self._llguidance = module = self.module()
        ends = [one_eos(eos_ids), *eos_ids[1:]]
        try:
            self._tokenizer = module.LLTokenizer(tokenizer.to_json(), eos_token=ends)
        except TokenizerError:  # there is no tokenizer.json that is equal
            plain = module.TokenizerWrapper(_PlainTokenizer(tokenizer, ends[0]))
            self._tokenizer = module.LLTokenizer(plain, eos_token=ends)
        self._for_schemas = self._tokenizer.with_slices(module.LLTokenizer.json_slices())
        self._executor: Any = None

    def prepare(self, regex: str) -> Begin:
        with refusals():
            grammar = self._llguidance.LLMatcher.grammar_from_regex(regex)
            return self._beginning(self._tokenizer, grammar)

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        item, name = SEPARATORS[whitespace]
        style = {"whitespace_flexible": whitespace == "flexible", "item_separator": item}
        style["key_separator"] = name
        with refusals():
            of_schema = self._llguidance.LLMatcher.grammar_from_json_schema
            return self._beginning(self._for_schemas, of_schema(schema, overrides=style))

    def batch(self, sessions: Sequence[Any], out: np.ndarray) -> Fill:
        if self._executor is None:
            self._executor = self._llguidance.LLExecutor(os.cpu_count())
        numbered = [(session.matcher, k) for k, session in enumerate(sessions)]
        place = (out.ctypes.data, out.shape[1] * out.itemsize, len(out))
        return partial(self._executor.unsafe_compute_mask_ptr, numbered, *place)

    def _beginning(self, tokenizer: Any, grammar: str) -> Begin:
        matcher = self._llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        _LLSession(matcher)  # says what is wrong with the grammar, if anything is
        return lambda: _LLSession(matcher.deep_copy())


class _PlainTokenizer:
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


class _LLSession:
    """A matcher of llguidance: it raises nothing, but goes into a state of error. Raises PeerError
    for one that is in it."""

    def __init__(self, matcher: Any) -> None:
        self.matcher = matcher
        self._check()

    def filling(self, out: np.ndarray) -> Fill:
        return partial(self.matcher.unsafe_compute_mask_ptr, out.ctypes.data, out.nbytes)

    def mask(self, out: np.ndarray) -> None:
        self.filling(out)()
        self._check()

    def advance(self, token: int) -> None:
        if not self.matcher.consume_token(token):
            self._check()

    def again(self) -> None:
        """From the beginning. Its copies do not know what it has learned since."""
        self.matcher.reset()

    def _check(self) -> None:
        if self.matcher.is_error():
            raise PeerError(_first_line(self.matcher.get_error()))


class GLRMask(Peer):
    """glrmask: a regex is the one terminal of a Lark grammar. Its masks hold no end of sequence."""

    name = "glrmask"

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        self._grammar = self.module().Grammar
        self._vocab = self.module().Vocab.from_id_to_bytes(ordinary(tokenizer))

    def prepare(self, regex: str) -> Begin:
        terminal = regex.replace("/", "\\/")
        return self._compiled(lambda: self._grammar.from_lark(f"start: /{terminal}/"))

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        if whitespace != "spaced":
            raise PeerError("its texts of schemas have a space after each separator, and no other")
        return self._compiled(lambda: self._grammar.from_json_schema(schema))

    def _compiled(self, grammar: Callable[[], Any]) -> Begin:
        with refusals():
            compiled = grammar().compile(self._vocab)
        return lambda: _GLRSession(compiled)


class _GLRSession:
    def __init__(self, constraint: Any) -> None:
        self._state = constraint.start()

    def filling(self, out: np.ndarray) -> Fill:
        return partial(self._state.fill_mask, out[0])

    def mask(self, out: np.ndarray) -> None:
        self._state.fill_mask(out[0])

    def advance(self, token: int) -> None:
        if not self._state.commit_token(token):
            raise PeerError(f"id {token} is refused")

    def may_end(self) -> bool:
        return bool(self._state.is_accepting())


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
