from .dfa import (
    BrokenAutomatonError as BrokenAutomatonError,
    ByteDFA as ByteDFA,
    ByteLanguage as ByteLanguage,
)
from .compile import compile_regex as compile_regex
from .linked import ByteAutomaton as ByteAutomaton, LinkedDFA as LinkedDFA
from .linked_regex import link_regex as link_regex
from .sources import from_interegular as from_interegular, from_strings as from_strings
from .algebra import (
    all_texts as all_texts,
    complement as complement,
    concatenation as concatenation,
    difference as difference,
    intersection as intersection,
    union as union,
)
