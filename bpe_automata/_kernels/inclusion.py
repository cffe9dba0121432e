"""Inclusion between the languages of a DFA's states: L(q) is a part of L(p).

With steps q a, it is the greatest relation, where acceptance is in reach of all states, for which

    q included in p    =>    q accepts => p accepts,  and for each a:  q a = 0,  or  q a in p a

After more repeats of a counted repeat fewer are left: in x{10,300} the state after 11 is included
in that after 10, and so on. If k tokens do not suffice from a state, they do not suffice from any
state that it includes: one answer serves hundreds of states.
"""

from __future__ import annotations

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.hashing import EMPTY, grown, slot_of, table_size, with_room
from bpe_automata._kernels.watch import poll

_BYTES_OF_A_CHARACTER = 4
_TRIED, _MOST_TRIED = 64, 1 << 20  # pairs: for each state, and in all
_SHARE = 4  # of the pairs that are left, what one try may take
_AT_ONCE = 2  # a try that ends after so few pairs suggests the inside of a character
_ROOM = 256
_UNKNOWN, _HOLDS, _FAILS = 0, 1, 2


@kernel
def widest(
    steps: np.ndarray, n_bytes: np.ndarray, distance: np.ndarray, watch: np.ndarray
) -> np.ndarray:
    """int32 [n]: for each state one whose language includes its own: the last of a chain of such
    states, the state itself where none was found (there may be some all the same).

    steps: int32 [n, k], 0: none; n_bytes: int32 [k], how many bytes take each step; distance:
    int32 [n], the fewest steps to acceptance, less than 0 where it is out of reach. Tried are pairs
    of a state and one that it reaches by bytes of the largest classes, up to one character further
    on, and all pairs that those depend on, _TRIED n and _MOST_TRIED at most.
    """
    n = len(steps)
    above, left, n_keys = np.zeros(n, np.int32), min(_TRIED * n, _MOST_TRIED), 0
    keys = np.full(table_size(_ROOM), EMPTY, np.int64)  # q n + p, for q included in p
    values = np.zeros(len(keys), np.uint8)
    for p in range(1, n):
        q = p
        for _ in range(_BYTES_OF_A_CHARACTER):
            q = _usual(steps, n_bytes, q)
            if q == 0 or q == p or above[q] != 0 or left <= 0 or poll(watch):
                break
            if _nearer(q, p, distance):
                continue
            n_keys, tried, keys, values = _try(
                steps, distance, q, p, left // _SHARE, n_keys, keys, values, above, watch
            )
            left -= tried
            if tried > _AT_ONCE:
                break  # that state is not inside a character
    return _tops(above)


@kernel
def _usual(steps: np.ndarray, n_bytes: np.ndarray, state: int) -> int:
    """The state after a byte of the largest class of bytes that is read, 0: none is."""
    best, most = 0, 0
    for c in range(steps.shape[1]):
        if steps[state, c] != 0 and n_bytes[c] > most:
            best, most = steps[state, c], n_bytes[c]
    return best


@kernel
def _nearer(q: int, p: int, distance: np.ndarray) -> bool:
    """Is acceptance nearer to q than to p? Then q is not included in p; nor is a state that accepts
    in one that does not."""
    return 0 <= distance[q] < distance[p] or (distance[q] >= 0 > distance[p])


@kernel
def _try(
    steps: np.ndarray,
    distance: np.ndarray,
    small: int,
    wide: int,
    most: int,
    n_keys: int,
    keys: np.ndarray,
    values: np.ndarray,
    above: np.ndarray,
    watch: np.ndarray,
) -> tuple[int, int, np.ndarray, np.ndarray]:
    """Assume that `small` is included in `wide`, and what follows from it, depth first, `most`
    pairs at most. If nothing contradicts, all of it holds: `above` gets the p of the smallest
    number of each q. If something does, or the pairs are used up, it is taken back, and what led
    there fails: it is not asked again. keys, values: table of what is known of pairs. Returns (keys
    in the table, pairs tried, the table)."""
    n, k = steps.shape
    assumed, path = np.empty(_ROOM, np.int64), np.empty(_ROOM, np.int64)
    column = np.empty(_ROOM, np.int32)
    n_assumed, depth, pair, verdict = 0, 0, small * n + wide, _UNKNOWN
    while verdict == _UNKNOWN:
        # Of this pair nothing is known: it is assumed.
        if 2 * (n_keys + 1) > len(keys):
            keys, values = with_room(keys, values, len(keys))
        at = slot_of(keys, pair)
        n_keys += keys[at] == EMPTY
        keys[at], values[at] = pair, _HOLDS
        assumed, path = grown(assumed, n_assumed), grown(path, depth)
        column = grown(column, depth)
        assumed[n_assumed], path[depth], column[depth] = pair, pair, 0
        n_assumed, depth, verdict = n_assumed + 1, depth + 1, _HOLDS
        if n_assumed > most:
            verdict = _FAILS
        # On to the next that follows from the last one, or from one before it.
        while depth > 0 and verdict == _HOLDS:
            if poll(watch):
                verdict = _FAILS
            elif column[depth - 1] == k:
                depth -= 1
            else:
                q = steps[path[depth - 1] // n, column[depth - 1]]
                p = steps[path[depth - 1] % n, column[depth - 1]]
                column[depth - 1] += 1
                if q != 0 and q != p and np.int64(q) * n + p != pair:  # neighbours mostly agree
                    pair = np.int64(q) * n + p
                    verdict = _FAILS
                    if p != 0 and not _nearer(q, p, distance):
                        verdict = values[slot_of(keys, pair)]
    for i in range(n_assumed):
        pair = assumed[i]
        if verdict == _FAILS:
            values[slot_of(keys, pair)] = _UNKNOWN
        elif above[pair // n] == 0 or pair % n < above[pair // n]:
            above[pair // n] = pair % n
    for i in range(depth if verdict == _FAILS else 0):
        values[slot_of(keys, path[i])] = _FAILS
    return n_keys, n_assumed, keys, values


@kernel
def _tops(above: np.ndarray) -> np.ndarray:
    """int32 [n]: where the way up ends from each state; where it goes round, one of the states
    there, which all have the same language."""
    n = len(above)
    found, way = np.full(n, -1, np.int32), np.empty(n, np.int32)
    for state in range(n):
        count, at = 0, state
        while found[at] == -1 and above[at] != 0:
            way[count], found[at] = at, -2
            count, at = count + 1, above[at]
        top = found[at] if found[at] >= 0 else at
        found[at] = top
        for i in range(count):
            found[way[i]] = top
    return found
