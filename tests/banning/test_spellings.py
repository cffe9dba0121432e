"""The token automaton of the spellings, against every sequence of ids tried."""

from __future__ import annotations

import pytest
import tiny_bans as small

from bpe_automata.banning import Ban, Spellings, Watch
from bpe_automata.banning.spellings import MATCH
from bpe_automata.errors import BudgetExceededError, DecodingError

TOKENIZER = small.tokenizer()
BANS = {
    "anywhere": Ban(["ab", "é", "bab"]),
    "inside one another": Ban(["b", "abab", "ba b"]),
    "whole": Ban(["ab", "é", "ba"], whole_word=True),
    "marks": Ban([" a", "b b", "é "], whole_word=True),
}
BEFORE = ["", " ", "b", "é ", "aé"]


def completions(ban, ids, before):
    """By definition: is there something banned that begins in the first id and is complete with the
    last one (the end of the text, if that is END), and not before?"""
    if not ids:
        return False
    first = before.encode()
    spelled = [small.SPELLINGS[i] for i in ids if i != small.END]
    low, high = len(first), len(first) + len(spelled[0]) if spelled else 0

    def complete(n, ended):
        parts = small.parts(ban, first + b"".join(spelled[:n]), ended)
        return any(low <= start < high for start, _ in parts)

    ended = ids[-1] == small.END
    return complete(len(spelled), ended) and not any(
        complete(n, False) for n in range(1, len(spelled) + ended)
    )


@pytest.mark.parametrize("name", BANS)
@pytest.mark.parametrize("before", BEFORE)
def test_it_is_what_its_definition_says(name, before):
    ban = BANS[name]
    automaton = Spellings(TOKENIZER, ban, eos_ids=[small.END]).automaton(before)
    accepted = set(automaton.enumerate(max_length=4))
    for ids in small.sequences(3):
        spelled = b"".join(small.SPELLINGS[i] for i in ids)
        if not _may_be_text(before.encode() + spelled):
            continue
        for sequence in (ids, (*ids, small.END)):
            # A text cannot end inside a character.
            if sequence == ids or small.is_text(before.encode() + spelled):
                assert (sequence in accepted) == completions(ban, sequence, before), sequence


def _may_be_text(data):
    """Is it the beginning of a text?"""
    return any(small.is_text(data + rest) for rest in (b"", b"\xa9"))


@pytest.mark.parametrize("name", BANS)
def test_a_list_of_words_gives_no_cycle(name):
    automaton = Spellings(TOKENIZER, BANS[name], eos_ids=[small.END]).automaton()
    assert automaton.is_finite
    assert automaton.n_states == automaton.minimised().n_states


def test_a_regex_may_give_cycles():
    automaton = Spellings(TOKENIZER, Ban(regexes=["ab+é"])).automaton()
    assert not automaton.is_finite
    assert automaton.accepts([2, 3, 3, 3, 8])


@pytest.mark.parametrize("name", BANS)
def test_step_by_step_it_is_the_same(name):
    spellings = Spellings(TOKENIZER, BANS[name], eos_ids=[small.END])
    automaton = spellings.automaton("b")
    for ids in small.sequences(3):
        data = [small.SPELLINGS[i] for i in ids]
        if not ids:
            continue
        threads = spellings.begun(spellings.context(b"b"), data[0])
        for spelled in data[1:]:
            threads = () if threads == MATCH else spellings.step(threads, spelled)
        assert automaton.accepts(ids) == (threads == MATCH), ids
        assert automaton.accepts([*ids, small.END]) == spellings.ends(threads), ids


@pytest.mark.parametrize("name", BANS)
@pytest.mark.parametrize("before", ["", "a", "b", "é b"])
def test_a_watch_sees_all_that_is_banned_as_soon_as_it_is_complete(name, before):
    ban, first = BANS[name], before.encode()
    spellings = Spellings(TOKENIZER, ban, eos_ids=[small.END])
    for ids in small.sequences(3):
        spelled = [small.SPELLINGS[i] for i in ids]
        if not _may_be_text(b"".join([first, *spelled])):
            continue
        watch, seen = Watch(spellings, before=before), set()
        for n, token in enumerate(ids, start=1):
            wanted = places(ban, first, spelled[:n], ended=False) - seen
            assert set(watch.push(token)) - seen == wanted, ids
            seen |= wanted
        assert set(watch.ended()) - seen == places(ban, first, spelled, ended=True) - seen, ids


def places(ban, before, spelled, ended):
    """In which ids something banned begins that is complete and not all of it in `before`."""
    data, found = b"".join([before, *spelled]), set()
    for start, end in small.parts(ban, data, ended):
        if end > len(before):
            at, low = 0, len(before) + len(spelled[0])
            while low <= start:
                at += 1
                low += len(spelled[at])
            found.add(at)
    return found


def test_a_watch_goes_back():
    spellings = Spellings(TOKENIZER, Ban(["abab"]))
    watch = Watch(spellings, before="x")
    for token in (2, 3, 4):
        found = watch.push(token)
    assert found == (0,)
    assert watch.word(0, False) == "abab"
    watch.back(1)
    assert watch.ids == (2, 3)
    assert watch.push(4) == (0,)
    with pytest.raises(DecodingError, match="cannot take back 4 of 3"):
        watch.back(4)
    with pytest.raises(DecodingError, match="nothing that begins in the id at place 2"):
        watch.word(2, True)


@pytest.mark.parametrize("whole_word", [False, True])
def test_a_watch_names_each_place_once(whole_word):
    """ba b begins before the first id, b in it; both have its place."""
    ban = Ban(["ba b", "b"], whole_word=whole_word)
    watch = Watch(Spellings(TOKENIZER, ban, eos_ids=[small.END]), before="ba ")
    assert watch.push(small.B) == (() if whole_word else (0,))
    assert watch.ended() == ((0,) if whole_word else ())
    watch.back(1)
    assert watch.push(small.B_SPACE) == (0,)


def test_a_budget():
    with pytest.raises(BudgetExceededError, match="5 edges"):
        Spellings(TOKENIZER, BANS["whole"]).automaton(max_edges=5)


@pytest.mark.parametrize("whole_word", [False, True])
def test_smollm2(smollm2_tokenizer, whole_word, record_property):
    """All tokenizations of a text with a banned word go through the automaton."""
    ban = Ban(["talk", "listen", "日本"], whole_word=whole_word)
    spellings = Spellings(smollm2_tokenizer, ban)
    automaton = spellings.automaton()
    print(automaton, automaton.total(), "sequences")
    assert automaton.is_finite
    for text, first in {" talk.": 0, "t|al|k|\n": 0, " 日|本| ": 0, "so| list|en| now": 1}.items():
        ids = [i for part in text.split("|") for i in smollm2_tokenizer.encode(part)]
        watch = Watch(spellings)
        found = [watch.push(token) for token in ids]
        hit = next(n for n, places_ in enumerate(found) if places_)
        assert found[hit] == (first,)
        assert automaton.accepts(ids[first : hit + 1])
