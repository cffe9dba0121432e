"""All engines by their names, and which of them are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata.errors import ArgumentError
from experiments.engines.interface import Engine, Peer, PeerError, refusals
from experiments.engines.ours import Explicit, Ours
from experiments.engines.peers import GLRMask, LLGuidance, OutlinesCore, XGrammar
from experiments.engines.regex_peers import KBNF, GenLM, LMFormatEnforcer

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
    peer.name: peer
    for peer in (OutlinesCore, LLGuidance, XGrammar, GLRMask, LMFormatEnforcer, KBNF, GenLM)
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
