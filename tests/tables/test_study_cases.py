"""The cases of the distortion study, and the chat formats around them."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict

import pytest

from bpe_automata import constrain
from bpe_automata._automata.sources import from_strings
from bpe_automata.errors import PromptError
from experiments.answers.cases import (
    ASSISTANT,
    CASES,
    PLAIN,
    PROMPTS,
    CasesError,
    ChatFormatError,
    chat_format,
    chat_prompt,
    prompt_text,
    read,
)

FAMILIES = {
    "names": 45,
    "choices": 45,
    "yes_no": 45,
    "dates_numbers": 45,
    "function_calls": 45,
    "identifiers": 45,
    "scripts": 45,
    "strings": 30,
    "whitespace": 20,
}
STYLES = {"plain", "chat", "few_shot", "json", "code"}
BOUNDARIES = {"space", "no_space", "newline", "quote", "bracket", "word", "mixed"}
MOST_NODES = 15_000  # of the trie of all tokenizations of a case

# An answer that begins with a letter takes the space at the prompt's end into its first token.
# Digits do not: SmolLM2 splits them off.
JOINED = {
    f"{base}_no_space"
    for base in (
        "names_canada",
        "names_dynamite",
        "names_einstein",
        "names_boss",
        "yes_no_nile",
        "yes_no_greater",
        "dates_numbers_planets",
        "choices_money",
        "identifiers_float",
        "strings_photo",
        "scripts_ru_rose",
    )
}


def smollm2_prompt(case):
    return prompt_text(case, "smollm2")


def test_no_case_is_repeated_and_each_family_has_its_share():
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({(case.prompt, case.answers) for case in CASES}) == len(CASES)
    assert not {case.prompt for case in PROMPTS} & {smollm2_prompt(case) for case in CASES}
    counts = Counter(case.family for case in CASES)
    assert counts.keys() == FAMILIES.keys()
    assert all(counts[family] >= least for family, least in FAMILIES.items())
    assert {case.style for case in CASES} == STYLES
    assert {case.boundary for case in CASES} == BOUNDARIES
    assert all(case.name.startswith(case.family) for case in CASES)
    assert all(2 <= len(case.answers) <= 8 for case in CASES)
    assert all(len(case.truth) < len(case.answers) for case in CASES)


def test_text_is_in_nfc_and_has_no_mark_outside_of_chats():
    for case in CASES:
        for text in (case.prompt, *case.answers, *case.truth):
            assert unicodedata.is_normalized("NFC", text), case.name
        assert case.style == "chat" or ASSISTANT.strip() not in case.prompt, case.name
        text = prompt_text(case, "gemma")
        assert (text == case.prompt) == (case.style != "chat")
        assert ASSISTANT not in text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_boundary_is_what_it_says(case):
    prompt, answers = smollm2_prompt(case), case.answers
    firsts = [answer[0].isspace() for answer in answers]
    line = prompt.split("\n")[-1].replace('\\"', "")
    said = {
        "space": not prompt[-1:].isspace() and {a[0] for a in answers} == {" "},
        "no_space": prompt.endswith(" ") and not any(firsts),
        "newline": prompt.endswith("\n") and not any(firsts),
        "bracket": prompt[-1] in "([{<" and not any(firsts),
        "quote": line.count('"') % 2 == 1 or line.count("'") % 2 == 1,
        "word": not prompt[-1].isspace() and not any(firsts),
        "mixed": not prompt[-1].isspace() and any(firsts),
    }
    # An indented line of code ends in spaces, of which the last one is the answer's.
    indented = case.boundary == "space" and line.isspace() and {a[0] for a in answers} == {" "}
    assert said[case.boundary] or indented


def test_variants_differ_in_one_thing_and_list_the_same_answers():
    groups = defaultdict(list)
    for case in CASES:
        groups[case.base].append(case)
    variants = {base: cases for base, cases in groups.items() if len(cases) > 1}
    assert len(variants) >= 40
    assert len(CASES) - len(groups) <= len(CASES) / 4
    for base, cases in variants.items():
        styles, boundaries = ({getattr(c, x) for c in cases} for x in ("style", "boundary"))
        assert sorted((len(styles), len(boundaries))) == [1, len(cases)], base
        assert len({case.family for case in cases}) == 1, base
        bare = {
            (tuple(a.strip(' "') for a in c.answers), tuple(t.strip(' "') for t in c.truth))
            for c in cases
        }
        assert len(bare) == 1, base


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.long)])
def test_a_matcher_starts_after_each_prompt_that_no_answer_changes(every, smollm2_tokenizer):
    asked = [*CASES[::every], *(case for case in CASES if case.name in JOINED)]
    refused, joined = set(), set()
    for case in asked:
        prompt = smollm2_tokenizer.encode(smollm2_prompt(case))
        answers = [smollm2_tokenizer.encode(smollm2_prompt(case) + a) for a in case.answers]
        if any(ids[: len(prompt)] != prompt for ids in answers):
            joined.add(case.name)
        constraint = constrain(smollm2_tokenizer, from_strings(case.answers))
        try:
            constraint.matcher(prefix=prompt)
        except PromptError:
            refused.add(case.name)
    assert refused == joined == JOINED


def test_all_tokenizations_can_be_summed(smollm2_tokenizer):
    tokens = {smollm2_tokenizer.token_bytes(i) for i in range(smollm2_tokenizer.n_ids)}
    longest = max(map(len, tokens))

    def nodes(text: bytes) -> int:
        ways = [1] + [0] * len(text)  # ways[e]: tokenizations of text[:e]
        for end in range(1, len(text) + 1):
            starts = range(max(0, end - longest), end)
            ways[end] = sum(ways[s] for s in starts if text[s:end] in tokens)
        return sum(ways) - 1

    cost = {case.name: sum(nodes(a.encode()) for a in case.answers) for case in CASES}
    assert max(cost.values()) <= MOST_NODES
    assert all(count > 0 for count in cost.values())


def test_chat_formats(smollm2_tokenizer):
    question = f"Is it hot?{ASSISTANT}Answer:"
    assert chat_prompt(question, "smollm2") == (
        "<|im_start|>user\nIs it hot?<|im_end|>\n<|im_start|>assistant\nAnswer:"
    )
    assert chat_prompt("Hi", "gemma") == (
        "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n"
    )
    with pytest.raises(ChatFormatError, match="twice"):
        chat_prompt(question + ASSISTANT, "gemma")
    ids = smollm2_tokenizer.encode(chat_prompt("Hi", "smollm2"))
    assert [smollm2_tokenizer.token_bytes(i) for i in ids].count(b"<|im_start|>") == 2


def test_models_are_asked_by_their_name_or_their_marks_and_plainly_if_they_know_no_chats():
    added = {"<|im_start|>", "<|im_end|>"}
    assert chat_format("SmolLM2-135M-Instruct (Q4_1)", (), True) == "smollm2"
    assert chat_format("/models/mine", added, True) == "smollm2"
    assert chat_format("mine", {"<start_of_turn>"}, True) == "gemma"
    assert chat_format("gemma-3-270m-it", added, True) == "gemma"
    assert chat_format("gemma-3-270m", {"<start_of_turn>"}, False) == PLAIN
    assert chat_format("gpt2", (), True) == PLAIN
    assert chat_prompt(f"Is it?{ASSISTANT}So", PLAIN) == "Question: Is it?\nAnswer:\nSo"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 2 is no case"),
        ('{"name": "b"}', "line 2 is no case"),
        ('{"name": "a"}', "line 2 is no case"),
        (None, "line 2: a was there before"),
    ],
)
def test_what_is_no_case_is_named_by_its_line(tmp_path, line, why):
    good = (
        '{"name": "a", "family": "names", "style": "plain", "boundary": "space", "prompt": "p", '
        '"answers": [" x", " y"]}'
    )
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{good}\n{good if line is None else line}\n")
    with pytest.raises(CasesError, match=why):
        read(path)
