"""Sets of boundary hypotheses, as bits: what is known about pretokens after some ids.

A member is (h, boundary, whole): h a hypothesis of the pipeline; inside a character, `boundary`
says whether there is one before that character; `whole` follows pretokens that `ignore_merges`
makes one token although BPE would not (`WholePretokens`). A set also knows the UTF-8 row of the
character being read. Set 0 is the beginning of a text.

    after(H, class) = (the set if there is a boundary at the joint, the set if there is none)

The members with one boundary and one `whole` are a *layer*, uint64 words of hypotheses; its code is
2 * (whole + 2) + boundary. Nearly all sets have one layer. Of set number k:

    described   utf8_row int32 [sets], start int64 [sets + 1]: its layers are start[k] .. start[k +
                1] - 1 (none is empty), code int32 [layers], ascending, bits uint64 [layers, words]
    told        bits uint64 [sets, 4, words]: the hypotheses after which a boundary may come, or
                none, and the latter without and with a boundary before them; ends bool [sets]: can
                a text, or a piece between added tokens, end here?
    found       slots int32, a hash table of numbers, -1 where it is free; hashes uint64 [sets],
                count int64 [1]: how many sets there are
    readable    what a set must fit: see `sets._completed`; hypotheses that may end a text, and
                nodes of `WholePretokens` that may not end a pretoken

Arrays are replaced when they grow, and only added to until then: a kernel that runs may go on with
older ones. One thread numbers sets at a time.
"""

from __future__ import annotations

import numpy as np

from bpe_automata._core.steps import BINDS, BREAKS, DONE, NEED_ROOM, WITHIN, Arrays, Int
from bpe_automata._core.token_actions import ILLEGAL, INSIDE, JOINT, MUST_END
from bpe_automata._kernels import inlined, jit
from bpe_automata._tokenizer.alphabet import DEAD

NONE = -1


@jit
def number_all(  # noqa: PLR0915 - a call for each set would take longer than the rest
    n_wanted: Int,
    wanted: Arrays,
    described: Arrays,
    told: Arrays,
    found: Arrays,
    readable: Arrays,
    numbers: np.ndarray,
) -> Int:
    """Find the number of each wanted set, NONE of an empty one. Members that no character from the
    set's UTF-8 row can follow are left out. wanted: as `described`, with empty layers or without;
    it is written over. Returns a code."""
    utf8_row, start, code, bits = described
    known, ends = told
    slots, hashes, count = found
    completed, ending, complete = readable
    rows, begins, codes, layers = wanted
    n_words, mask, m = bits.shape[1], len(slots) - 1, count[0]
    for r in range(n_wanted):
        row, begin, n = rows[r], begins[r], np.int64(0)
        h = np.uint64(row + 1) * np.uint64(0x9E3779B97F4A7C15)
        for i in range(begin, begins[r + 1]):
            some = np.uint64(0)
            for w in range(n_words):
                word = layers[i, w]
                if row > 0:
                    word &= completed[row, codes[i] & 1, w]
                layers[begin + n, w] = word
                some |= word
            if some == 0:
                continue
            codes[begin + n] = codes[i]
            h = (h ^ np.uint64(codes[i])) * np.uint64(0xD6E8FEB86659FD93)
            for w in range(n_words):
                h = (h ^ (h >> np.uint64(32)) ^ layers[begin + n, w]) * np.uint64(
                    0xD6E8FEB86659FD93
                )
            n += 1
        if n == 0:
            numbers[r] = NONE
            continue
        h ^= h >> np.uint64(29)
        at = np.int64(h & np.uint64(mask))
        while slots[at] >= 0:
            k = np.int64(slots[at])
            first = start[k]
            same = hashes[k] == h and utf8_row[k] == row and start[k + 1] - first == n
            for i in range(n if same else 0):
                same &= code[first + i] == codes[begin + i]
                for w in range(n_words):
                    same &= bits[first + i, w] == layers[begin + i, w]
            if same:
                break
            at = (at + 1) & mask
        numbers[r] = slots[at]
        if slots[at] >= 0:
            continue
        first = start[m]
        if m >= len(utf8_row) or first + n > len(code):
            return NEED_ROOM
        for i in range(n):
            one, whole = codes[begin + i], np.int64(codes[begin + i] >> 1) - 2
            code[first + i] = one
            for w in range(n_words):
                word = layers[begin + i, w]
                bits[first + i, w] = word
                if whole < 0 or not complete[whole]:
                    known[m, BREAKS, w] |= word
                    ends[m] |= row == 0 and word & ending[w] != 0
                if whole != MUST_END:
                    known[m, BINDS, w] |= word
                    known[m, WITHIN + (one & 1), w] |= word
        utf8_row[m], start[m + 1], hashes[m], slots[at], numbers[r] = row, first + n, h, m, m
        m += 1
        count[0] = m
    return DONE


@inlined
def joined(from_: np.ndarray, low: Int, relation: np.ndarray, after: np.ndarray) -> None:
    """The hypotheses after those of each layer; relation: words by hypothesis, from row `low`."""
    after[:] = 0
    for p in range(len(from_)):
        for h in range(64 * from_.shape[1]):
            if (from_[p, h >> 6] >> np.uint64(h & 63)) & np.uint64(1):
                for w in range(after.shape[1]):
                    after[p, w] |= relation[low + h, w]


@inlined
def stepped(
    codes: np.ndarray, bits: np.ndarray, atom: Int, follow: np.ndarray, after: np.ndarray
) -> None:
    """The hypotheses after a coarse atom, for each layer inside a character."""
    after[:] = 0
    for p in range(len(codes)):
        for h in range(follow.shape[1]):
            if (bits[p, h >> 6] >> np.uint64(h & 63)) & np.uint64(1):
                for w in range(bits.shape[1]):
                    after[p, w] |= follow[codes[p] & 1, h, atom, w]


@inlined
def want_after(
    side: Int,
    row: Int,
    codes: np.ndarray,
    bits: np.ndarray,
    entries: np.ndarray,
    where: np.ndarray,
    classes: Arrays,
    wanted: Arrays,
    which: np.ndarray,
    room: np.ndarray,
) -> Int:
    """List the sets after each class from a set of these layers; which: int32, its place in
    `wanted`, -1 for none; room: uint64 [2, layers, words]. entries, where: see `find_after`.
    Neighbours among the classes are mostly alike. Returns how many."""
    lead, element, tail, relations, follow, coarse = classes
    rows, begins, wanted_codes, layers = wanted
    n_classes, n_layers = len(lead), len(codes)
    base, after, entry = bits, room[0], np.int64(DEAD)
    r, n = np.int64(-1), np.int64(0)
    last: Int = np.int64(0)
    which[0] = -1
    for c in range(1, n_classes):
        which[c] = -1
        if last == 0 or lead[c] != lead[last]:
            entry, base = np.int64(entries[lead[c]]), bits
            if entry < DEAD:
                base = room[1]
                stepped(codes, bits, np.int64(coarse[-2 - entry]), follow, base)
        goes_on = entry > 0  # inside the same character
        fresh = last == 0 or lead[c] != lead[last] or element[c] != element[last]
        alike = not fresh and tail[c] == tail[last] and r >= 0
        for p in range(n_layers):
            alike &= where[p, c] == where[p, last]
        if entry != DEAD and fresh and element[c] > INSIDE:
            low = np.int64(side * follow.shape[1] if row == 0 else 0)
            joined(base, low, relations[element[c]], after)
        previous, last = last, c
        if entry == DEAD or (goes_on and (element[c] != INSIDE or tail[c] != 0)):
            continue
        if alike:
            which[c] = which[previous]
            continue
        r, begin = r + 1, n
        for p in range(n_layers):
            if where[p, c] == ILLEGAL:
                continue
            one = np.int64(2 * (where[p, c] + 2))
            if goes_on:
                one += codes[p] & 1
            elif element[c] == JOINT and tail[c] != 0:
                one += side
            i = n
            while i > begin and wanted_codes[i - 1] >= one:
                i -= 1
            if i == n or wanted_codes[i] != one:
                for k in range(n, i, -1):
                    wanted_codes[k] = wanted_codes[k - 1]
                    for w in range(layers.shape[1]):
                        layers[k, w] = layers[k - 1, w]
                n += 1
                wanted_codes[i] = one
                layers[i] = 0
            for w in range(layers.shape[1]):
                layers[i, w] |= after[p, w] if element[c] > INSIDE else base[p, w]
        rows[r], begins[r + 1], which[c] = entry if goes_on else tail[c], n, r
    return r + 1


@jit
def find_after(
    H: Int,
    entries: np.ndarray,
    where: np.ndarray,
    classes: Arrays,
    described: Arrays,
    told: Arrays,
    found: Arrays,
    readable: Arrays,
    found_sets: np.ndarray,
    wanted: Arrays,
    listed: np.ndarray,
    room: np.ndarray,
) -> Int:
    """Find the sets after a token of each class from a set, int32 [2, classes]: with a boundary
    before the token and without. entries: int64 [leads], what there is after each lead from the
    set's UTF-8 row: another row inside the same character, -2 - its atom, or DEAD; without a lead
    0, at a character's end. where: int32 [2, layers, classes], where each class leads in
    `WholePretokens`, without a boundary before the token and with one. wanted: room for as
    many sets as there are classes, each of as many layers as the set has; listed: int32 [2,
    classes]; room: see `want_after`. Returns a code."""
    utf8_row, start, code, bits = described
    first, last, row = start[H], start[H + 1], np.int64(utf8_row[H])
    n, which, numbers = found_sets.shape[1], listed[0], listed[1]
    for side in range(1 if row > 0 else 2):  # inside a character there is no boundary
        codes, members = code[first:last], bits[first:last]
        m = want_after(
            side, row, codes, members, entries, where[side], classes, wanted, which, room
        )
        if number_all(m, wanted, described, told, found, readable, numbers) != DONE:
            return NEED_ROOM
        for c in range(n):
            found_sets[1 - side, c] = numbers[which[c]] if which[c] >= 0 else NONE
    for c in range(n if row > 0 else 0):
        found_sets[0, c] = NONE
    return DONE
