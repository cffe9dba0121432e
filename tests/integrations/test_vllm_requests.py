"""What a request to vLLM is answered with where no answer can follow its prompt, and what else
fails before anything is written. (The tokenizer of these tests has no capitals, no punctuation.)
"""

from __future__ import annotations

import numpy as np
import pytest
import standins as host
from served import END, START, V, answered, ids_of_mask, mask_after, tokenizer

from bpe_automata.errors import BudgetExceededError
from bpe_automata.integrations._requests import Constraints
from bpe_automata.integrations._vllm_requests import RequestRow, masks_of, validate

MERGING = [START, *tokenizer().encode("a")]
NOT_CANONICAL = [*MERGING, *tokenizer().encode("b")]


def begun(prompt, **options):
    params = host.SamplingParams({"bpe_automata": {"regex": "ba", **options}})
    row = RequestRow(Constraints(tokenizer(), (END,)), params)
    row.begin(prompt)
    return row


def mask(row, ids):
    """bool [V]."""
    found = np.zeros(V, bool)
    found[list(ids_of_mask(masks_of([(row, row.asked(ids))])[0]))] = True
    return found


def answer(row):
    return answered(lambda ids: mask(row, ids))


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        (NOT_CANONICAL, "thepromptisnotcanonical"),
        (MERGING, "wouldmergewiththeanswer"),
        (None, "thepromptsidsarenotknown"),
    ],
)
def test_where_nothing_can_follow_a_prompt_the_answer_says_why(prompt, reason, caplog):
    """An empty answer would tell the client nothing, an exception end the other requests."""
    found = answer(begun(prompt))
    assert found.startswith("bpeautomata")
    assert reason in found
    assert "ifpossible" in found
    assert len(caplog.records) == 1


@pytest.mark.parametrize("prompt", [NOT_CANONICAL, MERGING, None, [START]])
def test_if_asked_the_answer_begins_afresh_instead(prompt):
    validate(
        host.SamplingParams({"bpe_automata_regex": "ba", "bpe_automata_prefix": "if possible"})
    )
    assert answer(begun(prompt, prefix="if possible")) == "ba"


def test_an_answer_that_can_follow_the_prompt_does_not_begin_afresh():
    found = mask(begun(MERGING, regex="ba|ca", prefix="if possible"), [])
    assert np.array_equal(found, mask_after("ba|ca", MERGING, ()))
    assert not np.array_equal(found, mask_after("ba|ca", (), ()))


def test_a_first_mask_over_its_budget_is_told_too():
    """But a text under way is not gone on with in other words."""
    error = BudgetExceededError("seconds", 2, "")
    for ids, expected in (([], tokenizer().encode("b")), (tokenizer().encode("b"), [END])):
        row = begun([START])
        row.asked(ids)
        assert ids_of_mask(row.row(error)) == set(expected)
