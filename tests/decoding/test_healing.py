"""Prompts whose last ids would merge with the answer: healing."""

import pytest

from bpe_automata import constrain, heal
from bpe_automata.errors import DecodingError, PromptError
from bpe_automata.testing import small_tokenizer


@pytest.mark.parametrize(
    ("regex", "reason", "lost"),
    [("(yes|no)", "constraint", None), ("(yes|1)", "distribution", "yes")],
)
def test_the_space_is_given_back(smollm2_tokenizer, regex, reason, lost):
    """`1` is possible after the space. `yes` would have to begin without its space, which is never
    written."""
    constraint = constrain(smollm2_tokenizer, regex)
    healed = heal(constraint, smollm2_tokenizer.encode("The answer is "), 3)
    assert healed.prefix == tuple(smollm2_tokenizer.encode("The answer is"))
    found = healed.healing
    assert (found.reason, found.text, found.answer, found.settled) == (reason, b" ", lost, True)


def test_nothing_is_given_back_where_nothing_merges(smollm2_tokenizer):
    constraint = constrain(smollm2_tokenizer, " (yes|no)")
    prompt = tuple(smollm2_tokenizer.encode("The answer is"))
    healed = heal(constraint, prompt, 5)
    assert (healed.healing, healed.prefix, healed.constraint) == (None, prompt, constraint)
    with pytest.raises(PromptError):
        heal(constrain(smollm2_tokenizer, "yes"), (*prompt, *smollm2_tokenizer.encode(" ")), 0)


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
