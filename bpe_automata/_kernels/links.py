"""Where bytes lead from the states of automata; also of those that are written down meanwhile."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpe_automata._kernels import inlined


class Steps(NamedTuple):
    """trans int32 [n_states, columns], byte_class uint8 [256]: where each state leads. Of a linked
    automaton an entry may be -1 - the number of a step that leaves what was written down at once;
    behind int32 [steps]: the state that such a step leads to, 0: not written down yet. Kernels take
    it as a plain tuple, which is passed in a tenth of the time."""

    trans: np.ndarray
    byte_class: np.ndarray
    behind: np.ndarray

    def known(self, entries: np.ndarray) -> np.ndarray:
        """int64: what `known_step` says, by some entries of `trans`."""
        found = entries.astype(np.int64)
        away = np.flatnonzero(entries < 0)
        behind = self.behind[-1 - found.flat[away]]
        found.flat[away] = np.where(behind > 0, behind, found.flat[away])
        return found


@inlined
def known_step(state: Any, column: Any, trans: np.ndarray, behind: np.ndarray) -> Any:
    """The state after a byte of a column; -1 - the number of the step if that is not known."""
    entry = np.int64(trans[state, column])
    if entry < 0 and behind[-1 - entry] > 0:
        entry = np.int64(behind[-1 - entry])
    return entry
