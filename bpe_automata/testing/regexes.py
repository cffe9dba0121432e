"""Small random regexes over given pieces of text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

_REPEATS = ("", "", "", "?", "{2}", "{0,2}", "{1,3}")


def finite_regexes(pieces: Sequence[str]) -> st.SearchStrategy[str]:
    """A regex for finitely many strings, each joined from `pieces`."""
    return _regexes(pieces, _REPEATS)


def cyclic_regexes(pieces: Sequence[str]) -> st.SearchStrategy[str]:
    """A regex with loops over `pieces`."""
    return _regexes(pieces, ("", "", "?", "*", "*", "+", "{2,}"))


def _regexes(pieces: Sequence[str], repeats: Sequence[str]) -> st.SearchStrategy[str]:
    literal = st.sampled_from([re.escape(piece) for piece in pieces])
    choice = st.lists(literal, min_size=1, max_size=4).map("|".join)
    factor = st.builds("({}){}".format, choice, st.sampled_from(repeats))
    branch = st.lists(factor, min_size=1, max_size=3).map("".join)
    group = st.builds("({}|{}){}".format, branch, branch, st.sampled_from(repeats))
    return st.lists(st.one_of(branch, branch, group), min_size=1, max_size=2).map("".join)
