"""A ban applied to a constraint: prepared once, for many texts."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_automata._arguments import short
from bpe_automata._sharing import Immutable, cached
from bpe_automata.automata.algebra import all_texts
from bpe_automata.banning._spellings import Spellings
from bpe_automata.banning._words import Ban
from bpe_automata.decoding.constraint import Constraint, constrain, rebuilt
from bpe_automata.errors import ArgumentError
from bpe_automata.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class AppliedBan(Immutable):
    """after(before) = the constraint to the texts of `constraint` in which nothing is banned after
    the text `before`, with the same method and budget. For a ban alone, `constraint` is `any_text`.

    It caches these constraints, one for each beginning of a banned text in which `before` may end,
    and the spellings, so it is worth keeping and sharing.
    """

    ban: Ban
    constraint: Constraint

    def __post_init__(self) -> None:
        if not isinstance(self.ban, Ban) or not isinstance(self.constraint, Constraint):
            given = f"AppliedBan({short(self.ban)}, {short(self.constraint)})"
            raise ArgumentError(f"{given}: give AppliedBan(Ban(...), constraint)")

    def after(self, before: str = "") -> Constraint:
        """The constraint after the text `before`. Raises EmptyLanguageError if every text is
        banned, and BudgetExceededError."""
        context = self.ban.context(before)
        if context not in self._made:
            allowed = self.ban.allowed_in(self.constraint.dfa, before)
            self._made.setdefault(context, rebuilt(self.constraint, allowed))
        return self._made[context]

    @cached
    def spellings(self) -> Spellings:
        """Of what is banned, over the ids that the constraint reads as text."""
        made = self.constraint
        return Spellings(made.tokenizer, self.ban, made.eos_ids, made.added_tokens)

    @cached
    def _made(self) -> dict[int, Constraint]:
        return {}


def any_text(tokenizer: Tokenizer) -> Constraint:
    """The constraint to any tokenization of any text, without added tokens other than
    end-of-sequence: what a model may write on its own, except for bytes that are no text."""
    return constrain(tokenizer, all_texts(), "lift", added_tokens=False)
