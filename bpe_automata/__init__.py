"""Regex-constrained decoding along the tokenizer's own tokenization, exactly.

    from bpe_automata import Tokenizer, constrain

    tokenizer = Tokenizer.load("tokenizer.json")
    matcher = constrain(tokenizer, r"(true|false)").matcher()
    matcher.allowed_ids()

The floors, from the bottom: `errors`, `kernels` and `viz`; `automata`, `token_automata` and
`tokenizer`; `constructions`, `decoding`, `integrations`; each imports only from those below it.
"""

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
