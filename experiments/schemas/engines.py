"""What turns a schema or a regex into masks, ours and others', behind one interface.

Each is told to do the same: properties that a schema does not name are allowed where it does not
forbid them, white space in the style of the texts. They differ in what they refuse and get wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata
from typing import Any, Literal, Protocol, get_args

import numpy as np

from bpe_automata import Tokenizer
from experiments.shared.engines import LLSession, PeerError, Session, refusals

Row = dict[str, Any]

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
            llguidance.TokenizerWrapper(_Plain(tokenizer)),
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
        added = tokenizer.added_ids
        texts = [b"" if i in added else text for i, text in enumerate(tokenizer.spellings)]
        raw, ends = xgrammar.VocabType.RAW, list(tokenizer.eos_ids)
        info = xgrammar.TokenizerInfo(texts, raw, vocab_size=len(texts), stop_token_ids=ends)
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        separators = None if whitespace == "flexible" else SEPARATORS[whitespace]
        self._style = {"any_whitespace": whitespace == "flexible", "separators": separators}

    def compile(self, source: Row) -> Compiled:
        if "regex" in source:
            grammar = self._compiler.compile_regex(source["regex"])
        else:
            text = json.dumps(source["schema"])
            grammar = self._compiler.compile_json_schema(text, strict_mode=False, **self._style)
        size = {"bytes": grammar.memory_size_bytes}
        return _Made(lambda: _XGSession(self._matcher_of(grammar)), **size)


class _XGSession:
    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def mask(self, out: np.ndarray) -> None:
        # It says whether the mask rules anything out, and writes it in either case.
        self._matcher.fill_next_token_bitmask(out)

    def advance(self, token: int) -> None:
        if not self._matcher.accept_token(token):
            raise PeerError(f"id {token} is refused")


class OutlinesCore:
    """outlines-core: a regex of the schema, and an index of all masks of all its states."""

    def __init__(self, tokenizer: Tokenizer, whitespace: str) -> None:
        import outlines_core

        self.tokenizer, self._module = tokenizer, outlines_core
        ids_of: dict[bytes, list[int]] = {}
        for token, spelled in enumerate(tokenizer.spellings):
            if spelled and token not in tokenizer.added_ids:
                ids_of.setdefault(spelled, []).append(token)
        self._vocabulary = outlines_core.Vocabulary(tokenizer.eos_ids[0], ids_of)
        # It has no style with spaces after separators only; its default allows one anywhere.
        self._pattern = "" if whitespace == "compact" else None

    def compile(self, source: Row) -> Compiled:
        regex = source.get("regex")
        if regex is None:
            schema = json.dumps(source["schema"])
            regex = self._module.json_schema.build_regex_from_schema(schema, self._pattern)
        index = self._module.Index(regex, self._vocabulary)
        return _Made(lambda: _OutlinesSession(self._module.Guide(index)), characters=len(regex))


class _OutlinesSession:
    def __init__(self, guide: Any) -> None:
        self._guide = guide

    def mask(self, out: np.ndarray) -> None:
        self._guide.write_mask_into(out.ctypes.data, out.size, out.itemsize)

    def advance(self, token: int) -> None:
        self._guide.advance(token, False)


class _Plain:
    """A tokenizer as llguidance takes any: its bytes by id, and what encodes."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._encode = tokenizer.encode
        self.eos_token_id = tokenizer.eos_ids[0]
        self.tokens = list(tokenizer.spellings)
        self.special_token_ids = sorted(tokenizer.added_ids)
        for token in self.special_token_ids:  # 0xff is how it knows that they are no text
            self.tokens[token] = b"\xff" + self.tokens[token]

    def __call__(self, text: str) -> list[int]:
        return self._encode(text)


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
