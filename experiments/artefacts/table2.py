"""The article's Table 2, published and measured: what CartesianMerge costs on function calls.

Step 1 makes the automaton of the tokenizer. Step 2 makes the lift: the mask of each of its states.
Step 3 finds the relevant states of the product; here it is given all configurations to which ids
lead from the start (all can reach acceptance), and makes their rows. The pass that also finds the
configurations does the work of steps 2 and 3, and is timed separately. Step 4 makes a mask. The
schemas are Glaiveai2K of MaskBench, closed, without white space; the masks are those along a valid
instance, or else the shortest text. The published algorithms in plain Python run on the merge table
alone, as does the eager engine on the same schemas.

Step 1 is also compared by itself on the complete table, for each pair of tokens: Algorithm 3
against the package's rectangles. Last comes what Vegas segments save where token automata are
written out: without them, with an empty cache (alone), with the segments of the schemas before
(shared), and with those of this schema too (again). All must give the same automaton.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata import Segments, Tokenizer, compile_regex
from bpe_automata._budget import check
from bpe_automata._kernels.bits import contained, has, members
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.canonical.arrays import BEGINNING, NO_SET
from bpe_automata.canonical.canonical import CanonicalAutomaton
from bpe_automata.constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata.constructions.explicit import explore
from bpe_automata.constructions.lift import Lift
from bpe_automata.errors import BpeAutomataError, BudgetExceededError
from bpe_automata.reference import CartesianProduct, lift, product_mask
from bpe_automata.schemas import json_schema
from experiments.inputs import SCHEMAS, SMOKE_SCHEMAS, Case, schema_cases, shuffled, tokenizer_of
from experiments.lab import Row, failed
from experiments.mistral import MISTRAL, NAME, Reference, algorithm_3, mistral_table, rectangles
from experiments.resources import limited, repeated, timed
from experiments.show import Table, fixed, markdown, percent, three
from experiments.statistics import quantile

TITLE, TIMED, LONG = "Table 2: what CartesianMerge costs on function calls", True, True
PUBLISHED = {"tokenizer": 20.9, "lift": 0.687, "relevance": 27.3, "masks": 0.00153}
"""Published seconds: Tran-Thien 2024, Table 2, Mistral-7B and function calls."""
RATIO = PUBLISHED["relevance"] / PUBLISHED["lift"]
STEPS = {
    "tokenizer": "1. tokenizer automaton",
    "lift": "2. lift",
    "relevance": "3. relevant states",
    "rows": "2 and 3 in one pass",
    "masks": "4. mask",
}
REFERENCE, EAGER, LAZY = "reference, plain Python", "eager", "lazy (rows: engine and first mask)"
SAME = "eager, the schemas of the reference"
ENGINES = (REFERENCE, SAME, EAGER, LAZY)
GROUP = "Glaiveai2K"
MOST_MASKS, MOST_EDGES, CHUNK = 60, 30_000, 50
VARIANTS = ("none", "alone", "shared", "again")
DONE = "done"


@dataclass(frozen=True)
class Config:
    """n: how many random schemas, None for all; reference: on how many of them the published
    algorithms run, each within a limit (CPU seconds) and mb (10^6 bytes); merges: how many of the
    first are used; segments: how many schemas."""

    schemas: Path = SCHEMAS
    tokenizer: str = MISTRAL
    n: int | None = None
    merges: int | None = None
    reference: int = 50
    limit: float = 30
    mb: float = 4000
    segments: int = 200
    segment_tokenizers: tuple[str, ...] = ("smollm2", "mistral-v1")
    seed: int = 0


SMOKE = Config(
    SMOKE_SCHEMAS, n=2, merges=20, reference=1, limit=20, segments=3,
    segment_tokenizers=("smollm2",),
)  # fmt: skip


def cells(config: Config) -> list[Row]:
    """Step 1; the schemas in chunks; segments by tokenizer."""
    found: list[Row] = [{"part": part} for part in ("rectangles", "algorithm 3", "tokenizer")]
    found += [{"part": "schemas", "first": k} for k in range(0, len(sources(config)), CHUNK)]
    return found + [{"part": "segments", "tokenizer": of} for of in config.segment_tokenizers]


def measure(config: Config, part: str, first: int = 0, tokenizer: str = "") -> list[Row] | Row:
    """The rows of a part."""
    if part == "schemas":
        each = enumerate(sources(config)[first : first + CHUNK], first)
        return [row for k, case in each for row in of_schema(config, case, k < config.reference)]
    if part == "segments":
        return written_out(config, tokenizer)
    table = mistral_table(config.merges)
    if part == "tokenizer":
        loaded = tokenizer_of(config.tokenizer)
        plain, _ = timed(lambda: table.derived("reference", Reference).texts)
        return {EAGER: repeated(lambda: CanonicalAutomaton(loaded), 3), REFERENCE: [plain]}
    return (rectangles if part == "rectangles" else algorithm_3)(table)


@lru_cache(maxsize=1)
def sources(config: Config) -> list[Case]:
    """The function calls, in a random order."""
    every, all_of = schema_cases(config.schemas, "compact"), config.schemas != SCHEMAS
    own = [case for case in every if all_of or case.group == GROUP]
    return shuffled(own, config.n, config.seed)


# Steps 2 to 4 of a schema.


def dfa_of(case: Case) -> tuple[ByteDFA, str]:
    """The automaton of a schema's compact texts, with members in order, no others, and values
    nested three levels deep; and one of these texts, a valid instance's if there is one."""
    dfa = json_schema(case.source["schema"], closed=True, order="schema").to_dfa(depth=3)
    fitting = (t for t in case.valid if dfa.accepts(t.encode("utf-8", "replace")))
    return dfa, next(fitting, (dfa.shortest() or b"").decode())


def of_schema(config: Config, case: Case, is_plain: bool) -> list[Row]:
    """A row for each engine."""
    said: Row = {"id": case.id}
    try:
        compiling, (dfa, text) = timed(lambda: dfa_of(case))
    except BpeAutomataError as error:
        return [said | failed(error)]
    said |= {"compile": compiling, "status": DONE}
    tokenizer = tokenizer_of(config.tokenizer)
    rows = [
        said | {"engine": EAGER} | eager(tokenizer, dfa, text),
        said | {"engine": LAZY} | lazy(tokenizer, dfa, text),
    ]
    if is_plain:
        reference = mistral_table(config.merges).derived("reference", Reference)
        rows.append(said | {"engine": SAME} | eager(reference.tokenizer, dfa, text))
        reference.texts, reference.spelled  # noqa: B018  # cached, so that no schema pays for them
        try:
            with limited(config.limit, config.mb):
                found = published(reference, dfa, text)
        except (TimeoutError, MemoryError) as error:
            found = {"status": str(error)}
        rows.append(said | {"engine": REFERENCE} | found)
    return rows


def eager(tokenizer: Tokenizer, dfa: ByteDFA, text: str) -> Row:
    """Seconds of: the lift; all rows of given configurations; finding these with rows; masks."""
    engine = CartesianMerge(tokenizer, dfa, tokenizer.eos_ids)
    spent, nodes = timed(lambda: all_configurations(engine, engine.initial()))
    masks = along(engine, tokenizer.encode(text))
    fresh = CartesianMerge(tokenizer, dfa, tokenizer.eos_ids)
    relevance, _ = timed(lambda: [fresh.product.row(*node) for node in nodes])
    lifted = Lift(tokenizer, dfa, tokenizer.eos_ids)
    lifting, _ = timed(lambda: [lifted.mask(q) for q in range(1, lifted.dfa.n_states)])
    steps = {"lift": lifting, "relevance": relevance, "rows": spent}
    return steps | {"masks": masks, "nodes": len(nodes)}


def lazy(tokenizer: Tokenizer, dfa: ByteDFA, text: str) -> Row:
    """rows: seconds to an engine and its first mask; masks: of all masks, the first included."""
    making, engine = timed(lambda: CartesianMerge(tokenizer, dfa, tokenizer.eos_ids))
    masks = along(engine, tokenizer.encode(text))
    return {"rows": making + masks[0], "masks": masks}


def along(engine: CartesianMerge, ids: Sequence[int]) -> list[float]:
    """Seconds of each mask before an id. Raises ValueError where the id is not in it."""
    before, state = timed(engine.initial)  # makes the first mask too
    spent = list[float]()
    for number, token in enumerate(ids[:MOST_MASKS]):
        one, mask = timed(engine.mask, state)
        spent.append(one + before * (number == 0))
        if not has(mask, token):
            raise ValueError(f"id {token}, number {number} of the text's own, is masked out")
        state = engine.step(state, token)
    return spent


def published(reference: Reference, dfa: ByteDFA, text: str) -> Row:
    """Steps 2 to 4 as in the article. Raises ValueError where its first mask is not ours."""
    symbols = reference.symbols(dfa)
    lifting, lifted = timed(lambda: lift(symbols, reference.spelled))
    product = CartesianProduct(lifted, reference.texts)
    relevance, relevant = timed(lambda: product.relevant)
    masks, pair, first = list[float](), product.start, None
    for token in reference.tokenizer.encode(text)[:MOST_MASKS]:
        spent, mask = timed(product_mask, product, pair)
        first = mask if first is None else first
        masks.append(spent)
        pair = product.step(pair, token)
    engine = CartesianMerge(reference.tokenizer, dfa)
    if first is not None and first != {*members(engine.mask(engine.initial())).tolist()}:
        raise ValueError("the first mask is not that of the published algorithms")
    steps = {"lift": lifting, "relevance": relevance, "masks": masks}
    return steps | {"nodes": len(relevant)}


def all_configurations(engine: CartesianMerge, state: ProductState) -> list[tuple[int, int, int]]:
    """All configurations (state of the byte DFA, state of the text automaton, number of a
    hypothesis set) that ids lead to from a state, and few more: an id that may follow some last id
    is taken to follow each. A state of CartesianMerge is a configuration with a last id, so the
    rows of all configurations are the whole automaton."""
    first = (int(state[0]), int(state[1]), int(state[2]))
    found, todo = {first: None}, [first]
    while todo:
        check()
        for node in successors(engine, todo.pop()):
            if node not in found:
                found[node] = None
                todo.append(node)
    return list(found)


def successors(engine: CartesianMerge, here: tuple[int, int, int]) -> set[tuple[int, int, int]]:
    """The configurations that the ids of a configuration's row lead to, whatever the last id
    was."""
    sets, free_bound = engine.canonical.sets, engine.product.sides(*here)
    ids = members(free_bound[0] | free_bound[1])
    added = np.isin(ids, list(engine.tokenizer.added_ids))
    after_added = engine.steps(ProductState(*here, -1), ids[added])
    leads = {(int(after.state), int(after.text), int(BEGINNING)) for after in after_added}
    ids = ids[~added]
    reached = engine.product.after_each(*here, ids)
    classes = engine.canonical.actions.of_token[ids]
    each = zip(free_bound, sets.successors(here[2]), strict=True)
    sides = [np.where(contained(side, ids), after[classes], NO_SET) for side, after in each]
    for state, text, one, other in np.unique(np.column_stack([reached, *sides]), axis=0).tolist():
        leads |= {(state, text, k) for k in {one, other, sets.union(one, other)} - {NO_SET}}
    return leads


# Segments.


def written_out(config: Config, name: str) -> list[Row]:
    """A row for each schema and variant; a schema that is too large has one row that says so.
    Raises ValueError where segments change the automaton."""
    tokenizer, rows = tokenizer_of(name), list[Row]()
    segments = Segments(tokenizer)
    variants(Segments(tokenizer), compile_regex(r'\{"a":(true|false|null),"b":(0|1[0-9]{0,2})\}'))
    for case in sources(config)[: config.segments]:
        try:
            made = variants(segments, dfa_of(case)[0])
        except BpeAutomataError as error:
            is_large = isinstance(error, BudgetExceededError)
            made = [{"variant": "too large"} if is_large else failed(error)]
        rows += [{"id": case.id} | row for row in made]
    return rows


def variants(segments: Segments, dfa: ByteDFA) -> list[Row]:
    """A row for each of `VARIANTS`, after an engine that fills the tokenizer's caches for all."""
    tokenizer = segments.tokenizer

    def explored() -> Any:
        engine = CartesianMerge(tokenizer, dfa, tokenizer.eos_ids)
        return explore(engine, engine.initial(), MOST_EDGES)

    explored()
    spent, whole_ = timed(explored)
    rows: list[Row] = [{"variant": "none", "spent": spent, "edges": whole_.n_transitions}]
    for name, own in zip(VARIANTS[1:], (Segments(tokenizer), segments, segments), strict=True):
        made, found = own.made, own.found
        spent, automaton = timed(own.automaton, dfa, 10 * MOST_EDGES)
        row = {"variant": name, "spent": spent, "edges": automaton.n_transitions}
        rows.append(row | {"made": own.made - made, "found": own.found - found})
        if not automaton.minimised().identical(whole_.minimised()):
            raise ValueError(f"put together, it differs: {automaton.equivalent(whole_)}")
    return rows


# What the rows say.


def spent_by(rows: pd.DataFrame) -> pd.DataFrame:
    """engine, step, spent: each time that was measured, of schemas that were finished."""
    done = rows[(rows["part"] == "schemas") & (rows["status"] == DONE)]
    parts = [
        rows[rows["part"] == "tokenizer"][[EAGER, REFERENCE]].melt(var_name="engine"),
        done[done["engine"] == EAGER][["engine", "compile"]].melt("engine"),
        done[["engine", *[*STEPS][1:]]].melt("engine"),
    ]
    found = pd.concat(parts).fillna({"variable": "tokenizer"}).explode("value").dropna()
    found["spent"] = found["value"].astype(float)
    found["engine"] = pd.Categorical(found["engine"], ENGINES)
    found["step"] = pd.Categorical(found["variable"], ["compile", *STEPS])
    return found[["engine", "step", "spent"]]


def tables(rows: pd.DataFrame) -> list[Table]:
    """Seconds; the same in detail; segments."""
    spent, schemas = spent_by(rows), rows[rows["part"] == "schemas"]
    means = spent.groupby(["engine", "step"], observed=True)["spent"].mean().unstack()
    plain = schemas[schemas["engine"] == REFERENCE]
    over, bounded = (plain["status"] != DONE).sum(), bounds(plain)
    means.loc[REFERENCE, ["relevance", "rows"]] = np.nan, bounded.mean()
    data = pd.concat([pd.DataFrame([PUBLISHED], index=["published (Tran-Thien 2024)"]), means])
    data = data.reindex(columns=[*STEPS]).rename(columns=STEPS)
    data["schemas"] = schemas.dropna(subset=["engine"]).groupby("engine").size()
    ours = means.loc[EAGER]
    of = ["mean", "median", ("p99", lambda v: quantile(v, 0.99)), ("most", "max"), ("n", "size")]
    detail = spent.groupby(["engine", "step"], observed=True)["spent"].agg(of).reset_index()
    detail["step"] = detail["step"].map(STEPS | {"compile": "schema to automaton"}).astype(str)
    return [
        Table(
            "Table 2: seconds",
            data.reset_index(names=""),
            {},
            f"""means. Like for like, the search for relevant states is step 3 of the article, and
            2 and 3 in one pass here: {RATIO:.1f} and {ours["rows"] / ours["lift"]:.1f} times the
            lift; in seconds {PUBLISHED["relevance"] / ours["rows"]:,.0f} times less, on another
            machine, of other schemas of the same kind, with outlines' automata

            the reference: merges of {NAME}, on {len(plain)} schemas, {over} of which were over a
            limit of time or memory: here each counts as the limit, so that 2 and 3 take so long or
            more on average, {three(bounded.median())} s in the median""",
        ),
        Table("The same in seconds, by engine and step", detail),
        segments_table(rows),
    ]


def bounds(plain: pd.DataFrame) -> pd.Series:
    """Lower bounds of the seconds of steps 2 and 3: the limit where a schema was over it."""
    limits = plain["status"].str.extract(r"over (\d+) s")[0].astype(float)
    return (plain["lift"] + plain["relevance"]).astype(float).fillna(limits)


def speed_ups(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each tokenizer and variant."""
    found = rows[(rows["part"] == "segments") & rows["variant"].isin(VARIANTS)]
    plain = found[found["variant"] == "none"].set_index(["tokenizer", "id"])["spent"]
    keys = pd.MultiIndex.from_frame(found[["tokenizer", "id"]])
    found = found.assign(faster=plain.loc[keys].to_numpy() / found["spent"])
    found["slower"] = (found["faster"] < 1).astype(float)
    by = found.groupby(["tokenizer", "variant"], sort=False)
    lines = by.agg(n=("id", "size"), ms=("spent", "median"))
    lines["ms"] *= 1e3
    lines["speed-up"], lines["slower"] = by["faster"].median(), by["slower"].mean()
    lines["parts found"] = by["found"].sum() / (by["made"].sum() + by["found"].sum())
    lines["transitions"] = by["edges"].sum()
    return lines.reset_index()


def segments_table(rows: pd.DataFrame) -> Table:
    """A table of what segments save."""
    formats = dict.fromkeys(("ms", "speed-up"), fixed(2))
    formats |= dict.fromkeys(("slower", "parts found"), percent())
    n = rows[rows["part"] == "segments"]["id"].nunique()
    note = f"""of {n} schemas those whose automaton has at most {MOST_EDGES:,} transitions; medians;
        speed-up: how many times faster than none; slower: share of schemas where it costs more than
        none; parts found: the share of the parts that was cached; transitions: of all automata,
        before they are minimised"""
    title = "Segments: automata of function calls, written out"
    return Table(title, speed_ups(rows), formats, note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """Step 1, and what segments save."""
    by = rows.groupby("part", sort=False).first()
    own, plain = by.loc["rectangles"], by.loc["algorithm 3"]
    what = "all texts of the Mistral-7B table: which token may follow which"
    sets = f"{plain['forbidden']:,.0f} forbidden tokens in {plain['states']:,.0f} states"
    lines = [
        ["Algorithm 3, published, on another machine", "20.9", ""],
        ["Algorithm 3, `reference`", f"{plain['spent']:.1f}", sets],
        ["rectangles", f"{np.median(own['spent']):.3f}", f"{own['rectangles']:,.0f} rectangles"],
    ]
    wrong = plain["differences by row"]
    agree = f"differ in {wrong:,.0f} of" if wrong else "agree on all"
    names = {"alone": "nothing", "shared": "the schemas before", "again": "this very schema"}
    found = speed_ups(rows)
    each = zip(found["speed-up"], found["parts found"], strict=True)
    found["said"] = [f"{ratio:.2f} ({share:.0%})" for ratio, share in each]
    wide = found.pivot(index="tokenizer", columns="variant", values="said")[[*names]]
    wide = wide.rename(columns=names).reindex(found["tokenizer"].unique())
    speeds = markdown(wide.reset_index(names="times faster than without"))
    return {
        "geometry": f"""{markdown(pd.DataFrame(lines, columns=[what, "seconds", "kept"]))}

        The two {agree} {plain["pairs"]:,.0f} pairs of tokens.""",
        "segments": f"""`python -m experiments table2`, {found["n"].max():.0f} function calls,
        medians, by what is cached; in brackets the share of the parts that were found
        ([table](paper_figures/table2.md)):

        {speeds}""",
    }
