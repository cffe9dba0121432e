"""Random cases of the stress experiment: a regex, a tokenizer, a budget. All follow from a seed.

A regex is a tree of lists, so that it travels as JSON and can be made smaller part by part:

    ["text", TEXT]   ["class", CLASS]   ["words", SEED, COUNT, LETTERS]
    ["all", NODES...]   ["any", NODES...]   ["repeat", NODE, LOW, HIGH]   ["caseless", NODE]
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

Node = list[Any]

CLASSES = (
    *(r"[a-z]", r"[A-Za-z0-9_]", r"\w", r"\d", r"\s", r"\S", r"\W", ".", r"(?s:.)", r"[^\n]"),
    *(r'[^"\\]', r"[ -~]", r"\p{L}", r"\P{L}", r"\p{Lu}", r"\p{M}", r"\p{So}", r"[\x80-\xff]"),
    *(
        r"[\u0900-\u097f]",
        r"[一-龯]",
        r"[가-힣]",
        r"[\U00010000-\U0010ffff]",
        r"[a-zà-ÿ]",
        r"[0-9]",
    ),
    *(r"[\t\r\n ]", r"[^a-y]", r"[\u0300-\u036f]", r"[eo\u0301\u0323é]", r"[\ud7a3-\uff00]"),
)
TEXTS = (
    *("a", "the", " the", "Theodore", "é", "e\u0301", "日本", "한", "🎉", "👩\u200d👧", "ß", "ſ"),
    *("\n", "\r\n", "  ", "\t", "'s", "'ll", "123", "0", '"', '": "', "{", "}", "[", "<|im_end|>"),
    *("<", "|>", "://", ".", "\\", "▁", "\x00", "\x7f", "İ", "\u1112\u1161\u11ab", "", "", "http"),
)
LETTERS = ("abcdefghijklmnopqrstuvwxyz", "ab", "01", "一丁七万丈三上下", "aé日🎉 ", "AaBb '")
COUNTS = ((0, 1), (0, None), (1, None), (2, 2), (0, 3), (1, 4), (3, 9), (0, 20), (5, None))
LARGE_COUNTS = ((25, None), (100, 100), (0, 200), (10, 300), (250, 500), (1000, 1000))
TOKENIZERS = (
    *("smollm2", "llama-3", "qwen", "llama-4", "deepseek", "mistral-v1", "mistral-v3", "gpt2"),
    *("tekken", "whisper"),
)
MADE = "made"
"""Stands before the seed of a tokenizer that is made at random."""
SHARE_MADE = 0.3
SECONDS = (10.0, 10.0, 1.0, 0.2)
"""Budgets; the first is the default."""


@dataclass(frozen=True)
class Case:
    """number: of the run; tree: the regex; tokenizer: a name, or `MADE` and a seed; seconds: the
    budget of each call; seed: of all that is drawn in the course of it."""

    number: int
    tree: Node
    tokenizer: str
    seconds: float
    seed: int

    @property
    def pattern(self) -> str:
        """The regex as text."""
        return written(self.tree)


def case_of(seed: int, number: int) -> Case:
    """The case of that number in the run of that seed."""
    rng = random.Random(f"{seed} {number}")
    tokenizer = rng.choice(TOKENIZERS)
    if rng.random() < SHARE_MADE:
        tokenizer = f"{MADE} {rng.randrange(10**6)}"
    own = rng.randrange(10**9)
    return Case(number, _tree(rng, rng.choice((1, 2, 2, 3))), tokenizer, rng.choice(SECONDS), own)


def _tree(rng: random.Random, depth: int) -> Node:
    """A random regex; half of all that are not single leaves have a repeat at the top."""
    kind = rng.choices(
        ("leaf", "all", "any", "repeat", "caseless", "words"), (2, 6, 3, 4, 1, 0.4 * (depth > 1))
    )[0]
    if kind == "words":
        count = rng.choice((3, 40, 300, 2000, 10_000))
        return ["words", rng.randrange(10**6), count, rng.choice(LETTERS)]
    if kind == "leaf" or depth == 0:
        named = rng.random() < 0.5
        return ["text", rng.choice(TEXTS)] if named else ["class", rng.choice(CLASSES)]
    if kind == "repeat":
        low, high = rng.choice(COUNTS if rng.random() < 0.7 else LARGE_COUNTS)
        return ["repeat", _tree(rng, depth - 1), low, high]
    if kind == "caseless":
        return ["caseless", _tree(rng, depth - 1)]
    return [kind, *(_tree(rng, depth - 1) for _ in range(rng.randrange(2, 5)))]


def written(tree: Node) -> str:
    """The regex of a tree."""
    kind, *parts = tree
    if kind == "text":
        return re.escape(parts[0])
    if kind == "class":
        return str(parts[0])
    if kind == "words":
        return f"(?:{'|'.join(map(re.escape, _words(*parts)))})"
    if kind == "all":
        return "".join(
            f"(?:{written(part)})" if part[0] == "any" else written(part) for part in parts
        )
    if kind == "any":
        return "|".join(map(written, parts))
    if kind == "caseless":
        return f"(?i:{written(parts[0])})"
    inner, low, high = parts
    return f"(?:{written(inner)}){{{low},{'' if high is None else high}}}"


def _words(seed: int, count: int, letters: str) -> list[str]:
    rng = random.Random(seed)
    drawn = ("".join(rng.choices(letters, k=rng.randrange(1, 11))) for _ in range(count))
    return sorted(set(drawn))


def smaller(case: Case) -> Iterator[Case]:
    """Cases with one thing less, the largest steps first."""
    for tree in _smaller(case.tree):
        yield replace(case, tree=tree)


def _smaller(tree: Node) -> Iterator[Node]:
    kind, *parts = tree
    if kind in ("all", "any"):
        yield from parts
        for k in range(len(parts)):
            if len(parts) > 2:
                yield [kind, *parts[:k], *parts[k + 1 :]]
        for k, part in enumerate(parts):
            for less in _smaller(part):
                yield [kind, *parts[:k], less, *parts[k + 1 :]]
    elif kind == "caseless":
        yield parts[0]
        yield from (["caseless", less] for less in _smaller(parts[0]))
    elif kind == "repeat":
        inner, low, high = parts
        yield inner
        if low > 1:
            yield ["repeat", inner, low // 2, None if high is None else max(low // 2, high // 2)]
        elif high is not None and high > 1:
            yield ["repeat", inner, low, high // 2]
        yield from (["repeat", less, low, high] for less in _smaller(inner))
    elif kind == "words" and parts[1] > 1:
        yield ["words", parts[0], parts[1] // 2, parts[2]]
    elif kind == "text" and len(parts[0]) > 1:
        yield ["text", parts[0][1:]]
        yield ["text", parts[0][:-1]]


SCRIPT = '''"""Case {number} of the stress run with seed {seed}: {what}"""

from experiments.laws.stress_cases import Case
from experiments.laws.stress_worker import check

CASE = Case(**{row})
print(CASE.tokenizer, repr(CASE.pattern[:300]))
for kind, value in check(CASE).items():
    print(kind, value)
'''


def script(case: Case, seed: int, what: str) -> str:
    """A program that does the case again; it runs in the root of the repository."""
    shown = " ".join(what.split())[:200].replace('"', "'").replace("\\", "/")
    return SCRIPT.format(number=case.number, seed=seed, what=shown, row=asdict(case))
