"""Requests to vLLM: what they may say, how their rows move, and what a client is told where no
answer can follow its prompt. (The tokenizer of these tests has no capitals, no punctuation.)
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hosts import ONLY_END, Row, Vllm, VllmRunner, asking, batch_update, params, vllm_config
from served import (
    END,
    START,
    V,
    answered,
    bools,
    mask_after,
    thinking,
    tokenizer,
    unpacked,
)
from standins import MoveDirectionality
from support import process

from bpe_automata.errors import ArgumentError, BudgetExceededError
from bpe_automata.integrations._requests import Constraints
from bpe_automata.integrations._vllm_requests import RequestRow, validate


def processor(servers, *added):
    """added: (params, ids so far) of rows 0, 1, ..."""
    made = servers.vllm.ConstraintLogitsProcessor(vllm_config(), torch.device("cpu"), False)
    rows = [(row, asked, [START], ids) for row, (asked, ids) in enumerate(added)]
    made.update_state(batch_update((), rows))
    return made


def masks(made, rows):
    return (made.apply(torch.zeros(rows, V)) == 0).numpy()


def test_a_text_that_cannot_go_on_may_only_end_by_its_own_ids_and_is_logged(servers, caplog):
    """An id that was not allowed, an id that never came: the other rows are served."""
    wrong, regex = tokenizer().encode("z"), asking(regex="abab")
    own = (asking(regex="abab", eos_ids=[START]), wrong)
    with caplog.at_level(logging.ERROR):
        made = processor(servers, (regex, wrong), (regex, [-1]), (regex, []), own)
        found = masks(made, 4)
        masks(made, 4)
    expected = [ONLY_END, ONLY_END, mask_after("abab", [START], ()), bools([START])]
    assert np.array_equal(found, expected)
    assert len(caplog.records) == 3


@pytest.mark.parametrize(
    ("removed", "moved", "expected"),
    [
        ([], [(0, 1, MoveDirectionality.UNIDIRECTIONAL)], [None, "abab", "[a-c]{2,5}"]),
        ([], [(0, 1, MoveDirectionality.SWAP)], ["yes", "abab", "[a-c]{2,5}"]),
        ([1], [(2, 1, MoveDirectionality.UNIDIRECTIONAL)], ["abab", "[a-c]{2,5}", None]),
    ],
)
def test_rows_go_and_move(removed, moved, expected, servers):
    """A move replaces and a swap keeps what was there."""
    made = processor(servers, *((asking(regex=r), []) for r in ("abab", "yes", "[a-c]{2,5}")))
    made.update_state(None)
    made.update_state(batch_update(removed, (), moved))
    whole = [np.ones(V, bool) if r is None else mask_after(r, [START], ()) for r in expected]
    assert np.array_equal(masks(made, 3), whole)


REFUSED = [
    ({"bpe_automata": "yes"}, {}, "give"),
    ({"bpe_automata_regex": 7}, {}, "give"),
    ({"bpe_automata_regexes": "a"}, {}, "has no option 'regexes'"),
    ({"bpe_automata": "{}", "bpe_automata_regex": "a"}, {}, "not both"),
    ({"bpe_automata_regex": "a"}, {"min_tokens": 2}, "min_tokens"),
    ({"bpe_automata_regex": "a"}, {"bad_words": ["b"]}, "bad_words"),
]
REFUSED += [
    ({"bpe_automata": {"regex": "a", **options}}, {}, reason)
    for options, reason in (
        ({"schema": True}, "in place of the regex"),
        ({"regex": None}, "in place of the regex"),
        ({"whitespace": "compact"}, "whitespace of bpe_automata is no option of a regex"),
        ({"within": 0}, "give a number of ids"),
        ({"regex": None, "tools": "[", "format": "json"}, "tools of bpe_automata is no JSON"),
        ({"regex": None, "tools": []}, "no functions"),
        (
            {"regex": None, "tools": [{"name": "f"}], "format": "llama-python", "escapes": "any"},
            "calls of Python have no option 'escapes'",
        ),
        ({"regex": None, "schema": {}, "whitespace": "call"}, "whitespace is 'call'"),
        (
            {"regex": None, "structured_outputs": {"json": {}, "json_object": True}},
            "json and json_object",
        ),
        ({"regex": None, "schema": {}, "structured_outputs": {"json": {}}}, "give it once"),
        ({"regex": None, "structured_outputs": {"json_object": "no"}}, "give True or False"),
        ({"regex": None, "tools": {}}, "tools of bpe_automata is"),
        ({"regex": None, "structural_tag": "{}"}, "with one trigger"),
        (
            {
                "regex": None,
                "structural_tag": {
                    "triggers": ["<"],
                    "structures": [{"begin": "a", "schema": {}, "end": ""}],
                },
            },
            "with which each structure begins",
        ),
        ({"regex": None, "structured_outputs": {"grammar": "a"}}, "grammar is not supported"),
        ({"structured_outputs": {"json": {}}}, "in place of the regex"),
        ({"regex": None, "schema": [1]}, "schema of bpe_automata is"),
        ({"regex": None, "schema": "{"}, "bpe_automata: "),
        ({"regex": None, "schema": {"properties": {"a": {"type": "int"}}}}, "/properties/a"),
        *(({"max_seconds": wrong}, f"max_seconds is {wrong}") for wrong in (0, float("nan"), True)),
        ({"method": "both"}, "method of bpe_automata is 'both'"),
        *(({"after": wrong}, "after of bpe_automata is") for wrong in ("", 3)),
        ({"prefix": 1}, "prefix of bpe_automata is 1: give True, False or 'if possible'"),
        *(({"eos_ids": wrong}, "give a list of ids") for wrong in ([], ["</s>"], [-1])),
        ({"regex": r"[^\x00-\U0010ffff]"}, "no text matches"),
        ({"regex": "a("}, "position"),
    )
]


@pytest.mark.parametrize(("extra", "options", "reason"), REFUSED)
def test_bad_requests_are_refused_before_they_are_queued(extra, options, reason, servers):
    for module in (servers.vllm, servers.vllm_runner):
        with pytest.raises(ValueError, match=reason) as caught:
            module.ConstraintLogitsProcessor.validate_params(params(extra, **options))
        assert isinstance(caught.value, ArgumentError)


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        ({"bpe_automata": '{"regex": "yes", "prefix": false}'}, "yes"),
        ({"bpe_automata_regex": "yes", "bpe_automata_prefix": 0}, "yes"),
        ({"bpe_automata_regex": "yes", "bpe_automata_eos_ids": [END]}, "yes"),
        ({"bpe_automata_schema": '{"const": 7}', "bpe_automata_method": "lift"}, "7"),
        ({"bpe_automata": {"schema": {"const": 7}, "max_seconds": 1}}, "7"),
        ({"bpe_automata_schema": '{"const": 7}', "bpe_automata_prefix": "False"}, "7"),
    ],
)
def test_flat_keys_json_text_and_schemas_are_read(extra, text, servers):
    """As `vllm_xargs` takes them: strings, numbers and lists of these."""
    servers.vllm.ConstraintLogitsProcessor.validate_params(params(extra))
    ids: list[int] = []
    made = processor(servers, (params(extra), ids))
    for token in [*tokenizer().encode(text), END]:
        assert np.array_equal(masks(made, 1)[0], mask_after(text, (), ids))
        ids.append(token)


def test_a_request_thinks_before_its_answer(servers):
    """Free ids up to the special token, and then the answer alone."""
    ids: list[int] = []
    made = processor(servers, (asking(regex="yes", after="<pad>"), ids))
    for mask, token in thinking([START]):
        assert np.array_equal(masks(made, 1)[0], mask)
        ids.append(token)


def test_the_module_of_the_front_end_imports_no_torch():
    """vLLM's front end imports the class only to check requests."""
    script = (
        "import sys, standins; sys.modules.update(standins.modules());"
        "import bpe_automata.integrations.vllm_runner; print('torch' in sys.modules)"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    assert process(script, PYTHONPATH=path).stdout.strip() == "False"


# ---------------------------------------------------------------- prompts that nothing can follow

MERGING = [START, *tokenizer().encode("a")]
NOT_CANONICAL = [*MERGING, *tokenizer().encode("b")]


def answer(host, servers, prompt, prefix):
    made = host(servers, [Row({"choices": ["ba"], "prefix": prefix}, prompt)], True)
    return answered(lambda ids: made.masks([ids])[0])


@pytest.mark.parametrize(
    ("host", "prompt", "reason"),
    [
        (Vllm, NOT_CANONICAL, "thepromptisnotcanonical"),
        (VllmRunner, NOT_CANONICAL, "thepromptisnotcanonical"),
        (Vllm, MERGING, "wouldmergewiththeanswer"),
        (VllmRunner, MERGING, "wouldmergewiththeanswer"),
        (Vllm, None, "thepromptsidsarenotknown"),
    ],
)
def test_where_nothing_can_follow_a_prompt_the_answer_says_why_or_begins_afresh(
    host, prompt, reason, servers, caplog
):
    """An empty answer would tell the client nothing, an exception end the other requests."""
    found = answer(host, servers, prompt, True)
    assert found.startswith("bpeautomata")
    assert reason in found
    assert "ifpossible" in found
    assert len(caplog.records) == 1
    validate(asking(choices=["ba"], prefix="if possible"))
    assert answer(host, servers, prompt, "if possible") == "ba"


def test_an_answer_that_can_follow_the_prompt_does_not_begin_afresh(servers):
    row = Row({"regex": "ba|ca", "prefix": "if possible"}, MERGING)
    (found,) = Vllm(servers, [row], True).masks([[]])
    assert np.array_equal(found, mask_after("ba|ca", MERGING, ()))
    assert not np.array_equal(found, mask_after("ba|ca", (), ()))


def test_a_first_mask_over_its_budget_is_told_too():
    """But a text under way is not gone on with in other words."""
    error, first = BudgetExceededError("seconds", 2, ""), tokenizer().encode("b")
    for ids, expected in (([], first), (first, [END])):
        row = RequestRow(Constraints(tokenizer(), (END,)), asking(regex="ba"))
        row.begin([START])
        row.asked(ids)
        assert np.array_equal(unpacked(row.row(error)), bools(expected))
