"""CartesianMerge at decoding time: which tokens may come next.

    mask(q, s) = { t : the lift reads t at q, all texts read t at s, to a relevant pair }

Source: Tran-Thien 2024, technical appendix, Algorithm 6.
"""

from __future__ import annotations

from bpe_automata.reference.product import CartesianProduct, Pair
from bpe_automata.reference.token_dfa import Token


def product_mask(product: CartesianProduct, pair: Pair) -> set[Token]:
    """The tokens that may come next at a pair of states."""
    return {token for token, target in product.readable(pair) if target in product.relevant}
