"""The trie of token spellings that rows are computed with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bpe_automata.kernels.trie import Trie, build_nodes


def vocabulary_trie(spellings: Sequence[bytes], ids: Iterable[int]) -> Trie:
    """Trie of the tokens `ids`; their spellings must differ, empty ones are left out."""
    start = np.zeros(len(spellings) + 1, dtype=np.int32)
    np.cumsum([len(s) for s in spellings], out=start[1:])
    data = np.frombuffer(b"".join(spellings), dtype=np.uint8)
    order = sorted((int(i) for i in ids if spellings[i]), key=spellings.__getitem__)
    label, depth, skip, token = build_nodes(np.array(order, dtype=np.int32), start, data)
    return Trie(label, depth, skip, token, int(depth.max(initial=0)), start, data)
