"""What a constraint leaves no choice about.

    forced_tokens = the longest v such that every accepted sequence from here begins with v
    forced_bytes  = the longest w such that every text of the byte automaton from here begins with w

Both stop where the text is complete: there it may end. Ids are worth more than bytes: bytes that
are certain have several tokenizations, of which the one that a given text will have depends on how
the text goes on. Along the canonical automaton no such choice is made before it has to be.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bpe_automata._arguments import at_least
from bpe_automata._budget import check
from bpe_automata._kernels.bits import only
from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.canonical.prefixed import PrefixedDfa
from bpe_automata.constructions.engine import Engine, TextEngine
from bpe_automata.constructions.within import Within
from bpe_automata.errors import UnsupportedFeatureError

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True)
class Forced(Generic[State]):
    """ids: a run, possibly empty; state: where it leads."""

    ids: tuple[int, ...]
    state: State


def forced_tokens(engine: Engine[State], state: State, limit: int | None = None) -> Forced[State]:
    """The longest run of ids that all accepted sequences from a relevant state share, of at most
    `limit` of them. End-of-sequence is never part of it.

    A mask holds no id that leads nowhere, so one id in it is a certain one, and a run ends: from
    each state an accepting one can be reached. Raises ArgumentError for a limit below 0.
    """
    room = float("inf") if limit is None else at_least(0, limit, "limit")
    ids: list[int] = []
    while len(ids) < room and not engine.accepting(state):
        check()
        token = only(engine.mask(state))
        if token < 0:
            break
        ids.append(token)
        state = engine.step(state, token)
    return Forced(tuple(ids), state)


def forced_bytes(engine: Engine[State], state: State) -> bytes:
    """The longest byte string that every text of `engine.dfa` from here begins with. A space that
    the tokenizer puts before a text is no part of the text.

    This is what grammar engines know. It is weaker than what is so for the texts that the engine
    accepts, where the tokenizer cannot write some of them or a budget leaves some out.
    Raises UnsupportedFeatureError for an engine that is no `TextEngine`.
    """
    if not isinstance(engine, TextEngine):
        raise UnsupportedFeatureError(
            f"forced_bytes of {type(engine).__name__}",
            "it has ids only, and does not say what they spell; ask for forced_tokens",
        )
    return bytes_from(engine.dfa, text_state(engine, state))


def bytes_from(dfa: ByteAutomaton, state: int) -> bytes:
    """The longest common beginning of { w : state --w--> accepting }, cut at the first accepting
    state."""
    found = bytearray()
    while not dfa.accepting[state]:
        live = dfa.live_bytes(state).tolist()
        if len(live) != 1:
            break
        found.append(live[0])
        state = dfa.step(state, live[0])
    return bytes(found)


def text_state(engine: TextEngine[Any], state: Hashable) -> int:
    """Where in `engine.dfa` the text itself stands: where a prefix could still be read, after it.
    The lift leaves that space free, so the state before it would have two bytes."""
    inner: Any = engine.inner if isinstance(engine, Within) else engine
    prefixed: PrefixedDfa | None = getattr(inner, "prefixed", None)
    at = engine.dfa_state(state)
    return at if prefixed is None else int(prefixed.added_from[at])
