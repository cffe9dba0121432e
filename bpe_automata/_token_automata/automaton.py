"""The explicit token automaton: its arrays, checked once, and all that can be done with them."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata._sharing import cached
from bpe_automata._token_automata import algebra, explain, files, graph, pictures, sources, strings
from bpe_automata._token_automata.algebra import Counterexample
from bpe_automata._token_automata.explain import Acceptance
from bpe_automata._token_automata.sources import Transition
from bpe_automata._token_automata.strings import Counts
from bpe_automata._token_automata.table import Table
from bpe_automata.viz import Picture

_MOST_EDGES = 50_000_000
_LABELS = 6


class TokenAutomaton(Table):
    """{ ids : start --ids--> accepting }, an immutable deterministic automaton over token ids. Any
    number of threads may use it.

    It is a `Table`, which says what the arrays are. Make one with `explore`, `from_transitions` or
    `from_networkx`, or read it with `load`. States are numbers; two automata are compared with
    `equivalent`.
    """

    # ------------------------------------------------------------ from other things

    @classmethod
    def from_transitions(
        cls,
        listed: Iterable[Transition],
        start: Hashable,
        accepting: Iterable[Hashable],
        alphabet: Iterable[int] | None = None,
        spellings: Sequence[bytes] | None = None,
        determinise: bool = False,
        states: Iterable[Hashable] = (),
    ) -> TokenAutomaton:
        """The automaton of (state, symbol, next state), in any order, each given once or more.

        States are any hashable values; they are numbered as they appear: those of `states`, the
        start, those of the transitions. Symbols are integers. With `determinise` a symbol may be
        None, which reads nothing, and a state may have several transitions on one symbol; states
        are then sets of states, numbered breadth-first by symbol.

        Raises NondeterministicError (naming two transitions), MalformedAutomatonError (naming what
        is wrong, an accepting state that nothing else names too), BudgetExceededError (determinise,
        over a million states).
        """
        edges, final, number = sources.numbered(listed, start, accepting, states)
        if determinise:
            parts = sources.determinised(edges, final, number[start])
        else:
            sources.refuse_choice(edges, list(number))
            columns = np.array(sorted(set(edges)), dtype=np.int64).reshape(-1, 3).T
            parts = number[start], final, *columns
        known = None if alphabet is None else sources.checked_alphabet(alphabet)
        return cls.from_edges(*parts, known, spellings)

    @classmethod
    def from_networkx(
        cls, given: Any, symbol: str = "symbol", determinise: bool = False
    ) -> TokenAutomaton:
        """The automaton of a directed graph of networkx, with or without parallel edges.

        One node has the attribute start=True, accepting ones have accepting=True, and each edge
        has its symbol in the attribute `symbol`. Nodes are numbered in the graph's order. The
        graph's own attributes alphabet and spellings, as `to_networkx` writes them, are used where
        there are any. Raises MalformedAutomatonError and what `from_transitions` raises.
        """
        listed, start, accepting, alphabet, spellings = sources.of_networkx(given, symbol)
        parts = start, accepting, alphabet, spellings
        return cls.from_transitions(listed, *parts, determinise, given.nodes)

    # ------------------------------------------------------------ smaller, and compared

    def relevant(self) -> np.ndarray:
        """bool [n_states]: reachable, and an accepting state is reachable from it."""
        return graph.relevant(self)

    @property
    def is_empty(self) -> bool:
        """Whether no sequence is accepted."""
        return not self.relevant()[self.start]

    @property
    def is_finite(self) -> bool:
        """Whether only finitely many sequences are accepted."""
        return graph.topological(self.trimmed()) is not None

    def trimmed(self) -> TokenAutomaton:
        """The same language with relevant states only, in the order that they had. Of the empty
        language one state is left."""
        return graph.trimmed(self)

    def minimised(self) -> TokenAutomaton:
        """The same language with as few states as there can be, numbered breadth-first by symbol:
        equal languages over the same alphabet give equal arrays. Raises BudgetExceededError for
        2**31 transitions."""
        return algebra.minimised(self)

    def equivalent(self, other: Table) -> Counterexample | None:
        """None if the languages are equal; else the first sequence, in length-lexicographic order,
        that is in one only."""
        return algebra.difference_of(self, other)

    # ------------------------------------------------------------ its sequences

    def count(self, length: int) -> int:
        """How many sequences of this length are accepted, exactly. Raises ArgumentError."""
        return self._counts.of_length(length)

    def total(self) -> int:
        """How many sequences are accepted, exactly. Raises InfiniteLanguageError."""
        return self._counts.total()

    def sample_uniform(self, rng: random.Random, length: int | None = None) -> tuple[int, ...]:
        """A random accepted sequence of this length (None: of any), each with exactly the same
        probability. Raises EmptyLanguageError; without a length InfiniteLanguageError."""
        return self._counts.sample(rng, length)

    def shortest(self) -> tuple[int, ...] | None:
        """The first accepted sequence in length-lexicographic order; None if there is none."""
        return strings.shortest(self, self.start)

    def enumerate(
        self, limit: int | None = None, max_length: int | None = None
    ) -> Iterator[tuple[int, ...]]:
        """All accepted sequences (of at most `max_length`) in length-lexicographic order.

        Lazy: length by length, depth-first by symbol. Raises BudgetExceededError after the first
        `limit` if there is one more; InfiniteLanguageError at once for an infinite language with
        neither limit nor max_length; ArgumentError.
        """
        return strings.enumerated(self, limit, max_length)

    @cached
    def _counts(self) -> Counts:
        return Counts(self)

    # ------------------------------------------------------------ combined

    def union(self, other: Table, max_edges: int = _MOST_EDGES) -> TokenAutomaton:
        """What either accepts. This and the next three have the states that the start leads to,
        numbered breadth-first by symbol (see `trimmed`, `minimised`), and the alphabets of both.
        Raises BudgetExceededError over `max_edges`."""
        return algebra.combined(self, other, np.logical_or, (False, False), max_edges)

    def intersection(self, other: Table, max_edges: int = _MOST_EDGES) -> TokenAutomaton:
        """What both accept. See `union`."""
        return algebra.combined(self, other, np.logical_and, (True, True), max_edges)

    def difference(self, other: Table, max_edges: int = _MOST_EDGES) -> TokenAutomaton:
        """What this one accepts and `other` does not. See `union`."""
        return algebra.combined(self, other, np.greater, (True, False), max_edges)

    def complement(self, max_edges: int = _MOST_EDGES) -> TokenAutomaton:
        """The sequences over `alphabet` that are not accepted. Every state then reads all of the
        alphabet. Raises BudgetExceededError over `max_edges`."""
        return algebra.complement(self, max_edges)

    # ------------------------------------------------------------ for people, and for files

    def explain(self, ids: Sequence[int]) -> Acceptance:
        """Why `ids` are accepted or not, to print. Raises ArgumentError."""
        return explain.explained(self, ids)

    def picture(self, path: Sequence[int] | None = None, labels: int | None = _LABELS) -> Picture:
        """A picture that notebooks show, with the states that the ids `path` pass highlighted.

        Transitions with the same source and target are one arrow that shows `labels` of its
        symbols (None: all). Over 40 states or 120 arrows, what is drawn is the first 40 states of
        the path and those 12 to which the start leads by most symbols, with the arrows of the path
        and those from the start to the 12; each state says how many transitions leave it. Its
        `dot()` is the source for Graphviz. Raises ArgumentError.
        """
        return pictures.picture(self, path, labels)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.picture()._repr_mimebundle_(include, exclude)

    def to_networkx(self) -> Any:
        """A `networkx.MultiDiGraph`: nodes with accepting and start (bool), edges with symbol (int)
        and text (what it spells, visibly). Its attributes alphabet and spellings are JSON texts, so
        that GraphML, GML and node-link data hold all of it. Raises MissingDependencyError."""
        return sources.to_networkx(self)

    def save(self, path: str | Path) -> Path:
        """Write a .npz file; returns the path. Raises MissingFileError (no such folder),
        MalformedAutomatonError (another suffix)."""
        return files.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> TokenAutomaton:
        """What `save` wrote. Raises MissingFileError, MalformedAutomatonError."""
        return files.load(cls, path)

    def __repr__(self) -> str:
        return f"TokenAutomaton({explain.size(self)})"
