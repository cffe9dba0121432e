"""Regex-constrained decoding along the tokenizer's own tokenization, exactly.

    from bpe_automata import Tokenizer, constrain

    tokenizer = Tokenizer.load("tokenizer.json")
    matcher = constrain(tokenizer, r"(true|false)").matcher()
    matcher.allowed_ids()

Words that are this package's, or that it means one thing by:

    canonical      of ids: encode(decode(ids)) == ids, they are the tokenizer's own
    lift           all ids that spell a text of the language, canonical or not
    pretoken       a piece that the tokenizer splits a text into before BPE runs on it
    joint          where two ids meet; it is free at a boundary of pretokens, bound inside one
    hypothesis     which piece is being read, and which matches of the split pattern must not come
    derivation     of which two parts a merge makes a token; its birth is the rank of that merge
    atom           a class of characters that nothing in the tokenizer's pipeline can tell apart
    spelling       the bytes that an id stands for
    state pair     a state of the byte DFA with one of the text automaton
    configuration  a state pair with a set of hypotheses: all that a mask depends on but the last id

Importing the package imports nothing else: each of its names brings what it needs. Beside those
below there are `schemas`, `banning`, `sampling`, `integrations`, `models`, `testing` and
`reference`.
"""

from typing import TYPE_CHECKING

from bpe_automata.lazy import on_demand
from bpe_automata.version import __version__ as __version__

if TYPE_CHECKING:
    from bpe_automata.automata.compile import Budget, compile_regex
    from bpe_automata.automata.dfa import ByteDFA
    from bpe_automata.decoding import Constraint, Matcher, constrain, explain, heal, verify
    from bpe_automata.errors import BpeAutomataError
    from bpe_automata.reference.published import cartesian_merge, direct_merge
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
    "cartesian_merge",
    "compile_regex",
    "constrain",
    "direct_merge",
    "explain",
    "heal",
    "verify",
]

_HOMES = {
    "automata.compile": "Budget compile_regex",
    "automata.dfa": "ByteDFA",
    "decoding": "Constraint Matcher constrain explain heal verify",
    "errors": "BpeAutomataError",
    "reference.published": "cartesian_merge direct_merge",
    "token_automata": "TokenAutomaton",
    "tokenizer": "Tokenizer",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
