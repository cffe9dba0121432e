"""The ids and bytes that are the only ones a constraint allows.

    forced_tokens = the longest v such that every accepted sequence from here begins with v
    forced_bytes  = the longest w such that every text of the byte automaton from here begins with w

Both stop where the text is complete, as it may end there. Ids are worth more than bytes: forced
bytes have several tokenizations, and which of them is canonical depends on how the text goes on.
The canonical automaton settles an id only once every continuation has it.
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
    """The longest run of at most `limit` ids with which all accepted sequences from a relevant
    state begin. End-of-sequence is never part of it.

    Each id of a mask leads to acceptance, so an id that is alone in its mask is forced. The run
    ends, as an accepting state can be reached from each state. Raises ArgumentError for a limit
    below 0.
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

    Grammar engines find the same bytes. The texts that the engine accepts may have a longer common
    beginning, where the tokenizer cannot write some texts or a token limit excludes some.
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
    """The state of `engine.dfa` at which the text itself is. At the start of a text to which the
    tokenizer adds a space, this is the state after that space: under the lift the space is
    optional, so two bytes may be allowed before it."""
    inner: Any = engine.inner if isinstance(engine, Within) else engine
    prefixed: PrefixedDfa | None = getattr(inner, "prefixed", None)
    at = engine.dfa_state(state)
    return at if prefixed is None else int(prefixed.added_from[at])
