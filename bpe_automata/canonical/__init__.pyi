from .canonical import (
    CanonicalAutomaton as CanonicalAutomaton,
    CanonicalState as CanonicalState,
    canonical_automaton as canonical_automaton,
)
from .geometry import Geometry as Geometry
