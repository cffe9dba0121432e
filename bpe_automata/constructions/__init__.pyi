from .canonical import (
    CanonicalAutomaton as CanonicalAutomaton,
    canonical_automaton as canonical_automaton,
)
from .cartesian_merge import CartesianMerge as CartesianMerge
from .engine import Engine as Engine, TextEngine as TextEngine
from .explicit import (
    Explored as Explored,
    Listed as Listed,
    explore as explore,
    explored as explored,
)
from .geometry import Geometry as Geometry
from .lift import Lift as Lift
from .segments_cache import SegmentCache as SegmentCache
