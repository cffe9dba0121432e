"""Small random merge tables."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

LONGEST_TOKEN = 8


@dataclass(frozen=True)
class MergeTable:
    """`vocabulary`: tokens in order of their ids; `merges`: pairs of tokens in order of rank."""

    vocabulary: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]


@st.composite
def merge_tables(
    draw: st.DrawFn,
    symbols: tuple[str, ...] = ("a", "b", "c"),
    max_merges: int = 14,
    shuffled: bool = False,
) -> MergeTable:
    """A table over `symbols` (single characters), each merge of tokens that earlier merges made. A
    token may be made by several merges, and some have no merge at all. `shuffled`: the merges in
    any order, and some of them listed more than once; then most tables are improper.
    """
    tokens = list(symbols)
    merges: dict[tuple[str, str], None] = {}
    for _ in range(draw(st.integers(0, max_merges))):
        left, right = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        if len(left + right) > LONGEST_TOKEN:
            continue
        merges.setdefault((left, right))
        if left + right not in tokens:
            tokens.append(left + right)
    word = st.text(st.sampled_from(symbols), min_size=2, max_size=4)
    unmade = draw(st.lists(word, max_size=3))
    vocabulary = draw(st.permutations(list(dict.fromkeys([*tokens, *unmade]))))
    listed = tuple(merges)
    if shuffled and listed:
        again = draw(st.lists(st.sampled_from(listed), max_size=3))
        listed = tuple(draw(st.permutations([*listed, *again])))
    return MergeTable(tuple(vocabulary), listed)
