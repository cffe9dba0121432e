"""Plain twins of the kernels, on lists, dicts and sets, which are slow and short, and read like the
paper.

The published constructions (Tran-Thien 2024, technical appendix), one file each:

    1  `direct_merge_pair`  DirectMerge, a merge of two different tokens
    2  `direct_merge_twin`  DirectMerge, the merge of a token with itself
    3  `all_texts`          DirectMerge of `.*`: which token may follow which
    4  `all_pairs`          the same, by trying every pair
    5  `product`            CartesianMerge: the product and its relevant states
    6  `product_mask`       CartesianMerge: masks

`direct_merge` replays a whole merge table with 1 and 2 on a `TokenDFA`; `_tokenized` does so for a
complete tokenizer, on marked text; `_published` has both constructions of complete tokenizers by
their names. There are also `lift`, all tokenizations; `bpe`, the min-rank loop; `is_canonical`,
for one token sequence; `readings`, the boundary hypotheses of one text; `lift_mask` and
`canonical_trie`, masks by trying everything; `Encoder`, a tokenizer run from its description alone;
and `Naive`, an engine that tries every token with a partial regex match. Tests, notebooks and
experiments compare the package with them.
"""

from bpe_automata.reference._all_texts import (
    AllTexts,
    all_pairs,
    all_texts,
    ranks_of,
    spelled_in_symbols,
)
from bpe_automata.reference._bpe import bpe, breaks_by_spines, is_canonical, merge_ranks, readings
from bpe_automata.reference._direct_merge import (
    Merge,
    direct_merge,
    merge_pair,
    merge_twin,
    replay,
    steps,
)
from bpe_automata.reference._encode import Encoder
from bpe_automata.reference._naive import (
    Mismatch,
    Naive,
    Trie,
    canonical_trie,
    compare,
    lift_mask,
    naive_constraint,
)
from bpe_automata.reference._product import CartesianProduct, lift, product_mask
from bpe_automata.reference._token_dfa import TokenDFA
from bpe_automata.reference._tokenized import (
    direct_merged,
    explicit,
    merges_in_order,
    symbol_dfa,
    token_dfa,
)

__all__ = [
    "AllTexts",
    "CartesianProduct",
    "Encoder",
    "Merge",
    "Mismatch",
    "Naive",
    "TokenDFA",
    "Trie",
    "all_pairs",
    "all_texts",
    "bpe",
    "breaks_by_spines",
    "canonical_trie",
    "compare",
    "direct_merge",
    "direct_merged",
    "explicit",
    "is_canonical",
    "lift",
    "lift_mask",
    "merge_pair",
    "merge_ranks",
    "merge_twin",
    "merges_in_order",
    "naive_constraint",
    "product_mask",
    "ranks_of",
    "readings",
    "replay",
    "spelled_in_symbols",
    "steps",
    "symbol_dfa",
    "token_dfa",
]
