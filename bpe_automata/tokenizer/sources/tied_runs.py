"""Runs of one character whose pieces all have the same score.

Llama and Mistral give all their runs of spaces the score -1e9. On equal scores sentencepiece takes
the leftmost pair, whatever it makes, so a run grows from its left end:

    ▁▁▁▁▁  ->  [▁▁]▁▁▁  ->  [▁▁▁]▁▁  ->  [▁▁▁▁]▁  ->  [▁▁▁▁▁]

No table of ranks says the same and is proper (that is, merges in the order of its ranks), but
another table has the same results: first join halves to powers of two, then add smaller powers to
greater ones. `run_merges` makes that table and proves it equal, or gives up:

- sentencepiece reads a run like a stack machine, and where the longest run M is a token of its own,
  nothing joins it later: result(n) = [M] + result(n - M) for n >= M.
- The table is proper, so a sequence of its tokens is its result iff each adjacent pair is. The
  pairs in result(n) all occur in result(n') for some n' <= 2M.
- So equality for n <= 2M, which is tried, is equality for all n.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

Merge = tuple[int, int]
"""Lengths of the left and right part."""


def run_merges(lengths: set[int]) -> list[Merge] | None:
    """Merges in order of rank for runs of these lengths (1 among them); None where no proper table
    of this kind gives what leftmost-first gives."""
    reachable = {n for n in lengths if leftmost_first(n, lengths) == [n]}
    merges = _binary(reachable)
    ranks = {merge: rank for rank, merge in enumerate(merges)}
    for n in range(1, 2 * max(reachable) + 1):
        if _by_rank(n, ranks) != leftmost_first(n, lengths):
            return None
    return merges


def leftmost_first(n: int, lengths: set[int]) -> list[int]:
    """A run of `n` characters, merged while two neighbours make one of `lengths`, leftmost pair
    first."""
    parts = [1] * n
    at = 0
    while at < len(parts) - 1:
        if parts[at] + parts[at + 1] in lengths:
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
            at = max(at - 1, 0)
        else:
            at += 1
    return parts


def _binary(lengths: set[int]) -> list[Merge]:
    """Powers of two from halves; then each other length loses its lowest bit, high bits first."""
    doubled = [(n // 2, n // 2) for n in sorted(lengths) if n > 1 and n & (n - 1) == 0]
    others = [(n & -n, n) for n in lengths if n & (n - 1)]
    added = [(n - low, low) for low, n in sorted(others, key=lambda pair: (-pair[0], pair[1]))]
    return [(a, b) for a, b in doubled + added if a in lengths and b in lengths]


def _by_rank(n: int, ranks: Mapping[Merge, int]) -> list[int]:
    parts = [1] * n
    while True:
        known = [(ranks[pair], at) for at, pair in enumerate(pairwise(parts)) if pair in ranks]
        if not known:
            return parts
        _, at = min(known)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
