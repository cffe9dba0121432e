"""Where tokens lead from a state of the byte automaton and one of the text automaton."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.steps import (
    DEPTH,
    FIRST,
    KLASS,
    LABEL,
    SKIP,
    TEXT,
    TOKEN,
    Arrays,
    Int,
    text_after,
    walk,
    want,
)
from bpe_automata._kernels import inner, jit
from bpe_automata._kernels.links import known_step


@inner
def read_tokens(
    q0: Int,
    a0: Int,
    row0: Int,
    low: Int,
    high: Int,
    steps: Arrays,
    text: Arrays,
    trie: Arrays,
    path: np.ndarray,
    found: np.ndarray,
    wanted: np.ndarray,
) -> Int:
    """The tokens of low < bytes <= high that can be read from (q0, a0) in UTF-8 row row0, whatever
    the hypotheses: rows (token, state, text state, class) of `found`, int32. Returns how many.
    The last rows of `found`, which has two for each node, name the nodes that want a step."""
    trans, byte_class, behind = steps
    nodes, start, data = trie
    utf8, next_ = text[0], text[1]
    n, node, end, last = 0, np.int64(0), len(nodes), len(found) - 1
    plain = row0 == 0 and a0 == 0
    path[0] = q0
    while node < end:
        d, label = nodes[node, DEPTH], nodes[node, LABEL]
        if d == 1 and utf8[row0, label] == -1:
            node = np.int64(nodes[node, SKIP])
            continue
        q = known_step(path[d - 1], byte_class[label], trans, behind)
        if q < 0:
            want(-1 - q, wanted)
            found[last, 0] = node
            q, last = np.int64(0), last - 1
        if q == 0:
            node = np.int64(nodes[node, SKIP])
            continue
        path[d] = q
        c = nodes[node, KLASS]
        if c != 0 and d > low:
            t, a = nodes[node, TOKEN], np.int64(nodes[node, TEXT])
            if not plain:
                f = nodes[node, FIRST]
                if row0 != 0 or f < 0 or next_[a0, f] != next_[0, f]:
                    a = text_after(a0, row0, data[start[t] : start[t + 1]], utf8, next_)
            if a >= 0:
                found[n, 0] = t
                found[n, 1] = q
                found[n, 2] = a
                found[n, 3] = c
                n += 1
        node = np.int64(nodes[node, SKIP]) if d == high else node + 1
    return n


@jit
def read_these(
    ids: np.ndarray,
    q0: Int,
    a0: Int,
    row0: Int,
    by_id: np.ndarray,
    steps: Arrays,
    text: Arrays,
    trie: Arrays,
    found: np.ndarray,
    wanted: np.ndarray,
) -> Int:
    """As `read_tokens` for some tokens alone (int64): a row for each, of state 0 and class 0 where
    it cannot be read. by_id: see `tables.Tables`. Returns how many there are."""
    start, data = trie[1], trie[2]
    for i in range(len(ids)):
        t = np.int64(ids[i])
        spelled = data[start[t] : start[t + 1]]
        q, a, f = walk(q0, spelled, steps, wanted), np.int64(by_id[t, 1]), by_id[t, 2]
        if row0 != 0 or (a0 != 0 and (f < 0 or text[1][a0, f] != text[1][0, f])):
            a = text_after(a0, row0, spelled, text[0], text[1])
        read = q > 0 and a >= 0
        found[i, 0], found[i, 1], found[i, 2] = t, q if read else 0, a if read else 0
        found[i, 3] = by_id[t, 0] if read else 0
    return len(ids)


@inner
def added_steps(
    q: Int, a: Int, added: Arrays, steps: Arrays, wanted: np.ndarray, found: np.ndarray
) -> Int:
    """The added tokens that can be read between pretokens: rows (token, state, text state, -1)."""
    from_, behind, after_row, after, texts, data = added
    n = 0
    if len(texts) == 0:
        return 0
    begin = q if len(from_) == 0 else np.int64(from_[q])
    if begin == 0:
        return 0
    row = after_row[a]
    for k in range(len(texts)):
        text = after[row, k]
        if texts[k, 0] < 0 or text < 0:
            continue
        last = walk(begin, data[texts[k, 1] : texts[k, 2]], steps, wanted)
        if last > 0:
            last = last if len(behind) == 0 else np.int64(behind[last])
        if last > 0:
            found[n, 0], found[n, 1], found[n, 2], found[n, 3] = texts[k, 0], last, text, -1
            n += 1
    return n
