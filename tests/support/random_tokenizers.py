"""Small tokenizers for random tests: some in whose texts marks may follow letters, so the text
automaton remembers a letter, and some that put a space before a text.
"""

from __future__ import annotations

from hypothesis import strategies as st

from bpe_automata.testing import small_tokenizer
from support.steps import metaspace

ACCENTED = ("([abe]\u0301?){1,6}e", "(a|b\u0301?|e\u0301){2,5}b", "([ab]|e)*\u0301?(ab|ba){1,3}")
"""Regexes of such texts."""


@st.composite
def composing_tokenizers(draw):
    """Whose normal form makes state_pairs that are no DFA states."""
    vocabulary, merges = [*"abe\u0301é1áq"], []
    for _ in range(draw(st.integers(4, 20))):
        pair = draw(st.tuples(*[st.sampled_from([*"abe\u0301", *vocabulary[7:]])] * 2))
        if len(word := "".join(pair)) < 5 and word not in vocabulary:
            vocabulary.append(word)
            merges.append(pair)
    return small_tokenizer(vocabulary, merges, normalizer={"type": "NFC"})


VOCABULARY = ["▁", *"abc\x02", "▁a", "ab", "▁ab", "▁▁"]
MERGES = [("▁", "a"), ("a", "b"), ("▁a", "b"), ("▁", "▁")]


def spaced(scheme, added=()):
    """With the pretokenizer Metaspace; scheme: "always" or "first"."""
    return small_tokenizer(VOCABULARY, MERGES, metaspace(scheme, False), added)


def with_prefix():
    """One of them, with an added token or without."""
    added = st.sampled_from([(), ("c",), ("<|",)])
    return st.builds(spaced, st.sampled_from(["always", "first"]), added)
