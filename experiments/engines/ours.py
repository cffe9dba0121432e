"""This package as an engine: masks of the canonical automaton, lazy or written out, and of the
lift."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from bpe_automata import ByteDFA, Constraint, Matcher, Tokenizer, compile_regex, constrain
from bpe_automata.constructions.explicit import Listed
from bpe_automata.decoding import batch_masks
from bpe_automata.decoding.constraint import Method
from bpe_automata.errors import (
    BpeAutomataError,
    BudgetExceededError,
    InvalidSchemaError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import compile_json_schema
from experiments.engines.interface import Begin, Engine, Fill, RefusedError, Whitespace, refusals
from experiments.run.executors import Row

_STATUS = (
    (UnsupportedSchemaError, "refused"),
    (BudgetExceededError, "too large"),
    (UnsatisfiableSchemaError, "unsatisfiable"),
    (InvalidSchemaError, "invalid"),
)


class Ours(Engine):
    """ "canonical" admits the tokenizer's own ids alone, "lift" any ids that spell the text.

    within: at most so many ids, and the text is complete; added_tokens: are they read as text?
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        method: Method = "canonical",
        within: int | None = None,
        added_tokens: bool = True,
    ) -> None:
        self.tokenizer, self._method = tokenizer, method
        self._within, self._added_tokens = within, added_tokens

    def prepare(self, regex: str) -> Begin:
        return self.beginning(self.constraint(regex))

    def prepare_schema(self, schema: str, whitespace: Whitespace) -> Begin:
        with refusals():
            dfa = self.language({"schema": schema}, whitespace)
            return self.beginning(self.constraint(dfa))

    def language(self, source: Row, whitespace: Whitespace, **options: Any) -> ByteDFA:
        """The automaton of {"regex": text} or {"schema": value or text}. options: of
        `compile_json_schema`. Raises RefusedError."""
        try:
            if "regex" in source:
                return compile_regex(source["regex"])
            return compile_json_schema(source["schema"], whitespace=whitespace, **options)
        except BpeAutomataError as error:
            raise _refused(error) from error

    def constraint(self, language: str | ByteDFA) -> Constraint:
        """A regex or an automaton, with this tokenizer."""
        return constrain(
            self.tokenizer,
            language,
            self._method,
            eos_ids=self.tokenizer.eos_ids,
            added_tokens=self._added_tokens,
        )

    def beginning(self, constraint: Constraint) -> Begin:
        """What begins a sequence under a constraint."""
        return (constraint if self._within is None else constraint.within(self._within)).matcher

    def batch(self, sessions: Sequence[Any], out: np.ndarray) -> Fill:
        return partial(batch_masks, sessions, out)


class Explicit(Ours):
    """All states and transitions of the canonical automaton, made while compiling. max_edges: of
    them at most."""

    def __init__(self, tokenizer: Tokenizer, max_edges: int) -> None:
        super().__init__(tokenizer)
        self._max_edges = max_edges

    def beginning(self, constraint: Constraint) -> Begin:
        automaton = constraint.automaton(max_edges=self._max_edges)
        listed = Listed(automaton, self.tokenizer.eos_ids, self.tokenizer.n_ids)
        return lambda: Matcher(listed)


def _refused(error: BpeAutomataError) -> RefusedError:
    status = next((name for kind, name in _STATUS if isinstance(error, kind)), "failed")
    message = f"{type(error).__name__}: {error}"[:300]
    return RefusedError(status, message, getattr(error, "keyword", None))
