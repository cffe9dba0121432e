"""Forced tokens: how many ids of a text are certain before the model is asked, and what that saves.

*Known*: real schemas are made into regexes by outlines-core, and the ids of valid instances are
read one by one. Which ids are certain is asked of the canonical automaton, of the lift, and of the
published heuristic (`chop`, which gives back up to 0, 1, 2 or 4 ids, or 7 bytes, or 4 ids whatever
the grammar allows). A run of such ids is compared with the ids that follow in the text. If they
differ, the ids before the difference are known, the next one is read from the text, and it is
checked whether any text of the language has these ids.

*Ways*: under schemas of several families a model writes with the canonical constraint and with the
lift, each with and without feeding certain ids in one pass, one after the other in one process.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata import compile_regex, constrain
from bpe_automata.automata.compile import Budget
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.decoding.constraint import Method
from bpe_automata.decoding.forced import bytes_from
from bpe_automata.errors import BpeAutomataError
from bpe_automata.sampling import decode
from bpe_automata.schemas import json_schema
from experiments import show
from experiments.cases import FORMATS
from experiments.chop import COUNTS, METHODS, walked
from experiments.engines import INSTALL
from experiments.files import lines_of, require
from experiments.inputs import SCHEMAS, SMOKE_SCHEMAS, Case, groups_of, schema_cases, tokenizer_of
from experiments.lab import Row
from experiments.models import SMOLLM2, LoadedModel, causal, device_name, opened
from experiments.resources import timed
from experiments.statistics import median_interval

TITLE, TIMED, LONG = "Forced tokens", True, True
PACKAGES = ("outlines_core",)
FUNCTIONS = Path(__file__).with_name("functions.jsonl")
"""Functions with their parameters' schemas, one JSON object a line, written for this project."""
STYLES = {"compact": "", "spaced": None}
"""By style: the regex that outlines-core puts where white space may be (None: `[ ]?`)."""
WARM = r'\{"a":(true|false|[0-9]+)\}'
LONGEST, BUDGET = 20_000, Budget(max_states=5_000, max_seconds=20)
"""The most characters of a regex (outlines-core makes up to 27 million of one schema), and the
budget of its automaton."""
PUBLISHED = {"canonical": "20.4 %", "lift": "4.0 %", "chop 4": "12.7 %"}
PUBLISHED["chop 4, no grammar"] = "12.1 %"
PUBLISHED_WRONG = {"chop 0": "97 %", "chop 1": "23 runs", "chop 2": "none", "chop 4": "none"}
PUBLISHED_WRONG["chop 7 bytes"] = "none"


@dataclass(frozen=True)
class Config:
    """sampled: schemas whose instances are read; each: schemas of each family under which a model
    writes texts of at most way_ids ids; largest: states of their automata."""

    schemas: Path = SCHEMAS
    sampled: int = 60
    tokenizers: tuple[str, ...] = ("smollm2", "mistral-v1", "llama-3")
    each: int = 6
    way_ids: int = 40
    temperature: float = 0.7
    largest: int = 5_000
    model: str = "smollm2"
    device: str = "auto"
    dtype: str = "float32"
    seed: int = 0


SMOKE = Config(SMOKE_SCHEMAS, 2, ("smollm2",), each=1, way_ids=6)


def cells(config: Config) -> list[Row]:
    """A cell is a schema in a style, or a schema of a family."""
    n = len(sampled(config.schemas, "compact", config.sampled, config.seed))
    walks = [{"part": "known", "index": k, "of": style} for k in range(n) for style in STYLES]
    families = [group for group, _ in groups_of(config.schemas)]
    each = [(family, k) for family in (*families, "functions") for k in range(config.each)]
    return [*walks, *({"part": "ways", "index": k, "of": family} for family, k in each)]


def measure(config: Config, part: str, index: int, of: str) -> list[Row] | Row:
    """Counts of each tokenizer and method, or a row of each way."""
    if part == "ways":
        return ways(config, of, index)
    case = sampled(config.schemas, of, config.sampled, config.seed)[index]
    dfa, texts, other, refused = item_of(case, of)
    row: Row = {"id": case.id, "style": of, "texts": len(texts), "other": other, "refused": refused}
    if dfa is None:
        return row
    return [
        row | {"tokenizer": name, **counts}
        for name in config.tokenizers
        for counts in walked(tokenizer_of(name), dfa, texts)
    ]


@lru_cache(maxsize=2)
def sampled(path: Path, style: str, count: int, seed: int) -> list[Case]:
    """Some cases, chosen at random, in their own order."""
    every = schema_cases(path, style)
    chosen = random.Random(seed).sample(range(len(every)), min(count, len(every)))
    return [every[k] for k in sorted(chosen)]


def item_of(case: Case, style: str) -> tuple[ByteDFA | None, tuple[str, ...], int, str]:
    """(the automaton, or None; the valid texts that it accepts; how many it does not; why there is
    none)."""
    build = require("outlines_core.json_schema", install=INSTALL).build_regex_from_schema
    try:
        regex = str(build(json.dumps(case.source["schema"]), STYLES[style]))
        if len(regex) > LONGEST:
            return None, (), 0, f"a regex of more than {LONGEST:,} characters"
        dfa = compile_regex(regex, BUDGET)
    except BpeAutomataError as error:
        return None, (), 0, f"{type(error).__name__}: {str(error)[:60]}"
    except (ValueError, RecursionError) as error:
        return None, (), 0, f"outlines-core: {str(error)[:60]}"
    # `re.fullmatch` would say the same, but takes exponential time on some of these regexes.
    fit = tuple(text for text in case.valid if dfa.accepts(text.encode("utf-8", "replace")))
    return dfa, fit, len(case.valid) - len(fit), ""


# A model writes.

WAYS: dict[str, tuple[Method, bool]] = {
    "lift": ("lift", False),
    "lift forced": ("lift", True),
    "canonical": ("canonical", False),
    "canonical forced": ("canonical", True),
}
"""By name: the method, and are certain ids fed in one pass?"""


@lru_cache(maxsize=1)
def chosen(config: Config, family: str) -> list[tuple[str, str, ByteDFA]]:
    """(name, schema, automaton) of a few schemas of a family, at random; those without an
    automaton, with a large one, or with one text only are passed over."""
    tasks = [(f["name"], json.dumps(f["parameters"])) for f in lines_of(FUNCTIONS)]
    if family != "functions":
        every = schema_cases(config.schemas, "compact")
        own = [case for case in every if case.group == family]
        tasks = [(case.id.split("---")[-1], json.dumps(case.source["schema"])) for case in own]
    found = list[tuple[str, str, ByteDFA]]()
    for name, schema in random.Random(f"{config.seed} {family}").sample(tasks, len(tasks)):
        if len(found) == config.each:
            break
        try:
            dfa = json_schema(schema, closed=True, order="schema").to_dfa(depth=3)
        except BpeAutomataError:
            continue
        end = dfa.walk(bytes_from(dfa, dfa.start))
        if dfa.n_states <= config.largest and len(dfa.live_bytes(end)):
            found.append((name, schema, dfa))
    return found


@cache
def warmed(loaded: LoadedModel) -> None:
    """Runs each way once, so that nothing is loaded while the clock runs."""
    prompt = loaded.prompt_ids("{")
    for method, forced in WAYS.values():
        constraint = constrain(loaded.tokenizer, WARM, method, eos_ids=loaded.eos_ids)
        decode(causal(loaded), constraint, prompt, max_new_tokens=6, forced=forced)


def ways(config: Config, family: str, index: int) -> list[Row]:
    """A row of each way, in an order that rotates; the model has read the prompt when the clock
    starts. own: are the ids those that `encode` gives for the text? None where it was cut off."""
    loaded = opened(config.model, config.device, config.dtype)
    warmed(loaded)
    name, schema, dfa = chosen(config, family)[index]
    asked = f"Call {name}. Answer with a JSON object for this schema, without white space: "
    text = (asked + schema[:400]).join(FORMATS[SMOLLM2])
    prompt, model, rows = loaded.prompt_ids(text), causal(loaded), list[Row]()
    about = {"family": family, "schema": name, "model": loaded.name}
    about |= {"device": device_name(loaded.device)}
    drawing: Row = {"temperature": config.temperature, "seed": config.seed}
    names, turn = [*WAYS], index % len(WAYS)
    for way in names[turn:] + names[:turn]:
        method, forced = WAYS[way]
        options: Row = {"eos_ids": loaded.eos_ids, "added_tokens": False}
        constraint = constrain(loaded.tokenizer, dfa, method, **options)
        model(prompt)
        call = partial(decode, model, constraint, prompt, forced=forced, **drawing)
        spent, made = timed(partial(call, max_new_tokens=config.way_ids))
        own = loaded.prompt_ids(text + made.text) == [*prompt, *made.ids] if made.complete else None
        said = {"way": way, "written": len(made.ids) + made.complete, "ended": made.complete}
        said |= {"own": own, "text": made.text, "bytes": len(made.text.encode())}
        rows.append(about | said | {"passes": made.passes, "s": spent})
    return rows


# What the rows say.

TITLES = {
    "known": "Ids that are known before the model is asked",
    "departing": "Runs that differ from the text",
    "no_match": "Runs with which no matching text can go on",
}


def tables(rows: pd.DataFrame) -> list[show.Table]:
    """What is known and what is wrong by method; passes and time by way."""
    return [*known_tables(rows[rows["part"] == "known"]), ways_table(written(rows))]


def known_shares(known: pd.DataFrame) -> pd.DataFrame:
    """By style, tokenizer and method: the share of known ids, and of runs that are wrong."""
    by = known.dropna(subset=["method"]).groupby(["style", "tokenizer", "method"], sort=False)
    sums = by[list(COUNTS)].sum().replace({"ids": 0, "runs": 0}, np.nan)
    wrong = sums[list(COUNTS[3:])].div(sums["runs"], axis=0)
    return wrong.assign(known=sums["known"] / sums["ids"])


def known_tables(known: pd.DataFrame) -> list[show.Table]:
    """A table for each share, with a line for each method."""
    shares, once = known_shares(known), known.drop_duplicates(["style", "index"])
    refused = once["refused"].replace("", np.nan).dropna().str.split(":").str[0].value_counts()
    reasons = "; ".join(f"{reason} {n}" for reason, n in refused.items())
    notes = f"""{once["index"].nunique()} schemas, each in both styles: compact, without
        white space; spaced, a space is optional where JSON has white space, and written after , and
        :. Without a regex: {reasons or "none"}. {once["texts"].sum():,.0f} valid instances match
        their regex and are read; {once["other"].sum():,.0f} do not match, and are not read

        published, heuristic: llguidance, docs/fast_forward.md, on MaskBench (about 10,000 tests)
        with Llama-3; there a run counts as not canonical where it differs from this text

        published, canonical and lift: 3,853 and 750 of 18,898 ids were the only ones that were
        allowed, in the companion notebook of Tran-Thien 2024: Mistral-7B, Outlines' regexes of
        function-calling schemas, along the texts of the data"""
    found, published = list[show.Table](), {"known": PUBLISHED, "departing": PUBLISHED_WRONG}
    for share, title in TITLES.items():
        data = shares[share].unstack(["style", "tokenizer"]).reindex(METHODS)
        data.columns = [f"{name}, {style}" for style, name in data.columns]
        formats = dict.fromkeys(data.columns, show.percent(1))
        if share in published:
            data.insert(0, "published", data.index.map(published[share]))
        found.append(
            show.Table(title, data.reset_index(), formats, notes if share == "known" else "")
        )
    return found


def written(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of ways, with ratios within their cell. saved: the share of the ids for which the
    model was not asked; wall: seconds an id, as a multiple of those without known ids; against the
    lift: seconds for each byte, as a multiple of those of the lift that asks for every id."""
    found = rows[rows["part"] == "ways"].copy()
    found["saved"] = 1 - found["passes"] / found["written"]
    found["ms an id"] = 1e3 * found["s"] / found["written"]
    found["a byte"] = found["s"] / found["bytes"].clip(lower=1)
    found["bytes an id"] = found["bytes"] / found["written"]
    by = found.set_index(["family", "schema", "way"])
    names = [found["family"], found["schema"]]
    without = found["way"].str.removesuffix(" forced")
    base = by["ms an id"].loc[[*zip(*names, without, strict=True)]]
    lift = by.xs("lift", level="way")["a byte"].loc[[*zip(*names, strict=True)]]
    found["wall"] = found["ms an id"] / base.to_numpy()
    found["against the lift"] = found["a byte"] / lift.to_numpy()
    return found


def middle(values: pd.Series) -> tuple[float, ...]:
    """(median, low, high) with an exact interval of 95 %; (median,) where values are too few."""
    return (float(values.median()), *(median_interval([*values]) or ()))


def with_ends(format_: Callable[[float], str]) -> Callable[[Any], str]:
    """A format of what `middle` returns, without brackets where there is no interval."""
    return lambda m: format_(m[0]) if len(m) == 1 else show.interval(format_)(m)


def ways_table(found: pd.DataFrame) -> show.Table:
    """A line for each way."""
    lines = list[Row]()
    for way in WAYS:
        of = found[found["way"] == way]
        ended = of[of["ended"].astype(bool)]
        line = {"way": way, "texts": len(of), "complete": len(ended)}
        line |= {"own ids": f"{ended['own'].astype(bool).sum()} of {len(ended)}"}
        line |= {"passes saved": middle(of["saved"]), "wall": middle(of["wall"])}
        line |= {name: of[name].median() for name in ("bytes an id", "ms an id")}
        lines.append(line | {"a byte, against the lift": middle(of["against the lift"])})
    text = found.pivot(index=["family", "schema"], columns="way", values="text")
    same = {m: (text[m] == text[f"{m} forced"]).sum() for m in ("canonical", "lift")}
    note = f"""{found["model"].iloc[0]} on {found["device"].iloc[0]}; {len(text)} schemas of
        {found["family"].nunique()} families; medians over schemas, with exact intervals of the sign
        test (95 %); each way has masks of its own, and reads the prompt before its clock starts

        wall: time with known ids fed in one pass, as a multiple of the time without; the text is
        the same in {same["canonical"]} (canonical) and {same["lift"]} (lift) of
        {len(text)}; own ids: complete texts with the ids that `encode` gives them

        against the lift: time for each byte of text, as a multiple of that of the lift which asks
        for every id, in the same cell; texts differ"""
    formats = dict.fromkeys(("bytes an id", "ms an id"), show.fixed(2))
    formats |= dict.fromkeys(("wall", "a byte, against the lift"), with_ends(show.fixed(2)))
    formats["passes saved"] = with_ends(show.percent(1))
    return show.Table(
        "A model writes, with and without known ids", pd.DataFrame(lines), formats, note
    )


def figure(rows: pd.DataFrame) -> show.Figure:
    """What forced ids save, schema by schema."""
    found = written(rows)
    own, lift = (
        found[found["way"] == f"{method} forced"].set_index(["family", "schema"])
        for method in ("canonical", "lift")
    )
    at = own.groupby("family", sort=False).ngroup()
    order = own.assign(at=at).sort_values(["at", "saved"], ascending=[True, False])
    heights = -np.arange(len(order)) - 1.2 * order["at"].to_numpy()
    height = 2.4 + 0.14 * (heights.max() - heights.min() + 1)
    canvas, ((axes,),) = show.panels(1, 1, (8, height))
    ends = [100 * of.loc[order.index, "saved"] for of in (own, lift)]
    axes.hlines(heights, *ends, color=show.PALE, linewidth=1.5, zorder=1)
    square = {"marker": "s", "s": 44, "facecolor": "white", "edgecolor": show.LIFT}
    axes.scatter(ends[1], heights, label="lift", **square)
    axes.scatter(ends[0], heights, s=20, color=show.CANONICAL, zorder=3, label="canonical")
    axes.axvline(ends[0].median(), color=show.CANONICAL, linestyle="--", zorder=0)
    axes.axvline(ends[1].median(), color=show.LIFT, linestyle="--", zorder=0)
    middles = pd.Series(heights, order["at"]).groupby(level=0).mean()
    axes.set_yticks(middles, order.index.get_level_values(0).unique())
    axes.set_xlabel("forward passes saved (%)")
    axes.legend(frameon=False)
    headline = (
        f"Under a schema, the tokenizer's own ids leave {ends[0].median():.0f} % of the "
        f"forward passes out; any tokenization, {ends[1].median():.0f} %"
    )
    note = (
        f"{found['model'].iloc[0]}; n = {len(own)} schemas, a text of each way. A line: one "
        "schema, both ways joined. Dashed: medians over schemas."
    )
    return show.Figure(canvas, headline, note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """Which share of ids each automaton makes certain, and what that saves a model."""
    known = known_shares(rows[rows["part"] == "known"])["known"].groupby("method")
    ends = known.agg(lambda v: f"{100 * v.min():.0f} to {100 * v.max():.0f} %")
    found = written(rows)
    model, device = found["model"].iloc[0], found["device"].iloc[0]

    def said(method: str, value: str, format_: Callable[[float], str]) -> str:
        return with_ends(format_)(middle(found.loc[found["way"] == f"{method} forced", value]))

    saved = {method: said(method, "saved", show.percent(0)) for method in ("canonical", "lift")}
    wall = {method: said(method, "wall", show.fixed(2)) for method in ("canonical", "lift")}
    return {
        "forced": f"""On JSON schemas the canonical automaton leaves no choice about
        {ends["canonical"]} of all ids, the lift about {ends["lift"]}, and the published heuristic
        appends {ends["chop 4"]} ([table](paper_figures/forced.md), `python -m experiments run
        forced`).""",
        "speedup": f"""Under {found.groupby(["family", "schema"]).ngroups} schemas, {model} on
        {device} is not asked for {saved["canonical"]} of the ids by the canonical automaton and for
        {saved["lift"]} by the lift; the same texts take {wall["canonical"]} and {wall["lift"]}
        times as long as without (medians over schemas, with exact intervals of 95 %;
        [tables](paper_figures/forced.md)).""",
    }
