"""What every engine is: something that compiles a regex or a JSON Schema, and then says at each
step which ids of a tokenizer may follow.

A mask is packed int32, shape (1, ceil(V / 32)): bit i of the mask is 1 where id i may follow. The
engines of other projects are optional (`pip install --group peers`) and inexact: like our
lift they admit ids that the tokenizer itself would not produce. (llguidance not all of them: where
only one text can follow it chooses the ids, before it knows what comes after.)
"""

from __future__ import annotations

import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._kernels.bits import has
from bpe_automata.errors import (
    BpeAutomataError,
    BudgetExceededError,
    InvalidSchemaError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from experiments.run.executors import Row
from experiments.run.provenance import version_of

INSTALL = "pip install --group peers"
Begin = Callable[[], "Session"]
"""Begins a sequence under what was compiled."""
Fill = Callable[[], object]
"""Writes one mask, or those of a batch."""
Whitespace = Literal["compact", "spaced", "flexible"]
SEPARATORS = {"compact": (",", ":"), "spaced": (", ", ": "), "flexible": (",", ":")}
"""Of items and of names; "flexible" texts have other white space besides."""


class PeerError(BpeAutomataError):
    """An engine is missing, or refuses a regex or an id. The message says why, in one line."""


class RefusedError(PeerError):
    """An engine does not compile a source, and says more about it. status: "refused", "too large",
    "unsatisfiable", "invalid" or "failed"; keyword: of a schema, where the engine names it."""

    def __init__(self, status: str, message: str, keyword: str | None = None) -> None:
        super().__init__(message)
        self.status, self.keyword = status, keyword


_STATUS = {
    UnsupportedSchemaError: "refused",
    BudgetExceededError: "too large",
    UnsatisfiableSchemaError: "unsatisfiable",
    InvalidSchemaError: "invalid",
}


def status_of(error: BpeAutomataError) -> str:
    """That of a `RefusedError`, for what this package raised."""
    return next((name for kind, name in _STATUS.items() if isinstance(error, kind)), "failed")


class Session(Protocol):
    """One sequence under what was compiled.

    A session may also have `filling(out)`, which prepares the engine's own call once for a buffer;
    `again()`, which goes back to the beginning; and `may_end()`, where masks hold no end of
    sequence.
    """

    def mask(self, out: np.ndarray, /) -> object:
        """Write the mask of what may follow into `out`."""

    def advance(self, token: int, /) -> None:
        """Read one id. Raises PeerError where it is refused."""


class Engine(ABC):
    """Made once for a tokenizer. What it compiles serves several sessions, and keeps nothing from
    one to the next."""

    @abstractmethod
    def prepare(self, regex: str) -> Begin:
        """Compile a regex. Raises PeerError, and of this package BpeAutomataError."""

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        """Compile the text of a JSON Schema. Properties that it does not name are allowed where it
        does not forbid them. Raises PeerError."""
        raise PeerError("it is asked for no schemas here")

    def prepared(self, source: Row, whitespace: Whitespace) -> Begin:
        """Compile {"regex": text} or {"schema": value}. Raises as these do."""
        if "regex" in source:
            return self.prepare(source["regex"])
        return self.prepare_schema(json.dumps(source["schema"]), whitespace)

    def batch(self, sessions: Sequence[Any], out: np.ndarray) -> Fill:
        """What writes the masks of all sessions into the rows of `out`, packed int32 [sessions,
        words]: by the engine's own call for batches, with all cores, or one after the other."""
        fills = [filling(session, out[k : k + 1]) for k, session in enumerate(sessions)]

        def fill() -> None:
            for one in fills:
                one()

        return fill


class Peer(Engine):
    """An engine of another project. name: of its package; install: the command that installs it."""

    name: str
    install = INSTALL

    @classmethod
    def version(cls) -> str | None:
        """Of the installed package; None if there is none."""
        return version_of(cls.name)

    @classmethod
    def module(cls, name: str | None = None) -> Any:
        """A module of it, by default the one of its name. Raises PeerError where it is missing."""
        try:
            return importlib.import_module(name or cls.name)
        except ImportError as error:
            raise PeerError(f"not installed: {cls.install}") from error


def filling(session: Session, out: np.ndarray) -> Fill:
    """What writes the mask of a session into `out`: the engine's own call, with what a server does
    once for a buffer done beforehand."""
    own: Callable[[np.ndarray], Fill] | None = getattr(session, "filling", None)
    return own(out) if own else partial(session.mask, out)


def may_end(session: Session, mask: np.ndarray, eos_ids: Sequence[int]) -> bool:
    """May the text end here? mask: the session's last one, packed int32 [words]."""
    own: Callable[[], bool] | None = getattr(session, "may_end", None)
    return own() if own else any(has(mask, end) for end in eos_ids)


@contextmanager
def refusals() -> Iterator[None]:
    """Turns whatever a peer raises into a PeerError: Rust panics are not even an `Exception`."""
    try:
        yield
    except (PeerError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise PeerError(f"{type(error).__name__}: {first_line(str(error))}") from error


def first_line(text: str) -> str:
    """The first line of a message, cut off after 200 characters."""
    return text.strip().partition("\n")[0][:200]


def one_eos(eos_ids: tuple[int, ...]) -> int:
    """The one end-of-sequence id that peers are told of. Raises PeerError."""
    if not eos_ids:
        raise PeerError("needs an end-of-sequence id, and the tokenizer names none")
    return eos_ids[0]


def ordinary(tokenizer: Tokenizer) -> dict[int, bytes]:
    """The bytes of each id that spells text and is no added token."""
    added = {token.id for token in tokenizer.description.added}
    spellings = enumerate(tokenizer.spellings)
    return {i: spelled for i, spelled in spellings if spelled and i not in added}
