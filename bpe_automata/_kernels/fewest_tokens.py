"""How few tokens lead from states of a byte DFA to acceptance, whatever the tokenization.

    D(q) = min { |w| : the bytes of the tokens w lead from q to an accepting state }

With any function `far` of states, 0 where they accept, a byte b takes a text nearer by at most
gain(b) = max { far(q) - far(q b) : q }, so that

    D(q) >= far(q) / most,    most = max { gain(b1) + ... + gain(bn) : b1 ... bn a token }

`far` is the least cost of bytes to acceptance, where a byte that stands in tokens of n bytes at
most costs about 1 / n of a token.

What that leaves open is searched depth first, nearest states first. With k tokens left only those
tokens are read that can lead to a state with far <= most * (k - 1): for a count of characters the
longest ones, which are few. A state is searched after the one that includes it: of a counted repeat
one state is searched where hundreds are too far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.hashing import grown
from bpe_automata._kernels.links import Steps, step
from bpe_automata._kernels.trie import Spelled, Trie, after_added
from bpe_automata._kernels.watch import poll, stopped

NEVER = 2**30
_NO_GAIN = -(2**30)
_LEAST_GAIN = _NO_GAIN // 2
_SWEEPS = 4


class Towards(NamedTuple):
    """far: int32 [n_states], as above; gain: int32 [nodes of the trie], the greatest of a token's
    rest below each node, _NO_GAIN where none ends; most: of any token. lower, upper: int32
    [n_states], written by the search: lower <= D <= upper, NEVER where acceptance is out of reach,
    or no number is known. widest: int32 [n_states], for each state one that includes it, see
    `_kernels.inclusion`: from there it takes no more tokens."""

    far: np.ndarray
    gain: np.ndarray
    most: int
    lower: np.ndarray
    upper: np.ndarray
    widest: np.ndarray


_NOTHING = np.empty(0, np.int32)
ANYWHERE = Towards(_NOTHING, _NOTHING, 0, _NOTHING, _NOTHING, _NOTHING)


@kernel
def cost_to_accept(
    steps: np.ndarray, cost: np.ndarray, order: np.ndarray, far: np.ndarray, watch: np.ndarray
) -> None:
    """Lower `far`, int32 [n_states], towards the least cost of steps to a state with far = 0.

    steps: int32 [n_states, k], 0: none; cost: int32 [k]; order: int32, the states to be gone over,
    a few times: with the nearest first it mostly takes two.
    """
    for _ in range(_SWEEPS):
        changed = False
        for state in order:
            if poll(watch):
                return
            best = far[state]
            for column in range(steps.shape[1]):
                after = steps[state, column]
                if after != 0 and far[after] + cost[column] < best:
                    best = far[after] + cost[column]
            changed |= best < far[state]
            far[state] = best
        if not changed:
            return


@kernel
def gain_of_bytes(trans: np.ndarray, byte_class: np.ndarray, far: np.ndarray) -> np.ndarray:
    """int32 [256]: gain(b), _NO_GAIN where no state with far >= 0 is left by b for another."""
    n, n_classes = trans.shape
    best = np.full(n_classes, _NO_GAIN, np.int32)
    for state in range(1, n):
        if far[state] < 0:
            continue
        for column in range(n_classes):
            after = trans[state, column]
            if after != 0 and far[after] >= 0:
                best[column] = max(best[column], far[state] - far[after])
    found = np.empty(256, np.int32)
    for byte in range(256):
        found[byte] = best[byte_class[byte]]
    return found


@kernel
def gain_below(trie: Trie, token_classes: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, int]:
    """(`Towards.gain`, the greatest gain of a token of the trie). token_classes: int32 [nodes], 0:
    left out; gain: int32 [256]. From the last node to the first, so that children come before."""
    found = np.empty(len(trie.label), np.int32)
    waiting = np.full(trie.deepest + 2, _NO_GAIN, np.int32)  # by depth: best of the later siblings
    for node in range(len(found) - 1, -1, -1):
        depth = trie.depth[node]
        best = waiting[depth + 1]
        waiting[depth + 1] = _NO_GAIN
        if token_classes[node] != 0:
            best = max(best, 0)
        found[node] = best
        step = gain[trie.label[node]]
        if best != _NO_GAIN and step != _NO_GAIN:
            waiting[depth] = max(waiting[depth], best + step, _LEAST_GAIN)
    return found, waiting[1]


@kernel
def settle(
    steps: Steps,
    states: np.ndarray,
    k: int,
    patience: int,
    spelled: Spelled,
    towards: Towards,
    watch: np.ndarray,
) -> None:
    """Make lower > k or upper <= k for each of the states, int32, unless more than `patience`
    states would have to be read. A state is searched for at most 2 + log2(k) numbers of tokens."""
    n, deepest = len(steps.trans), spelled.trie.deepest
    scratch = Scratch(np.zeros(n, np.int64), np.empty(deepest + 1, np.int32))
    lower, upper, widest = towards.lower, towards.upper, towards.widest
    for narrow in states:
        wide = widest[narrow]
        upper[wide] = min(upper[wide], upper[narrow])
        for state in (wide, narrow):
            lower[state] = max(lower[state], lower[wide])
            near, more = max(lower[state], 1), 1
            while lower[state] <= k < upper[state]:
                # Mostly a way that is little longer than the bound is soon found.
                most = min(64 + 8 * near if near < k else NEVER, patience - scratch.seen[0])
                tokens = min(near, k)
                _search(steps, state, tokens, most, spelled, towards, scratch, watch)
                if stopped(watch) or scratch.seen[0] >= patience:
                    return
                near, more = max(near + more, lower[state]), 2 * more


@kernel
def fewest(
    steps: Steps,
    state: int,
    patience: int,
    spelled: Spelled,
    towards: Towards,
    watch: np.ndarray,
) -> None:
    """Make lower == upper for a state from which acceptance is in reach, in fewer than n_states
    tokens; unless more than `patience` states would have to be read for one of the bounds. The way
    found first is hardly too long, so bounds are tried from above, and the more apart the more are
    too high."""
    lower, upper, less, tried = towards.lower, towards.upper, 0, len(steps.trans)
    one = np.array([state], np.int32)
    while lower[state] < upper[state]:
        settle(steps, one, tried, patience, spelled, towards, watch)
        if stopped(watch) or lower[state] <= tried < upper[state]:
            return
        less = max(2 * less, 1) if upper[state] <= tried else 1
        tried = max(lower[state], upper[state] - less)


@kernel
def open_after(
    steps: Steps,
    state: int,
    left: int,
    spelled: Spelled,
    towards: Towards,
) -> np.ndarray:
    """int32: the states with lower <= left < upper to which a token leads, the nearest first."""
    n, deepest = len(steps.trans), spelled.trie.deepest
    scratch = Scratch(np.zeros(n, np.int64), np.empty(deepest + 1, np.int32))
    found = np.empty(len(steps.trans), np.int32)
    count = _read(steps, state, left, False, spelled, towards, scratch, 1, found, 0)
    _nearest_first(found[:count], towards.far)
    return found[:count].copy()


class Scratch(NamedTuple):
    """seen: int64 [n_states], the number of the last reading that found each; path: int32, the
    states along the bytes of a token."""

    seen: np.ndarray
    path: np.ndarray


@kernel
def _search(
    steps: Steps,
    root: int,
    k: int,
    most: int,
    spelled: Spelled,
    towards: Towards,
    scratch: Scratch,
    watch: np.ndarray,
) -> None:
    """Depth first, until lower > k or upper <= k for the root or `most` states were read. Below a
    state with k tokens left there are k - 1, so it is at most k deep; and a state that was read in
    vain with k is not read again with k or fewer, nor is one that it includes."""
    lower, upper, widest = towards.lower, towards.upper, towards.widest
    path, begin = np.empty(64, np.int32), np.empty(64, np.int64)
    at, end = np.empty(64, np.int64), np.empty(64, np.int64)
    found = np.empty(2 * len(steps.trans), np.int32)
    depth, read, top, state = 0, 0, 0, root
    while True:
        # A state that is not settled for the tokens that are left: read it.
        if poll(watch) or read >= most:
            return
        read += 1
        left = k - depth - 1
        while len(found) < top + len(steps.trans):
            found = grown(found, len(found))
        scratch.seen[0] += 1  # no token leads to state 0
        stamp = scratch.seen[0]
        n = _read(steps, state, left, True, spelled, towards, scratch, stamp, found, top)
        if n >= 0:
            _nearest_first(found[top : top + n], towards.far)
            path, begin = grown(path, depth), grown(begin, depth)
            at, end = grown(at, depth), grown(end, depth)
            path[depth], begin[depth], at[depth], end[depth] = state, top, top, top + n
            top, depth = top + n, depth + 1
        # Back to a state with something left to be read.
        while depth > 0:
            left = k - depth
            here, going = path[depth - 1], False
            while at[depth - 1] < end[depth - 1]:
                state = found[at[depth - 1]]
                if upper[state] <= left:
                    upper[here] = min(upper[here], upper[state] + 1)
                    break
                wide = widest[state]
                lower[state] = max(lower[state], lower[wide])
                if lower[state] <= left:
                    state = wide if upper[wide] > left else state  # that one first
                    going = True
                    break
                at[depth - 1] += 1
            if going:
                break
            if at[depth - 1] == end[depth - 1]:
                lower[here] = max(lower[here], left + 2)
            depth, top = depth - 1, begin[depth - 1]
        if depth == 0:
            return


@kernel
def _read(
    steps: Steps,
    state: int,
    left: int,
    soon: bool,
    spelled: Spelled,
    towards: Towards,
    scratch: Scratch,
    stamp: int,
    found: np.ndarray,
    top: int,
) -> int:
    """The states with lower <= left < upper to which a token leads, each once, into `found` from
    `top` on, where there is room for all states. How many; with `soon` -1 as soon as a token leads
    to one with upper <= left, which `upper` of this state then tells."""
    trie, token_classes, gain, far = spelled.trie, spelled.token_classes, towards.gain, towards.far
    lower, upper, seen, path = towards.lower, towards.upper, scratch.seen, scratch.path
    reach, count = towards.most * left, 0
    path[0], node = state, 0
    while node < len(token_classes):
        depth = trie.depth[node]
        after = step(path[depth - 1], trie.label[node], steps)
        if after == 0 or far[after] - gain[node] > reach:
            node = trie.skip[node]
            continue
        path[depth] = after
        if token_classes[node] != 0 and seen[after] != stamp:
            seen[after] = stamp
            if upper[after] <= left:
                if soon:
                    upper[state] = min(upper[state], upper[after] + 1)
                    return -1
            elif lower[after] <= left:
                found[top + count] = after
                count += 1
        node += 1
    for token in spelled.added:
        after = after_added(state, token, steps, spelled)
        if after != 0 and seen[after] != stamp:
            seen[after] = stamp
            if upper[after] <= left:
                if soon:
                    upper[state] = min(upper[state], upper[after] + 1)
                    return -1
            elif lower[after] <= left:
                found[top + count] = after
                count += 1
    return count


@kernel
def _nearest_first(states: np.ndarray, far: np.ndarray) -> None:
    states[:] = states[np.argsort(far[states])]
