"""The article's Table 1: a text, merge by merge, published beside what the library computes."""

from __future__ import annotations

from collections.abc import Sequence

from bpe_automata.reference import merges_in_order, replay
from bpe_automata.testing import small_tokenizer
from experiments.run.executors import Row
from experiments.run.tables import Table

TEXT = "aaaabaacac"
TOKENS = ("a", "b", "c", "ab", "aa", "ac")
MERGES = (("a", "b"), ("a", "a"), ("a", "c"))
PUBLISHED = (
    ("a", "a", "a", "a", "b", "a", "a", "c", "a", "c"),
    ("a", "a", "a", "ab", "a", "a", "c", "a", "c"),
    ("aa", "a", "ab", "aa", "c", "a", "c"),
    ("aa", "a", "ab", "aa", "c", "ac"),
)
"""The tokens before the first merge and after each one; Tran-Thien 2024, Table 1."""
_TITLE = "Table 1: a text merge by merge"


def steps() -> Row:
    """steps: the tokens before the first merge and after each one, by the reference; encoded: what
    the package makes of the text at once."""
    tokenizer = small_tokenizer(TOKENS, MERGES)
    merges = merges_in_order(tokenizer.description)
    ids = [TOKENS.index(letter) for letter in TEXT]
    found = [replay(ids, merges[:done]) for done in range(len(merges) + 1)]
    return {
        "kind": "merges",
        "steps": [_spelled(tokens) for tokens in found],
        "encoded": _spelled(tokenizer.encode(TEXT)),
    }


def _spelled(ids: Sequence[int]) -> list[str]:
    return [TOKENS[token] for token in ids]


def table(row: Row | None) -> Table:
    """A line for each step."""
    names = ["single letters", *(f"after merge ({left}, {right})" for left, right in MERGES)]
    found = row["steps"] if row else [[] for _ in names]
    lines = [
        [name, _shown(published), _shown(made) if made else "-"]
        for name, published, made in zip(names, PUBLISHED, found, strict=True)
    ]
    if row:
        lines.append(["`encode`, all at once", "", _shown(row["encoded"])])
    notes = ["The order of the merges counts, and the order of the letters."]
    return Table(_TITLE, [f"`{TEXT}`", "published", "measured"], lines, notes)


def _shown(tokens: Sequence[str]) -> str:
    return "+".join(f"`{token}`" for token in tokens)


def is_published(row: Row) -> bool:
    """Do all steps, and `encode`, come out as published?"""
    return [*row["steps"], row["encoded"]] == [list(s) for s in (*PUBLISHED, PUBLISHED[-1])]
