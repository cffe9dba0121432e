"""Where a sequence ends: said here once, for all loops."""

from __future__ import annotations

import numpy as np

from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.kernels.bits import clear_bits


def has_ended(matcher: Matcher, constraint: Constraint) -> bool:
    """Was end-of-sequence read or, in a language that has none, can nothing follow? Then the model
    has been asked about all of the text. A mask is computed only where it decides."""
    if constraint.eos_ids:
        return _was_read(matcher, constraint)
    return only_the_end_follows(matcher, constraint)


def only_the_end_follows(matcher: Matcher, constraint: Constraint) -> bool:
    """Is the text complete, and can nothing follow but end-of-sequence? So too once that was read.
    A sequence that ran into a dead end, as those of the naive engine may, is not complete."""
    if _was_read(matcher, constraint):
        return True
    if not matcher.is_accepting:
        return False
    bits = np.empty((1, (constraint.n_ids + 31) // 32), dtype=np.int32)
    matcher.mask(bits)
    clear_bits(bits[0], np.array(constraint.eos_ids, dtype=np.int64))
    return not bits.any()


def _was_read(matcher: Matcher, constraint: Constraint) -> bool:
    return bool(matcher.ids) and matcher.ids[-1] in constraint.eos_ids
