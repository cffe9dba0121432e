"""Small random automata over given characters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from bpe_automata.automata import ByteDFA


@st.composite
def byte_dfas(
    draw: st.DrawFn, characters: Sequence[str] = ("a", "b", "c"), most_states: int = 4
) -> ByteDFA:
    """A DFA over a few ASCII characters with up to `most_states` live states: loops on the start
    and on accepting states, states that are not reachable or lead nowhere, and empty languages
    among them."""
    n = draw(st.integers(1, most_states))
    target = st.integers(0, n)  # 0 is dead
    row = st.tuples(*[target] * len(characters))
    rows = draw(st.tuples(*[row] * n))
    ends = draw(st.tuples(*[st.booleans()] * n))
    trans = np.zeros((n + 1, len(characters) + 1), dtype=np.int32)
    trans[1:, 1:] = rows
    byte_class = np.zeros(256, dtype=np.uint8)
    byte_class[[ord(c) for c in characters]] = np.arange(1, len(characters) + 1)
    return ByteDFA(trans, byte_class, np.array([False, *ends]), 1)
