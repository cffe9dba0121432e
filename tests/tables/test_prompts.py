"""The cases of the distortion table."""

from __future__ import annotations

import pytest

from experiments.study.prompts import CASES, PRESIDENT, AnswerSetError, Case


def test_names_are_unique_and_the_article_comes_first():
    assert CASES[0] is PRESIDENT
    assert len({case.name for case in CASES}) == len(CASES) >= 12


@pytest.mark.parametrize("answers", [("a",), ("a", "ab"), ("x", "x"), ("", "y")])
def test_answers_must_be_several_and_prefix_free(answers):
    with pytest.raises(AnswerSetError, match="bad: "):
        Case("bad", "prompt", answers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_prompt_stays_as_it_is_when_an_answer_follows(case, smollm2_tokenizer):
    prompt = smollm2_tokenizer.encode(case.prompt)
    for answer in case.answers:
        assert smollm2_tokenizer.encode(case.prompt + answer)[: len(prompt)] == prompt
