"""The explicit token automaton: its arrays, checked once, and all operations on them."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata._sharing import cached
from bpe_automata.token_automata import algebra, files, graph, sources, strings
from bpe_automata.token_automata import explain as acceptance
from bpe_automata.token_automata.sources import Transition
from bpe_automata.token_automata.strings import Counts
from bpe_automata.token_automata.table import Table


class TokenAutomaton(Table):
    """{ ids : start --ids--> accepting }, an immutable deterministic automaton over token ids. Any
    number of threads may use it.

    It is a `Table`, which says what the arrays are. Make one with `explore`, `from_transitions` or
    `from_networkx`, or read it with `load`. States are numbers; compare two automata with
    `equivalent`. Functions of this folder whose first argument is an automaton are methods here.
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

        States are any hashable values. They are numbered in this order: those of `states`, the
        start, those of the transitions. Symbols are integers. With `determinise` a symbol may be
        None, which reads nothing, and a state may have several transitions on one symbol; the new
        states are then sets of states, numbered breadth-first by symbol.

        Raises NondeterministicError (it names two transitions), MalformedAutomatonError (also for
        an accepting state that is in no transition), BudgetExceededError (for determinise over a
        million states).
        """
        edges, final, number = sources.numbered(listed, start, accepting, states)
        if determinise:
            parts = sources.determinised(edges, final, number[start])
        else:
            sources.refuse_choice(edges, list(number))
            columns = np.array(sorted(set(edges)), dtype=np.int64).reshape(-1, 3).T
            parts = number[start], final, *columns
        checked = None if alphabet is None else sources.checked_alphabet(alphabet)
        return cls.from_edges(*parts, checked, spellings)

    @classmethod
    def from_networkx(cls, given: Any) -> TokenAutomaton:
        """The automaton of a directed graph of networkx, with or without parallel edges.

        One node has the attribute start=True, accepting ones have accepting=True, and each edge
        has its symbol in the attribute symbol. Nodes are numbered in the graph's order. Raises
        MalformedAutomatonError and what `from_transitions` raises.
        """
        return cls.from_transitions(*sources.of_networkx(given), states=given.nodes)

    # ------------------------------------------------------------ smaller, and compared

    relevant = graph.relevant
    trimmed = graph.trimmed
    minimised = algebra.minimised
    equivalent = algebra.equivalent

    @property
    def is_empty(self) -> bool:
        """Whether no sequence is accepted."""
        return not self.relevant()[self.start]

    @property
    def is_finite(self) -> bool:
        """Whether only finitely many sequences are accepted."""
        return graph.topological(self.trimmed()) is not None

    # ------------------------------------------------------------ its sequences

    shortest = strings.shortest
    enumerate = strings.enumerated

    def total(self) -> int:
        """How many sequences are accepted, exactly. Raises InfiniteLanguageError."""
        return self._counts.total

    def count(self, length: int) -> int:
        """How many sequences of this length are accepted, exactly. Raises ArgumentError."""
        return Counts(self, length).total

    def sample_uniform(self, rng: random.Random, length: int | None = None) -> tuple[int, ...]:
        """A random accepted sequence of this length (None: of any), each with exactly the same
        probability. Raises ArgumentError, EmptyLanguageError; without a length
        InfiniteLanguageError."""
        return (self._counts if length is None else Counts(self, length)).sample(rng)

    @cached
    def _counts(self) -> Counts:
        return Counts(self, None)

    # ------------------------------------------------------------ combined

    def union(self, other: Table, max_edges: int = algebra.MOST_EDGES) -> TokenAutomaton:
        """The sequences that either accepts. The result of this and the next three has only states
        within reach of the start, numbered breadth-first by symbol (see `trimmed`, `minimised`),
        and the union of the alphabets. Raises BudgetExceededError over `max_edges`."""
        return algebra.combined(self, other, np.logical_or, (False, False), max_edges)

    def intersection(self, other: Table, max_edges: int = algebra.MOST_EDGES) -> TokenAutomaton:
        """The sequences that both accept. See `union`."""
        return algebra.combined(self, other, np.logical_and, (True, True), max_edges)

    def difference(self, other: Table, max_edges: int = algebra.MOST_EDGES) -> TokenAutomaton:
        """The sequences that this one accepts and `other` does not. See `union`."""
        return algebra.combined(self, other, np.greater, (True, False), max_edges)

    complement = algebra.complement

    # ------------------------------------------------------------ explanations, and files

    explain = acceptance.explained
    picture = acceptance.picture
    to_networkx = sources.to_networkx
    save = files.save

    @classmethod
    def load(cls, path: str | Path) -> TokenAutomaton:
        """The automaton that `save` wrote. Raises MissingFileError, MalformedAutomatonError."""
        return files.load(cls, path)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.picture()._repr_mimebundle_(include, exclude)

    def __repr__(self) -> str:
        return f"TokenAutomaton({acceptance.size(self)})"
