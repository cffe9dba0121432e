"""A ban put on a constraint, prepared once for many texts."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_automata.banning.words import Ban
from bpe_automata.decoding.constraint import Constraint, rebuilt
from bpe_automata.sharing import Immutable, cached


@dataclass(frozen=True)
class AppliedBan(Immutable):
    """after(before) = the constraint, its method and budget included, to the texts of `constraint`
    in which nothing is banned after the text `before`.

    Memoises the constraints, one for each part of a banned text that a text before may end in, so
    it is worth keeping and sharing. It knows its ban, so it cannot be taken for another's.
    """

    ban: Ban
    constraint: Constraint

    def after(self, before: str = "") -> Constraint:
        """Raises EmptyLanguageError if the ban leaves nothing, and BudgetExceededError."""
        context = self.ban.context(before)
        if context not in self._made:
            allowed = self.ban.allowed_in(self.constraint.dfa, before)
            self._made.setdefault(context, rebuilt(self.constraint, allowed))
        return self._made[context]

    @cached
    def _made(self) -> dict[int, Constraint]:
        return {}
