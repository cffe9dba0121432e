from .algebra import Counterexample as Counterexample
from .automaton import TokenAutomaton as TokenAutomaton
from .explain import Acceptance as Acceptance
