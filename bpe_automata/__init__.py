"""Regex-constrained decoding along the tokenizer's own tokenization, exactly.

    from bpe_automata import Tokenizer, constrain

    tokenizer = Tokenizer.load("tokenizer.json")
    matcher = constrain(tokenizer, r"(true|false)").matcher()
    matcher.allowed_ids()

Importing the package imports nothing else: each of its names brings what it needs.

The floors, from the bottom: `errors`, `kernels` and `viz`; `automata`, `token_automata` and
`tokenizer`; `constructions`, `decoding`, `integrations`; each imports only from those below it.
"""

from typing import TYPE_CHECKING

from bpe_automata.lazy import on_demand

if TYPE_CHECKING:
    from bpe_automata.automata.compile import Budget, compile_regex
    from bpe_automata.automata.dfa import ByteDFA
    from bpe_automata.decoding import Constraint, Matcher, constrain, explain, heal, verify
    from bpe_automata.errors import BpeAutomataError
    from bpe_automata.token_automata import TokenAutomaton
    from bpe_automata.tokenizer import Tokenizer

__all__ = [
    "BpeAutomataError",
    "Budget",
    "ByteDFA",
    "Constraint",
    "Matcher",
    "TokenAutomaton",
    "Tokenizer",
    "compile_regex",
    "constrain",
    "explain",
    "heal",
    "verify",
]

_HOMES = {
    "automata.compile": "Budget compile_regex",
    "automata.dfa": "ByteDFA",
    "decoding": "Constraint Matcher constrain explain heal verify",
    "errors": "BpeAutomataError",
    "token_automata": "TokenAutomaton",
    "tokenizer": "Tokenizer",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
