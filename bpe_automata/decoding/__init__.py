"""Floor 3: constraints and the matcher that follows them."""

from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.decoding.matcher import Matcher

__all__ = ["Constraint", "Matcher", "Method", "constrain"]
