"""Floor 1: alphabets and automata. Regex, set of strings or foreign automaton -> minimal byte DFA.

compile_regex(r) accepts s.encode()  <=>  re.fullmatch(r, s)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe_automata.lazy import on_demand

if TYPE_CHECKING:
    from bpe_automata.automata.compile import compile_regex
    from bpe_automata.automata.dfa import BrokenAutomatonError, ByteDFA
    from bpe_automata.automata.sources import from_interegular, from_strings
    from bpe_automata.budget import Budget

__all__ = [
    "BrokenAutomatonError",
    "Budget",
    "ByteDFA",
    "compile_regex",
    "from_interegular",
    "from_strings",
]

_HOMES = {
    "automata.compile": "compile_regex",
    "automata.dfa": "BrokenAutomatonError ByteDFA",
    "automata.sources": "from_interegular from_strings",
    "budget": "Budget",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
