"""Plain twins of the kernels, on lists, dicts and sets: slow, short, and read like the paper.

`bpe`: the min-rank loop; `pairs`: which pairs of tokens are canonical; `readings`: the boundary
hypotheses of one text; `masks`: masks by trying everything; `encode`: a tokenizer run from its
description alone. Tests, notebooks and experiments
compare the package with them; the package itself never imports them.
"""

from bpe_automata.reference.bpe import bpe, merge_ranks
from bpe_automata.reference.encode import Encoder
from bpe_automata.reference.masks import Mismatch, Trie, canonical_trie, compare, lift_mask
from bpe_automata.reference.pairs import breaks_by_spines, is_canonical
from bpe_automata.reference.readings import readings

__all__ = [
    "Encoder",
    "Mismatch",
    "Trie",
    "bpe",
    "breaks_by_spines",
    "canonical_trie",
    "compare",
    "is_canonical",
    "lift_mask",
    "merge_ranks",
    "readings",
]
