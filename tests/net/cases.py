"""What the net holds: constraints, what is followed in each of them, and digests of the masks.

Only public names are used here, so that the net holds whatever becomes of what is inside.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata import ByteDFA, Constraint, LinkedDFA, Method, Tokenizer, constrain
from bpe_automata.errors import BpeAutomataError, MissingDependencyError
from bpe_automata.schemas import json_schema

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
CONSTRAINTS = ROOT / "experiments" / "artefacts" / "masks.jsonl"
REGEXES = FOLDER / "regexes.jsonl"
"""Drawn once by a seed, with a text each; some by hand: linked ones, and two that are refused."""
SCHEMAS = Path(os.environ.get("BPE_AUTOMATA_DATA") or ROOT.parent / "shared" / "data") / "maskbench"
"""The folder of MaskBench: beside the checkout, or BPE_AUTOMATA_DATA/maskbench."""

SMOKE = "smoke"
"""The tokenizer of 400 tokens that is part of the repository."""
TOKENIZERS = (
    *(SMOKE, "smollm2", "llama-3", "gpt2", "whisper", "llama-4", "qwen", "deepseek", "mistral-v1"),
    *("mistral-v2", "mistral-v3", "mistral-v7", "tekken", "tekken-240718"),
)
METHODS: tuple[Method, ...] = ("canonical", "lift")

PROMPTS = ("The answer is:", "Say: ", "The lighth", "Line:\n")
MOST_CHOSEN = 24  # ids of a walk
MOST_READ = 300  # ids of a text
LOWEST = 64  # ids among which a walk with an even seed chooses
EACH = 60  # schemas of each file


def source(name: str) -> str | Path:
    """What is loaded for that name."""
    return ROOT / "experiments" / "smoke_tokenizer" if name == SMOKE else name


# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """kind: "regex", "linked" or "compiled"; given: the regex or the schema; number: of the case,
    which decides about prompts and seeds; brief: is less to be followed?"""

    kind: str
    given: Any
    texts: tuple[str, ...]
    number: int
    brief: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Another one where the case is no longer the one that was recorded."""
        whole = json.dumps([self.kind, self.given, self.texts, self.options])
        return hashlib.sha256(whole.encode()).hexdigest()[:8]

    def constraint(self, tokenizer: Tokenizer, method: Method) -> Constraint:
        """Raises BpeAutomataError."""
        language: str | ByteDFA | LinkedDFA = self.given
        if self.kind != "regex":
            language = json_schema(self.given, **{"order": "schema", **self.options})
            language = language if self.kind == "linked" else language.to_dfa(depth=3)
        return constrain(tokenizer, language, method, added_tokens=False if self.brief else "plain")

    @property
    def walks(self) -> list[tuple[str, str | int]]:
        """(prompt, text to follow or seed of choices)."""
        own: list[tuple[str, str | int]] = [("", text) for text in self.texts[:2]]
        if self.brief:
            return [*own, ("" if self.number % 2 else PROMPTS[0], self.number)]
        first, second = (PROMPTS[(self.number + k) % len(PROMPTS)] for k in (0, 1))
        odd = 2 * self.number + 1
        return [*own, ("", odd), (first, self.texts[0]), (second, odd + 1)]


@cache
def regex_cases() -> dict[str, Case]:
    """By name: the constraints of the experiment on masks, their schemas linked and compiled, and
    random regexes."""
    rows = [json.loads(line) for path in (CONSTRAINTS, REGEXES) for line in _lines(path)]
    found = dict[str, Case]()
    for number, row in enumerate(row for row in rows if row["group"] not in ("warming", "admits")):
        name, source, texts = row["name"], row["source"], tuple(row["texts"])
        if "regex" in source:
            found[name] = Case("regex", source["regex"], texts, number)
            continue
        for kind in ("linked", "compiled"):
            options = {"whitespace": "spaced"}
            found[f"{name} ({kind})"] = Case(kind, source["schema"], texts, number, False, options)
    return found


def chosen_schemas() -> list[str]:
    """Names of schemas, EACH of every file, in turns: "FILE LINE"."""
    columns = []
    for path in sorted(SCHEMAS.glob("*.jsonl.gz")):
        lines = [k for k, line in enumerate(_lines(path)) if '"valid": true' in line]
        drawn = random.Random(path.name).sample(lines, EACH)
        columns.append([f"{path.name} {line}" for line in drawn])
    return [name for row in zip(*columns, strict=True) for name in row]


_STYLES = (
    ("compact", {"separators": (",", ":")}),
    ("spaced", {}),
    ("flexible", {"indent": 2}),
)


def schema_case(name: str) -> Case:
    """The schema of that name, and what the style of its number writes of its values."""
    file, line = name.split()
    row, number = json.loads(_lines(SCHEMAS / file)[int(line)]), int(line)
    whitespace, style = _STYLES[number % 3]
    values = [test["data"] for test in row["tests"] if test["valid"]][:2]
    texts = tuple(json.dumps(value, ensure_ascii=False, **style) for value in values)
    options = {"whitespace": whitespace, "order": "any"}
    return Case("linked", row["schema"], texts, number, True, options)


@cache
def _lines(path: Path) -> tuple[str, ...]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return tuple(line for line in text.split("\n") if line)


# ---------------------------------------------------------------- digests


def digests(tokenizer: Tokenizer, case: Case, method: Method) -> str:
    """One for each walk, with spaces between them; of a case that is refused, the error's class.
    Each walk is made twice, for masks that are known may be made otherwise: where the second time
    differs, both digests are there."""
    try:
        constraint = case.constraint(tokenizer, method)
    except MissingDependencyError:
        raise
    except BpeAutomataError as error:
        return type(error).__name__
    found = []
    for prompt, way in case.walks:
        first, second = (_digest(steps(tokenizer, constraint, prompt, way)) for _ in range(2))
        found.append(first if first == second else f"{first}/{second}")
    return " ".join(found)


def _digest(states: Iterator[tuple[int | None, bytes]]) -> str:
    """8 hex digits; the class of the error, where one ended it."""
    found, is_empty = hashlib.sha256(), True
    try:
        for token, state in states:
            found.update(f"{token} ".encode() + state)
            is_empty = False
    except BpeAutomataError as error:
        name = type(error).__name__
        return name if is_empty else f"{found.hexdigest()[:8]}+{name}"
    return found.hexdigest()[:8]


def steps(
    tokenizer: Tokenizer, constraint: Constraint, prompt: str, way: str | int
) -> Iterator[tuple[int | None, bytes]]:
    """(the id that was read last, the words of the mask and whether the text may end) at each
    prefix, until an id is not allowed or the sequence has ended. Raises BpeAutomataError."""
    before = tokenizer.encode(prompt) if prompt else []
    ids = _own(tokenizer, before, prompt, way) if isinstance(way, str) else []
    matcher = constraint.matcher(before)
    words = np.zeros((constraint.n_ids + 31) // 32, dtype=np.int32)
    token: int | None = None
    for k in range(MOST_READ + 2):
        matcher.mask(words)
        yield token, words.astype("<i4").tobytes() + bytes([matcher.is_accepting])
        allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        if isinstance(way, int):
            token = _choice(allowed, k, way) if k < MOST_CHOSEN else None
        else:
            nexts = ids[k : k + 1] or constraint.eos_ids
            token = next((one for one in nexts if one in allowed), None)
        if token is None:
            return
        matcher.advance(token)


def _own(tokenizer: Tokenizer, before: list[int], prompt: str, text: str) -> list[int]:
    """The tokenizer's ids of a text: as it writes them after the prompt, where it does not write
    the prompt otherwise because of the text."""
    whole = tokenizer.encode(prompt + text)
    is_kept = whole[: len(before)] == before
    return (whole[len(before) :] if is_kept else tokenizer.encode(text))[:MOST_READ]


def _choice(allowed: np.ndarray, step: int, seed: int) -> int | None:
    """The allowed id that a hash of (id, step, seed) puts first; with an even seed one of the
    LOWEST, which are short for most tokenizers."""
    if not len(allowed):
        return None
    among = allowed[:LOWEST] if seed % 2 == 0 else allowed
    mixed = among.astype(np.uint64) + np.uint64((step << 32) + (seed << 44) + 1)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return int(among[np.argmin(mixed)])
