"""The vocabulary with the bytes that a wide state does not tell apart made one.

In a string, a line or a counted repeat hundreds of bytes do the same. The region of a DFA state are
the states that it reaches by wide steps (many bytes with one target, or bytes of a character beyond
ASCII), and, by a byte that begins a large part of all tokens (the space between two words), to
states with wide steps. Bytes that all states of the region treat alike are one class; a byte that
leaves the region somewhere stays what it is. Of the trie the nodes that are one word of classes
become one node, with the ids there in groups that lead alike. A byte that leaves ends the collapsed
part: from there on the trie itself is walked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.hashing import EMPTY, slot_of, table_size
from bpe_automata._kernels.links import Steps, known_step, step
from bpe_automata._kernels.references import by_reference
from bpe_automata._kernels.trie import Trie, skips
from bpe_automata._kernels.watch import poll, stopped

UNREAD, LEAVES = -1, -2
_LOW = 0xFFFFFFFF
_WIDE = 16  # bytes with one target
_OFTEN = 16
_SMALL = 1024
_MOST_FOLLOWING = 64  # states
_MOST_ENTERED = 1024  # steps of a linked automaton
_WORDS = 16384  # nodes that there is room for at first
_NEAR_THE_ROOT = 2  # where the clock is looked at


@by_reference
class Collapsed(NamedTuple):
    """classes: int16 [256], see `partition`. Nodes in depth-first order, the root first: label
    uint8, one byte of the class; parent int32; skip int32 as in `Trie`. Groups of ids, node by
    node, int32: node, token_class and text, see `edges.Nodes`; start [groups + 1] into ids.
    leaving_from int32: the nodes where a byte leaves, leaving int32: that byte's node in the
    trie."""

    classes: np.ndarray
    label: np.ndarray
    parent: np.ndarray
    skip: np.ndarray
    node: np.ndarray
    token_class: np.ndarray
    text: np.ndarray
    start: np.ndarray
    ids: np.ndarray
    leaving_from: np.ndarray
    leaving: np.ndarray


@kernel
def partition(
    state: int,
    reach: int,
    often: np.ndarray,
    steps: Steps,
    level: np.ndarray,
    bytes_to: np.ndarray,
    watch: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(int16 [256], the class of each byte, by its first byte; UNREAD where no state of the region
    reads it, LEAVES where it leaves the region; bool [256], the bytes that lead from `state`
    out of the region, of length 0 where it is in it itself; int32, states for which this holds,
    `state` first).

    A state that no wide step leads back to is not in its region, and has no say in the classes:
    words that begin there with a byte outside, or one that it does not treat as the others of the
    class, are read in the trie (see `beginnings`). Words are no longer than `reach`, so states
    further away than four times that are left out, and what is found holds for those no further
    than three times that: a step that leads further than those of the region leaves too. often:
    bool [256], bytes that begin a large part of all tokens, see `often_first`. level: int32
    and bytes_to: int64 [n_states], all 0, for scratch; they are left as they were.

    A linked automaton for which more than _MOST_ENTERED steps would be written down, as a regex
    whose words may be cut into rounds in many ways, has no region there.
    """
    region, again = _region(state, 4 * reach, often, steps, level, bytes_to, watch)
    n = steps.trans.shape[1]
    classes, of_class = np.zeros(n, np.int64), np.zeros(n, np.int64)
    read, leaves = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    slots = np.full(table_size(n), EMPTY, np.int64)
    numbers, held = np.zeros(len(slots), np.int64), 1
    level[state] = 1 if again else 0
    outside = np.zeros(0 if again else 256, np.bool_)
    for byte in range(len(outside)):
        after = known_step(state, steps.byte_class[byte], steps)
        outside[byte] = after != 0 and not _within(after, 3 * reach, level)
    for i in range(0 if again else 1, len(region)):
        s = region[i]
        held += 1 < level[s] <= 3 * reach + 1
        if level[s] == 4 * reach + 1 or poll(watch):
            break
        alike = True
        for c in range(n):
            after = known_step(s, c, steps)
            read[c] |= after != 0
            leaves[c] |= after != 0 and not _within(after, level[s], level)
            alike &= after == known_step(s, of_class[c], steps)
        if alike:
            continue
        # Classes of classes: bytes stay together if they were and have one target.
        count = 0
        slots[:] = EMPTY
        for c in range(n):
            key = classes[c] << 32 | (np.int64(known_step(s, c, steps)) & _LOW)
            at = slot_of(slots, key)
            if slots[at] != key:
                slots[at], numbers[at] = key, count
                count += 1
            classes[c] = numbers[at]
        for c in range(n - 1, -1, -1):
            numbers[classes[c]] = c
        for c in range(n):
            of_class[c] = numbers[classes[c]]
    for s in region:
        level[s] = 0
    return _by_first_byte(classes, read, leaves, steps.byte_class), outside, region[:held].copy()


@kernel
def _within(after: int, most: int, level: np.ndarray) -> bool:
    """Is a state of the region, no further than `most` steps? What is not written down yet (see
    `_kernels.links`) is outside."""
    return after > 0 and 0 < level[after] <= most + 1


@kernel
def _by_first_byte(
    classes: np.ndarray, read: np.ndarray, leaves: np.ndarray, byte_class: np.ndarray
) -> np.ndarray:
    """int16 [256]: the class of each byte, of classes of the DFA's columns (int64; bool, is a
    column read, does it leave)."""
    found, first = np.empty(256, np.int16), np.full(len(classes), -1, np.int16)
    for byte in range(256):
        c = byte_class[byte]
        if not read[c] or leaves[c]:
            found[byte] = LEAVES if read[c] else UNREAD
            continue
        if first[classes[c]] < 0:
            first[classes[c]] = byte
        found[byte] = first[classes[c]]
    return found


@kernel
def often_first(trie: Trie) -> np.ndarray:
    """bool [256]: bytes that begin at least one in so many of the trie's nodes."""
    found, node = np.zeros(256, np.bool_), 0
    while node < len(trie.label):
        found[trie.label[node]] = _OFTEN * (trie.skip[node] - node) >= len(trie.label)
        node = trie.skip[node]
    return found


@kernel
def _region(
    state: int,
    deepest: int,
    often: np.ndarray,
    steps: Steps,
    level: np.ndarray,
    bytes_to: np.ndarray,
    watch: np.ndarray,
) -> tuple[np.ndarray, bool]:
    """(int32, the state, in its region or not, and those that it reaches by up to `deepest` steps,
    nearest first; does one lead back to it?). level: 1 + by how many steps; 0, not at all."""
    n = steps.trans.shape[1]
    size, frequent = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for byte in range(256):
        size[steps.byte_class[byte]] += 1 if byte < 0x80 else _WIDE
        frequent[steps.byte_class[byte]] |= often[byte]
    found, count, again = np.empty(len(level), np.int32), 1, False
    found[0], level[state], at = state, 1, 0
    entered = 0
    while at < count and level[found[at]] <= deepest and not poll(watch):
        q = found[at]
        at += 1
        for byte in range(256):
            c = steps.byte_class[byte]
            if known_step(q, c, steps) < 0 and _bytes_alike(q, c, steps, size) >= _WIDE:
                step(q, byte, steps)
                entered += 1
        if entered > _MOST_ENTERED:
            level[found[1:count]] = 0
            return found[:1].copy(), False
        for c in range(n):
            bytes_to[max(known_step(q, c, steps), 0)] += size[c]
        for c in range(n):
            after = known_step(q, c, steps)
            if after > 0 and (
                bytes_to[after] >= _WIDE or (frequent[c] and _has_wide_step(after, steps, size))
            ):
                again |= after == state
                if level[after] == 0:
                    found[count], level[after] = after, level[q] + 1
                    count += 1
        for c in range(n):
            bytes_to[max(known_step(q, c, steps), 0)] = 0
    return found[:count].copy(), again


@kernel
def _has_wide_step(state: int, steps: Steps, size: np.ndarray) -> bool:
    """Do so many bytes lead from a state to one and the same? size: int64, bytes of each column."""
    for first in range(len(size)):
        after = known_step(state, first, steps)
        if after != 0 and _bytes_alike(state, first, steps, size) >= _WIDE:
            return True
    return False


@kernel
def _bytes_alike(state: int, first: int, steps: Steps, size: np.ndarray) -> int:
    """How many bytes, counted as `size` says, of column `first` and those behind it lead from a
    state to where `first` leads?"""
    found, after = 0, known_step(state, first, steps)
    for c in range(first, len(size)):
        found += size[c] if known_step(state, c, steps) == after else 0
    return found


@kernel
def goes_with(
    state: int,
    collapsed: Collapsed,
    number: int,
    shown: np.ndarray,
    steps: Steps,
    trie: Trie,
    watch: np.ndarray,
) -> tuple[bool, np.ndarray]:
    """(Do all states to which the words of a collapsed trie lead from `state` treat the bytes of
    each class alike, and is it worth while? bool [256], the bytes that lead from `state`, which
    need not do so, elsewhere than most of their class: those are to be read in the trie.) shown:
    int32 [n_states], where the first is known, by the number of the classes, and by its negative
    where all states that follow do so too: for scratch, to be kept between calls."""
    begin, apart, worth = beginnings(state, np.zeros(256, np.bool_), collapsed, steps, trie)
    for byte in range(256):
        apart[byte] &= collapsed.classes[byte] >= 0
    if not worth:
        return False, apart
    all_follow = _all_alike(begin, collapsed.classes, number, shown, steps, watch)
    return all_follow or _words_alike(begin, collapsed, number, shown, steps, watch), apart


@kernel
def _all_alike(
    begin: np.ndarray,
    classes: np.ndarray,
    number: int,
    shown: np.ndarray,
    steps: Steps,
    watch: np.ndarray,
) -> bool:
    """Do some states (int32 [256], or 0), and all that follow them by bytes that have a class,
    treat the bytes of each class alike? Those of a string do, and are few; where there are more
    than `_MOST_FOLLOWING`, the answer is no."""
    found, n, at = np.empty(_MOST_FOLLOWING, np.int32), 0, -1
    while at < n:
        for byte in range(256):
            if classes[byte] != byte:  # one of each class is enough
                continue
            q, known = begin[byte] if at < 0 else step(found[at], byte, steps), 0
            while known < n and found[known] != q:
                known += 1
            if q == 0 or shown[q] == -number or known < n:
                continue
            if n == len(found) or not _is_shown(q, classes, number, shown, steps):
                return False
            found[n] = q
            n += 1
        at += 1
    if stopped(watch):
        return False
    for q in found[:n]:
        shown[q] = -number
    return True


@kernel
def _words_alike(
    begin: np.ndarray,
    collapsed: Collapsed,
    number: int,
    shown: np.ndarray,
    steps: Steps,
    watch: np.ndarray,
) -> bool:
    """The same of the states to which words lead."""
    label, parent, skip = collapsed.label, collapsed.parent, collapsed.skip
    found, node = np.zeros(len(label), np.int32), 1
    while node < len(label) and not poll(watch):
        above = parent[node]
        q = begin[label[node]]
        if above > 0:
            q = step(found[above], label[node], steps)
        found[node] = q
        if q != 0 and not _is_shown(q, collapsed.classes, number, shown, steps):
            return False
        node = node + 1 if q != 0 else skip[node]
    return True


@kernel
def _is_shown(
    state: int, classes: np.ndarray, number: int, shown: np.ndarray, steps: Steps
) -> bool:
    """`_treats_alike`, which is looked at once."""
    if abs(shown[state]) == number:
        return True
    alike = _treats_alike(state, classes, steps)
    if alike:
        shown[state] = number
    return alike


@kernel
def _treats_alike(state: int, classes: np.ndarray, steps: Steps) -> bool:
    """Does a state treat the bytes of each class alike, and read none that are UNREAD?"""
    for byte in range(256):
        c, after = classes[byte], known_step(state, steps.byte_class[byte], steps)
        if c == LEAVES:
            continue
        if after != (0 if c == UNREAD else known_step(state, steps.byte_class[c], steps)):
            return False
    return True


@kernel
def beginnings(
    state: int,
    alone: np.ndarray,
    collapsed: Collapsed,
    steps: Steps,
    trie: Trie,
) -> tuple[np.ndarray, np.ndarray, bool]:
    """How words begin at a state that may treat bytes of one class differently. alone: bool [256],
    bytes that are to be walked in the trie. Returns (int32 [256], for each class, by its first
    byte, the state after most of its bytes, 0 for none; bool [256], the bytes that lead elsewhere:
    tokens that begin with them are to be walked in the trie; is that no more than half of it, and
    is the collapsed trie no larger than what the state reads of the trie, or small?)."""
    classes, apart, first = collapsed.classes, np.zeros(256, np.bool_), trie.first
    votes, after, target = np.zeros(256, np.int16), np.zeros(256, np.int32), np.zeros(256, np.int32)
    for byte in range(256):
        c, q = classes[byte], step(state, byte, steps)
        after[byte] = q
        if c < 0 or alone[byte]:
            continue
        if votes[c] == 0:
            target[c], votes[c] = q, 1
        else:
            votes[c] += 1 if q == target[c] else -1
    read, below = 0, 0
    for byte in range(256):
        c, q = classes[byte], after[byte]
        if c < 0:
            apart[byte] = c == UNREAD and q != 0
        else:
            apart[byte] = alone[byte] or q != target[c]
        if q != 0:
            read += first[byte + 1] - first[byte]
            below += first[byte + 1] - first[byte] if apart[byte] else 0
    size = len(collapsed.label) + len(collapsed.node) + len(collapsed.leaving)
    return target, apart, 2 * below <= len(trie.label) and size <= read + _SMALL


@kernel
def states_after(
    state: int,
    begin: np.ndarray,
    collapsed: Collapsed,
    steps: Steps,
) -> np.ndarray:
    """int32: the DFA state after the word of each node. begin: of `beginnings` for `state`."""
    label, parent, skip = collapsed.label, collapsed.parent, collapsed.skip
    found = np.zeros(len(label), np.int32)
    node, found[0] = 1, state
    while node < len(label):
        above = parent[node]
        q = begin[label[node]]
        if above > 0:
            q = step(found[above], label[node], steps)
        found[node] = q
        node = node + 1 if q != 0 else skip[node]
    return found


@kernel
def clear_beginning(bytes_: np.ndarray, trie: Trie, bits: np.ndarray) -> None:
    """Take the tokens that begin with some bytes (bool [256], or none) out of packed ids."""
    for byte in range(len(bytes_)):
        for node in range(trie.first[byte], trie.first[byte + 1] if bytes_[byte] else 0):
            token = trie.token[node]
            if token >= 0:
                bits[token >> 5] &= ~(np.int32(1) << np.int32(token & 31))


@kernel
def full_row(
    collapsed: Collapsed, free_after: np.ndarray, bound_after: np.ndarray, n_ids: int
) -> np.ndarray:
    """Packed int32, the free ids and then the bound ones: those of a row if the DFA reads all of
    the collapsed trie, and all nodes are ALIVE. Ids behind a leaving byte are not among them."""
    n_words = (n_ids + 31) >> 5
    both = np.zeros(2 * n_words, np.int32)
    for g in range(len(collapsed.token_class)):
        for side in range(2):
            after = (bound_after if side == 1 else free_after)[collapsed.token_class[g]]
            if collapsed.text[g] >= 0 and after >= 0:
                _set_group(both[side * n_words :], collapsed, g)
    return both


@kernel
def _set_group(bits: np.ndarray, collapsed: Collapsed, group: int) -> None:
    for i in range(collapsed.start[group], collapsed.start[group + 1]):
        token = collapsed.ids[i]
        bits[token >> 5] |= np.int32(1) << np.int32(token & 31)


@kernel
def clear_group(bits: np.ndarray, collapsed: Collapsed, group: int) -> None:
    """Take the ids of a group out of packed ids."""
    for i in range(collapsed.start[group], collapsed.start[group + 1]):
        token = collapsed.ids[i]
        bits[token >> 5] &= ~(np.int32(1) << np.int32(token & 31))


@kernel
def n_readable(classes: np.ndarray, trie: Trie) -> int:
    """How many nodes of the trie there are above bytes that nothing reads, or that leave."""
    node, count = 0, 0
    while node < len(trie.label):
        read = classes[trie.label[node]] >= 0
        count += read
        node = node + 1 if read else trie.skip[node]
    return count


@kernel
def collapse(
    classes: np.ndarray,
    pair: np.ndarray,
    token_classes: np.ndarray,
    texts: np.ndarray,
    trie: Trie,
    watch: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """The fields of `Collapsed`. classes: int16 [256], of `partition`. pair: int32, for each node
    of the trie which pair (token_classes, texts: int32) of class and text is that of its token, -1
    for none."""
    words, groups, ids, leaving = _words(classes, pair, trie, watch)
    order, position = _depth_first(words[:, 0], words[:, 1])
    depth, parent = np.zeros(len(order), np.int32), np.zeros(len(order), np.int32)
    for i in range(1, len(order)):
        parent[i] = position[words[order[i], 2]]
        depth[i] = depth[parent[i]] + 1
    by_node = _sorted(groups[:, 1], len(token_classes))
    by_node = by_node[_sorted(position[groups[by_node, 0]], len(order))]
    leaving = leaving[_sorted(position[leaving[:, 1]], len(order))]
    node, number, size = position[groups[by_node, 0]], groups[by_node, 1], groups[by_node, 2]
    start = np.zeros(len(groups) + 1, np.int32)
    start[1:] = np.cumsum(size)
    to, sorted_ids = np.empty(len(groups), np.int32), np.empty(len(ids), np.int32)
    to[by_node] = start[:-1]
    for i in range(len(ids)):
        group = ids[i, 1]
        sorted_ids[to[group]] = ids[i, 0]
        to[group] += 1
    return (
        classes,
        words[order, 3].astype(np.uint8),
        parent,
        skips(depth),
        node,
        token_classes[number],
        texts[number],
        start,
        sorted_ids,
        position[leaving[:, 1]],
        leaving[:, 0].copy(),
    )


@kernel
def _words(
    classes: np.ndarray, pair: np.ndarray, trie: Trie, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """In the order in which they are met, int32, the root first: (the collapsed nodes: first child,
    next sibling, parent, class, the group met last; groups: collapsed node, pair, how many ids;
    ids: id, group; where a byte leaves: the node of the trie, the collapsed node above it)."""
    room, counts = _WORDS, np.zeros(4, np.int64)
    ids, leaving = np.empty((len(pair), 2), np.int32), np.empty((len(pair), 2), np.int32)
    words, groups = np.empty((room, 5), np.int32), np.empty((room, 3), np.int32)
    while counts[0] == 0:  # each turn but the last doubles the tables
        room = 2 * room
        words, groups = np.empty((room, 5), np.int32), np.empty((room, 3), np.int32)
        slots = np.full((2, table_size(room)), EMPTY, np.int64)
        numbers = np.empty(slots.shape, np.int32)
        _numbered(classes, pair, trie, slots, numbers, words, groups, ids, leaving, counts, watch)
    n_words, n_groups, n_ids, n_leaving = counts
    return words[:n_words], groups[:n_groups], ids[:n_ids], leaving[:n_leaving]


@kernel
def _numbered(
    classes: np.ndarray,
    pair: np.ndarray,
    trie: Trie,
    slots: np.ndarray,
    numbers: np.ndarray,
    words: np.ndarray,
    groups: np.ndarray,
    ids: np.ndarray,
    leaving: np.ndarray,
    counts: np.ndarray,
    watch: np.ndarray,
) -> None:
    """Write what `_words` returns, and how many of each there are into `counts`; none, where
    `slots`, the tables of pairs of collapsed node and class, and of collapsed node and pair, have
    no room for them. (A loop of its own, which replaces no array: numba would count references to
    it at each node.)"""
    node, n_words, n_groups, n_ids, n_leaving, room = 0, 1, 0, 0, 0, len(words)
    words[0] = -1
    path = np.zeros(trie.deepest + 1, np.int32)
    labels, depths, skip, tokens = trie.label, trie.depth, trie.skip, trie.token
    while node < len(labels):
        depth, c = depths[node], classes[labels[node]]
        if depth <= _NEAR_THE_ROOT and poll(watch):  # at each node it would take as long again
            break
        above = path[depth - 1]
        if c < 0:
            if c == LEAVES:
                leaving[n_leaving, 0], leaving[n_leaving, 1] = node, above
                n_leaving += 1
            node = skip[node]
            continue
        here = words[above, 0]  # the newest child: bytes side by side are often alike
        if here < 0 or words[here, 3] != c:
            key = np.int64(above) << 8 | c
            slot = slot_of(slots[0], key)
            if slots[0, slot] != key:
                if n_words == room:
                    return
                slots[0, slot], numbers[0, slot] = key, n_words
                words[n_words, 0], words[n_words, 1] = -1, words[above, 0]
                words[n_words, 2], words[n_words, 3], words[n_words, 4] = above, c, -1
                words[above, 0] = n_words
                n_words += 1
            here = numbers[0, slot]
        path[depth] = here
        if pair[node] >= 0:
            group = words[here, 4]
            if group < 0 or groups[group, 1] != pair[node]:
                key = np.int64(here) << 32 | pair[node]
                slot = slot_of(slots[1], key)
                if slots[1, slot] != key:
                    if n_groups == room:
                        return
                    slots[1, slot], numbers[1, slot] = key, n_groups
                    groups[n_groups, 0], groups[n_groups, 1] = here, pair[node]
                    groups[n_groups, 2] = 0
                    n_groups += 1
                group = words[here, 4] = numbers[1, slot]
            groups[group, 2] += 1
            ids[n_ids, 0], ids[n_ids, 1] = tokens[node], group
            n_ids += 1
        node += 1
    counts[0], counts[1], counts[2], counts[3] = n_words, n_groups, n_ids, n_leaving


@kernel
def _depth_first(first: np.ndarray, next_: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(int32, the nodes in depth-first order; int32, the place of each)."""
    order, position = np.empty(len(first), np.int32), np.empty(len(first), np.int32)
    stack, open_, count = np.zeros(len(first) + 1, np.int32), 1, 0
    while open_ > 0:
        open_ -= 1
        node = stack[open_]
        order[count], position[node] = node, count
        count += 1
        child = first[node]
        while child >= 0:
            stack[open_] = child
            open_ += 1
            child = next_[child]
    return order, position


@kernel
def _sorted(keys: np.ndarray, n: int) -> np.ndarray:
    """int64: a stable order of keys below n, by counting."""
    begin = np.zeros(n + 1, np.int64)
    for key in keys:
        begin[key + 1] += 1
    begin = np.cumsum(begin)
    order = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        order[begin[keys[i]]] = i
        begin[keys[i]] += 1
    return order
