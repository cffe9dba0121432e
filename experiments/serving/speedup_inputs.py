"""Schemas by family, and what a model is asked to write under them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.decoding.forced import bytes_from, live_bytes
from bpe_automata.errors import ArgumentError, BpeAutomataError
from bpe_automata.schemas import compile_json_schema
from experiments.run.files import ROOT, lines_of
from experiments.serving.forced_inputs import SCHEMAS, schemas_of

FUNCTIONS = "functions"
"""The family that is part of the repository: the parameters of function calls."""
_FUNCTIONS = ROOT / "experiments" / "article" / "schemas.jsonl"
_MOST_ASKED = 400
"""Characters of a schema that stand in a prompt."""


@dataclass(frozen=True)
class Task:
    """family; id: unique in it; schema: as JSON."""

    family: str
    id: str
    schema: str

    def prompt(self) -> str:
        """A question in the chat format of the default model, which asks for such a text."""
        question = (
            f"Call {self.id}. Answer with a JSON object for this schema, without white space: "
            f"{self.schema[:_MOST_ASKED]}"
        )
        return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


@dataclass(frozen=True)
class Terms:
    """How texts are written. whitespace, closed: of `compile_json_schema`; most_states: of its
    automaton; temperature: 0 is greedy; most_ids: of a text, end of sequence included."""

    whitespace: Literal["compact", "spaced", "flexible"] = "compact"
    closed: bool = True
    most_states: int = 5_000
    temperature: float = 0.7
    most_ids: int = 40


def families_of(folder: Path, names: Sequence[str] = ()) -> dict[str, list[Task]]:
    """All families: those of the folder, a file each, and FUNCTIONS. names: some of them only. The
    default folder need not be there. Raises ArgumentError, and MissingFileError for another folder
    that is not there, and for files that cannot be read."""
    found: dict[str, list[Task]] = {}
    if {*names} != {FUNCTIONS} and (folder.is_dir() or folder != SCHEMAS):
        for source in schemas_of(folder):
            task = Task(source.group, source.id.split("---")[-1], json.dumps(source.schema))
            found.setdefault(source.group, []).append(task)
    found[FUNCTIONS] = [
        Task(FUNCTIONS, row["name"], json.dumps(row["parameters"])) for row in lines_of(_FUNCTIONS)
    ]
    unknown = [name for name in names if name not in found]
    if unknown:
        raise ArgumentError(f"no family is named {unknown[0]!r}; there are {', '.join(found)}")
    return {name: tasks for name, tasks in found.items() if not names or name in names}


def passed_over(
    tasks: Sequence[Task], terms: Terms, count: int, seed: str
) -> tuple[list[Task], dict[str, int]]:
    """(so many of them at random, reasons why others, met on the way, were passed over)."""
    found: list[Task] = []
    reasons: Counter[str] = Counter()
    for task in random.Random(seed).sample(list(tasks), len(tasks)):
        if len(found) == count:
            break
        why = _unfit(task, terms)
        if why is None:
            found.append(task)
        else:
            reasons[why] += 1
    return found, dict(reasons)


def _unfit(task: Task, terms: Terms) -> str | None:
    """Why there is nothing to be measured under the schema."""
    try:
        dfa = dfa_of(task.schema, terms.whitespace, terms.closed)
    except BpeAutomataError as error:
        return type(error).__name__
    if dfa.n_states > terms.most_states:
        return f"more than {terms.most_states:,} states"
    only = dfa.walk(bytes_from(dfa, dfa.start))
    return None if live_bytes(dfa, only) else "one text only"


@lru_cache(maxsize=256)
def dfa_of(
    schema: str, whitespace: Literal["compact", "spaced", "flexible"], closed: bool
) -> ByteDFA:
    """The automaton of a schema. Raises what `compile_json_schema` raises."""
    return compile_json_schema(schema, whitespace=whitespace, closed=closed)
