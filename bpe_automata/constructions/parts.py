"""All that is computed from a tokenizer alone, as arrays, and what they must be like.

They are read from the disk, and kernels check nothing: a wrong index would reach foreign memory. So
`check_parts` holds each array against its declaration before any kernel sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bpe_automata.constructions.geometry import Tables
from bpe_automata.constructions.stored import flattened
from bpe_automata.constructions.token_actions import TokenActions
from bpe_automata.constructions.whole_pieces import Unmade
from bpe_automata.kernels.edges import Nodes
from bpe_automata.kernels.hashing import EMPTY
from bpe_automata.kernels.trie import Trie
from bpe_automata.storage import CorruptFileError
from bpe_automata.tokenizer.derivation import Derivation
from bpe_automata.tokenizer.pipeline import Pipeline


@dataclass(frozen=True)
class Parts:
    """All that is computed from a tokenizer, as arrays: what the cache keeps. See the attributes of
    `CanonicalAutomaton`."""

    derivation: Derivation
    tables: Tables
    pipeline: Pipeline
    unmade: Unmade
    usable: np.ndarray
    trie: Trie
    actions: TokenActions
    nodes: Nodes


_WRITTEN = """
derivation.left i4 ids -1 ids | derivation.right i4 ids -1 ids | derivation.birth i4 ids -1 proper
derivation.reachable ? ids | derivation.proper i4 proper,3 0 ids
derivation.epoch i4 proper -1 2147483647
derivation.late ? proper | derivation.starts i4 ids+1 0 symbols+1 csr
derivation.symbols i4 symbols 0 ids | derivation.listed.slots i8 hashed hash
derivation.listed.values i4 hashed -1 made | derivation.listed.made i4 made 0 ids
derivation.listed.rank i4 made 0 2147483647
tables.slots i8 derived hash | tables.values i4 derived -1 rectangles
tables.rows.part i4 ids -1 ids | tables.rows.position i4 ids -1 rows
tables.rows.end i4 ids -1 rows+1 | tables.rows.order i4 rows 0 ids
tables.rows.by_part i4 ids+1 0 rectangles+1 csr
tables.rows.merges i4 rectangles 0 rectangles
tables.rows.low i4 rectangles 0 rows+1 | tables.rows.high i4 rectangles 0 rows+1
tables.columns.part i4 ids -1 ids | tables.columns.position i4 ids -1 columns
tables.columns.end i4 ids -1 columns+1 | tables.columns.order i4 columns 0 ids
tables.columns.by_part i4 ids+1 0 rectangles+1 csr
tables.columns.merges i4 rectangles 0 rectangles
tables.columns.low i4 rectangles 0 columns+1 | tables.columns.high i4 rectangles 0 columns+1
pipeline.alphabet.starts i4 intervals 0 1114112 | pipeline.alphabet.atoms i4 intervals -1 atoms
pipeline.alphabet.inside ? classes,atoms | pipeline.alphabet.utf8 i4 utf8,256 -1-atoms utf8
pipeline.coarse i4 atoms 0 coarse | pipeline.boundaries.ends ? hypotheses
pipeline.boundaries.follow ? 2,hypotheses,coarse,hypotheses
pipeline.text.next i4 texts,atoms -1 texts | pipeline.text.ends ? texts
pipeline.text.after_row i4 texts 0 after | pipeline.text.after i4 after,added -1 texts
pipeline.text.token_start i4 added+1 0 added_bytes+1 csr | pipeline.text.data u1 added_bytes
pipeline.text.ids i4 added 0 ids | pipeline.text.put ? texts
unmade.ids i4 unmade 0 ids | unmade.start i4 unmade+1 0 spelled+1 csr
unmade.spelled i4 spelled 0 ids | usable ? ids
trie.label u1 nodes | trie.depth i4 nodes 1 1+deepest | trie.skip i4 nodes 1 nodes+1
trie.token i4 nodes -1 ids | trie.first i4 257 0 nodes+1
trie.start i4 ids+1 0 bytes+1 csr | trie.data u1 bytes
actions.of_token i4 ids 0 kinds | actions.text i4 ids -1 texts | actions.first i4 ids -1 atoms
nodes.kind i4 nodes 0 kinds | nodes.text i4 nodes -1 texts | nodes.first i4 nodes -1 atoms
"""
"""Of each array of `Parts`: type, shape (a name stands for one number throughout), least value and
what values are below; `csr`: ascending to the last; `hash`: a table with room, of a size 2^k."""

DECLARED = {
    name: rest
    for name, *rest in (line.split() for line in _WRITTEN.replace("|", "\n").splitlines() if line)
}


def check_parts(parts: Parts, n_ids: int) -> None:
    """Is this something that kernels can be given, who check nothing? Raises CorruptFileError."""
    arrays = flattened(parts)
    utf8, classes = parts.pipeline.alphabet.utf8, parts.actions.classes
    sizes = {"ids": n_ids, "deepest": int(parts.trie.deepest), "kinds": len(classes)}
    sizes |= {"hypotheses": len(parts.pipeline.boundaries.hypotheses)}
    sizes |= {"atoms": int(parts.pipeline.alphabet.n_atoms), "utf8": len(utf8)}
    for name, (kind, shape, *_) in DECLARED.items():
        _check_shape(name, arrays[name], np.dtype(kind), shape.split(","), sizes)
    for name, (_, _, *values) in DECLARED.items():
        _check_values(name, arrays[name], values, sizes)
    trie, derivation = parts.trie, parts.derivation
    depth = np.concatenate([[0], trie.depth])
    made = np.flatnonzero(derivation.birth >= 0)
    halves = np.stack([derivation.left[made], derivation.right[made]])
    lengths = np.diff(derivation.starts)
    state, root = parts.pipeline.text.start, parts.pipeline.alphabet.fallback_root
    relations, n = parts.actions.relations, sizes["hypotheses"]
    sound = (
        (np.diff(depth) <= 1).all()
        and (trie.skip > np.arange(len(trie.skip))).all()
        and (np.diff(trie.first) >= 0).all()
        and derivation.listed.n_ids == n_ids
        and (halves >= 0).all()
        and (lengths[halves] < lengths[made]).all()
        and sizes["rectangles"] >= sizes["proper"]  # those of tied pairs come behind
        and 0 <= state < sizes["texts"]
        and 0 <= root < sizes["utf8"]
        and all(r.dtype == bool and r.shape in ((n, n), (2 * n, n)) for r in relations)
        and all(c.element < len(relations) and -2 < c.tail < len(utf8) for c in classes)
    )
    if not sound:
        raise CorruptFileError("its arrays do not go together")


def _check_shape(
    name: str,
    array: np.ndarray,
    kind: np.dtype[Any],
    shape: list[str],
    sizes: dict[str, int],
) -> None:
    if array.dtype != kind or array.ndim != len(shape):
        raise CorruptFileError(f"{name} is {array.dtype} of {array.ndim} axes")
    for size, said in zip(array.shape, shape, strict=True):
        stem, _, more = said.partition("+")
        expected = int(stem) if stem.isdigit() else sizes.setdefault(stem, size - int(more or 0))
        if size != expected + int(more or 0):
            raise CorruptFileError(f"{name} has the shape {array.shape}")


def _check_values(name: str, array: np.ndarray, values: list[str], sizes: dict[str, int]) -> None:
    if "hash" in values:
        free = bool((array == EMPTY).any())
        if array.size & (array.size - 1) or not free:
            raise CorruptFileError(f"{name} is no hash table")
    elif values and array.size:
        low, high = (_number(value, sizes) for value in values[:2])
        if int(array.min()) < low or int(array.max()) >= high:
            raise CorruptFileError(f"{name} has values that are not in {low} .. {high - 1}")
    if "csr" in values and ((np.diff(array) < 0).any() or array[0] or array[-1] != high - 1):
        raise CorruptFileError(f"{name} does not ascend from 0 to {high - 1}")


def _number(said: str, sizes: dict[str, int]) -> int:
    """`ids`, `ids+1`, `-1`, `-1-atoms`."""
    for name in sorted(sizes, key=len, reverse=True):
        said = said.replace(name, str(sizes[name]))
    return sum(int(part) for part in said.replace("-", "+-").split("+") if part)
