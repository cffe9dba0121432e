"""Schemas: which compile, which are refused, what is judged wrongly, and what compiling costs, here
and in other engines; then YAML files with their schemas.

Each engine compiles the schemas of MaskBench, in a random order, and judges their instances, which
`jsonschema` calls valid or not. Its process is ended when a schema takes too long, and a new one
goes on with the next; slow engines do as many as they can in a given time. An instance is accepted
if the masks allow the tokenizer's own ids of its text, and then the end; this package takes members
in any order here. The schemas of SchemaStore come with YAML files: each is loaded, written again in
the style of `yaml_schema`, and read under the masks.

Last come random walks through the masks of schemas, as JSON and as YAML: up to 80 random ids that
the masks allow, and then a way to the end under the same masks. Each text is parsed, and validated
with formats and with patterns translated for Python; its ids must be what the tokenizer's own
`encode` gives.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from bpe_automata import Matcher, Tokenizer, constrain
from bpe_automata._kernels.bits import has
from bpe_automata.errors import (
    ArgumentError,
    BpeAutomataError,
    BudgetExceededError,
    InvalidSchemaError,
    UnsatisfiableSchemaError,
)
from bpe_automata.schemas import json_schema, yaml_schema
from experiments import engines, inputs
from experiments.engines import Begin, passes, refusals
from experiments.inputs import Case, schema_cases, shuffled, tokenizer_of, yaml_cases, yaml_text
from experiments.isolated import isolated
from experiments.judge import checker, judge_of
from experiments.lab import Row
from experiments.resources import spent
from experiments.show import Table, plain
from experiments.statistics import quantile
from experiments.walks import CannotFinishError, random_ids

TITLE, TIMED = "Schemas: what compiles, and what is wrong", True
PACKAGES = (*engines.PEERS, "jsonschema")
OURS, JUDGE, YAML, WALKS = "any-order", "jsonschema", "yaml", "walks"
KEPT = 5  # failures of the walks of one schema
QUICK = (OURS, "llguidance")
"""Engines that are given the time for all schemas."""
WARMING = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}}
LONGEST = 300  # ids of a file that are read


@dataclass(frozen=True)
class Config:
    """n: schemas, None for all; longest: seconds of one, at most; patience: seconds of a slow
    engine; walked: schemas of MaskBench for random walks, every fourth as YAML (and one more of
    SchemaStore for every eight)."""

    engines: tuple[str, ...] = (*QUICK, "xgrammar", "outlines_core")
    tokenizer: str = "smollm2"
    schemas: Path = inputs.SCHEMAS
    yaml_schemas: Path = inputs.YAML_SCHEMAS
    n: int | None = None
    longest: float = 30.0
    patience: float = 90.0
    walked: int = 190
    walks: int = 50
    seed: int = 0


SMOKE = Config(QUICK, "smollm2", inputs.SMOKE_SCHEMAS, inputs.SMOKE_YAML, walked=6, walks=10)


def cells(config: Config) -> list[Row]:
    """The judge and each engine; each YAML schema; each schema with walks in a style."""
    files = [{"part": YAML, "name": row["id"]} for row in yaml_cases(config.yaml_schemas)]
    walked = [{"part": WALKS, "name": name, "style": style} for name, style in schemas_of(config)]
    return [{"part": part} for part in (JUDGE, *config.engines)] + files + walked


def measure(config: Config, part: str, name: str = "", style: str = "") -> list[Row] | Row:
    """A row for each schema. accepted: for each instance, is it?"""
    if part == YAML:
        return of_files(config, name)
    if part == WALKS:
        return walked(config, name, style)
    cases, rows = cases_of(config), list[Row]()
    if part == JUDGE:
        return [{"name": case.id, "accepted": verdicts(case)} for case in cases]
    began = time.perf_counter()
    while len(rows) < len(cases):
        spent = time.perf_counter() - began
        remaining = float("inf") if part in QUICK else config.patience - spent
        if remaining <= 0:
            break
        first, begun = len(rows), list[str]()
        for row in isolated(config.longest, asked, config, part, first, remaining):
            rows += [row] if "status" in row else []
            begun += [] if "status" in row else [row["name"]]
        if len(begun) > len(rows) - first:  # the process ended at this schema
            rows.append({"name": begun[-1], "status": "too large", "why": "time, or a crash"})
        elif part not in QUICK or len(rows) == first:
            break
    head = {"label": "this package" if part == OURS else engines.label(part)}
    return [head | row for row in rows]


def cases_of(config: Config) -> list[Case]:
    """The cases in the order of the seed."""
    return shuffled(schema_cases(config.schemas, "spaced"), config.n, config.seed)


def verdicts(case: Case) -> list[bool | None]:
    """Is each instance valid? None where the judge cannot say, for a $ref that leads nowhere or a
    pattern that Python cannot read."""
    found = list[bool | None]()
    for text in case.texts:
        try:
            found.append(judge_of(case.source["schema"]).is_valid(json.loads(text)))
        except Exception:  # whatever jsonschema raises
            found.append(None)
    return found


def asked(config: Config, engine: str, first: int, seconds: float) -> Iterator[Row]:
    """Runs in the process of an engine. Yields the name of each schema, then its result. compile,
    first: microseconds of compiling the schema, and then of the first mask."""
    tokenizer = Tokenizer.load(config.tokenizer)
    made, began = engines.engine_of(engine, tokenizer), time.perf_counter()
    buffer = np.zeros((1, (tokenizer.n_ids + 31) // 32), dtype=np.int32)
    for case in (Case("", "", {"schema": WARMING}, (), ()), *cases_of(config)[first:]):
        if time.perf_counter() - began > seconds:
            return
        row: Row = {"name": case.id}
        if case.id:
            yield row
        try:
            with refusals():
                row["compile"], begin = spent(made.prepared, case.source)
                row["first"], _ = spent(first_mask, begin, buffer)
        except BpeAutomataError as error:
            row |= refusal(error.__cause__ or error)
        else:
            row["accepted"] = [is_read(begin, text, tokenizer) for text in case.texts]
            row["status"] = "compiled"
        if case.id:
            yield row


def first_mask(begin: Begin, buffer: np.ndarray) -> None:
    """The engine's own call makes the first mask."""
    begin().filling(buffer)()


def is_read(begin: Begin, text: str, tokenizer: Tokenizer) -> bool:
    """Do the tokenizer's own ids of a text pass?"""
    try:
        return passes(begin, tokenizer.encode(text), tokenizer)
    except BpeAutomataError:  # the text has no ids
        return False


def refusal(error: BaseException) -> Row:
    """The row of an error. status; why: the keyword, or the beginning of the message."""
    kinds = {UnsatisfiableSchemaError: "empty", BudgetExceededError: "too large"}
    kinds |= {InvalidSchemaError: "invalid"}
    status = next((name for kind, name in kinds.items() if isinstance(error, kind)), "refused")
    return {"status": status, "why": getattr(error, "keyword", None) or str(error)[:60]}


# YAML files.


def of_files(config: Config, name: str) -> Row:
    """The row of a YAML schema. compile, first: microseconds of compiling, and then of the first
    mask; slowest: of the slowest mask along a file; files: the outcome of each."""
    case = next(row for row in yaml_cases(config.yaml_schemas) if row["id"] == name)
    tokenizer, judge = tokenizer_of(config.tokenizer), judge_of(case["schema"])
    constrain(tokenizer, yaml_schema(WARMING)).matcher().allowed_ids()
    try:
        compiling, language = spent(lambda: yaml_schema(case["schema"], order="any"))
        matcher = constrain(tokenizer, language).matcher()
        first, _ = spent(matcher.allowed_ids)
    except BpeAutomataError as error:
        return refusal(error)
    files, slowest = list[str](), first
    for text in case["yaml"]:
        try:
            value = yaml.safe_load(text)
            written = yaml_text(value)
        except (yaml.YAMLError, ArgumentError):
            files.append("not JSON")
            continue
        is_valid, accepted = judge.is_valid(value), language.accepts(written.encode())
        files.append(OUTCOMES[is_valid, accepted])
        slowest = max([slowest, *along(matcher.copy(), tokenizer, written)])
    row: Row = {"compile": compiling, "first": first, "slowest": slowest, "files": files}
    return row | {"status": "compiled"}


OUTCOMES = {
    (True, True): "accepted",
    (False, False): "rejected as jsonschema does",
    (True, False): "rejected though valid",
    (False, True): "accepted though not valid",
}


def along(matcher: Matcher, tokenizer: Tokenizer, text: str) -> Iterator[float]:
    """Microseconds of each mask, as far as the text is accepted."""
    buffer = np.zeros((tokenizer.n_ids + 31) // 32, dtype=np.int32)
    for token in tokenizer.encode(text)[:LONGEST]:
        yield spent(matcher.mask, buffer)[0]
        if not has(buffer, token):
            return
        matcher.advance(token)


# Random walks.


@lru_cache(maxsize=1)
def schemas_of(config: Config) -> dict[tuple[str, str], Any]:
    """{(id, style): schema} in the order of the seed. Raises MissingFileError."""
    cases = shuffled(schema_cases(config.schemas, "compact"), config.walked, config.seed)
    stored = yaml_cases(config.yaml_schemas)
    random.Random(config.seed).shuffle(stored)
    found = {
        (case.id, "json" if k % 4 else "yaml"): case.source["schema"]
        for k, case in enumerate(cases)
    }
    return found | {(row["id"], "yaml"): row["schema"] for row in stored[: config.walked // 8]}


def walked(config: Config, name: str, style: str) -> Row:
    """Counts and failures of the walks, or why there are none."""
    schema = schemas_of(config)[name, style]
    try:
        made = (yaml_schema if style == "yaml" else json_schema)(schema, order="schema")
        check, tokenizer = checker(schema, style), tokenizer_of(config.tokenizer)
        constraint = constrain(tokenizer, made.to_dfa(depth=3), added_tokens=False)
        constraint.matcher()
    except BpeAutomataError as error:
        return {"why_not": f"{type(error).__name__}: {error}"[:300]}
    rng = random.Random(f"{config.seed} {name} {style}")
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


# What the rows say.

FIELDS = ["part", "name", "label", "status", "why", "compile", "first", "accepted"]
FIELDS += ["files", "slowest"]
STATUSES = ("compiled", "refused", "empty", "too large", "invalid")
NOTES = """schemas: those that the engine tried; a slow engine did the first of one random order;
empty: the engine says that no value is valid; too large: over a budget, or killed

valid rejected, invalid accepted: of the instances that jsonschema calls valid, and invalid, formats
included, of schemas that compiled"""


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of engines, with the numbers of valid and of invalid instances, and how many of each
    the engine judges wrongly."""
    truth = rows[rows["part"] == JUDGE].set_index("name")["accepted"]
    found = rows[~rows["part"].isin([JUDGE, YAML, WALKS])].copy()
    empty = found["status"] == "empty"
    found["accepted"] = [
        said if isinstance(said, list) else [False] * len(truth[name]) if none else []
        for said, name, none in zip(found["accepted"], found["name"], empty, strict=True)
    ]
    for right, column in ((True, "valid"), (False, "invalid")):
        each = [
            [said for own, said in zip(truth[name], accepted, strict=False) if own is right]
            for name, accepted in zip(found["name"], found["accepted"], strict=True)
        ]
        found[column] = [len(some) for some in each]
        found[f"{column} wrong"] = [sum(said is not right for said in some) for some in each]
    return found


def engines_of(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each engine."""
    lines = list[Row]()
    for label, own in judged(rows).groupby("label", sort=False):
        status = own["status"].value_counts()
        line: Row = {"engine": label, "schemas": len(own)}
        line["compiled"] = f"{status.get('compiled', 0) / len(own):.1%}"
        line |= {name: int(status.get(name, 0)) for name in STATUSES[1:]}
        line["valid rejected"] = f"{own['valid wrong'].sum()} of {own['valid'].sum():,}"
        line["invalid accepted"] = f"{own['invalid wrong'].sum()} of {own['invalid'].sum():,}"
        done = own[own["status"] == "compiled"]
        for field, title in ((done["compile"], "compile"), (done["first"], "first mask")):
            values = [*(field / 1e3)]
            line |= {f"{title}, ms: p{q}": quantile(values, q / 100) for q in (50, 99)}
        lines.append(line)
    return pd.DataFrame(lines)


def files_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The outcomes of YAML schemas and of their files, with the slowest mask."""
    some = rows[rows["part"] == YAML]
    counts = Counter(f"schemas: {status}" for status in some["status"])
    counts += Counter(f"files: {one}" for files in some["files"].dropna() for one in files)
    first = [*((some["compile"] + some["first"]).dropna() / 1e3)]
    lines: Row = {**counts}
    lines |= {f"ms to the first mask, p{q}:": quantile(first, q / 100) for q in (50, 99)}
    lines["ms of the slowest mask along a file"] = some["slowest"].max() / 1e3
    return pd.DataFrame({"YAML": [*lines], "number": pd.Series([*lines.values()], dtype=object)})


COUNTS = ["walks", "different", "ids", "characters", "failed"]


def sums(rows: pd.DataFrame) -> pd.DataFrame:
    """The sums by style, over the schemas that were walked."""
    done = rows[rows["walks"].notna()].groupby("style")
    return done[COUNTS].sum().astype(int).assign(schemas=done.size())[["schemas", *COUNTS]]


def walks_of(rows: pd.DataFrame) -> list[Table]:
    """A line for each style; every walk that failed."""
    some = rows[rows["part"] == WALKS]
    notes = f"{some['walks'].isna().sum()} more schemas were refused"
    data = sums(some).reset_index().rename(columns={"different": "different texts"})
    found = [Table("Random walks through the masks of schemas", data, {}, notes)]
    wrong = some[some["walks"].notna()].explode("failures").dropna(subset="failures")
    if len(wrong):
        told = pd.DataFrame(wrong["failures"].tolist(), index=wrong.index)[["why", "text"]]
        found.append(Table("Walks that failed", wrong[["name", "style"]].join(told).head(20)))
    return found


def tables(rows: pd.DataFrame) -> list[Table]:
    """Engines; what they refuse; YAML; walks; what this package judges wrongly."""
    rows = rows.reindex(columns=[*dict.fromkeys([*FIELDS, *rows])])
    found = judged(rows)
    refused = rows[rows["status"].notna() & (rows["status"] != "compiled")]
    refused = refused.assign(engine=refused["label"].fillna("YAML"))
    why = refused.groupby(["engine", "status", "why"], dropna=False).size()
    why = why.rename("schemas").reset_index().sort_values("schemas", ascending=False, kind="stable")
    made = [
        Table("Engines on MaskBench", engines_of(rows), {}, NOTES),
        Table("Not compiled, by keyword or message", why.groupby("engine").head(12)),
        Table("YAML schemas of SchemaStore, with files", files_of(rows)),
        *walks_of(rows),
    ]
    wrong = found[(found["part"] == OURS) & (found["valid wrong"] + found["invalid wrong"] > 0)]
    columns = ["name", "status", "valid wrong", "invalid wrong"]
    return made + ([Table("Judged wrongly by this package", wrong[columns])] if len(wrong) else [])


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """What is said of engines, of YAML, and of walks."""
    by_engine, _, files, *_ = tables(rows)
    named = "; ".join(f"{what} {plain(n)}" for what, n in files.data.itertuples(index=False))
    columns = ["engine", "schemas", "compiled", "invalid accepted", "valid rejected"]
    walks = sums(rows)
    texts = " and ".join(
        f"{of['walks']:,} {str(style).upper()} texts of {of['schemas']} schemas"
        for style, of in walks.iterrows()
    )
    return {
        "schemas": f"""`python -m experiments schemas`: the schemas of MaskBench, with `jsonschema`
            as the judge ([tables](paper_figures/schemas.md)).

            {by_engine.lines(*columns, *by_engine.data.columns[-4:])}""",
        "schemas yaml": f"""Schemas of SchemaStore as YAML, with files that come with them: {named}
            ([table](paper_figures/schemas.md#yaml-schemas-of-schemastore-with-files)).""",
        "walks": f"""`python -m experiments schemas` writes at random under the masks, too: {texts},
            each parsed and validated. Wrong: {walks["failed"].sum()}
            ([table](paper_figures/schemas.md#random-walks-through-the-masks-of-schemas)).""",
    }
