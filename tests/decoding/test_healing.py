"""Prompts whose last ids would merge with the answer: healing."""

from __future__ import annotations

import pytest

from bpe_automata import constrain, heal
from bpe_automata.errors import (
    DecodingError,
    PromptError,
)
from bpe_automata.testing import small_tokenizer


def test_the_constraint_asks_for_the_space_back(smollm2_tokenizer):
    """After `is ` the word `yes` would have to begin without its space, which is never written."""
    constraint = constrain(smollm2_tokenizer, "(yes|no)")
    prompt = smollm2_tokenizer.encode("The answer is ")
    with pytest.raises(PromptError, match="heal"):
        constraint.matcher(prompt)
    with pytest.raises(PromptError):
        heal(constraint, prompt, 0)
    healed = heal(constraint, prompt, 3)
    assert healed.prefix == tuple(smollm2_tokenizer.encode("The answer is"))
    assert healed.healing is not None
    assert (healed.healing.reason, healed.healing.text) == ("constraint", b" ")
    assert healed.healing.settled
    allowed = healed.constraint.matcher(healed.prefix).allowed_ids()
    assert {smollm2_tokenizer.decode([i]) for i in allowed} == {" yes", " no"}


def test_the_distribution_asks_where_some_answer_would_be_lost(smollm2_tokenizer):
    """`1` is possible after the space, `yes` is not."""
    constraint = constrain(smollm2_tokenizer, "(yes|1)")
    prompt = smollm2_tokenizer.encode("The answer is ")
    allowed = constraint.matcher(prompt).allowed_ids()
    assert [smollm2_tokenizer.decode([i]) for i in allowed] == ["1"]
    healed = heal(constraint, prompt, 1)
    assert healed.healing is not None
    assert (healed.healing.reason, healed.healing.answer) == ("distribution", "yes")
    for answer in ("yes", "1"):
        ids = smollm2_tokenizer.encode("The answer is " + answer)
        matcher = healed.constraint.matcher(healed.prefix)
        for token in ids[len(healed.prefix) :]:
            matcher.advance(token)
        assert matcher.is_accepting


def test_nothing_is_given_back_where_nothing_merges(smollm2_tokenizer):
    constraint = constrain(smollm2_tokenizer, " (yes|no)")
    prompt = tuple(smollm2_tokenizer.encode("The answer is"))
    healed = heal(constraint, prompt, 5)
    assert (healed.healing, healed.prefix, healed.constraint) == (None, prompt, constraint)


def test_added_tokens_are_not_given_back(smollm2_tokenizer):
    constraint = constrain(smollm2_tokenizer, "x")
    prompt = smollm2_tokenizer.encode("<|im_start|>")
    assert heal(constraint, prompt, 4).healing is None
    with pytest.raises(DecodingError, match="-1"):
        heal(constraint, prompt, -1)
    longer = small_tokenizer("a<x>", added=["<x>", "<x>>"])
    answers = constrain(longer, ">|a", added_tokens=True)
    assert longer.encode("<x>>") != [*longer.encode("<x>"), *longer.encode(">")]
    assert heal(answers, longer.encode("<x>"), 1).healing is None


def test_as_few_as_possible_are_given_back(smollm2_tokenizer):
    """`un` + `believable` merge further back than one token."""
    constraint = constrain(smollm2_tokenizer, "(elievable|fair)")
    prompt = smollm2_tokenizer.encode(" this is unb")
    most = heal(constraint, prompt, len(prompt))
    assert most.healing is not None
    k = len(most.healing.given_back)
    assert most.healing.settled
    fewer = heal(constraint, prompt, k - 1) if k > 1 else None
    assert fewer is None or fewer.healing is None or not fewer.healing.settled
