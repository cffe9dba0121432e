from .automata.compile import Budget as Budget, compile_regex as compile_regex
from .automata.dfa import ByteDFA as ByteDFA
from .decoding import (
    Constraint as Constraint,
    Matcher as Matcher,
    constrain as constrain,
    explain as explain,
    heal as heal,
    verify as verify,
)
from .errors import BpeAutomataError as BpeAutomataError
from .reference.published import cartesian_merge as cartesian_merge, direct_merge as direct_merge
from .token_automata import TokenAutomaton as TokenAutomaton
from .tokenizer import Tokenizer as Tokenizer

__version__: str
