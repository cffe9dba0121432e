"""The texts of one set of values at one place, still in parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bpe_automata.automata.assembly import Assembly, Network
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.schemas.order import OrderTree
from bpe_automata.schemas.shapes import Child
from bpe_automata.schemas.style import Piece

Compound = ByteDFA | Network  # of arrays or objects; a network where a DFA would be very large


@dataclass(frozen=True, eq=False)
class Texts:
    """before s after, for each spelling s of a scalar, and the texts of arrays and objects."""

    before: Piece
    scalars: tuple[Piece, ...]
    after: Piece
    compounds: tuple[Compound, ...]

    @property
    def is_empty(self) -> bool:
        """Is there no text?"""
        return not self.scalars and not self.compounds

    def put(self, parts: Assembly, one: int, other: int) -> None:
        """Any of the texts leads from place `one` to place `other` of `parts`."""
        for compound in self.compounds:
            parts.put(one, compound, other)
        if not self.scalars:
            return
        if self.before != b"":
            one, begin = parts.state(), one
            parts.put(begin, self.before, one)
        if self.after != b"":
            other, end = parts.state(), other
            parts.put(other, self.after, end)
        for piece in self.scalars:
            parts.put(one, piece, other)


# The texts of what may stand inside an array or object, in the order of names that is given.
Inside = Callable[[Child, OrderTree | None], Texts]
