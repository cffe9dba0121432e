"""Linked automata in which items of arrays are compared with one another.

Which items an array has already is no matter of finitely many states: a context holds their values.
No state can know the value of the item that is being read, since texts of many values lead to it.
So a step leads out of an item into a context without its value, and whoever knows the text puts the
state in its place that holds it: the state is *bound*. From a bound state on, the automaton is
exact up to the end of the next item; behind that its language is too large:

    L(bound(q, text)) is a subset of L(q)

`follow` binds as it reads. All states in which nothing is compared are bound already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from bpe_automata._automata.json_texts import JsonPosition, Name, next_item
from bpe_automata._automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata._automata.linked_store import ROOM, Members, members_of
from bpe_automata._automata.parts import Part, Place
from bpe_automata._budget import Budget, spent
from bpe_automata._kernels.references import packed
from bpe_automata._kernels.trie import states_after
from bpe_automata._kernels.watch import armed, called
from bpe_automata._sharing import Lock, locked
from bpe_automata.errors import UnsupportedFeatureError

_DEFAULT = Budget()
_LONG = 16  # bytes
_OPENED = (b"", b"[", b"{", b'{"')  # what arrays, and objects with a member, begin with


class Holding(Protocol):
    """Puts values of items into contexts."""

    def compares(self, context: Any) -> bool:
        """Is the item that has this context compared with others?"""

    def earlier(self, context: Any) -> Iterable[Name]:
        """The values of the items before."""

    def has_room(self, context: Any, more: int, kind: str = "") -> bool:
        """Are there values enough for all items that must follow that one, and more? more: items
        that came before it and are not in the context; kind: "array" or "object", if those alone
        are counted."""

    def held(self, part: Part, at: int, context: Any, name: Name) -> Iterable[Place]:
        """The place of a state of a part behind such an item, with the value of that; nothing, if
        the state is one in which the item might yet go on."""


class Compared(NamedTuple):
    """Items that are compared with later ones: their values, and what was read behind them."""

    names: tuple[Name, ...]
    behind: bytes


class Earlier(NamedTuple):
    """Values of earlier items; is it seen that there are enough for all that must follow?"""

    names: Set[Name]
    has_room: bool


class ComparingDFA(LinkedDFA):
    """A `LinkedDFA` of JSON texts. What takes a text from the start reads it exactly; from a state
    alone, `step`, `walk` and `shortest` lead on as if no item that ends on the way were equal to a
    later one.

    What looks at states without their texts (`to_dfa`, `equivalent`) raises
    UnsupportedFeatureError.
    """

    follows_texts = True
    _room = 2 * ROOM  # each item is written down anew

    def __init__(
        self,
        begin: Sequence[Place],
        byte_class: np.ndarray,
        budget: Budget = _DEFAULT,
        readable: np.ndarray | None = None,
        *,
        holding: Holding,
        skipped: int = 0,
        lock: Lock | None = None,
        origin: tuple[Callable[..., LinkedDFA], tuple[Any, ...]] | None = None,
    ) -> None:
        """holding: puts the value of an item into contexts. skipped: bytes before the JSON text.
        The others are those of a `LinkedDFA`."""
        super().__init__(begin, byte_class, budget, readable, lock=lock, origin=origin)
        self._holding, self._skipped = holding, skipped
        self._contexts_of: dict[int, list[Any]] = {}

    def position(self, spaced: bool = False) -> JsonPosition:
        """Where texts begin. spaced: a space may be read before them."""
        return JsonPosition(skipped=self._skipped + spaced, spaced=spaced)

    def follow(self, state: int, position: JsonPosition, data: bytes) -> int:
        """The bound state after some bytes, from a bound one at a position; 0 where no text goes on
        like that. Raises BudgetExceededError."""
        at = 0
        for end in position.ends(data):
            state = self._stepped(state, data[at : end.at])
            if self._contexts(state):
                state = self.bound(state, position.item(data, end))
            at = end.at
        return self._stepped(state, data[at:])

    def compared(self, state: int, position: JsonPosition, data: bytes) -> Compared | None:
        """What is compared where some bytes lead on from a bound state at a position: items of one
        array, which differ, and of whose values there are enough; none, where nothing is compared
        or no item can follow; None where that is not seen."""
        at, names, depth, behind = 0, tuple[Name, ...](), 0, b""
        for end in position.ends(data):
            state, at = self._stepped(state, data[at : end.at]), end.at
            contexts = self._contexts(state)
            if not contexts:
                continue
            name = position.item(data, end)
            if (
                name in names
                or self._came_before(contexts, name)
                or not self._have_room(contexts, len(names))
                or (names and end.depth != depth)
            ):
                return None
            behind = data[at:]
            following = next_item(behind)
            closes = following.startswith(b"]")  # then none follows
            # No id asks for all of a long value in brackets again: there are others.
            is_long = position.read.end + at - end.start > _LONG
            if is_long and name[0] in ("array", "object") and following in _OPENED:
                closes |= self._have_room(contexts, len(names), name[0])
            names, depth = () if closes else (*names, name), end.depth
        return Compared(names, behind)

    def earlier(self, state: int) -> Earlier | None:
        """What is compared where items end in a state; None where nothing is."""
        contexts = self._contexts(state)
        if not contexts:
            return None
        with self.lock:
            names = {name for one in contexts for name in self._holding.earlier(one)}
        return Earlier(names, self._have_room(contexts, 0))

    def after_each(self, state: int, texts: Sequence[bytes]) -> list[int]:
        """The states behind some texts, of which none is bound; 0 where no text goes on so."""
        start = np.cumsum([0, *map(len, texts)])
        data = np.frombuffer(b"".join(texts), np.uint8)
        given = packed(self.steps), state, start, data, np.arange(len(texts))
        found: list[int] = called(armed(), states_after, *given).tolist()
        return found

    @locked
    def _came_before(self, contexts: list[Any], name: Name) -> bool:
        return any(name in self._holding.earlier(one) for one in contexts)

    @locked
    def _have_room(self, contexts: list[Any], more: int, kind: str = "") -> bool:
        return all(self._holding.has_room(one, more, kind) for one in contexts)

    def _stepped(self, state: int, data: bytes) -> int:
        for byte in data:
            if not state:
                break
            state = self.step(state, byte)
        return state

    def _contexts(self, state: int) -> list[Any]:
        """Those of items that are compared, and end in a state."""
        found = self._contexts_of.get(state)
        return self._new_contexts(state) if found is None else found

    @locked
    def _new_contexts(self, state: int) -> list[Any]:
        states, _ = self._closed_members(state)
        contexts = [self._written.instance_at(one).context for one in states]
        found = list({id(one): one for one in contexts if self._holding.compares(one)}.values())
        self._contexts_of[state] = found
        return found

    def _closed_members(self, state: int) -> Members:
        kept = self._members.get(state)
        led, ends = members_of(kept) if kept else ((state,) if state else (), False)
        states, then = self._closed(led)
        return states, ends or then

    @locked
    def bound(self, state: int, name: Name) -> int:
        """The state that knows the value of the item which ends there, 0 where an earlier one is
        equal to it. Raises BudgetExceededError."""
        states, ends = self._closed_members(state)
        kept, places = list[int](), list[Place]()
        for one in states:
            instance = self._written.instance_at(one)
            if self._holding.compares(instance.context):
                at = one - instance.base + instance.first
                places += self._holding.held(instance.part, at, instance.context, name)
            else:
                kept.append(one)
        states, last = self._closed(kept, places)
        return self._state(states, ends or last)

    # Whole texts.

    @spent
    def walk(self, data: bytes, state: int | None = None) -> int:
        """The state after some bytes, from the start by default, then bound."""
        if state is None:
            return self.follow(self.start, self.position(), data)
        return super().walk(data, state)

    def _begun(self) -> tuple[int, JsonPosition | None]:
        return self.start, self.position()

    def _after_bytes(
        self, state: int, text: JsonPosition | None
    ) -> dict[int, tuple[int, JsonPosition | None]]:
        """The bound states; those that are not where no text is known."""
        if text is None:
            return super()._after_bytes(state, None)
        found = dict[int, tuple[int, JsonPosition | None]]()
        for byte in self.live_bytes(state).tolist():
            data = bytes((byte,))
            if to := self.follow(state, text, data):
                found[byte] = to, text.after(data)
        return found

    # What is made of the automaton.

    def equivalent(self, other: ByteAutomaton, budget: Budget = _DEFAULT) -> NoReturn:
        """Raises UnsupportedFeatureError."""
        raise refused("comparing it with another automaton")

    def to_dfa(self, budget: Budget = _DEFAULT) -> NoReturn:
        """Raises UnsupportedFeatureError."""
        raise refused("writing it out")

    def _like(
        self,
        begin: Sequence[Place],
        byte_class: np.ndarray,
        readable: np.ndarray | None,
        origin: tuple[Callable[..., LinkedDFA], tuple[Any, ...]],
        skipped: int = 0,
    ) -> LinkedDFA:
        return ComparingDFA(
            begin,
            byte_class,
            self.budget,
            readable,
            holding=self._holding,
            skipped=self._skipped + skipped,
            lock=self.lock,
            origin=origin,
        )


def refused(feature: str) -> UnsupportedFeatureError:
    """The error of what cannot be done with such an automaton."""
    why = "which items are equal (uniqueItems) is known of texts alone, not of states"
    return UnsupportedFeatureError(f"{feature} of an automaton that compares items", why)
