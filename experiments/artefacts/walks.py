"""Random walks through the masks of schemas; every text is parsed and validated.

Of real schemas (MaskBench as JSON, and as YAML together with those of SchemaStore that come with
YAML files) each has the same number of walks: some ids that the masks allow, up to 80, chosen with
the seed, then under the same masks the way to the end. Each text goes through `json.loads` or
`yaml.safe_load`, then through `jsonschema` with formats and with patterns translated for Python;
its ids must be what the tokenizer's own `encode` gives. Schemas that the compiler refuses are
counted.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from bpe_automata import Constraint, Tokenizer, constrain
from bpe_automata.errors import BpeAutomataError
from bpe_automata.schemas import json_schema, yaml_schema
from experiments.inputs import (
    SCHEMAS,
    SMOKE_SCHEMAS,
    SMOKE_YAML,
    YAML_SCHEMAS,
    schema_cases,
    shuffled,
    tokenizer_of,
    yaml_cases,
)
from experiments.judge import Verdicts, with_patterns_for_python
from experiments.lab import Row
from experiments.show import Table
from experiments.texts import SMOKE_TOKENIZER
from experiments.walks import CannotFinishError, ends, finish, readable

TITLE = "Walks"
STYLES = {"json": "JSON", "yaml": "YAML"}
MOST_IDS, CANDIDATES = 80, 48
"""How many ids of a walk are chosen at random, at most; and among how many of a mask, drawn first,
each is chosen by the state that it leads to."""
KEPT = 5  # failures of one schema


@dataclass(frozen=True)
class Config:
    """count: schemas of MaskBench, of which every fourth is walked as YAML, and half as many again
    of SchemaStore; walks: of each; schemas, yaml_schemas: folder or file of JSON lines, with
    instances and with YAML files."""

    count: int = 190
    walks: int = 50
    schemas: Path = SCHEMAS
    yaml_schemas: Path = YAML_SCHEMAS
    tokenizer: str = "smollm2"
    seed: int = 0


SMOKE = Config(6, 10, SMOKE_SCHEMAS, SMOKE_YAML, SMOKE_TOKENIZER)


@lru_cache(maxsize=1)
def schemas_of(config: Config) -> dict[tuple[str, str], Any]:
    """{(id, style): schema} in the order of the seed. Raises MissingFileError."""
    cases = shuffled(schema_cases(config.schemas, "compact"), config.count, config.seed)
    stored = yaml_cases(config.yaml_schemas)
    random.Random(config.seed).shuffle(stored)
    found = {
        (case.id, "json" if k % 4 else "yaml"): case.source["schema"]
        for k, case in enumerate(cases)
    }
    return found | {(row["id"], "yaml"): row["schema"] for row in stored[: config.count // 8]}


def cells(config: Config) -> list[Row]:
    """A cell is a schema in a style."""
    return [{"id": name, "style": style} for name, style in schemas_of(config)]


def measure(config: Config, id: str, style: str) -> Row:
    """Counts and failures, or why there are no walks."""
    schema = schemas_of(config)[id, style]
    try:
        made = (yaml_schema if style == "yaml" else json_schema)(schema, order="schema")
        check, tokenizer = checker(schema, style), tokenizer_of(config.tokenizer)
        constraint = constrain(tokenizer, made.to_dfa(depth=3), added_tokens=False)
        constraint.matcher()
    except BpeAutomataError as error:
        return {"why_not": f"{type(error).__name__}: {error}"[:300]}
    rng = random.Random(f"{config.seed} {id} {style}")
    texts, failures, n_ids = list[str](), list[Row](), 0
    for _ in range(config.walks):
        try:
            ids = random_ids(constraint, rng)
        except CannotFinishError as error:
            failures.append({"why": "no way to the end", "text": "", "ids": error.args[0]})
            continue
        n_ids += len(ids)
        text = tokenizer.decode(ids)
        texts.append(text)
        own = tokenizer.encode(text) == ids
        why = check(text) if own else "its ids are not what encode gives"
        if why is not None:
            failures.append({"why": why, "text": text, "ids": ids})
    counts = {"walks": config.walks, "different": len(set(texts)), "ids": n_ids}
    counts |= {"characters": sum(map(len, texts)), "failed": len(failures)}
    return counts | {"failures": failures[:KEPT]}


def random_ids(constraint: Constraint, rng: random.Random) -> list[int]:
    """A walk that ends. Where the masks leave a choice, each state of the automaton that can be
    reached is alike likely, so that strings end and members come; after a random number of ids it
    takes those that come nearest to the end. Raises CannotFinishError."""
    engine = constraint.engine
    ids = list[int]()
    state, q = engine.initial(), constraint.dfa.start
    for _ in range(rng.randrange(1, MOST_IDS + 1)):
        allowed = readable(constraint, state)
        if not len(allowed) or (engine.accepting(state) and rng.random() < 1 / 4):
            break
        if len(allowed) > CANDIDATES:
            some = [rng.randrange(len(allowed)) for _ in range(CANDIDATES)]
            short = _single_bytes(constraint.tokenizer)
            allowed = np.union1d(allowed[some], allowed[np.isin(allowed, short)])
        after = ends(constraint, allowed, ids, q)
        q = int(rng.choice(np.unique(after).tolist()))
        ids.append(int(rng.choice(allowed[after == q].tolist())))
        state = engine.step(state, ids[-1])
    return finish(constraint, ids, state, rng)


def _single_bytes(tokenizer: Tokenizer) -> np.ndarray:
    return tokenizer.derived(
        "ids of one byte",
        lambda made: np.flatnonzero([len(spelled) == 1 for spelled in made.spellings]),
    )


# The checks of each text.


def checker(schema: Any, style: str) -> Callable[[str], str | None]:
    """What is wrong with a text, or None. Raises ArgumentError for what is no schema."""
    judge = Verdicts(with_patterns_for_python(schema))

    def check(text: str) -> str | None:
        try:
            value = (json.loads if style == "json" else yaml.safe_load)(text)
        except Exception as error:  # whatever a parser raises
            return f"it cannot be read: {type(error).__name__}: {error}"[:200]
        return None if judge.is_valid(value) else f"not valid: {judge.complaint(value)}"[:300]

    return check


# What the rows say.

COUNTS = ["walks", "different", "ids", "characters", "failed"]


def sums(rows: pd.DataFrame) -> pd.DataFrame:
    """The sums by style, over the schemas that were walked."""
    done = rows[rows["walks"].notna()].groupby("style")
    return done[COUNTS].sum().astype(int).assign(schemas=done.size())[["schemas", *COUNTS]]


def tables(rows: pd.DataFrame) -> list[Table]:
    """A line for each style; every walk that failed."""
    notes = f"{rows['walks'].isna().sum()} schemas more were refused"
    shown = sums(rows).reset_index().rename(columns={"different": "different texts"})
    found = [Table("Random walks through the masks of schemas", shown, {}, notes)]
    wrong = rows[rows["walks"].notna()].explode("failures").dropna(subset="failures")
    if len(wrong):
        told = pd.DataFrame(wrong["failures"].tolist(), index=wrong.index)[["why", "text"]]
        found.append(Table("Walks that failed", wrong[["id", "style"]].join(told).head(20)))
    return found


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """How many texts, and what was wrong."""
    found = sums(rows)
    texts = " and ".join(
        f"{of['walks']:,} {STYLES[str(style)]} texts of {of['schemas']} schemas"
        for style, of in found.iterrows()
    )
    said = f"""`python -m experiments walks` writes at random under the masks: {texts}, each parsed
    and validated. Wrong: {found["failed"].sum()} ([table](paper_figures/walks.md))."""
    return {"walks": said}
