"""Walking engines and automata, and tokenizers with marks, for the tests of this folder."""

from __future__ import annotations

from hypothesis import strategies as st

from bpe_automata.constructions import explore
from bpe_automata.testing import small_tokenizer


def is_canonical(tokenizer, ids):
    """By definition: encode(decode(ids)) == ids, if the ids spell text at all."""
    try:
        text = tokenizer.text_bytes(ids).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return tokenizer.encode(text) == list(ids)


def shortest_paths(engine, initial, max_edges=4000):
    """(explicit automaton, ids from the start to each state, ids from each state to acceptance;
    None where there are none)."""
    automaton = explore(engine, initial, max_edges)
    edges = list(automaton.transitions())
    there = _spread({automaton.start: ()}, edges, forward=True)
    ends = {state: () for state in automaton.states() if automaton.accepting[state]}
    return automaton, there, _spread(ends, edges, forward=False)


def _spread(found, edges, forward):
    grown = True
    while grown:
        grown = False
        for source, token, target in edges:
            here, after = (source, target) if forward else (target, source)
            if here in found and after not in found:
                found[after] = (*found[here], token) if forward else (token, *found[here])
                grown = True
    return found


# Tokenizers and regexes where marks may follow letters, so the text automaton remembers a letter.

ACCENTED = ("([abe]\u0301?){1,6}e", "(a|b\u0301?|e\u0301){2,5}b", "([ab]|e)*\u0301?(ab|ba){1,3}")


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
