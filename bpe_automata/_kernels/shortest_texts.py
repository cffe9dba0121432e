"""Bounds on how many ids lead to acceptance, from the bytes of texts.

Every text has a canonical tokenization, and each of its ids spells at least one byte. So where some
text leads on from a configuration c to acceptance, whatever the last id was, the text's length is a
bound. Looked at are the shortest text u(q) of the byte DFA from a state q, where it will not do one
that begins with an ASCII character a of another kind and goes on with u(q a), and the texts x that
show c to be ALIVE (see `product.shown_status`), each followed by such a text:

    D(c) <= |u(q)|                        if a boundary can come at c, and u(q) follow it
    D(c) <= max { |x| + |u(q x)| : x }    where texts x show c to be ALIVE
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.collapsed import Collapsed
from bpe_automata._kernels.edges import ALL, Vocabulary, edges, text_after
from bpe_automata._kernels.fewest_tokens import NEVER
from bpe_automata._kernels.geometry import breaks
from bpe_automata._kernels.hashing import EMPTY, grown, grown_rows
from bpe_automata._kernels.links import step
from bpe_automata._kernels.masks import witness_slot
from bpe_automata._kernels.product import DEAD, Product, configuration_key, intern_state_pair
from bpe_automata._kernels.references import by_reference
from bpe_automata._kernels.status import NO_SET, Certificates, needed, status_at
from bpe_automata._kernels.trie import Trie, walk
from bpe_automata._kernels.watch import poll, stopped

NOT_YET, _NONE = -2, -1
_RECENT = 32
_PATIENCE = 4096  # ids of which `unsure` looks at what follows them
_INSIDE = 32
_SEEN = 4096  # state pairs and UTF-8 rows that `unsure` has in mind: a power of two


@by_reference
class Shortest(NamedTuple):
    """Of each DFA state at a character's end, as it was asked for. atom int32 [n_states]: the first
    atom of the shortest text, _NONE where that is empty, or leads out of state 0 of the text
    automaton; NOT_YET. reads, begins int64 [n_states, n_hypotheses / 64]: bits of the hypotheses
    with which the shortest text leads to acceptance, and of those with which it does so after a
    boundary (or may end at once). longer int32 [n_states]: bytes of the longest of the other texts,
    NOT_YET; others_read, others_begin: the bits for those."""

    atom: np.ndarray
    reads: np.ndarray
    begins: np.ndarray
    longer: np.ndarray
    others_read: np.ndarray
    others_begin: np.ndarray


@kernel
def unsure(
    state_pair: int,
    utf8_row: int,
    alone: np.ndarray,
    collapsed: Collapsed,
    none: Collapsed,
    vocabulary: Vocabulary,
    after_sides: tuple[np.ndarray, np.ndarray],
    live: tuple[np.ndarray, np.ndarray],
    known: tuple[np.ndarray, np.ndarray],
    most: int,
    certificates: Certificates,
    shortest: Shortest,
    w: Product,
) -> np.ndarray:
    """int32 [found, 3]: DFA state, text state and hypothesis set of configurations that tokens lead
    to from a state pair and a UTF-8 row: all from which some id that leads on may need more than
    `most` ids to acceptance, and perhaps others. after_sides: int32 [token_classes], the sets after
    tokens of each class; live: the configuration's row, packed ids of either side; known:
    `SetArrays.known_rows`; none: an empty one; the other arguments as of `edges`."""
    trie = vocabulary.trie
    tokens, states, apart = edges(
        w.memo.state[state_pair], w.memo.text_state[state_pair], utf8_row, alone, w.dfa.steps,
        collapsed, vocabulary, ALL, NEVER, w.watch,
    )  # fmt: skip
    need, columns = certificates.need, needed(after_sides, certificates, w)
    seen, sure = np.full(_SEEN, EMPTY, np.int64), np.zeros(_SEEN, np.bool_)
    n_groups = len(collapsed.node) if len(states) > 0 else 0
    found, n, patience = np.empty((64, 3), np.int32), 0, _PATIENCE
    for i in range(n_groups + len(tokens)):
        if i < n_groups:
            state, text = states[collapsed.node[i]], collapsed.text[i]
            token_class = collapsed.token_class[i]
        else:
            state, text = tokens[i - n_groups, 0], tokens[i - n_groups, 1]
            token_class = tokens[i - n_groups, 2]
        column = columns[token_class]
        if state == 0 or text < 0 or column == NO_SET:
            continue
        if column >= 0:
            # Hundreds of tokens lead to one state pair: what may come there, of any of these sets?
            key = (np.int64(state) * len(vocabulary.next) + text) * len(need) + column
            at = (key * -7046029254386353131 >> 40) & (_SEEN - 1)
            if seen[at] != key:
                if poll(w.watch):
                    break
                sure[at] = _all_sure(state, text, need[column], most, certificates, shortest, w)
                seen[at] = key
            if sure[at]:
                continue
        if i < n_groups:
            ids, without = collapsed.ids[collapsed.start[i] : collapsed.start[i + 1]], apart
        else:
            ids, without = tokens[i - n_groups, 3:], apart[:0]
        for side in range(2):
            number = after_sides[side][token_class]
            if number < 0 or ids_at_most(state, text, number, shortest, w) <= most:
                continue
            after = state, text, number
            some, patience = _some_may_need_more(
                ids, without, live[side], after, most, patience, trie, shortest, w
            )
            if some:
                found, n = _with_configuration(found, n, state, text, number)
    kept = 0
    for i in range(n):
        if not _goes_on_surely(found[i], alone, none, vocabulary, known, most, shortest, w):
            found[kept] = found[i]
            kept += 1
    return found[:kept].copy()


@kernel
def _some_may_need_more(
    ids: np.ndarray,
    without: np.ndarray,
    live: np.ndarray,
    after: tuple[int, int, int],
    most: int,
    patience: int,
    trie: Trie,
    shortest: Shortest,
    w: Product,
) -> tuple[bool, int]:
    """Of ids that lead to one configuration (state, text, set): is it not known of some in a packed
    row, that does not begin with a byte of `without`, that `most` ids are enough after it? And for
    how many ids there is patience left."""
    state, text, number = after
    for token in ids:
        if len(without) > 0 and without[trie.data[trie.start[token]]]:
            continue
        if not (live[token >> 5] >> (token & 31)) & 1:
            continue
        patience -= 1
        if patience < 0 or not _follower_at_most(
            token, state, text, number, most, trie, shortest, w
        ):
            return True, patience
    return False, patience


@kernel
def _follower_at_most(
    token: int,
    state: int,
    text: int,
    number: int,
    most: int,
    trie: Trie,
    shortest: Shortest,
    w: Product,
) -> bool:
    """After an id that led to a configuration, does a remembered follower (`product.Witnesses`, or
    of the fixed set, `FixedSet.leading`) show that `most` more ids are enough?"""
    if number == w.fixed_set.number and text == 0:
        for lead in w.fixed_set.leading[state]:
            if lead == 0:
                break
            data = trie.data[trie.start[lead - 1] : trie.start[lead]]
            q = walk(w.dfa.steps, state, data)
            if (
                q != 0
                and not breaks(token, lead - 1, w.pairs)
                and ids_at_most(q, 0, number, shortest, w) < most
            ):
                return True
        return False
    key = configuration_key(token, number)
    at = witness_slot(key, w.witnesses)
    if w.witnesses.key[at] != key or w.witnesses.id[at] < 0:
        return False
    n, after = w.witnesses.id[at], w.witnesses.after[at]
    data = trie.data[trie.start[n] : trie.start[n + 1]]
    q = walk(w.dfa.steps, state, data)
    a = text_after(text, w.sets.utf8_row[number], data, w.reading.utf8, w.added.next)
    return q != 0 and a >= 0 and ids_at_most(q, a, after, shortest, w) < most


@kernel
def _goes_on_surely(
    configuration: np.ndarray,
    alone: np.ndarray,
    none: Collapsed,
    vocabulary: Vocabulary,
    known: tuple[np.ndarray, np.ndarray],
    most: int,
    shortest: Shortest,
    w: Product,
) -> bool:
    """Inside a character: is it known of all configurations that tokens lead to from this one
    (int32: DFA state, text state, set) that it takes at most `most` - 1 ids from there? Then
    whatever leads on from here needs at most `most`. Configurations that are inside a character too
    are looked at in the same way, _INSIDE of them at most."""
    open_, n, done = np.empty((_INSIDE, 4), np.int32), 1, 0
    open_[0, :3], open_[0, 3] = configuration, most
    while done < n and not poll(w.watch):
        state, text, number, left = open_[done, 0], open_[done, 1], open_[done, 2], open_[done, 3]
        done, utf8_row = done + 1, w.sets.utf8_row[number]
        if utf8_row == 0 or left == 0 or number >= len(known[0]) or known[0][number] < 0:
            return False
        after = known[1][known[0][number]]
        tokens, _, _ = edges(
            state, text, utf8_row, alone, w.dfa.steps, none, vocabulary, ALL,
            NEVER, w.watch,
        )  # fmt: skip
        for i in range(len(tokens)):
            q, a, number = tokens[i, 0], tokens[i, 1], after[tokens[i, 2]]
            if number < 0 or ids_at_most(q, a, number, shortest, w) < left:
                continue
            if status_at(intern_state_pair(q, a, w), number, w) == DEAD:
                continue
            met = False
            for j in range(n):
                same = open_[j, 0] == q and open_[j, 1] == a and open_[j, 2] == number
                met |= same and open_[j, 3] < left
            if not met:
                if n == len(open_):
                    return False
                open_[n, 0], open_[n, 1], open_[n, 2], open_[n, 3] = q, a, number, left - 1
                n += 1
    return done == n


@kernel
def _all_sure(
    state: int,
    text: int,
    need: np.ndarray,
    most: int,
    c: Certificates,
    shortest: Shortest,
    w: Product,
) -> bool:
    """Do all certificates of some bits show that it takes at most so many ids from a state pair?"""
    for word in range(len(need)):
        left = need[word]
        for bit in range(64):
            if left == 0:
                break
            if (left >> bit) & 1:
                left &= ~(np.int64(1) << bit)
                k = 64 * word + bit
                if c.ends[k] and w.dfa.accepting[state] and w.added.ends[text]:
                    continue
                if _shown_at_most(state, text, c.shown[k], c.whole[k], shortest, w) > most:
                    return False
    return True


@kernel
def _with_configuration(
    found: np.ndarray, n: int, state: int, text: int, number: int
) -> tuple[np.ndarray, int]:
    """Append a configuration, if it is none of the last few."""
    for i in range(max(0, n - _RECENT), n):
        if found[i, 0] == state and found[i, 1] == text and found[i, 2] == number:
            return found, n
    if n == len(found):
        found = grown_rows(found)
    found[n, 0], found[n, 1], found[n, 2] = state, text, number
    return found, n + 1


@kernel
def all_at_most(
    state_pairs: np.ndarray, numbers: np.ndarray, shortest: Shortest, w: Product
) -> np.ndarray:
    """int32: `ids_at_most` of many configurations."""
    found = np.full(len(state_pairs), NEVER, np.int32)
    for i in range(len(state_pairs)):
        if poll(w.watch):
            break
        state_pair = state_pairs[i]
        state, text = w.memo.state[state_pair], w.memo.text_state[state_pair]
        found[i] = ids_at_most(state, text, numbers[i], shortest, w)
    return found


@kernel
def ids_at_most(state: int, text: int, number: int, shortest: Shortest, w: Product) -> int:
    """A bound on the ids from a configuration to acceptance, whatever the last id was; NEVER where
    these texts give none."""
    whole, found = w.sets.utf8_row[number] == 0, NEVER
    if not w.sets.given_up[number]:
        found = _shown_at_most(state, text, w.sets.shown[number], whole, shortest, w)
    if whole:
        found = min(found, _beginning_at_most(state, text, number, shortest, w))
    return found


@kernel
def _shown_at_most(
    state: int, text: int, shown: np.ndarray, whole: bool, shortest: Shortest, w: Product
) -> int:
    """`ids_at_most` by texts that show a configuration to be ALIVE, int32 [ways, 3] as in
    `product.Sets`. whole: is the configuration at a character's end?"""
    most = 0
    for i in range(len(shown)):
        code, atom = shown[i, 1], shown[i, 2]
        if code == 0:
            return most if i > 0 else NEVER
        if w.added.next[0, atom] != 0 or w.added.next[text, atom] != 0:
            return NEVER
        q, packed, hypothesis = state, shown[i, 0], (code >> 2) - 1
        for _ in range(code & 3):
            q = step(q, packed & 0xFF, w.dfa.steps)
            packed >>= 8
        after = _bytes_at_most(q, hypothesis, not whole, shortest, w)
        if after == NEVER:
            return NEVER
        most = max(most, (code & 3) + after)
    return most


@kernel
def _bytes_at_most(state: int, h: int, begins: bool, shortest: Shortest, w: Product) -> int:
    """Of a text that leads from a hypothesis to acceptance; does it begin with a boundary, or end
    at once? NEVER: none is known."""
    if state == 0 or w.fixed_set.distance[state] < 0:
        return NEVER
    _know(state, shortest, w)
    bits = shortest.begins if begins else shortest.reads
    if (bits[state, h >> 6] >> (h & 63)) & 1:
        return w.fixed_set.distance[state]
    _know_others(state, shortest, w)
    bits = shortest.others_begin if begins else shortest.others_read
    if shortest.longer[state] != NOT_YET and (bits[state, h >> 6] >> (h & 63)) & 1:
        return shortest.longer[state]
    return NEVER


@kernel
def _beginning_at_most(state: int, text: int, number: int, shortest: Shortest, w: Product) -> int:
    """Bytes of a text to acceptance at a configuration, behind a boundary (or the text ends)."""
    if state == 0 or w.fixed_set.distance[state] < 0:
        return NEVER
    _know(state, shortest, w)
    if text != 0:
        atom = shortest.atom[state]
        if atom < 0:
            if w.fixed_set.distance[state] > 0 or not w.added.ends[text]:
                return NEVER
        elif w.added.next[text, atom] != 0:
            return NEVER
    found = NEVER
    for m in range(w.sets.start[number], w.sets.start[number + 1]):
        h = w.sets.hypothesis[m]
        if not w.sets.may_break[m]:
            continue
        if text == 0:
            found = min(found, _bytes_at_most(state, h, True, shortest, w))
        elif (shortest.begins[state, h >> 6] >> (h & 63)) & 1:
            return int(w.fixed_set.distance[state])
    return found


@kernel
def _know(state: int, shortest: Shortest, w: Product) -> None:
    """Make `shortest` of a state known, and of those that its shortest text leads through: fewer
    than the DFA has, since each is nearer to acceptance."""
    if shortest.atom[state] != NOT_YET:
        return
    path, after, n = np.empty(64, np.int32), np.empty(64, np.int32), 0
    while shortest.atom[state] == NOT_YET:
        if w.fixed_set.distance[state] == 0:
            shortest.atom[state] = _NONE
            if w.dfa.accepting[state] and w.added.ends[0]:
                for h in range(len(w.reading.ends)):
                    if w.reading.ends[h]:
                        shortest.reads[state, h >> 6] |= np.int64(1) << (h & 63)
                        shortest.begins[state, h >> 6] |= np.int64(1) << (h & 63)
            break
        path, after = grown(path, n), grown(after, n)
        path[n], atom = state, _NONE
        after[n], atom = _shortest_character(state, w)
        shortest.atom[state] = atom
        if atom < 0:
            break
        state = after[n]
        n += 1
    for i in range(n - 1, -1, -1):
        if poll(w.watch):
            for j in range(i + 1):
                shortest.atom[path[j]] = NOT_YET
            return
        bits = shortest.reads, shortest.begins
        _read_back(path[i], after[i], shortest.atom[path[i]], shortest, bits, w)


@kernel
def _know_others(state: int, shortest: Shortest, w: Product) -> None:
    """Make known what texts do that begin with an ASCII character, the nearest of each kind."""
    if shortest.longer[state] != NOT_YET:
        return
    n_coarse = (len(w.reading.step_start) - 1) // (2 * len(w.reading.ends))
    nearest, longest = np.full(n_coarse, -1, np.int32), 0
    for byte in range(128):
        after, entry = step(state, byte, w.dfa.steps), w.reading.utf8[0, byte]
        if after == 0 or entry >= -1 or w.fixed_set.distance[after] < 0:
            continue
        if w.added.next[0, -2 - entry] != 0:
            continue
        at = w.reading.coarse[-2 - entry]
        best = nearest[at]
        if best >= 0:
            before = step(state, best, w.dfa.steps)
            if w.fixed_set.distance[before] <= w.fixed_set.distance[after]:
                continue
        nearest[at] = byte
    for at in range(n_coarse):
        byte = int(nearest[at])
        if poll(w.watch):
            return
        if byte >= 0:
            after = step(state, byte, w.dfa.steps)
            _know(after, shortest, w)
            bits = shortest.others_read, shortest.others_begin
            _read_back(state, after, -2 - w.reading.utf8[0, byte], shortest, bits, w)
            longest = max(longest, 1 + int(w.fixed_set.distance[after]))
    if not stopped(w.watch):
        shortest.longer[state] = longest


@kernel
def _shortest_character(state: int, w: Product) -> tuple[int, int]:
    """(the state after it, the atom): the first character of the shortest text; (0, _NONE) where it
    begins with no character, or one that leads out of state 0 of the text automaton."""
    utf8_row = 0
    for _ in range(4):
        for byte in range(256):
            after = step(state, byte, w.dfa.steps)
            entry = w.reading.utf8[utf8_row, byte]
            if (
                after != 0
                and entry != -1
                and w.fixed_set.distance[after] == w.fixed_set.distance[state] - 1
            ):
                break
        else:
            return 0, _NONE
        state, utf8_row = after, entry
        if utf8_row < 0:
            return (state, -2 - utf8_row) if w.added.next[0, -2 - utf8_row] == 0 else (0, _NONE)
    return 0, _NONE


@kernel
def _read_back(
    state: int,
    after: int,
    atom: int,
    shortest: Shortest,
    bits: tuple[np.ndarray, np.ndarray],
    w: Product,
) -> None:
    """Add to the bits of a state the hypotheses from which the text reads that goes on from `after`
    with the shortest one; the second: behind a boundary."""
    n = len(w.reading.ends)
    n_coarse = (len(w.reading.step_start) - 1) // (2 * n)
    for boundary in range(2):
        for h in range(n):
            index = (boundary * n + h) * n_coarse + w.reading.coarse[atom]
            for j in range(w.reading.step_start[index], w.reading.step_start[index + 1]):
                to = w.reading.step_to[j]
                if (shortest.reads[after, to >> 6] >> (to & 63)) & 1:
                    bits[0][state, h >> 6] |= np.int64(1) << (h & 63)
                    if boundary == 1:
                        bits[1][state, h >> 6] |= np.int64(1) << (h & 63)
                    break
