"""What each method of the study allows, step by step."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bpe_automata.decoding.chopping import chop
from experiments.study.study_methods import CHOP_TOKENS, OutlinesIndex, Poser
from experiments.study.token_trie import unroll

ANSWERS = (' "low"', ' "medium"', ' "high"')


@pytest.fixture(scope="module")
def tokenizer(smollm2_tokenizer):
    return smollm2_tokenizer


@pytest.fixture(scope="module")
def poser(tokenizer):
    return Poser(tokenizer, (2,))


def sequences(walker):
    """All sequences that a walker reads to their end."""
    trie = unroll([walker])
    return {tuple(trie.ids(leaf)) for leaf in trie.leaves()}


def test_lift_is_all_tokenizations_and_canonical_is_one_of_each(poser, tokenizer):
    prompt = '{"severity":'
    posed = poser.posed(tokenizer.encode(prompt), ANSWERS)
    lift, canonical = sequences(posed.walkers["lift"]), sequences(posed.walkers["canonical"])
    assert {tokenizer.decode(ids) for ids in lift} == set(ANSWERS)
    assert canonical < lift
    encoded = [tokenizer.encode(prompt + answer) for answer in ANSWERS]
    assert canonical == {tuple(ids[len(posed.prompt_ids) :]) for ids in encoded}
    assert posed.healing is None


def test_outlines_has_the_lift_of_ordinary_tokens(poser, tokenizer):
    pytest.importorskip("outlines_core")
    posed = poser.posed(tokenizer.encode("Is it? (a.b)"), (" yes.", " n|o", " да"))
    added = set(tokenizer.added_ids)
    lift = {ids for ids in sequences(posed.walkers["lift"]) if not added & set(ids)}
    assert sequences(posed.walkers["outlines"]) == lift
    assert posed.absent == {}


def test_an_index_says_whether_it_has_dead_ends(tokenizer):
    pytest.importorskip("outlines_core")
    index = OutlinesIndex(tokenizer, (2,))
    index._module = SimpleNamespace(Index=HandMade)
    automaton, has_dead_ends = index.automaton([b"ab"])
    assert sequences(automaton) == {(3, 4)}
    assert not has_dead_ends
    automaton, has_dead_ends = index.automaton([b"ab", b"cd"])
    assert sequences(automaton) == {(3, 4), (5,)}
    assert has_dead_ends


class HandMade:
    """Of "ab" with the ids 3 and 4; "|" adds an id 5 after which there is none."""

    def __init__(self, regex, vocabulary):
        self.more = {5: 90} if "|" in regex else {}

    def get_transitions(self):
        return {70: {3: 80, **self.more}, 80: {4: 60}, 60: {2: 60}}

    def get_initial_state(self):
        return 70

    def get_final_states(self):
        return {60}


def test_an_engine_that_is_not_installed_is_absent_with_its_reason(tokenizer, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "outlines_core", None)
    posed = Poser(tokenizer, (2,)).posed(tokenizer.encode("Is it?"), (" yes", " no"))
    assert "outlines" not in posed.walkers
    assert "pip install" in posed.absent["outlines"]


def test_chop_appends_its_ids_wherever_text_is_forced(poser, tokenizer):
    posed = poser.posed(tokenizer.encode('{"severity":'), ANSWERS)
    walker, lift = posed.walkers["chop"], sequences(posed.walkers["lift"])
    engine = walker.engine
    places = [(walker.start, engine.initial(posed.prompt_ids), ())]
    appended = 0
    for state, place, ids in places:
        run = chop(engine, place, (*posed.prompt_ids, *ids), CHOP_TOKENS)
        for token in run:
            assert list(walker.out(state)) == [token]
            state, place, ids = walker.out(state)[token], engine.step(place, token), (*ids, token)
            appended += 1
        if not run:
            places += [
                (after, engine.step(place, token), (*ids, token))
                for token, after in walker.out(state).items()
            ]
        else:
            places.append((state, place, ids))
    assert appended > 0
    chopped = sequences(walker)
    assert chopped < lift
    assert {tokenizer.decode(ids) for ids in chopped} == set(ANSWERS)


def test_ids_of_the_prompt_are_given_back_for_all_methods_alike(poser, tokenizer):
    ids = tokenizer.encode("The answer is ")
    posed = poser.posed(ids, ("yes", "no"))
    assert posed.prompt_ids == ids[:-1]
    assert posed.answers == (b" yes", b" no")
    assert posed.healing.text == b" "
    for walker in posed.walkers.values():
        assert {tokenizer.decode(found) for found in sequences(walker)} == {" yes", " no"}
    kept = poser.unhealed(ids, ("yes", "no"))
    assert (kept.prompt_ids, kept.answers) == (ids, (b"yes", b"no"))
    assert {tokenizer.decode(f) for f in sequences(kept.walkers["lift"])} == {"yes", "no"}
