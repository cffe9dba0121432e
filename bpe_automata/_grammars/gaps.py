"""What may be ignored before a terminal, or at the end of a text.

An ignored terminal is as long as it can be, as for lark: a comment goes on to the end of its line,
and no terminal begins in there. So nothing may follow that makes it longer, and those that still
could be longer are watched until they cannot.
"""

from __future__ import annotations

import numpy as np

from bpe_automata._automata.algebra import (
    all_texts,
    any_of,
    concatenation,
    difference,
    intersection,
)
from bpe_automata._automata.assembly import Assembly
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._budget import Budget, check
from bpe_automata._kernels.byte_product import joint_columns
from bpe_automata._sharing import cached
from bpe_automata.errors import UnsupportedGrammarError

Texts = bytes | ByteDFA
Open = frozenset[tuple[int, int]]
"""Ignored terminals that could still be longer, by number, each with its state."""


def as_dfa(texts: Texts) -> ByteDFA:
    """One text, or more, as an automaton."""
    return concatenation(texts) if isinstance(texts, bytes) else texts


class Gaps:
    """Of some ignored terminals."""

    def __init__(self, ignored: list[ByteDFA], budget: Budget) -> None:
        self._ignored, self._budget = ignored, budget

    def before(self, name: str, texts: Texts) -> ByteDFA:
        """The texts of a terminal, with what may be ignored before them. Raises
        UnsupportedGrammarError, BudgetExceededError."""
        parts = Assembly()
        start, end = parts.state(), parts.state()
        parts.accept(end)
        parts.put(start, texts, end)
        for opened, gap in self._gaps.items():
            middle = parts.state()
            parts.put(start, gap, middle)
            parts.put(middle, self._behind(name, as_dfa(texts), opened), end)
        return parts.dfa(start, self._budget)

    def alone(self) -> ByteDFA:
        """What may be ignored at the end of a text, if anything is."""
        return any_of(self._gaps.values(), self._budget)

    @cached
    def _gaps(self) -> dict[Open, ByteDFA]:
        """One or more ignored terminals, by those that are open behind them."""
        rows = np.array([dfa.byte_class for dfa in self._ignored], np.uint8)
        column, some_byte = joint_columns(rows, np.zeros(256, np.bool_))
        letters = [
            (int(byte), [bytes((b,)) for b in np.flatnonzero(column == k).tolist()])
            for k, byte in enumerate(some_byte)
        ]
        parts = Assembly()
        between: dict[Open, int] = {}
        inside: dict[tuple[int, int, Open], int] = {}

        waiting: list[tuple[int, int, Open]] = []

        def entered(k: int, state: int, opened: Open) -> int:
            key = k, state, opened
            if key not in inside:
                inside[key] = parts.state()
                waiting.append(key)
            return inside[key]

        def begin(before: int, opened: Open) -> int:
            for k, dfa in enumerate(self._ignored):
                parts.skip(before, entered(k, dfa.start, opened))
            return before

        start = begin(parts.state(), frozenset())
        for k, state, opened in waiting:
            check()
            dfa, here = self._ignored[k], inside[k, state, opened]
            if dfa.accepting[state]:
                still = opened | {(k, state)} if dfa.live_bytes(state).size else opened
                if still not in between:
                    between[still] = begin(parts.state(), still)
                parts.skip(here, between[still])
            for byte, alike in letters:
                then = dfa.step(state, byte)
                after = {(j, self._ignored[j].step(at, byte)) for j, at in opened}
                if not then or any(self._ignored[j].accepting[at] for j, at in after):
                    continue
                to = entered(k, then, frozenset((j, at) for j, at in after if at))
                for letter in alike:
                    parts.read(here, letter, to)
        return {
            opened: parts.leading_to(state).dfa(start, self._budget)
            for opened, state in between.items()
        }

    def _behind(self, name: str, texts: ByteDFA, opened: Open) -> ByteDFA:
        """The texts of a terminal that make none of the open ones longer."""
        for k, state in sorted(opened):
            dfa, first = self._ignored[k], texts.live_bytes(texts.start).tolist()
            if not any(dfa.step(state, byte) for byte in first):
                continue
            rest = ByteDFA(dfa.trans, dfa.byte_class, dfa.accepting, state)
            longer = concatenation(difference(rest, as_dfa(b"")), all_texts(), budget=self._budget)
            begun = ByteDFA(dfa.trans, dfa.byte_class, np.arange(dfa.n_states) > 0, state)
            texts = difference(texts, longer, self._budget)
            if not intersection(texts, difference(begun, longer)).is_empty:
                why = "it can end where something that is ignored before it could still be longer"
                raise UnsupportedGrammarError(name, why)
        return texts
