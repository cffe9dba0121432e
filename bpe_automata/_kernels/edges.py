"""Edges: where each token leads from a state pair, whatever the hypotheses.

    edges(q, a) = { (token, d(q, token), e(a, token)) : both automata read the token }

with the steps d of the DFA, whose state 0 is dead, and e of the text automaton, which begins in its
state 0. Rows, successors, dead ids and distances are functions of these. What a hypothesis set
makes of a token depends on the token's class alone, so tokens of one class that lead to the same
state pair are alike: they are a group. In the lift there is one class, and one text state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.collapsed import Collapsed, beginnings, states_after
from bpe_automata._kernels.fewest_tokens import NEVER, Towards
from bpe_automata._kernels.hashing import EMPTY, slot_of, table_size, with_room
from bpe_automata._kernels.links import Steps, known_step, step
from bpe_automata._kernels.product import Product, intern_state_pair
from bpe_automata._kernels.references import by_reference
from bpe_automata._kernels.trie import Trie
from bpe_automata._kernels.watch import poll

_CLASS_BITS, _GROUPS = 20, 256
_NEAR_THE_ROOT = 2  # where the clock is looked at: less than a millisecond is spent further down
MOST_TOKEN_CLASSES, MOST_STATE_PAIRS = 1 << _CLASS_BITS, 1 << (63 - _CLASS_BITS)
ALL = NEVER  # bytes, of tokens that may be of any length


@by_reference
class Nodes(NamedTuple):
    """What each node of the trie stands for, int32 [nodes]: token_class, the token's class (0: no
    token that can be read); text, state of the text automaton after the token from state 0 and
    UTF-8 row 0 (-1: none); first, the atom of its first character (-1: it begins with a part of
    one)."""

    token_class: np.ndarray
    text: np.ndarray
    first: np.ndarray


@by_reference
class Vocabulary(NamedTuple):
    """The tokens, as a trie; utf8, next: tables of UTF-8 and of the text automaton. towards: which
    states are near acceptance, or `ANYWHERE`. Of tokens there may be MOST_TOKEN_CLASSES classes,
    and MOST_STATE_PAIRS pairs of a state of the DFA and one of the text automaton."""

    trie: Trie
    nodes: Nodes
    utf8: np.ndarray
    next: np.ndarray
    towards: Towards


@kernel
def edges(
    state: int,
    text: int,
    utf8_row: int,
    alone: np.ndarray,
    steps: Steps,
    collapsed: Collapsed,
    vocabulary: Vocabulary,
    deepest: int,
    left: int,
    watch: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The edges from a state of the DFA, one of the text automaton, and UTF-8 row `utf8_row` of a
    character: (int32 [n, 4]: DFA state and text state after a token, its class and its id, for the
    tokens that are read in the full trie; int32: the DFA state after each node of the collapsed
    trie, of length 0 if that is not used; bool [256]: the bytes apart, whose tokens are read in the
    full trie although the collapsed one has them, of length 0 if there are none).

    alone: bool [256], bytes that begin characters which `text` may read otherwise than state 0, or
    with which the DFA leaves the region (see `_kernels.collapsed`); collapsed: the trie for that
    region, at a character's end, or nothing. Left out are tokens of more than `deepest` bytes; and,
    where at most `left` more tokens may follow (NEVER: any number), those that lead to states with
    towards.lower > left, and of those read in the full trie some others that are too far away.
    """
    trie, towards = vocabulary.trie, vocabulary.towards
    apart, worth, states = np.zeros(256, np.bool_), False, np.empty(0, np.int32)
    # Where only tokens that go far are near enough, the trie is left at most of its nodes.
    pruned = left < NEVER and 4 * (towards.far[state] - towards.most * left) > towards.most
    if len(collapsed.label) > 0 and not pruned and deepest >= trie.deepest:
        begin, apart, worth = beginnings(state, alone, collapsed, steps, trie)
    if not worth:
        apart[:] = True
        begins = _by_bytes(state, apart, steps, trie)
        tokens = _read_trie(begins, text, utf8_row, alone, steps, vocabulary, deepest, left, watch)
        return tokens, states, apart[:0]
    for byte in range(256):
        after = known_step(state, steps.byte_class[byte], steps)
        if vocabulary.utf8[utf8_row, byte] == -1 and after != 0:
            apart[byte] = True
    states = states_after(state, begin, collapsed, steps)
    begins = _leaving(collapsed, states, trie)
    tokens = _read_trie(begins, text, utf8_row, alone, steps, vocabulary, deepest, left, watch)
    if not apart.any():
        return tokens, states, apart[:0]
    # What begins with a byte apart is read from where that leads.
    tokens = tokens[~apart[trie.data[trie.start[tokens[:, 3]]]]]
    begins = _by_bytes(state, apart, steps, trie)
    more = _read_trie(begins, text, utf8_row, alone, steps, vocabulary, deepest, left, watch)
    return np.concatenate((tokens, more)), states, apart


@kernel
def grouped_edges(
    state: int,
    text: int,
    utf8_row: int,
    alone: np.ndarray,
    steps: Steps,
    collapsed: Collapsed,
    vocabulary: Vocabulary,
    left: int,
    watch: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The edges in groups that lead alike: (rows (DFA state, text state, class) int32 [groups, 3];
    start int32 [groups + 1] into; ids int32). Arguments as of `edges`."""
    lower = vocabulary.towards.lower
    tokens, states, apart = edges(
        state, text, utf8_row, alone, steps, collapsed, vocabulary, ALL, left, watch
    )
    items, n = np.empty((len(states) and len(collapsed.node), 4), np.int32), 0
    for group in range(len(items)):
        q, after = states[collapsed.node[group]], collapsed.text[group]
        if q != 0 and after >= 0 and not (left < NEVER and lower[q] > left):
            items[n, 0], items[n, 1], items[n, 2], items[n, 3] = (
                q,
                after,
                collapsed.token_class[group],
                group,
            )
            n += 1
    return _grouped(items[:n], tokens, len(vocabulary.next), vocabulary.trie, collapsed, apart)


@kernel
def _leaving(collapsed: Collapsed, states: np.ndarray, trie: Trie) -> np.ndarray:
    """int32 [n, 3]: the nodes where the trie goes on after the collapsed one, where what is below
    them ends, and the state above."""
    found, n = np.empty((len(collapsed.leaving), 3), np.int32), 0
    for i in range(len(collapsed.leaving)):
        node, q = collapsed.leaving[i], states[collapsed.leaving_from[i]]
        if q != 0:
            found[n, 0], found[n, 1], found[n, 2] = node, trie.skip[node], q
            n += 1
    return found[:n]


@kernel
def _by_bytes(state: int, bytes_: np.ndarray, steps: Steps, trie: Trie) -> np.ndarray:
    """As `_leaving`, of what begins with those bytes of a bool [256] that the state reads."""
    found, n = np.empty((256, 3), np.int32), 0
    for byte in range(256):
        if bytes_[byte] and known_step(state, steps.byte_class[byte], steps) != 0:
            found[n, 0], found[n, 1], found[n, 2] = trie.first[byte], trie.first[byte + 1], state
            n += 1
    return found[:n]


@kernel
def _read_trie(
    begins: np.ndarray,
    before: int,
    utf8_row: int,
    alone: np.ndarray,
    steps: Steps,
    vocabulary: Vocabulary,
    deepest: int,
    left: int,
    watch: np.ndarray,
) -> np.ndarray:
    """int32 [n, 4]: what some parts of the trie lead to, see `edges`. begins: int32 [k, 3], the
    first node of each, the one behind the last, and the state above."""
    trie, towards, nodes = vocabulary.trie, vocabulary.towards, vocabulary.nodes
    label, depths, skip, ids = trie.label, trie.depth, trie.skip, trie.token
    token_classes, texts = nodes.token_class, nodes.text
    utf8, bounded, size = vocabulary.utf8[utf8_row], left < NEVER, 0
    plain = utf8_row == 0 and before == 0
    for i in range(len(begins)):
        size += begins[i, 1] - begins[i, 0]
    path, found, n = np.empty(trie.deepest + 1, np.int32), np.empty((size, 4), np.int32), 0
    for i in range(len(begins)):
        node, end = begins[i, 0], begins[i, 1]
        if node == end:
            continue
        path[depths[node] - 1] = begins[i, 2]
        if poll(watch):
            break
        while node < end:
            depth, here = depths[node], node
            if depth <= _NEAR_THE_ROOT and poll(watch):
                break
            q = step(path[depth - 1], label[node], steps)
            if q == 0 or (depth == 1 and utf8[label[node]] == -1):
                node = skip[node]
                continue
            if bounded and towards.far[q] - towards.gain[node] > towards.most * left:
                node = skip[node]
                continue
            path[depth] = q
            node = skip[node] if depth == deepest else node + 1
            if token_classes[here] != 0 and not (bounded and towards.lower[q] > left):
                text = texts[here] if plain else _text_at(here, before, utf8_row, alone, vocabulary)
                if text >= 0:
                    found[n, 0], found[n, 1], found[n, 2] = q, text, token_classes[here]
                    found[n, 3] = ids[here]
                    n += 1
    return found[:n]


@kernel
def _text_at(
    node: int, before: int, utf8_row: int, alone: np.ndarray, vocabulary: Vocabulary
) -> int:
    """State of the text automaton after the token of a node, -1 where no text goes on so."""
    # It depends on the text before only if the token's first character does, or, of a token that is
    # no more than the beginning of one, if some such character does.
    trie, next_ = vocabulary.trie, vocabulary.next
    first, token = vocabulary.nodes.first[node], trie.token[node]
    if utf8_row == 0 and first >= 0 and next_[before, first] == next_[0, first]:
        return vocabulary.nodes.text[node]
    if utf8_row == 0 and first < 0 and not alone[trie.data[trie.start[token]]]:
        return vocabulary.nodes.text[node]
    data = trie.data[trie.start[token] : trie.start[token + 1]]
    return text_after(before, utf8_row, data, vocabulary.utf8, next_)


@kernel
def text_after(
    text: int, utf8_row: int, data: np.ndarray, utf8: np.ndarray, next_: np.ndarray
) -> int:
    """State of the text automaton after bytes, from a UTF-8 row; -1 where no text goes on so."""
    entry = utf8_row
    for byte in data:
        entry = utf8[max(entry, 0), byte]
        if entry == -1:
            return -1
        if entry < -1:
            text = next_[text, -2 - entry]
            if text < 0:
                return -1
    return text


@kernel
def _grouped(
    groups: np.ndarray,
    tokens: np.ndarray,
    n_texts: int,
    trie: Trie,
    collapsed: Collapsed,
    apart: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `grouped_edges` returns of groups of the collapsed trie, int32 [n, 4]: state, text,
    class and number; without tokens that begin with a byte apart; and of tokens, of `edges`; in the
    order in which they are met."""
    n_items, first, n = len(groups) + len(tokens), 0, 0
    slots = np.full(table_size(_GROUPS), EMPTY, np.int64)
    values = np.empty(len(slots), np.int32)
    rows, size = np.empty((n_items, 3), np.int32), np.zeros(n_items, np.int32)
    to_row = np.zeros(n_items, np.int32)
    while first < n_items:  # each turn but the last doubles the table
        first, n = _numbered(
            first, n, groups, tokens, n_texts, trie, collapsed, apart, slots, values, rows, size,
            to_row,
        )  # fmt: skip
        if first < n_items:
            slots, values = with_room(slots, values, 2 * n)
    start = np.zeros(n + 1, np.int32)
    for row in range(n):
        start[row + 1] = start[row] + size[row]
    ids, to = np.empty(start[n], np.int32), start.copy()
    all_ids, starts, some = collapsed.ids, collapsed.start, len(apart) > 0
    for i in range(len(groups)):
        low, high = starts[groups[i, 3]], starts[groups[i, 3] + 1]
        at = to[to_row[i]]
        for k in range(low, high):
            if not some or not apart[trie.data[trie.start[all_ids[k]]]]:
                ids[at] = all_ids[k]
                at += 1
        to[to_row[i]] = at
    for i in range(len(tokens)):
        row = to_row[len(groups) + i]
        ids[to[row]] = tokens[i, 3]
        to[row] += 1
    return rows[:n].copy(), start, ids


@kernel
def _numbered(
    first: int,
    n: int,
    groups: np.ndarray,
    tokens: np.ndarray,
    n_texts: int,
    trie: Trie,
    collapsed: Collapsed,
    apart: np.ndarray,
    slots: np.ndarray,
    values: np.ndarray,
    rows: np.ndarray,
    size: np.ndarray,
    to_row: np.ndarray,
) -> tuple[int, int]:
    """Write for items from `first` on the number of the row that each belongs to, `to_row`, with
    what is new in `rows`, and how many ids are in each row, `size`; slots, values: the table from
    keys to rows, n of them. Returns (the first item that the table has no room for, rows)."""
    ids, starts, some = collapsed.ids, collapsed.start, len(apart) > 0
    last, value = np.int64(EMPTY), np.int32(0)
    for i in range(first, len(to_row)):
        own, t = 1, i - len(groups)
        if t >= 0:
            state, text, token_class = tokens[t, 0], tokens[t, 1], tokens[t, 2]
        else:
            state, text, token_class = groups[i, 0], groups[i, 1], groups[i, 2]
            low, high = starts[groups[i, 3]], starts[groups[i, 3] + 1]
            own = high - low
            for k in range(low, high if some else low):
                own -= apart[trie.data[trie.start[ids[k]]]]
            if own == 0:
                continue  # nothing leads there
        key = (np.int64(state) * n_texts + text) << _CLASS_BITS | token_class
        if key != last:
            at = slot_of(slots, key)
            if slots[at] != key:
                if 2 * (n + 1) > len(slots):
                    return i, n
                slots[at], values[at] = key, n
                rows[n, 0], rows[n, 1], rows[n, 2] = state, text, token_class
                n += 1
            last, value = key, values[at]
        to_row[i] = value
        size[value] += own
    return len(to_row), n


@kernel
def by_group(group_of: np.ndarray, ids: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(start int32 [n + 1], ids int32): the ids by the number of their group, in their order."""
    start = np.zeros(n + 1, np.int32)
    for g in group_of:
        start[g + 1] += 1
    for g in range(n):
        start[g + 1] += start[g]
    at, listed = start[:-1].copy(), np.empty(len(group_of), np.int32)
    for i in range(len(group_of)):
        listed[at[group_of[i]]] = ids[i]
        at[group_of[i]] += 1
    return start, listed


@kernel
def members_of(groups: np.ndarray, start: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """int64: the ids of some groups, with start int32 [all groups + 1] into ids int32."""
    count = 0
    for g in groups:
        count += start[g + 1] - start[g]
    found = np.empty(count, np.int64)
    count = 0
    for g in groups:
        for i in range(start[g], start[g + 1]):
            found[count] = ids[i]
            count += 1
    return found


@kernel
def distinct(free: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(those in either, those in `free`), int32, each once: -1 is left out."""
    at = np.full(table_size(len(free) + len(bound)), EMPTY, np.int64)
    found = np.empty(len(free) + len(bound), np.int32)
    count, n_free = 0, 0
    for side in range(2):
        for number in free if side == 0 else bound:
            if number < 0:
                continue
            slot = slot_of(at, number)
            if at[slot] != number:
                at[slot], found[count] = number, number
                count += 1
        if side == 0:
            n_free = count
    return found[:count].copy(), found[:n_free].copy()


@kernel
def intern_state_pairs(states: np.ndarray, texts: np.ndarray, w: Product) -> np.ndarray:
    """int64: `intern_state_pair` of each state, int64, with a state of the text automaton,
    int64."""
    found = np.empty(len(states), np.int64)
    for k in range(len(states)):
        found[k] = intern_state_pair(states[k], texts[k], w)
    return found
