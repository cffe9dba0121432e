"""Runs of one character with one score: a table of ranks that is equal to leftmost first."""

from __future__ import annotations

from itertools import pairwise

from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.tokenizer.sources.implied_merges import leftmost_first, run_merges

LLAMA = {*range(1, 15), 16}  # the runs of spaces of Llama-2 and Mistral


def by_rank(n: int, merges: list[tuple[int, int]]) -> list[int]:
    """The table is proper, so one sweep from the left for each rank is BPE."""
    parts = [1] * n
    for merge in merges:
        merged: list[int] = []
        for part in parts:
            if merged and (merged[-1], part) == merge:
                merged[-1] += part
            else:
                merged.append(part)
        parts = merged
    return parts


def slow_leftmost_first(n: int, lengths: set[int]) -> list[int]:
    parts = [1] * n
    while True:
        found = [at for at, (a, b) in enumerate(pairwise(parts)) if a + b in lengths]
        if not found:
            return parts
        parts[found[0] : found[0] + 2] = [parts[found[0]] + parts[found[0] + 1]]


def test_the_spaces_of_llama() -> None:
    merges = run_merges(LLAMA)
    assert merges is not None
    assert {a + b for a, b in merges} == LLAMA - {1}
    assert leftmost_first(47, LLAMA) == [16, 16, 14, 1]


@examples(200)
@given(st.sets(st.integers(2, 20)))
def test_a_table_is_equal_or_there_is_none(longer: set[int]) -> None:
    lengths = {1, *longer}
    merges = run_merges(lengths)
    for n in range(1, 90):
        result = slow_leftmost_first(n, lengths)
        assert leftmost_first(n, lengths) == result
        if merges is not None:
            assert by_rank(n, merges) == result


def test_some_runs_have_no_table() -> None:
    """aaaa is aaa, a leftmost first; any table that can make aaa has made aa, aa before."""
    assert run_merges({1, 2, 3}) is None
