"""What turns a schema or a regex into masks, ours and others', behind one interface.

Each is told to do the same: properties that a schema does not name are allowed where it does not
forbid them, white space in the style of the texts. They differ in what they refuse and get wrong.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal, Protocol, get_args

from bpe_automata import Tokenizer
from experiments.run.executors import Row
from experiments.shared.engines import (
    Begin,
    Engine,
    LLGuidance,
    OutlinesCore,
    Peer,
    PeerError,
    Session,
    Whitespace,
    refusals,
)
from experiments.shared.more_engines import XGrammar

OURS, JUDGE = "bpe_automata", "jsonschema"
EngineName = Literal["bpe_automata", "llguidance", "xgrammar", "outlines_core"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)


class RefusedError(PeerError):
    """An engine does not compile a case. status: "refused", "too large", "unsatisfiable",
    "invalid" or "failed"; keyword: of a schema, where the engine names it."""

    def __init__(self, status: str, message: str, keyword: str | None = None) -> None:
        super().__init__(message)
        self.status, self.keyword = status, keyword


class Compiled(Protocol):
    """A case under an engine."""

    def session(self) -> Session:
        """A text from its beginning."""


class SchemaEngine(Protocol):
    """Made once for a tokenizer and a style."""

    tokenizer: Tokenizer

    def compile(self, source: Row) -> Compiled:
        """source: {"schema": ...} or {"regex": ...}. Raises RefusedError."""


class PeerEngine:
    """A peer, which is asked for schemas and for regexes."""

    def __init__(self, peer: Peer, tokenizer: Tokenizer, whitespace: Whitespace) -> None:
        self.tokenizer, self._peer, self._whitespace = tokenizer, peer, whitespace

    def compile(self, source: Row) -> Compiled:
        return _PeerCompiled(prepared(self._peer, source, self._whitespace))


@dataclass(frozen=True)
class _PeerCompiled:
    session: Begin


def prepared(engine: Engine, source: Row, whitespace: Whitespace) -> Begin:
    """source: {"schema": ...} or {"regex": ...}. Raises PeerError."""
    if "regex" in source:
        return engine.prepare(source["regex"])
    return engine.prepare_schema(json.dumps(source["schema"]), whitespace)


PEERS: dict[str, Any] = {peer.name: peer for peer in (LLGuidance, XGrammar, OutlinesCore)}


def open_peer(name: str, tokenizer: Tokenizer, whitespace: Whitespace) -> SchemaEngine:
    """Raises PeerError where it is not installed, or does not take the tokenizer."""
    with refusals():
        peer = PEERS[name](tokenizer, tokenizer.eos_ids)
    return PeerEngine(peer, tokenizer, whitespace)


def version(name: str) -> str:
    """Of the installed package; "" if there is none."""
    if name == OURS:
        name = "bpe-automata"
    try:
        return metadata.version("jsonschema" if name == JUDGE else name)
    except metadata.PackageNotFoundError:
        return ""
