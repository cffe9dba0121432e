"""What is said of forced tokens: the tables, facts and README sentence of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd

from experiments.run.executors import FAILURE, Row
from experiments.run.tables import (
    Column,
    Table,
    count,
    fixed,
    percent,
    records,
    several,
    table,
    total,
    values,
    whole,
)
from experiments.serving.forced_walks import COUNTS, METHODS

TITLE = "Forced tokens"
STEPS, ONLY_ONE = 18_898, {"canonical": 3_853, "lift": 750}
"""Ids, and how many of them were the only ones allowed: companion notebook of Tran-Thien 2024."""
PUBLISHED = {
    **{method: f"{100 * count / STEPS:.1f} %" for method, count in ONLY_ONE.items()},
    "chop 4": "12.7 %",
}
PUBLISHED_WRONG = {"chop 0": "97 %", "chop 1": "23 runs", "chop 2": "none", "chop 4": "none"}
"""Of about 10,000 tests."""
WRITTEN = {
    "compact": "JSON without white space",
    "spaced": "a space is optional where JSON has white space, and written after , and :",
    "as given": "regexes and texts as given",
}
TITLES = {
    "canonical": "canonical automaton",
    "lift": "lift (any tokenization)",
    **{name: f"{name} (heuristic)" for name in METHODS[2:]},
}
LOOPS = {"decode": "decode", "generate": "transformers' generate"}
WAYS = ("without", "with")


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """One for each style of the regexes, and one of what the model wrote."""
    counts, texts = walked(rows), written(rows)
    found = [
        _known(counts[counts["style"] == style], schemas, manifest)
        for style, schemas in _of_kind(rows, "schema").groupby("style", sort=False)
    ]
    return [*found, _generation(texts, manifest)] if len(texts) else found


def walked(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each schema that has an automaton, tokenizer and method, with its COUNTS;
    left_out: texts without canonical ids; failed: why nothing was counted, or None."""
    found = [
        dict.fromkeys(COUNTS, 0)
        | {"style": row["style"], "tokenizer": name, "method": method}
        | {"left_out": of_all.get("not_canonical", 0), "failed": of_all.get(FAILURE)}
        | of_all.get("methods", {}).get(method, {})
        for row in records(_of_kind(rows, "schema"))
        for name, of_all in (row.get("tokenizers") or {}).items()
        for method in METHODS
    ]
    columns = ["style", "tokenizer", "method", "left_out", "failed", *COUNTS]
    return pd.DataFrame(found, columns=columns)


def written(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each text that a model wrote in both `WAYS`: without and with forced ids."""
    found = [
        {name: row[name] for name in ("loop", "mode", "ids", "same")}
        | {f"{what} {way}": row[way][what] for what in ("passes", "seconds") for way in WAYS}
        | {"forced": row["with"]["forced"]}
        for row in records(_of_kind(rows, "generation"))
    ]
    return pd.DataFrame(found)


def _of_kind(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    return rows[rows["kind"] == kind]


# ---------------------------------------------------------------- what is known of given texts


def _known(counts: pd.DataFrame, schemas: pd.DataFrame, manifest: Row) -> Table:
    columns = [
        Column("tokenizer, method", lambda g: f"{g['tokenizer'].iloc[0]}, {TITLES[_method(g)]}"),
        Column("known ids", _known_ids, fixed(1, " %")),
        Column("published", lambda group: PUBLISHED.get(_method(group))),
        Column("runs", total("runs"), whole),
        Column("not of this text", _of_runs("departing"), _part),
        Column("of no text that matches", _of_runs("no_match"), _part),
        Column("of no text at all", _of_runs("no_text"), _part),
        Column("not canonical, published", lambda group: PUBLISHED_WRONG.get(_method(group))),
    ]
    notes = [
        *_data(schemas, manifest),
        *(_left_out(some) for _, some in counts.groupby("tokenizer", sort=False)),
        "a run: what a method appends at once; after one that is not of this text the walk goes on "
        "behind the id where it departs. Known ids: those that runs have right, of all ids",
        "published, heuristic: llguidance, docs/fast_forward.md, on MaskBench (about 10,000 tests) "
        "with Llama-3; there a run is not canonical where it is not of this text",
        f"published, canonical and lift: {' and '.join(f'{n:,}' for n in ONLY_ONE.values())} of "
        f"{STEPS:,} ids were the only ones that were allowed, in the companion notebook of "
        "Tran-Thien 2024: Mistral-7B, Outlines' regexes of function-calling schemas, along the "
        "texts of the data",
    ]
    style = WRITTEN[schemas["style"].iloc[0]]
    title = f"Forced tokens: ids that are known before the model is asked; {style}"
    return table(title, counts.groupby(["tokenizer", "method"], sort=False), columns, notes)


def _method(counts: pd.DataFrame) -> str:
    return str(counts["method"].iloc[0])


def _known_ids(counts: pd.DataFrame) -> float | None:
    """Percent of all."""
    ids = total("ids")(counts)
    return 100 * total("known")(counts) / ids if ids else None


def _of_runs(field: str) -> Callable[[pd.DataFrame], list[Any]]:
    return lambda counts: [total(field)(counts), total("runs")(counts)]


def _part(found: Sequence[int]) -> str:
    part, whole_ = found
    return f"{part:,} ({percent(1)(part / whole_)})" if part else "0"


def _data(schemas: pd.DataFrame, manifest: Row) -> list[str]:
    config, available, chosen = (manifest[name] for name in ("config", "available", "sampled"))
    refused = Counter(reason.split(":")[0] for reason in values(schemas, "refused"))
    reasons = "; ".join(f"{reason} {n}" for reason, n in sorted(refused.items()))
    part = f"all {available:,}"
    if chosen < available:
        part = f"{chosen:,} of the {available:,} (seed {manifest['seed']})"
    used, other = total("texts")(schemas), total("other")(schemas)
    return [
        f"{config['regexes'] or config['schemas']}: {part}; without a regex: {refused.total()} "
        f"({reasons or 'none'})",
        f"{used:,} valid instances match their regex and are walked; {other:,} do not and are not",
    ]


def _left_out(counts: pd.DataFrame) -> str:
    once = counts[counts["method"] == METHODS[0]]
    failed = Counter(reason.split(":")[0] for reason in values(once, "failed"))
    refused = "".join(f", {n} schemas failed ({why})" for why, n in failed.items())
    return (
        f"{once['tokenizer'].iloc[0]}: {total('ids')(once):,} ids, {total('left_out')(once)} "
        f"instances without canonical ids left out{refused}"
    )


# ---------------------------------------------------------------- what a model wrote


def _generation(texts: pd.DataFrame, manifest: Row) -> Table:
    """A line for each loop and mode: a model's passes and time with and without forced ids."""
    columns = [
        Column("decoding", lambda g: f"{LOOPS[g['loop'].iloc[0]]}, {g['mode'].iloc[0]}"),
        Column("texts", count),
        Column("ids", total("ids"), whole),
        Column("forced", total("forced"), whole),
        *(Column(f"passes {way}", total(f"passes {way}"), whole) for way in WAYS),
        Column("saved", _saved, percent(1)),
        *(Column(f"seconds {way}", total(f"seconds {way}"), fixed(1)) for way in WAYS),
        Column("with / without", lambda group: _ratio(group, "seconds"), fixed(2)),
        Column("same ids", lambda group: [total("same")(group), len(group)], several(str, " of ")),
    ]
    notes = [
        f"{manifest.get('model')}, at most {manifest['config']['most_ids']} ids a text, seed "
        f"{manifest['seed']}; each text is written both ways in turn, masks made on the way",
        "decode: `sampling.decode` with `CausalModel`, the prompt read beforehand; transformers' "
        "generate: `model.generate` with `ConstraintLogitsProcessor`, without and with "
        "`custom_generate=ForcedDecoding(processor)`, the prompt read in the first pass and timed",
    ]
    groups = texts.groupby(["loop", "mode"], sort=False)
    return table("Generation with and without forced ids", groups, columns, notes)


def _ratio(texts: pd.DataFrame, what: str) -> float:
    """With forced ids / without."""
    without, with_ = (total(f"{what} {way}")(texts) for way in WAYS)
    return float(with_ / without)


def _saved(texts: pd.DataFrame) -> float:
    return 1 - _ratio(texts, "passes")


# ---------------------------------------------------------------- facts


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """known: percent of ids by method, least and most over tokenizers and styles; saved: percent of
    passes, least and most over loops and modes. None where nothing was measured."""
    counts, texts = walked(rows), written(rows)
    groups = counts.groupby(["style", "tokenizer", "method"], sort=False)
    shares = [(_method(group), _known_ids(group)) for _, group in groups]
    known = {name: _ends(share for method, share in shares if method == name) for name in METHODS}
    by_loop = texts.groupby(["loop", "mode"], sort=False) if len(texts) else ()
    saved = _ends(100 * _saved(group) for _, group in by_loop)
    return {"known": known, "saved": saved, "model": manifest.get("model")}


def _ends(shares: Iterable[float | None]) -> list[float] | None:
    """The least and the most of those that are there."""
    found = [share for share in shares if share is not None]
    return [min(found), max(found)] if found else None


def readme(facts: Row) -> str:
    """What is certain by each automaton, and what a model is saved by it."""
    if not facts:
        return "(not measured)"
    known = {method: _range(ends) for method, ends in facts["known"].items()}
    found = (
        f"On JSON schemas the canonical automaton leaves no choice about {known['canonical']} of "
        f"all ids, the lift about {known['lift']}"
    )
    if facts["saved"]:
        saved = _range(facts["saved"])
        found += f"; a real model ({facts['model']}) then needs {saved} fewer passes"
    return f"{found} ([table](paper_figures/forced.md), `python -m experiments run forced`)."


def _range(ends: Sequence[float] | None) -> str:
    if ends is None:
        return "(not measured)"
    low, high = (f"{value:.0f}" for value in ends)
    return f"{low} %" if low == high else f"{low} to {high} %"
