"""Tokenizers and regexes where what text is depends on the letter before it: marks may follow."""

from __future__ import annotations

from hypothesis import strategies as st

from bpe_automata.testing import small_tokenizer

ACCENTED = ("([abe]\u0301?){1,6}e", "(a|b\u0301?|e\u0301){2,5}b", "([ab]|e)*\u0301?(ab|ba){1,3}")


@st.composite
def composing_tokenizers(draw):
    """Whose normal form makes places that are no DFA states."""
    vocabulary, merges = [*"abe\u0301é1áq"], []
    for _ in range(draw(st.integers(4, 20))):
        pair = draw(st.tuples(*[st.sampled_from([*"abe\u0301", *vocabulary[7:]])] * 2))
        if len(word := "".join(pair)) < 5 and word not in vocabulary:
            vocabulary.append(word)
            merges.append(pair)
    return small_tokenizer(vocabulary, merges, normalizer={"type": "NFC"})
