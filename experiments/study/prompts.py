"""Prompts with finite sets of answers, for the distortion table.

The first one is the article's. The others cover what constrained decoding is used for (enums in
JSON, yes/no, booleans, identifiers), scripts other than Latin, and places where the joint between
prompt and answer matters. They were fixed before any of them was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from bpe_automata.errors import BpeAutomataError


class AnswerSetError(BpeAutomataError):
    """A set of answers that the exact computation cannot take; the message names the answers."""


@dataclass(frozen=True)
class Case:
    """One row of the table: a prompt and its answers, which must be prefix-free.

    No answer may begin another one. Then the end of an answer is forced, so the end-of-sequence
    token has probability 1 under each method once an answer is complete, and no factor for it
    enters. Raises `AnswerSetError`.
    """

    name: str
    prompt: str
    answers: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.answers) < 2:
            raise AnswerSetError(f"{self.name}: at least two answers are needed")
        for one, other in permutations(self.answers, 2):
            if other.startswith(one):
                message = f"{self.name}: the answer {one!r} begins the answer {other!r}"
                raise AnswerSetError(f"{message}; make the set prefix-free (add a delimiter)")


def _chat(question: str) -> str:
    """A question in the chat format of SmolLM2; its special tokens are text here as there."""
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


PRESIDENT = Case(
    "president",
    "Question: What is the first name of the US president who was a member of the "
    "Sigma Alpha Epsilon fraternity?\nAnswer:",
    (" William", " Theodore"),
)

CASES: tuple[Case, ...] = (
    PRESIDENT,
    Case("capital", "The capital of Australia is", (" Sydney", " Canberra", " Melbourne")),
    Case("author", "The novel Frankenstein was written by", (" Mary", " Percy", " Jane")),
    Case("yes_no", "Question: Is the sun a star? Answer yes or no.\nAnswer:", (" yes", " no")),
    Case("chat_yes_no", _chat("Is water a metal? Answer Yes or No."), ("Yes", "No")),
    Case("true_false", "2 + 2 = 5. True or false? This statement is", (" true", " false")),
    Case("json_bool", '{"name": "tomato", "is_animal":', (" true", " false")),
    Case(
        "json_enum_quoted",
        'A sprained ankle after a fall.\n{"severity":',
        (' "low"', ' "medium"', ' "high"'),
    ),
    Case(
        "json_enum_open",
        'Weather in Paris, please.\n{"location": "Paris", "unit": "',
        ('celsius"', 'fahrenheit"'),
    ),
    Case(
        "json_chat",
        _chat("How does this review sound? I loved it! Reply in JSON.") + '{"sentiment": "',
        ('positive"', 'negative"', 'neutral"'),
    ),
    Case("digit", "A triangle has this number of sides:", (" 3", " 4", " 5")),
    Case("month", "Christmas is celebrated in the month of", (" December", " January", " March")),
    Case("date", "The First World War ended on 1918-", ("10-11", "11-11", "11-01")),
    Case("python_method", "items = []\nfor i in range(10):\n    items.", ("append(", "extend(")),
    Case(
        "identifier",
        "class Stack:\n    def __init__(self):\n        self.",
        ("items", "stack", "data", "elements"),
    ),
    Case(
        "indentation",
        "def check(x):\n    if x is None:\n       ",
        (" return", " raise", " pass"),
    ),
    Case("russian", "Столица России —", (" Москва", " Париж")),
    Case("chinese", "问题:地球是圆的吗?请回答是或否。\n答案:", ("是", "否")),
)
