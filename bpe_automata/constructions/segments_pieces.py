"""What is kept of a segment: rows of its nodes, and what can be put together from it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bpe_automata.constructions.relevance import Row
from bpe_automata.constructions.segments import At

OVERHEAD = 400
"""Bytes of Python around one entry, about."""


@dataclass(frozen=True)
class Closure:
    """The nodes that ids lead to from one node of a segment. n_inner: how many there are before its
    cuts, whose rows are made; exits: those at its cuts."""

    n_inner: int
    exits: tuple[At, ...]

    @property
    def n_bytes(self) -> int:
        """In memory, about."""
        return OVERHEAD * (1 + len(self.exits))


@dataclass(frozen=True)
class Piece:
    """The token automaton from one node of a segment to its cuts.

    accepting: bool [n]; offsets: int64 [n + 1]; symbols, targets: int32 [m], as in
    `token_automata.Table`; the start is 0, and target n + k is exits[k]."""

    accepting: np.ndarray
    offsets: np.ndarray
    symbols: np.ndarray
    targets: np.ndarray
    exits: tuple[At, ...]

    @property
    def n_bytes(self) -> int:
        """In memory, about."""
        arrays = self.accepting, self.offsets, self.symbols, self.targets
        return sum(array.nbytes for array in arrays) + OVERHEAD * len(self.exits)


@dataclass
class Known:
    """What is known of one segment. rows: of its nodes; pieces: by the node where they begin;
    closures: by that, and whether only common nodes are in it (see `segments_nodes`); changed: is
    there something that the disk does not have? n_bytes: in memory, about."""

    rows: dict[At, Row] = field(default_factory=dict)
    closures: dict[tuple[At, bool], Closure] = field(default_factory=dict)
    pieces: dict[At, Piece] = field(default_factory=dict)
    changed: bool = False
    n_bytes: int = 0
