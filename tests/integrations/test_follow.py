"""A follower goes where the ids of its row say, whatever they were at the calls before."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from served import END, constraint, ids_of_mask
from support import examples

from bpe_automata.errors import DecodingError
from bpe_automata.integrations._follow import Follower

CONSTRAINT = constraint("(ab|ba|a){1,4}c?")
SOME = [int(token) for token in CONSTRAINT.matcher().allowed_ids()][:4]
ROWS = st.lists(st.sampled_from([*SOME, END]), max_size=5)


def expected(ids):
    """(what may follow, was an id refused?) by a matcher that reads them from the beginning."""
    matcher = CONSTRAINT.matcher()
    for token in ids:
        if matcher.is_finished:
            break
        try:
            matcher.advance(token)
        except DecodingError:
            return {END}, True
    return set(matcher.allowed_ids().tolist()) or {END}, False


@examples(60)
@given(st.lists(ROWS, min_size=1, max_size=6))
def test_any_calls_equal_reading_from_the_beginning(rows):
    follower = Follower(CONSTRAINT)
    for ids in rows:
        found = ids_of_mask(np.asarray(follower.mask(ids)))
        assert (found, follower.refused is not None) == expected(ids)
