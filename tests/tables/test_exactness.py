"""The exactness table finds an automaton that is wrong."""

import random

import pytest

from bpe_automata import Tokenizer
from bpe_automata.canonical.canonical import CanonicalAutomaton, canonical_automaton
from experiments.artefacts.exactness import of_texts
from experiments.texts import SMOKE_TOKENIZER


@pytest.fixture(scope="module")
def tokenizer():
    made = Tokenizer.load(SMOKE_TOKENIZER)
    canonical_automaton(made)  # else one that is wrong would be refused when it is made
    return made


@pytest.mark.parametrize("said", [True, False])
def test_an_automaton_that_says_the_same_of_all_is_found_out(tokenizer, monkeypatch, said):
    """Each mistake is counted, and the first ones are shown in full."""
    monkeypatch.setattr(CanonicalAutomaton, "accepts", lambda automaton, ids: said)
    texts, others = of_texts(tokenizer, "adversarial", 60, random.Random(0), [])
    wrong = others if said else texts
    assert wrong["mistakes"] == (
        wrong["tried"] - wrong["canonical"] if said else wrong["canonical"]
    )
    assert wrong["mistakes"] > 0
    ids = wrong["first"][0]["ids"]
    assert (tokenizer.encode(tokenizer.decode(ids)) != ids) == said
