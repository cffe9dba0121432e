"""A DFA less a few strings.

    L = { w : start --w--> accepting, w not one of the strings }

A new state for each prefix of a string, which goes on as the state of the DFA there does, but for
the letters that go on along a string.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.watch import poll


@kernel
def less_strings(
    trans: np.ndarray,
    accepting: np.ndarray,
    start: int,
    letters: np.ndarray,
    ptr: np.ndarray,
    watch: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, int]:
    """(trans int32 [m, k], accepting bool [m], start): the states given, then the new ones.

    trans: int32 [n, k], row 0 all 0; accepting: bool [n]; letters: int32, columns of one byte each;
    string i is letters[ptr[i]:ptr[i+1]]. No new state leads nowhere.
    """
    n, k = trans.shape
    table = np.zeros((n + len(letters) + 1, k), np.int32)
    final, parent = np.zeros(len(table), np.bool_), np.zeros(len(table), np.int32)
    table[:n], final[:n] = trans, accepting
    table[n], final[n], used = trans[start], accepting[start], n + 1
    for i in range(len(ptr) - 1):
        here, at = n, ptr[i]
        while at < ptr[i + 1] and table[here, letters[at]] != 0 and not poll(watch):
            to = table[here, letters[at]]
            if to < n:
                table[used], final[used], parent[used] = trans[to], accepting[to], here
                table[here, letters[at]] = used
                to = used
                used += 1
            here, at = to, at + 1
        if at == ptr[i + 1]:
            final[here] = False
    kept = np.ones(used, np.bool_)
    for state in range(used - 1, n, -1):
        if poll(watch):
            break
        if not final[state] and not table[state].any():
            kept[state] = False
            for c in range(k):
                if table[parent[state], c] == state:
                    table[parent[state], c] = 0
    if not final[n] and not table[n].any():
        return table[:1], final[:1], 0
    number = np.cumsum(kept) - 1
    for state in range(n, used):
        if poll(watch):
            break
        if kept[state]:
            final[number[state]] = final[state]
            for c in range(k):
                table[number[state], c] = number[table[state, c]]
    used = number[-1] + 1
    return table[:used], final[:used], n
