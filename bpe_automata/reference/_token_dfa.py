"""A deterministic automaton over tokens, as dicts and sets that the algorithms change in place.

L(dfa) = { t1 ... tn : start --t1--> ... --tn--> accepting }
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from bpe_automata.errors import NondeterministicError

State = Hashable
S = TypeVar("S", bound=Hashable)
Token = int


@dataclass
class TokenDFA:
    """out[s][t]: where t leads from s; into[s][t]: from where t leads to s; readers[t]: the states
    that t leads from. All three hold the same transitions; only `add` and `remove` change them."""

    start: State
    accepting: set[State] = field(default_factory=set)
    out: dict[State, dict[Token, State]] = field(default_factory=lambda: defaultdict(dict))
    into: dict[State, dict[Token, set[State]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    readers: dict[Token, set[State]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        self._fresh = count()

    @classmethod
    def of(
        cls,
        transitions: Iterable[tuple[State, Token, State]],
        start: State,
        accepting: Iterable[State],
    ) -> TokenDFA:
        """The relevant part of the automaton that has these transitions. Raises
        NondeterministicError."""
        dfa = cls(start, set(accepting))
        for source, token, target in transitions:
            dfa.add(source, token, target)
        dfa.keep(dfa.relevant())
        return dfa

    # ------------------------------------------------------------ changes

    def new_state(self) -> State:
        """A state that was not there before."""
        return ("new", next(self._fresh))

    def add(self, source: State, token: Token, target: State) -> None:
        """Add a transition. Raises NondeterministicError if `token` leads elsewhere already: a
        merge table that causes this is improper."""
        present = self.out[source].setdefault(token, target)
        if present != target:
            raise NondeterministicError((source, token, present), (source, token, target))
        self.into[target][token].add(source)
        self.readers[token].add(source)

    def remove(self, source: State, token: Token) -> None:
        """Remove one transition."""
        target = self.out[source].pop(token)
        self.into[target][token].discard(source)
        if not self.into[target][token]:
            del self.into[target][token]
        self.readers[token].discard(source)

    def redirect(self, source: State, token: Token, target: State) -> None:
        """Let `token` lead from `source` to `target`."""
        self.remove(source, token)
        self.add(source, token, target)

    def remove_state(self, state: State) -> None:
        """Remove a state, with all transitions from and to it."""
        for token in [*self.out[state]]:
            self.remove(state, token)
        for token, sources in [*self.into[state].items()]:
            for source in [*sources]:
                self.remove(source, token)
        del self.out[state], self.into[state]
        self.accepting.discard(state)

    def keep(self, states: set[State]) -> None:
        """Remove all other states; the start itself always stays, perhaps without transitions."""
        for state in self.states() - states:
            self.remove_state(state)

    # ------------------------------------------------------------ questions

    def sources(self, state: State, token: Token) -> set[State]:
        """The states from which `token` leads to `state`, as a set of its own."""
        return set(self.into[state].get(token, ()))

    def between(self, before: Token, after: Token) -> list[State]:
        """The states with an incoming `before` and an outgoing `after`."""
        readers = self.readers.get(after)
        if not readers:
            return []
        entered = {self.out[source][before] for source in self.readers.get(before, ())}
        return [state for state in readers if state in entered]

    def states(self) -> set[State]:
        """All states."""
        return {self.start, *self.out, *self.into, *self.accepting}

    def transitions(self) -> Iterator[tuple[State, Token, State]]:
        """(source, token, target) of each transition."""
        for source, row in self.out.items():
            for token, target in row.items():
                yield source, token, target

    def accepts(self, tokens: Iterable[Token]) -> bool:
        """Is the sequence in the language?"""
        state = self.start
        for token in tokens:
            if token not in self.out[state]:
                return False
            state = self.out[state][token]
        return state in self.accepting

    def relevant(self) -> set[State]:
        """The states that are reachable and from which an accepting state can be reached."""
        forward = {s: set(row.values()) for s, row in self.out.items()}
        backward = {s: set().union(*row.values()) for s, row in self.into.items()}
        return reach({self.start}, forward) & reach(self.accepting, backward)

    def sequences(
        self, longest: int, size: Mapping[Token, int] | None = None
    ) -> set[tuple[Token, ...]]:
        """All sequences of the language of at most `longest` tokens; with `size`, those in which
        the sizes of the tokens sum to at most `longest`."""
        found: set[tuple[Token, ...]] = set()
        todo: list[tuple[tuple[Token, ...], State, int]] = [((), self.start, longest)]
        while todo:
            tokens, state, room = todo.pop()
            if state in self.accepting:
                found.add(tokens)
            for token, target in self.out[state].items():
                rest = room - (size[token] if size else 1)
                if rest >= 0:
                    todo.append(((*tokens, token), target, rest))
        return found

    def copy(self) -> TokenDFA:
        """An independent copy."""
        twin = TokenDFA(self.start, set(self.accepting))
        for transition in self.transitions():
            twin.add(*transition)
        twin._fresh = self._fresh
        return twin


def reach(roots: Iterable[S], after: Mapping[S, Iterable[S]]) -> set[S]:
    """All that can be reached from `roots`."""
    found = set(roots)
    todo = [*found]
    while todo:
        fresh = set(after.get(todo.pop(), ())) - found
        found |= fresh
        todo += fresh
    return found
