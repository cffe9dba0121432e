"""Masks: what the first one and each later one cost, in this package and in other engines; which
ids each engine admits; what a process needs to start.

*First* is the time from the regex or the schema to the first mask. *Cold* is the time of each
prefix of a text that is read for the first time; the constraint is new, the tokenizer is not.
*Warm* is that of a second session along the same texts. Each engine runs for each part and round in
a process of its own, with one thread, and writes into a packed buffer by its own call. Each time is
the median over rounds of CPU time or wall time, whichever is less, since others use the machine
too; starts have wall times. Schemas are drawn at random from those of MaskBench that have a valid
instance. To see which ids an engine admits, it is offered ids that spell texts of the language in
another way than `encode` does.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, run

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer
from bpe_automata._kernels.bits import has
from bpe_automata.errors import BpeAutomataError, MissingDependencyError
from experiments import engines, show
from experiments.engines import PEERS, Begin, PeerError, Session, passes, refusals
from experiments.files import ROOT, lines_of
from experiments.inputs import SCHEMAS, SMOKE_SCHEMAS, Case, schema_cases, shuffled, spelled
from experiments.isolated import isolated
from experiments.lab import Row
from experiments.resources import settled, spent
from experiments.show import Figure, Table, duration, whole
from experiments.statistics import quantile
from experiments.texts import Adversary

TITLE, TIMED = "Masks: what they cost, here and in other engines", True
PACKAGES = tuple(PEERS)
CASES = [
    Case(row["name"], row["group"], row["source"], (*row["texts"],), (True,) * len(row["texts"]))
    for row in lines_of(Path(__file__).with_suffix(".jsonl"))
]
"""By group: constraints; regexes with texts that are spelled in other ids; and small constraints
that every engine compiles and follows before anything is timed."""
ENGINES = ("canonical", "within", "lift", *PEERS)
BASELINE = "llguidance"  # ratios are to its times in the same run
LONGEST = 300  # ids of a text that are read
Us = list[float]
FIRST_MASK = """
import sys
from bpe_automata import Tokenizer, constrain
constrain(Tokenizer.load(sys.argv[1]), "(true|false)").matcher().allowed_ids()
from experiments.resources import resident
print(resident("VmHWM"))
"""
CACHE = "BPE_AUTOMATA_CACHE"
STARTS: dict[str, tuple[list[str], list[str]]] = {
    "a process to its first mask": (["-c", FIRST_MASK, "NAME"], []),
    "the same, the tokenizer new": (["-c", FIRST_MASK, "NAME"], [CACHE]),
    "`bpe-automata warm NAME`": (["-m", "bpe_automata", "warm", "NAME"], [CACHE]),
}
"""The commands that are run, and the caches that are emptied before."""


@dataclass(frozen=True)
class Config:
    """n, held: schemas that are asked, and those kept alive together; rounds: of constraints;
    offers: other ids for texts of a regex; starts: kinds, each `repeats` times; longest: seconds of
    one answer, at most; patience: seconds after which no more is asked."""

    engines: tuple[str, ...] = ENGINES
    tokenizers: tuple[str, ...] = ("smollm2", "llama-3")
    schemas: Path = SCHEMAS
    n: int = 100
    held: int = 60
    rounds: int = 3
    offers: int = 40
    starts: tuple[str, ...] = tuple(STARTS)
    repeats: int = 5
    longest: float = 10.0
    patience: float = 15.0
    seed: int = 0


SMOKE = Config(
    ("canonical", BASELINE), ("smollm2",), SMOKE_SCHEMAS, n=2, held=1, rounds=1, offers=2,
    starts=(*STARTS,)[:1], repeats=1, patience=0.5,
)  # fmt: skip


def cells(config: Config) -> list[Row]:
    """A cell is an engine and what it is asked, or a kind of start."""
    parts = [("constraints", k) for k in range(config.rounds)] + [("schemas", 0), ("admits", 0)]
    found, order = list[Row](), [*config.engines]
    for tokenizer in config.tokenizers:
        for part, k in parts:
            random.Random(f"{config.seed} {part} {k}").shuffle(order)
            cell: Row = {"tokenizer": tokenizer, "part": part, "round": k}
            found += [cell | {"engine": engine} for engine in order]
    last: Row = {"tokenizer": config.tokenizers[-1], "part": "starts"}
    return found + [last | {"what": what} for what in config.starts]


def measure(
    config: Config, tokenizer: str, part: str, engine: str = "", round: int = 0, what: str = ""
) -> list[Row] | Row:
    """A row for each constraint, schema or regex that the engine came to; or seconds of starts."""
    if part == "starts":
        return started(config, tokenizer, what)
    if engine in PEERS and PEERS[engine].version() is None:
        raise MissingDependencyError(f"{engine} is not installed: {PEERS[engine].install}")
    rows = [*isolated(config.longest, asked, config, tokenizer, part, engine)]
    if not rows:
        raise PeerError(f"{engine} does not start")
    head = {"label": engines.label(engine), **rows[0]}
    if "name" in rows[-1] and len(rows[-1]) == 1:
        rows.append(rows[-1] | {"refused": f"over {config.longest:g} s, or a crash"})
    return [head | row for row in rows[1:] if len(row) > 1]


def asked(config: Config, tokenizer: str, part: str, engine: str) -> Iterator[Row]:
    """Runs in the process of an engine. Yields a row once the engine is loaded, then for each case
    its name and its results."""
    loaded, kept = Tokenizer.load(tokenizer), list[Begin]()
    before = settled()
    made = engines.engine_of(engine, loaded)
    for case in cases_of(config, "warming"):
        with suppress(BpeAutomataError), refusals():
            timed(made.prepared(case.source), loaded, case)
    used, began = settled() - before, time.perf_counter()
    gc.freeze()  # later collections need not look through what exists by now
    yield {"engine_mb": used}
    for case in cases_of(config, part):
        if time.perf_counter() - began > config.patience:
            return
        row: Row = {"name": case.id}
        yield row
        try:
            with refusals():
                compiling, begin = spent(made.prepared, case.source)
                if part == "admits":
                    row |= admitted(begin, loaded, case, config.offers)
                else:
                    row |= timed(begin, loaded, case)
                    row["first"] += compiling
        except BpeAutomataError as error:
            row["refused"] = str(error)[:160]
        if part == "schemas" and "first" in row and len(kept) < config.held:
            kept.append(begin)
            row |= {"held_mb": settled() - before - used} if len(kept) == config.held else {}
        yield row


def cases_of(config: Config, part: str) -> list[Case]:
    """The cases in order; the constraints that cost most are last."""
    if part != "schemas":
        return [case for case in CASES if case.group == part]
    found = schema_cases(config.schemas, "spaced")
    return shuffled([case for case in found if case.valid], config.n, config.seed)


# What masks cost.


def timed(begin: Begin, tokenizer: Tokenizer, case: Case) -> Row:
    """first: microseconds; texts: for each text the microseconds cold, warm and advance, as far as
    it could be read; stopped: was one of its ids not allowed?"""
    buffer = np.zeros((1, (tokenizer.n_ids + 31) // 32), dtype=np.int32)
    first, _ = spent(lambda: begin().filling(buffer)())
    seen, texts = {tuple[int, ...]()}, list[Row]()  # the very first mask came with compiling
    for text in case.valid:
        if (ids := spelled(tokenizer, text)) is None:
            continue
        session = begin()
        masks, steps, stopped = followed(session, ids[:LONGEST], buffer)
        prefixes = [tuple(ids[:k]) for k in range(len(masks))]
        cold = [us for prefix, us in zip(prefixes, masks, strict=True) if prefix not in seen]
        seen |= {*prefixes}
        warm, *_ = followed(session.again() or begin(), ids[:LONGEST], buffer)
        texts.append({"cold": cold, "warm": warm, "advance": steps, "stopped": stopped})
    return {"first": first, "texts": texts}


def followed(session: Session, ids: list[int], buffer: np.ndarray) -> tuple[Us, Us, bool]:
    """(microseconds of each mask, of each step, was an id not allowed?)."""
    fill, masks, steps = session.filling(buffer), list[float](), list[float]()
    for token in ids:
        masks.append(spent(fill)[0])
        if not has(buffer[0], token):
            return masks, steps, True
        steps.append(spent(session.advance, token)[0])
    masks.append(spent(fill)[0])
    return masks, steps, False


# Which ids are admitted.


def admitted(begin: Begin, tokenizer: Tokenizer, case: Case, offers: int) -> Row:
    """own, blocked: texts, and those whose own ids do not pass; offered, admitted: other ids for
    these texts, and those that pass."""
    adversary = tokenizer.derived("adversary", lambda made: Adversary(made, random.Random()))
    adversary.rng.seed(case.id)
    own = {text: ids for text in case.texts if (ids := spelled(tokenizer, text)) is not None}
    others: set[tuple[int, ...]] = set()
    for k in range(20 * offers):
        text = [*own][k % len(own)]
        other = adversary.resegmented(own[text], text)
        if other != own[text] and tokenizer.text_bytes(other) == text.encode():
            others |= {tuple(other)} if len(others) < offers else set()
    blocked = sum(not passes(begin, ids, tokenizer) for ids in own.values())
    found = sum(passes(begin, ids, tokenizer) for ids in others)
    return {"own": len(own), "blocked": blocked, "offered": len(others), "admitted": found}


def started(config: Config, tokenizer: str, what: str) -> Row:
    """wall: seconds of each process; mb: resident at most."""
    arguments, new = STARTS[what]
    command = [sys.executable, *(tokenizer if word == "NAME" else word for word in arguments)]
    wall = list[float]()
    for _ in range(config.repeats):
        with tempfile.TemporaryDirectory() as empty:
            given: Row = {"cwd": ROOT, "env": os.environ | dict.fromkeys(new, empty)}
            began = time.perf_counter()
            output = run(command, check=True, stdout=PIPE, **given).stdout
            wall.append(time.perf_counter() - began)
    return {"wall": wall, "mb": float(output) if FIRST_MASK in command else None}


# What the rows say.

KINDS = ["cold", "warm", "advance"]
FIELDS = ["refused", "first", "texts", "held_mb", "what", "wall", "mb"]
NEW, TIMES = "new mask, µs: p50", f"times {BASELINE}'s"
IN_SHORT = ["engine", "first mask, ms: p50", NEW, f"p50, {TIMES}", "p99", f"p99, {TIMES}"]
IN_SHORT += ["warm, µs: p50"]
NOTES = f"""this package: canonical admits the tokenizer's own ids alone, lift any ids; within is
canonical with at most {engines.WITHIN:,} ids to the end

answered, texts refused: of those that an engine came to before its time was up (this package
refuses texts whose properties are in another order than the schema's)

{TIMES}: over the masks of texts that both read; MB: memory that the engine added to a process with
Python, this package and the tokenizer (xgrammar also loads torch); held: memory of the first
schemas, 60 by default, kept alive together"""
ADMITS = """own ids blocked: texts of the language whose `encode` an engine does not let through;
others: sequences of ids that spell such a text and are not its `encode`, of those offered, which it
lets through"""


def of_part(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """The rows of a part, with all FIELDS; engines are sorted as ENGINES are."""
    some = rows.reindex(columns=[*dict.fromkeys([*rows, *FIELDS])])
    some = some[some["part"] == part]
    return some.assign(engine=pd.Categorical(some["engine"], ENGINES))


def texts_of(asked: pd.DataFrame) -> pd.DataFrame:
    """A line for each text that an engine read to the end; KINDS: arrays of medians over rounds."""
    each = asked[asked["refused"].isna()].explode("texts").dropna(subset="texts")
    each["text"] = each.groupby(level=0).cumcount()
    for kind in [*KINDS, "stopped"]:
        each[kind] = [text[kind] for text in each["texts"]]
    read = each[~each["stopped"].astype(bool)]
    groups = read.groupby(["tokenizer", "engine", "name", "text"], observed=True)[KINDS]
    return groups.agg(lambda rounds: np.quantile([*rounds], 0.5, axis=0)).reset_index()


def at(lists: pd.Series, percent: int) -> float:
    """The quantile of all values of the lists."""
    return quantile([value for some in lists for value in some], percent / 100)


def summary(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """A line for each tokenizer and engine."""
    asked, found = of_part(rows, part), list[Row]()
    texts = texts_of(asked)
    for (tokenizer, engine), own in asked.groupby(["tokenizer", "engine"], observed=True):
        side = texts[texts["tokenizer"] == tokenizer]
        read, other = side[side["engine"] == engine], side[side["engine"] == BASELINE]
        both = read.merge(other, on=["name", "text"], suffixes=("", " other"))
        answered = own[own["refused"].isna()]
        first = answered.groupby("name")["first"].median() / 1e3
        each = [text for some in answered[answered["round"] == 0]["texts"] for text in some]
        line: Row = {"tokenizer": tokenizer, "engine": own["label"].iloc[0]}
        line["answered"] = f"{len(first)} of {own['name'].nunique()}"
        line["texts refused"] = f"{sum(text['stopped'] for text in each)} of {len(each)}"
        line |= {"first mask, ms: p50": quantile(first, 0.5), "p99 ": quantile(first, 0.99)}
        line |= {name: at(read["cold"], q) for name, q in ((NEW, 50), ("p90", 90), ("p99", 99))}
        for q in (50, 99) if engine != BASELINE and len(both) else ():
            line[f"p{q}, {TIMES}"] = at(both["cold"], q) / at(both["cold other"], q)
        line |= {f"{kind}, µs: p50": at(read[kind], 50) for kind in KINDS[1:]}
        found.append(line | {"engine, MB": own["engine_mb"].median(), "held": own["held_mb"].max()})
    return pd.DataFrame(found)


def table(title: str, data: pd.DataFrame, notes: str = "") -> Table:
    """Formats by the names of the columns."""
    formats = dict.fromkeys([c for c in data if TIMES in c], show.fixed(2))
    formats |= dict.fromkeys([c for c in data if c == "held" or "MB" in c], whole)
    formats |= dict.fromkeys([c for c in data if c == "seconds"], duration)
    return Table(title, data, formats, notes)


def tables(rows: pd.DataFrame) -> list[Table]:
    """A table for each corpus, one of what is admitted, one of starts."""
    return [
        table("Constraints", summary(rows, "constraints").drop(columns="held")),
        table("Schemas of MaskBench", summary(rows, "schemas"), NOTES),
        table("Which ids are admitted", admits_of(rows), ADMITS),
        table("Starts", starts_of(rows)),
    ]


def admits_of(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each tokenizer and engine."""
    each = of_part(rows, "admits").groupby(["tokenizer", "engine", "label"], observed=True)
    sums = each[["blocked", "own", "admitted", "offered"]].sum().astype(int).astype(str)
    data = sums.reset_index()[["tokenizer"]].assign(engine=sums.index.get_level_values("label"))
    data["own ids blocked"] = [*(sums["blocked"] + " of " + sums["own"])]
    data["others admitted"] = [*(sums["admitted"] + " of " + sums["offered"])]
    return data


def starts_of(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each kind of start; medians, and the most memory."""
    some = of_part(rows, "starts")
    data = some[["tokenizer", "what"]].rename(columns={"what": "start"})
    return data.assign(seconds=some["wall"].map(np.median), MB=some["mb"])


COLORS = {"canonical": show.CANONICAL, "lift": show.LIFT, BASELINE: "#edae49"}


def figure(rows: pd.DataFrame) -> Figure:
    """The share of new masks that takes longer than each time, by engine."""
    tokenizer, some = shown_of(rows)
    texts = texts_of(of_part(some, "constraints"))
    canvas, ((axes,),) = show.panels(1, 1, (8, 4.4))
    axes.set_prop_cycle(color=["#7fc4cc", "#5b5b5b", "#6a4c93", "#9c755f"], linestyle=["--"] * 4)
    said, n = list[str](), texts["name"].nunique()
    for engine, own in texts.groupby("engine", observed=True)["cold"]:
        style = {"color": COLORS[engine], "linestyle": "-"} if engine in COLORS else {}
        axes.ecdf(np.concatenate([*own]), complementary=True, label=engine, **style)
        said += [f"{duration(at(own, 99) / 1e6)} {engine}"] if engine in COLORS else []
    axes.axhline(0.01, color="#bbbbbb", linewidth=1, linestyle="--", zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="a mask at a new prefix, µs")
    axes.set_ylabel("share of masks that take longer")
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    headline = f"Of 100 masks at new prefixes ({tokenizer}), 99 take at most\n{', '.join(said)}"
    note = f"{n} constraints; each engine over those that it answers, each prefix once"
    return Figure(canvas, headline, note)


def shown_of(rows: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """The tokenizer whose numbers stand for all, which is the last one, and its rows."""
    name = rows["tokenizer"].iloc[-1]
    return name, rows[rows["tokenizer"] == name]


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """What one tokenizer shows: constraints, schemas, what is admitted, starts."""
    tokenizer, some = shown_of(rows)

    def in_markdown(data: pd.DataFrame) -> str:
        return table("", data.drop(columns="tokenizer", errors="ignore")).lines()

    constraints, schemas = (
        summary(some, part).reindex(columns=IN_SHORT) for part in ("constraints", "schemas")
    )
    return {
        "masks in short": in_markdown(constraints),
        "masks": f"""`python -m experiments masks` with {tokenizer} ([all](paper_figures/masks.md)),
            over the constraints:

            {in_markdown(constraints)}

            and over the valid texts of MaskBench schemas:

            {in_markdown(schemas)}""",
        "masks admitted": f"""With {tokenizer}; {ADMITS}.

            {in_markdown(admits_of(some))}""",
        "masks starts": in_markdown(starts_of(some)[["start", "seconds", "MB"]]),
    }
