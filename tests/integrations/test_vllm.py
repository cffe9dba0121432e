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
from served import END, START, V, answered, ids_of_mask, mask_after, tokenizer
from support import process

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hosts import ONLY_END, Row, Vllm, VllmRunner, params, vllm_config  # noqa: E402
from standins import BatchUpdate, MoveDirectionality, SamplingParams  # noqa: E402

from bpe_automata.errors import ArgumentError, BudgetExceededError  # noqa: E402
from bpe_automata.integrations._requests import Constraints  # noqa: E402
from bpe_automata.integrations._vllm_requests import RequestRow, validate  # noqa: E402


def asking(regex, **options):
    return SamplingParams({"bpe_automata": {"regex": regex, **options}})


def processor(servers, *added):
    """added: (params, ids so far) of rows 0, 1, ..."""
    made = servers.vllm.ConstraintLogitsProcessor(vllm_config(), torch.device("cpu"), False)
    rows = [(row, asked, [START], ids) for row, (asked, ids) in enumerate(added)]
    made.update_state(BatchUpdate(len(rows), [], rows, []))
    return made


def masks(made, rows):
    return (made.apply(torch.zeros(rows, V)) == 0).numpy()


def test_a_text_that_cannot_go_on_may_only_end_by_its_own_ids_and_is_logged(servers, caplog):
    """An id that was not allowed, an id that never came: the other rows are served."""
    wrong = tokenizer().encode("z")
    asked = [(asking("abab"), wrong), (asking("abab"), [-1]), (asking("abab"), [])]
    own = (asking("abab", eos_ids=[START]), wrong)
    with caplog.at_level(logging.ERROR):
        made = processor(servers, *asked, own)
        found = masks(made, 4)
        masks(made, 4)
    expected = [ONLY_END, ONLY_END, mask_after("abab", [START], ()), np.arange(V) == START]
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
    regexes = ["abab", "yes", "[a-c]{2,5}"]
    made = processor(servers, *((asking(regex), []) for regex in regexes))
    made.update_state(None)
    made.update_state(BatchUpdate(3, removed, [], moved))
    whole = [
        np.ones(V, bool) if regex is None else mask_after(regex, [START], ()) for regex in expected
    ]
    assert np.array_equal(masks(made, 3), whole)


REFUSED = [
    ({"bpe_automata": "yes"}, "give"),
    ({"bpe_automata": {"method": "lift"}}, "give"),
    ({"bpe_automata": "[1]"}, "give"),
    ({"bpe_automata_regex": 7}, "give"),
    ({"bpe_automata_regexes": "a"}, "has no option 'regexes'"),
    ({"bpe_automata": "{}", "bpe_automata_regex": "a"}, "not both"),
    ({"bpe_automata_regex": "a("}, "position"),
]
REFUSED += [
    ({"bpe_automata": {"regex": "a", **options}}, reason)
    for options, reason in (
        ({"regexes": "b"}, "has no option 'regexes'"),
        ({"schema": True}, "in place of the regex"),
        ({"regex": None, "schema": [1]}, "schema of bpe_automata is"),
        ({"regex": None, "schema": "{"}, "bpe_automata: "),
        ({"regex": None, "schema": {"properties": {"a": {"type": "int"}}}}, "/properties/a"),
        ({"max_seconds": 0}, "max_seconds is 0"),
        ({"max_seconds": float("nan")}, "max_seconds is nan"),
        ({"max_seconds": True}, "max_seconds is True"),
        ({"method": "both"}, "method of bpe_automata is 'both'"),
        ({"prefix": 1}, "prefix of bpe_automata is 1"),
        ({"prefix": "yes"}, "give True, False or 'if possible'"),
        ({"eos_ids": []}, "give a list of ids"),
        ({"eos_ids": ["</s>"]}, "give a list of ids"),
        ({"eos_ids": [-1]}, "give a list of ids"),
        ({"regex": r"[^\x00-\U0010ffff]"}, "no text matches"),
        ({"regex": "a("}, "position"),
    )
]
CLASHES = {"min_tokens": 2, "bad_words": ["b"], "structured_outputs": {"json": "{}"}}
REFUSED_PARAMS = [(SamplingParams(extra), reason) for extra, reason in REFUSED]
REFUSED_PARAMS += [
    (SamplingParams({"bpe_automata": {"regex": "a"}}, **{name: value}), name)
    for name, value in CLASHES.items()
]


@pytest.mark.parametrize(("params", "reason"), REFUSED_PARAMS)
def test_bad_requests_are_refused_before_they_are_queued(params, reason, servers):
    for module in (servers.vllm, servers.vllm_runner):
        with pytest.raises(ValueError, match=reason) as caught:
            module.ConstraintLogitsProcessor.validate_params(params)
        assert isinstance(caught.value, ArgumentError)


YES = [
    {"bpe_automata": '{"regex": "yes", "prefix": false}'},
    {"bpe_automata_regex": "yes", "bpe_automata_prefix": 0, "bpe_automata_eos_ids": [END]},
    {"bpe_automata_schema": '{"const": 7}', "bpe_automata_method": "lift"},
    {"bpe_automata": {"schema": {"const": 7}, "max_seconds": 1}},
    {"bpe_automata_schema": '{"const": 7}', "bpe_automata_prefix": "False"},
]


@pytest.mark.parametrize("extra", YES)
def test_flat_keys_json_text_and_schemas_are_read(extra, servers):
    """As `vllm_xargs` takes them: strings, numbers and lists of these."""
    params, text = SamplingParams(extra), "7" if "schema" in str(extra) else "yes"
    servers.vllm.ConstraintLogitsProcessor.validate_params(params)
    ids: list[int] = []
    made = processor(servers, (params, ids))
    for token in [*tokenizer().encode(text), END]:
        assert np.array_equal(masks(made, 1)[0], mask_after(text, (), ids))
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
BOTH = pytest.mark.parametrize("host", [Vllm, VllmRunner])


def answer(host, servers, prompt, **options):
    made = host(servers, [Row({"choices": ["ba"], **options}, prompt)], True)
    return answered(lambda ids: made.masks([ids])[0])


@BOTH
@pytest.mark.parametrize(
    ("prompt", "reason"),
    [(NOT_CANONICAL, "thepromptisnotcanonical"), (MERGING, "wouldmergewiththeanswer")],
)
def test_where_nothing_can_follow_a_prompt_the_answer_says_why(
    host, prompt, reason, servers, caplog
):
    """An empty answer would tell the client nothing, an exception end the other requests."""
    found = answer(host, servers, prompt)
    assert found.startswith("bpeautomata")
    assert reason in found
    assert "ifpossible" in found
    assert len(caplog.records) == 1


def test_a_prompt_that_is_not_known_is_told_or_begun_afresh(servers):
    assert "thepromptsidsarenotknown" in answer(Vllm, servers, None)
    assert answer(Vllm, servers, None, prefix="if possible") == "ba"


@BOTH
@pytest.mark.parametrize("prompt", [NOT_CANONICAL, MERGING, [START]])
def test_if_asked_the_answer_begins_afresh_instead(host, prompt, servers):
    validate(params(Row({"choices": ["ba"], "prefix": "if possible"}, prompt)))
    assert answer(host, servers, prompt, prefix="if possible") == "ba"


def test_an_answer_that_can_follow_the_prompt_does_not_begin_afresh(servers):
    row = Row({"regex": "ba|ca", "prefix": "if possible"}, MERGING)
    (found,) = Vllm(servers, [row], True).masks([[]])
    assert np.array_equal(found, mask_after("ba|ca", MERGING, ()))
    assert not np.array_equal(found, mask_after("ba|ca", (), ()))


def test_a_first_mask_over_its_budget_is_told_too():
    """But a text under way is not gone on with in other words."""
    error, first = BudgetExceededError("seconds", 2, ""), tokenizer().encode("b")
    for ids, expected in (([], first), (first, [END])):
        row = RequestRow(Constraints(tokenizer(), (END,)), asking("ba"))
        row.begin([START])
        row.asked(ids)
        assert ids_of_mask(row.row(error)) == set(expected)
