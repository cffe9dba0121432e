"""The exactness table finds an automaton that is wrong; texts and other ids are what they say."""

from __future__ import annotations

import random

import pytest

from bpe_automata import Tokenizer
from bpe_automata._core.canonical import CanonicalAutomaton, canonical_automaton
from experiments.artefacts.exactness import BpePairs, ReencodedPairs, of_texts
from experiments.texts import SMOKE_TOKENIZER, windows


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


def test_pairs_miss_what_a_pretokenizer_does(tokenizer):
    """Both accept single characters of ASCII; pairs of BPE accept what no text is encoded as."""
    rivals = BpePairs(tokenizer), ReencodedPairs(tokenizer)
    own = [tokenizer.encode(letter) for letter in "abc"]
    assert [rival.accepted(own) for rival in rivals] == [[True] * 3] * 2
    _, others = of_texts(tokenizer, "adversarial", 400, random.Random(0), rivals)
    assert others["accepts"][BpePairs.name] >= others["accepts"][ReencodedPairs.name]
    assert others["mistakes"] == 0


@pytest.mark.parametrize("kind", ["multilingual", "code"])
def test_windows_are_pieces_of_text(kind):
    found = [*windows(kind, 30, random.Random(2))]
    assert len(found) == 30
    assert all(0 < len(text) <= 200 for text in found)
    assert found == [*windows(kind, 30, random.Random(2))]
