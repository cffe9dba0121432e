"""This package as an engine of the comparison, and `jsonschema` as the judge of it all."""

from __future__ import annotations

import json
import warnings
from typing import Any

from bpe_automata import ByteDFA, Constraint, Matcher, Tokenizer, compile_regex, constrain
from bpe_automata.constructions.canonical import canonical_automaton
from bpe_automata.errors import (
    BpeAutomataError,
    BudgetExceededError,
    InvalidSchemaError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from experiments.run.executors import Row
from experiments.schemas import reasons as schemas_reasons
from experiments.schemas.engines import RefusedError

DEEPEST = 6
"""Depths that are tried for a valid instance that is rejected, before it counts as unexplained."""
_STATUS = (
    (UnsupportedSchemaError, "refused"),
    (BudgetExceededError, "too large"),
    (UnsatisfiableSchemaError, "unsatisfiable"),
    (InvalidSchemaError, "invalid"),
)


class OursEngine:
    """Canonical masks of the automaton of a schema."""

    def __init__(self, tokenizer: Tokenizer, whitespace: str) -> None:
        self.tokenizer, self._whitespace = tokenizer, whitespace
        canonical_automaton(tokenizer)

    def compile(self, source: Row) -> OursCompiled:
        """Raises RefusedError."""
        try:
            dfa = self._dfa(source)
        except BpeAutomataError as error:
            raise _refused(error) from error
        return OursCompiled(self, source, dfa)

    def _dfa(self, source: Row, **options: Any) -> ByteDFA:
        if "regex" in source:
            return compile_regex(source["regex"])
        from bpe_automata.schemas import compile_json_schema

        style: Any = self._whitespace
        return compile_json_schema(source["schema"], whitespace=style, **options)

    def deeper(self, source: Row, depth: int) -> ByteDFA | None:
        """The same with more nesting; None if that cannot be made."""
        try:
            return self._dfa(source, depth=depth)
        except BpeAutomataError:
            return None


class OursCompiled:
    """One automaton. The constraint is made for the first session: that is not compiling."""

    def __init__(self, engine: OursEngine, source: Row, dfa: ByteDFA) -> None:
        self._engine, self._source, self.dfa = engine, source, dfa
        self._made: Constraint | None = None

    def session(self) -> Matcher:
        """Added tokens are not read as text, as no other engine here does."""
        if self._made is None:
            self._made = constrain(self._engine.tokenizer, self.dfa, added_tokens=False)
        return self._made.matcher()

    def reason(self, text: str) -> str:
        """Why a valid instance, in this text, is rejected."""
        if "regex" in self._source:
            return schemas_reasons.UNEXPLAINED
        separators = (", ", ": ") if self._engine._whitespace == "spaced" else (",", ":")
        found = schemas_reasons.reason(self.dfa, text, separators)
        if found not in (None, schemas_reasons.GAVE_UP):
            return found
        for depth in range(4, 1 + min(DEEPEST, schemas_reasons.nesting(json.loads(text)) + 1)):
            dfa = self._engine.deeper(self._source, depth)
            if dfa is None:
                break
            data = text.encode()
            other = schemas_reasons.reason(dfa, text, separators)
            if dfa.accepts(data) or other not in (None, schemas_reasons.GAVE_UP):
                return schemas_reasons.DEPTH
        return found or schemas_reasons.UNEXPLAINED


def _refused(error: BpeAutomataError) -> RefusedError:
    status = next((name for kind, name in _STATUS if isinstance(error, kind)), "failed")
    message = f"{type(error).__name__}: {error}"[:300]
    return RefusedError(status, message, getattr(error, "keyword", None))


class Judge:
    """What `jsonschema` says, by the draft that the schema names (2020-12 where it names none),
    with the formats that its helpers can check."""

    def compile(self, source: Row) -> Verdicts:
        """Raises RefusedError for what is no schema."""
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            kind = validator_for(source["schema"], default=Draft202012Validator)
        try:
            kind.check_schema(source["schema"])
        except SchemaError as error:
            raise RefusedError("invalid", error.message[:200]) from error
        return Verdicts(kind(source["schema"], format_checker=kind.FORMAT_CHECKER))


class Verdicts:
    """Of one schema."""

    def __init__(self, validator: Any) -> None:
        self._validator = validator

    def verdict(self, text: str) -> bool:
        """Is the instance valid? Raises what jsonschema raises, of a $ref that leads nowhere."""
        return self.is_valid(json.loads(text))

    def is_valid(self, value: Any) -> bool:
        """The same of a value."""
        return bool(self._validator.is_valid(value))

    def complaint(self, value: Any) -> str:
        """The first thing that is wrong."""
        error = next(self._validator.iter_errors(value), None)
        return f"{error.message[:200]} (at {error.json_path})" if error else ""
