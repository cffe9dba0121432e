"""Going back: to which id, what is banned there, and what is reported."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_bans import AB, BA, END, FREE, SPACE, TOKENIZER, A, B, indifferent, scripted

from bpe_automata import constrain
from bpe_automata.banning import Ban
from bpe_automata.errors import ArgumentError, EmptyLanguageError
from bpe_automata.models import character_tokenizer
from bpe_automata.sampling._banned import decode_allowed
from bpe_automata.sampling._rollback import decode_without


def greedy(ban, *texts, **options):
    options = {"constraint": FREE, "temperature": 0, **options}
    return decode_without(scripted(*texts), ban, TOKENIZER, **options)


def test_back_to_the_first_id_of_the_match():
    """`a`,`b` spells ab: the a is banned there, and nowhere else."""
    run = greedy(Ban(["ab"]), (SPACE, A, B), (SPACE, BA, A))
    assert run.ids == (SPACE, BA, A)
    assert run.finish_reason == "complete"
    (one,) = run.rollbacks
    assert (one.position, one.token, one.word, one.discarded) == (1, A, "ab", (A, B))
    assert (run.acted, run.discarded) == (1, 2)


def test_overlapping_matches():
    """aba and ab b share a b: first the one that is complete first, then the other."""
    ban = Ban(["aba", "ba a"])
    run = greedy(ban, (A, BA, SPACE), (SPACE, BA, SPACE, A), (SPACE, SPACE))
    assert [(r.position, r.word) for r in run.rollbacks] == [(0, "aba"), (1, "ba a")]
    assert run.ids == (SPACE, SPACE)


def test_the_end_of_the_text_completes_whole_words():
    run = greedy(Ban(["a"], whole_word=True), (SPACE, A), (SPACE, BA))
    assert run.ids == (SPACE, BA)
    assert [(r.position, r.token, r.word) for r in run.rollbacks] == [(1, A, "a")]
    assert greedy(Ban(["a"], whole_word=True), (B, A)).ids == (B, A)


def test_a_word_that_the_prompt_begins():
    """The match begins before the first id: that is the one that is banned."""
    run = greedy(Ban(["aab"]), (B,), (SPACE,), after="xaa")
    assert (run.ids, run.rollbacks[0].word, run.rollbacks[0].position) == ((SPACE,), "aab", 0)
    assert greedy(Ban(["aab"]), (B,), (SPACE,), after="").ids == (B,)


def test_an_emptied_position_goes_further_back():
    """After the space only a word with b could come: then the space goes too."""
    plain = constrain(TOKENIZER, "a| (b|ab)", "lift", [END], added_tokens=False)
    run = greedy(Ban(["b"]), (SPACE, B), (SPACE, AB), (A,), constraint=plain)
    assert run.ids == (A,)
    found = [(r.position, r.token, r.word) for r in run.rollbacks]
    assert found == [(1, B, "b"), (1, AB, "b"), (2, B, "b"), (1, A, None), (0, SPACE, None)]


def test_bans_that_are_not_certain_are_lifted_when_nothing_else_is_left():
    """After a,b the a is banned, and nothing else could begin the text; but a,a is allowed."""
    plain = constrain(TOKENIZER, "a[ab]", "lift", [END], added_tokens=False)
    run = greedy(Ban(["ab"]), (A, B), (AB,), (A, A), constraint=plain)
    assert run.ids == (A, A)
    found = [(r.position, r.token, r.word) for r in run.rollbacks]
    assert found == [(0, A, "ab"), (0, AB, "ab"), (0, None, None)]
    capped = greedy(Ban(["ab"]), (A, B), (AB,), (A, A), constraint=plain, max_rollbacks=2)
    assert (capped.ids, capped.finish_reason) == ((), "truncated")


def test_a_cap_cuts_the_text_before_the_word():
    ban = Ban(["ab"])
    run = greedy(ban, (SPACE, A, B), (SPACE, AB), max_rollbacks=1)
    assert (run.ids, run.text, run.finish_reason) == ((SPACE,), " ", "truncated")
    assert len(run.rollbacks) == 1
    assert run.discarded == 3  # a,b and ab
    run = greedy(ban, (SPACE, A, B), max_rollbacks=0)
    assert (run.ids, run.rollbacks, run.discarded) == ((SPACE,), (), 2)


def test_the_model_is_asked_once_for_each_place():
    """Going back asks nothing anew: each call has one id more than what is known there."""
    calls = []

    def model(ids):
        calls.append(tuple(ids))
        return scripted((SPACE, A, SPACE, B), (SPACE, A, BA), (SPACE, SPACE, A))(ids)

    run = decode_without(model, Ban(["a b"]), TOKENIZER, constraint=FREE, temperature=0)
    assert run.rollbacks
    assert len(set(calls)) == len(calls) == run.passes
    assert len(calls) == 1 + len(run.ids) + run.discarded - len(run.rollbacks)


@pytest.mark.parametrize("options", [{"max_new_tokens": -1}, {"max_rollbacks": -1}])
def test_arguments(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        decode_without(indifferent, Ban(["a"]), TOKENIZER, **options)


@pytest.mark.parametrize("eos_ids", [(), None])
@pytest.mark.parametrize("max_new_tokens", [4, 128])
def test_an_empty_language_is_found_with_and_without_end_of_sequence(eos_ids, max_new_tokens):
    """The only text is banned where it ends: that is certain after a few calls."""
    tokenizer, calls = character_tokenizer("abcdtalkxy "), []
    ban = Ban(["talk"], whole_word=True)
    plain = constrain(tokenizer, "talk", eos_ids=eos_ids)

    def uniform(ids):
        calls.append(ids)
        return np.zeros(tokenizer.n_ids)

    for mode in (decode_allowed, decode_without):
        options = {"constraint": plain, "seed": 0, "max_new_tokens": max_new_tokens}
        with pytest.raises(EmptyLanguageError, match="talk"):
            mode(uniform, ban, tokenizer, **options)
    assert len(calls) < 30
