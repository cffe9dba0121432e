"""All engines by their names, which of them are installed, and this package among them: masks of
the canonical automaton, lazy or written out, and of the lift."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from bpe_automata import Constraint, Matcher, Tokenizer, compile_regex, constrain
from bpe_automata._automata.linked import ByteAutomaton
from bpe_automata._decoding.batches import batch_masks
from bpe_automata._decoding.constraint import Method
from bpe_automata._decoding.token_table import Listed
from bpe_automata.errors import ArgumentError, BpeAutomataError
from bpe_automata.schemas import json_schema
from bpe_automata.schemas._nets import Order
from experiments.run.executors import Row
from experiments.schemas.engines.interface import (
    Begin,
    Engine,
    Fill,
    Peer,
    PeerError,
    RefusedError,
    Whitespace,
    refusals,
    status_of,
)
from experiments.schemas.engines.peers import GenLM, GLRMask, LLGuidance, OutlinesCore, XGrammar


class Ours(Engine):
    """ "canonical" admits the tokenizer's own ids alone, "lift" any ids that spell the text.

    within: at most so many ids, and the text is complete; added_tokens: are they read as text?
    order: of the members of objects.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        method: Method = "canonical",
        within: int | None = None,
        added_tokens: bool = True,
        order: Order = "schema",
    ) -> None:
        self.tokenizer, self._method = tokenizer, method
        self._within, self._added_tokens, self._order = within, added_tokens, order

    def prepare(self, regex: str) -> Begin:
        return self.beginning(self.constraint(regex))

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        with refusals():
            dfa = self.language({"schema": schema}, whitespace)
            return self.beginning(self.constraint(dfa))

    def language(self, source: Row, whitespace: Whitespace) -> ByteAutomaton:
        """The automaton of {"regex": text} or {"schema": value or text}. Raises RefusedError."""
        try:
            if "regex" in source:
                return compile_regex(source["regex"])
            schema = source["schema"]
            return json_schema(schema, whitespace=whitespace, order=self._order)
        except BpeAutomataError as error:
            message = f"{type(error).__name__}: {error}"[:300]
            keyword = getattr(error, "keyword", None)
            raise RefusedError(status_of(error), message, keyword) from error

    def constraint(self, language: str | ByteAutomaton) -> Constraint:
        """A regex or an automaton, with this tokenizer."""
        return constrain(
            self.tokenizer,
            language,
            self._method,
            eos_ids=self.tokenizer.eos_ids,
            added_tokens=self._added_tokens,
        )

    def beginning(self, constraint: Constraint) -> Begin:
        """What begins a sequence under a constraint."""
        return (constraint if self._within is None else constraint.within(self._within)).matcher

    def batch(self, sessions: Sequence[Any], out: np.ndarray) -> Fill:
        return partial(batch_masks, sessions, out)


class Explicit(Ours):
    """All states and transitions of the canonical automaton, made while compiling. max_edges: of
    them at most."""

    def __init__(self, tokenizer: Tokenizer, max_edges: int) -> None:
        super().__init__(tokenizer)
        self._max_edges = max_edges

    def beginning(self, constraint: Constraint) -> Begin:
        automaton = constraint.automaton(max_edges=self._max_edges)
        listed = Listed(automaton, self.tokenizer.eos_ids, self.tokenizer.n_ids)
        return lambda: Matcher(listed)


MAX_EDGES = 2_000_000
"""Of an automaton that is written out."""
WITHIN = 1000
"""Ids, as servers limit answers."""
OURS: dict[str, Callable[[Tokenizer], Engine]] = {
    "canonical": Ours,
    "explicit": lambda tokenizer: Explicit(tokenizer, MAX_EDGES),
    "lift": lambda tokenizer: Ours(tokenizer, "lift"),
    "within": lambda tokenizer: Ours(tokenizer, within=WITHIN),
}
PEERS: dict[str, type[Peer]] = {
    peer.name: peer for peer in (OutlinesCore, LLGuidance, XGrammar, GLRMask, GenLM)
}


def engine_of(name: str, tokenizer: Tokenizer) -> Engine:
    """Raises PeerError, and BpeAutomataError for a tokenizer that is not modelled."""
    if name in OURS:
        return OURS[name](tokenizer)
    if name not in PEERS:
        raise PeerError(f"no engine is named {name!r}")
    peer: Any = PEERS[name]
    with refusals():
        made: Engine = peer(tokenizer, tokenizer.eos_ids)
    return made


def versions(names: Iterable[str]) -> dict[str, str]:
    """Of the peers among these that are installed."""
    found = {name: PEERS[name].version() for name in names if name in PEERS}
    return {name: version for name, version in found.items() if version}


def missing(name: str) -> str | None:
    """How to install a peer that is not there; None of an engine that is."""
    is_there = name not in PEERS or PEERS[name].version() is not None
    return None if is_there else f"not installed: {PEERS[name].install}"


def check_known(option: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises ArgumentError for a name that is none of those."""
    names = list(known)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ArgumentError(f"--{option} {unknown[0]!r} is none of {', '.join(names)}")
