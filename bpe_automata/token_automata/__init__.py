"""Floor 1: explicit automata over token ids, whatever built them. `TokenAutomaton` holds every
operation; each is written in a module of its own, on the plain arrays of a `Table`."""

from typing import TYPE_CHECKING

from bpe_automata.lazy import on_demand

if TYPE_CHECKING:
    from bpe_automata.token_automata.algebra import Counterexample
    from bpe_automata.token_automata.automaton import TokenAutomaton
    from bpe_automata.token_automata.explain import Explanation

__all__ = ["Counterexample", "Explanation", "TokenAutomaton"]

_HOMES = {
    "token_automata.algebra": "Counterexample",
    "token_automata.automaton": "TokenAutomaton",
    "token_automata.explain": "Explanation",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
