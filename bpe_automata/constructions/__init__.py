"""Floor 2: token automata. `lift` admits every tokenization of a matching text, `cartesian_merge`
the tokenizer's own, `explicit.Listed` what an automaton that is written out does; `canonical` is
the automaton of all canonical sequences, `geometry` its part that is BPE alone."""

from typing import TYPE_CHECKING

from bpe_automata.lazy import on_demand

if TYPE_CHECKING:
    from bpe_automata.constructions.canonical import CanonicalAutomaton, canonical_automaton
    from bpe_automata.constructions.cartesian_merge import CartesianMerge
    from bpe_automata.constructions.engine import Engine, TextEngine
    from bpe_automata.constructions.explicit import Explored, Listed, explore, explored
    from bpe_automata.constructions.geometry import Geometry
    from bpe_automata.constructions.lift import Lift
    from bpe_automata.constructions.segments_cache import SegmentCache

__all__ = [
    "CanonicalAutomaton",
    "CartesianMerge",
    "Engine",
    "Explored",
    "Geometry",
    "Lift",
    "Listed",
    "SegmentCache",
    "TextEngine",
    "canonical_automaton",
    "explore",
    "explored",
]

_HOMES = {
    "constructions.canonical": "CanonicalAutomaton canonical_automaton",
    "constructions.cartesian_merge": "CartesianMerge",
    "constructions.engine": "Engine TextEngine",
    "constructions.explicit": "Explored Listed explore explored",
    "constructions.geometry": "Geometry",
    "constructions.lift": "Lift",
    "constructions.segments_cache": "SegmentCache",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
