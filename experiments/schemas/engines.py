"""What turns a schema or a regex into masks, ours and others', behind one interface.

Each is told to do the same: properties that a schema does not name are allowed where it does not
forbid them, white space in the style of the texts. They differ in what they refuse and get wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata
from typing import Any, Literal, Protocol, get_args

from bpe_automata import Tokenizer
from experiments.run.cells import Row
from experiments.shared.engines import (
    LLSession,
    OutlinesSession,
    PeerError,
    PlainTokenizer,
    Session,
    one_eos,
    outlines_vocabulary,
    refusals,
)
from experiments.shared.more_engines import XGSession, xgrammar_compiler

OURS, JUDGE = "bpe_automata", "jsonschema"
EngineName = Literal["bpe_automata", "llguidance", "xgrammar", "outlines_core"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
Whitespace = Literal["compact", "spaced", "flexible"]
SEPARATORS = {"compact": (",", ":"), "spaced": (", ", ": "), "flexible": (",", ":")}


class RefusedError(PeerError):
    """An engine does not compile a case. status: "refused", "too large", "unsatisfiable",
    "invalid" or "failed"; keyword: of a schema, where the engine names it."""

    def __init__(self, status: str, message: str, keyword: str | None = None) -> None:
        super().__init__(message)
        self.status, self.keyword = status, keyword


class Compiled(Protocol):
    """A case under an engine. `size`: of what was made, in the engine's own words."""

    size: Row

    def session(self) -> Session:
        """A text from its beginning."""


class SchemaEngine(Protocol):
    """Made once for a tokenizer and a style."""

    tokenizer: Tokenizer

    def compile(self, source: Row) -> Compiled:
        """source: {"schema": ...} or {"regex": ...}. Raises RefusedError."""


class _Made:
    """A compiled case that only has to begin sessions."""

    def __init__(self, session: Callable[[], Session], **size: Any) -> None:
        self._session, self.size = session, size

    def session(self) -> Session:
        with refusals():
            return self._session()


class LLGuidance:
    """llguidance: its own JSON Schema grammars, a lexer of derivatives and an Earley parser."""

    def __init__(self, tokenizer: Tokenizer, whitespace: str) -> None:
        import llguidance

        self.tokenizer, self._matcher_of = tokenizer, llguidance.LLMatcher
        item, key = SEPARATORS[whitespace]
        flexible = whitespace == "flexible"
        self._style = {"whitespace_flexible": flexible, "item_separator": item}
        self._style["key_separator"] = key
        slices = llguidance.LLTokenizer.json_slices()
        self._vocabulary = llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(PlainTokenizer(tokenizer, one_eos(tokenizer.eos_ids))),
            eos_token=list(tokenizer.eos_ids),
            slices=slices,
        )

    def compile(self, source: Row) -> Compiled:
        if "regex" in source:
            grammar = self._matcher_of.grammar_from_regex(source["regex"])
        else:
            schema = json.dumps(source["schema"])
            grammar = self._matcher_of.grammar_from_json_schema(schema, overrides=self._style)
        matcher = self._matcher_of(self._vocabulary, grammar, log_level=0)
        if matcher.is_error():
            raise PeerError(matcher.get_error().strip().partition("\n")[0][:200])
        return _Made(lambda: LLSession(matcher.deep_copy()))


class XGrammar:
    """xgrammar: grammars as push-down automata, with masks of each of their states made while
    compiling; one thread, nothing kept from case to case."""

    def __init__(self, tokenizer: Tokenizer, whitespace: str) -> None:
        import xgrammar

        self.tokenizer, self._matcher_of = tokenizer, xgrammar.GrammarMatcher
        self._compiler = xgrammar_compiler(xgrammar, tokenizer, tokenizer.eos_ids)
        separators = None if whitespace == "flexible" else SEPARATORS[whitespace]
        self._style = {"any_whitespace": whitespace == "flexible", "separators": separators}

    def compile(self, source: Row) -> Compiled:
        if "regex" in source:
            grammar = self._compiler.compile_regex(source["regex"])
        else:
            text = json.dumps(source["schema"])
            grammar = self._compiler.compile_json_schema(text, strict_mode=False, **self._style)
        size = {"bytes": grammar.memory_size_bytes}
        return _Made(lambda: XGSession(self._matcher_of(grammar)), **size)


class OutlinesCore:
    """outlines-core: a regex of the schema, and an index of all masks of all its states."""

    def __init__(self, tokenizer: Tokenizer, whitespace: str) -> None:
        import outlines_core

        self.tokenizer, self._module = tokenizer, outlines_core
        self._vocabulary = outlines_vocabulary(outlines_core, tokenizer, tokenizer.eos_ids)
        # It has no style with spaces after separators only; its default allows one anywhere.
        self._pattern = "" if whitespace == "compact" else None

    def compile(self, source: Row) -> Compiled:
        regex = source.get("regex")
        if regex is None:
            schema = json.dumps(source["schema"])
            regex = self._module.json_schema.build_regex_from_schema(schema, self._pattern)
        index = self._module.Index(regex, self._vocabulary)
        return _Made(lambda: OutlinesSession(self._module.Guide, index), characters=len(regex))


PEERS: dict[str, Callable[[Tokenizer, str], SchemaEngine]] = {
    "llguidance": LLGuidance,
    "xgrammar": XGrammar,
    "outlines_core": OutlinesCore,
}


def open_peer(name: str, tokenizer: Tokenizer, whitespace: str) -> SchemaEngine:
    """Raises PeerError where it is not installed, or does not take the tokenizer."""
    with refusals():
        return PEERS[name](tokenizer, whitespace)


def version(name: str) -> str:
    """Of the installed package; "" if there is none."""
    if name == OURS:
        name = "bpe-automata"
    try:
        return metadata.version("jsonschema" if name == JUDGE else name)
    except metadata.PackageNotFoundError:
        return ""
