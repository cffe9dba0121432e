"""What may be given for a language, and its automaton."""

from __future__ import annotations

from typing import Any

from bpe_automata._arguments import short
from bpe_automata._budget import Budget
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata.automata.linked_regex import compile_or_link
from bpe_automata.automata.sources import from_strings
from bpe_automata.errors import ArgumentError

_DEFAULT = Budget()


def automaton_of(language: Any, budget: Budget = _DEFAULT) -> ByteAutomaton:
    """The automaton of what `constrain` takes for a language. Raises ArgumentError, and the errors
    of what makes it."""
    if isinstance(language, ByteDFA | LinkedDFA):
        return language
    if isinstance(language, str):
        return compile_or_link(language, budget)
    if isinstance(language, list | tuple | set | frozenset):
        for at, text in enumerate(language):
            if not isinstance(text, str):
                raise ArgumentError(f"text at position {at} is {short(text)}: give a str")
        return from_strings(language)
    from bpe_automata.schemas._sources import is_source

    if not is_source(language):
        raise ArgumentError(
            f"the language is {short(language)}: give a regex, a list of texts, a schema (a dict, "
            "a pydantic model, a function; of JSON text schemas.json_schema makes one), or an "
            "automaton; one over ids is followed by `decoding.matcher_of`"
        )
    from bpe_automata.schemas import json_schema

    return json_schema(language, budget=budget)
