from .compile import Budget as Budget, compile_regex as compile_regex
from .dfa import BrokenAutomatonError as BrokenAutomatonError, ByteDFA as ByteDFA
from .sources import from_interegular as from_interegular, from_strings as from_strings
