"""Small tokenizers that put a space before a text."""

from __future__ import annotations

from hypothesis import strategies as st
from support.steps import metaspace

from bpe_automata.testing import small_tokenizer

VOCABULARY = ["▁", *"abc\x02", "▁a", "ab", "▁ab", "▁▁"]
MERGES = [("▁", "a"), ("a", "b"), ("▁a", "b"), ("▁", "▁")]


def spaced(scheme, added=()):
    """With the pretokenizer Metaspace; scheme: "always" or "first"."""
    return small_tokenizer(VOCABULARY, MERGES, metaspace(scheme, False), added)


def with_prefix():
    """One of them, with an added token or without."""
    added = st.sampled_from([(), ("c",), ("<|",)])
    return st.builds(spaced, st.sampled_from(["always", "first"]), added)
