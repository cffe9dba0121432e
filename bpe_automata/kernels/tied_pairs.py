"""Pairs of tokens tried one by one: does BPE leave them side by side?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.bpe import Merges, merge_all
from bpe_automata.kernels.geometry import breaking_merge
from bpe_automata.kernels.references import by_reference
from bpe_automata.kernels.watch import poll

EACH, BY_ROW, BY_COLUMN = 0, 1, 2
_SHORT = 64  # symbols; see `kernels.bpe`


@by_reference
class Tried(NamedTuple):
    """What pairs are tried by. left, right int32 [n_ids]: parts; birth, number int32 [n_ids]: the
    first merge of the epoch that makes each token, and its own; starts int32 [n_ids + 1] and
    symbols int32: CSR of base symbols; listed: all listed merges; pairs int64, merges int32: slots
    and values of the derivations."""

    left: np.ndarray
    right: np.ndarray
    birth: np.ndarray
    number: np.ndarray
    starts: np.ndarray
    symbols: np.ndarray
    listed: Merges
    pairs: np.ndarray
    merges: np.ndarray


@kernel
def broken_pairs(
    boxes: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    most_steps: int,
    t: Tried,
    watch: np.ndarray,
) -> tuple[np.ndarray, bool, bool]:
    """(int32 [k, 2], bool, bool): the pairs (L, R) of the boxes that BPE changes though no merge is
    certain to (by `birth`), some of them twice; whether BPE changes a pair if and only if a merge
    breaks it by `number`; and whether all was done in so many steps.

    boxes: int64 [n, 6], positions (row low, high, column low, high), one past the last merge of the
    epoch, and how they are tried: EACH pair; BY_ROW: the first pair of each row, and the others
    where it does not tell; BY_COLUMN: likewise. rows, columns: int32, position -> token. A pair of
    n symbols is n * min(n, 64) steps.
    """
    longest = 0
    for token in range(len(t.starts) - 1):
        longest = max(longest, t.starts[token + 1] - t.starts[token])
    work, ranks = np.empty(2 * longest, np.int32), np.empty(2 * longest, np.int32)
    found, count, ordered, steps = np.empty((16, 2), np.int32), 0, True, 0
    for k in range(len(boxes)):
        end, how = boxes[k, 4], boxes[k, 5]
        swap = 2 if how == BY_COLUMN else 0
        for i in range(boxes[k, swap], boxes[k, swap + 1]):
            for j in range(boxes[k, 2 - swap], boxes[k, 3 - swap]):
                a, b = (rows[j], columns[i]) if how == BY_COLUMN else (rows[i], columns[j])
                certain = breaking_merge(a, b, t.left, t.right, t.birth, t.pairs, t.merges)
                broken = certain >= 0 or _changes(a, b, work, ranks, t, watch)
                if broken and certain < 0:
                    if count == len(found):
                        found = np.concatenate((found, np.empty_like(found)))
                    found[count, 0], found[count, 1] = a, b
                    count += 1
                by_number = breaking_merge(a, b, t.left, t.right, t.number, t.pairs, t.merges)
                ordered &= broken == (by_number >= 0)
                n = t.starts[a + 1] - t.starts[a] + t.starts[b + 1] - t.starts[b]
                steps += 1 if certain >= 0 else n * min(n, _SHORT)
                if steps > most_steps or poll(watch):
                    return found[:count], ordered, False
                known = not broken or (0 <= certain < end and (by_number < end or not ordered))
                if known and how != EACH and j == boxes[k, 2 - swap]:
                    break
    return found[:count], ordered, True


@kernel
def _changes(
    a: int, b: int, work: np.ndarray, ranks: np.ndarray, t: Tried, watch: np.ndarray
) -> bool:
    """Does BPE of both tokens' symbols give anything else than the two? work, ranks: scratch."""
    m = t.starts[a + 1] - t.starts[a]
    n = m + t.starts[b + 1] - t.starts[b]
    work[:m] = t.symbols[t.starts[a] : t.starts[a + 1]]
    work[m:n] = t.symbols[t.starts[b] : t.starts[b + 1]]
    n, _, _, _ = merge_all(work, ranks, n, t.listed, watch)
    return n != 2 or work[0] != a or work[1] != b
