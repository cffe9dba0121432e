"""Floor 1: explicit automata over token ids, whatever built them. `TokenAutomaton` holds every
operation; each is written in a module of its own, on the plain arrays of a `Table`."""

from bpe_automata.token_automata.automaton import TokenAutomaton
from bpe_automata.token_automata.equivalence import Counterexample
from bpe_automata.token_automata.explain import Explanation

__all__ = ["Counterexample", "Explanation", "TokenAutomaton"]
