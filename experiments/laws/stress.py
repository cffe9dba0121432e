"""Random regexes, tokenizers and features, for as long as asked: what breaks, hangs or drags on?

    python -m experiments stress --seconds 3600 --seed 7

Each case is a random regex (nested counted repeats, large classes, properties, case folding, up to
10,000 literals, empty alternatives) over a tokenizer with a name or a random one, under a budget.
All features are tried on it: walks of canonical and lift, budgets of ids, forced ids, automata
written out (with segments, too), bans, prompts. Wrong is: a mask outside the lift, a walk that
cannot finish, engines that disagree, a text that does not match or has other ids by `encode`, a
crash, more than `--slow` seconds for anything that should be quick, a budget exceeded by more than
20 % and 0.5 s, or more than `--mb` of memory. Every second process runs with numba's bounds check
on (and is not timed). A failure is made smaller and written as a script beside the rows.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count as numbered

import pandas as pd

from experiments.laws.stress_cases import MADE, Case, case_of, script, smaller
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.run.measuring import Run, progress
from experiments.run.tables import (
    Column,
    Table,
    count,
    frame,
    quantiles,
    records,
    several,
    table,
    three,
    values,
)
from experiments.shared.watched import Limits, LostError, WatchedProcess

VERSION = 1
WORKER = "experiments.laws.stress_worker"
STARTING = 3600.0
"""Seconds that a process may take to compile its kernels, with the bounds check."""
TRIES = 40
"""Smaller cases that are tried of one that failed."""
QUICK = (
    *("constrain", "lift", "initial", "mask", "mask of the lift", "mask within", "within"),
    *("mask of a ban", "min_tokens", "advance", "forced"),
)
"""What must not take longer than `slow`, unless its budget said so before."""


@dataclass(frozen=True)
class Config(config.Config):
    """How long, and what is too much."""

    seconds: float = option(120.0, "stress: how long cases are begun")
    slow: float = option(2.0, "stress: seconds that a mask, a lift, a budget of ids may take")
    hang: float = option(240.0, "stress: seconds after which a case counts as hanging")
    mb: float = option(4000.0, "stress: memory of a process, in 10^6 bytes")
    checked: bool = option(True, "stress: every second process with the bounds check of numba")
    most: int = option(1_000_000, "stress: cases at most")


# Cases alone end it: how many there are must not depend on the machine.
SMOKE = Config(seconds=600.0, checked=False, most=4, hang=600.0)


def measure(run: Run[Config]) -> None:
    """One row a case, from several processes, until the time is up."""
    numbers, lock = numbered(), threading.Lock()
    end = time.monotonic() + run.config.seconds
    with progress() as bar:
        shown = bar.add_task("stress", total=None)

        def work(checked: bool) -> None:
            with _process(run, checked) as process:
                while True:
                    with lock:
                        number = next(numbers)
                    if number >= run.config.most or (number and time.monotonic() > end):
                        return
                    if f"case {number}" in run.store.rows:
                        continue
                    row = _row(run, process, case_of(run.config.seed, number), checked)
                    with lock:
                        run.expect([row["key"]])
                        run.add(row["key"], row)
                        bar.advance(shown)

        jobs = 1 if run.settings.executor == "inline" else run.settings.jobs
        with ThreadPoolExecutor(jobs) as pool:
            for _ in pool.map(work, (run.config.checked and job % 2 == 1 for job in range(jobs))):
                pass


def _process(run: Run[Config], checked: bool) -> WatchedProcess:
    limits = Limits(run.config.hang, run.config.mb, STARTING)
    kernels = str(run.folder.resolve() / "kernels with bounds check")
    more = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": kernels} if checked else {}
    return WatchedProcess(WORKER, (), limits, more)


def _row(run: Run[Config], process: WatchedProcess, case: Case, checked: bool) -> Row:
    found = _tried(process, case)
    kinds = _kinds(found, run.config.slow)
    row = {"key": f"case {case.number}", "checked": checked, **asdict(case), **found}
    row["pattern"] = case.pattern[:300]
    row["kinds"] = sorted(kinds)
    if kinds:
        least = _least(process, case, kinds, run.config)
        path = run.folder / "failures" / f"case_{case.number}.py"
        path.parent.mkdir(exist_ok=True)
        what = "; ".join(f"{kind}: {said}" for kind, said in found["wrong"]) or str(sorted(kinds))
        path.write_text(script(least, run.config.seed, what), encoding="utf-8")
        row |= {"least": least.pattern[:300], "script": path.name}
    return row


def _tried(process: WatchedProcess, case: Case) -> Row:
    """What the process found, or what became of it."""
    try:
        if not process.running:
            process.begin()
        return process.answer(asdict(case))
    except LostError as error:
        return {"worst": {}, "refused": [], "done": [], "wrong": [[error.status, error.message]]}


def _kinds(found: Row, slow: float) -> set[str]:
    late = {f"slow {what}" for what in QUICK if found["worst"].get(what, 0.0) > slow}
    excused = {f"slow {said.partition(':')[0]}" for said in found["refused"]}
    return {kind for kind, _ in found["wrong"]} | (late - excused)


def _least(process: WatchedProcess, case: Case, kinds: set[str], config: Config) -> Case:
    """A smaller case that fails alike, as far as a few tries go and as the time of a hang lasts."""
    left, end = TRIES, time.monotonic() + config.hang
    while left:
        for other in smaller(case):
            left -= 1
            if _kinds(_tried(process, other), config.slow) & kinds:
                case = other
                break
            if not left or time.monotonic() > end:
                return case
        else:
            return case
    return case


# ---------------------------------------------------------------- what the rows say


TITLE = "Stress"


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """How many cases of what, the slowest call of each sort, and what was wrong."""
    tried = tried_of(rows)
    timed = tried[~tried["checked"].astype(bool)]
    made = sum(name.startswith(MADE) for name in tried["tokenizer"])
    notes = [
        f"{len(tried)} cases ({made} of made tokenizers, {len(tried) - len(timed)} with numba's "
        f"bounds check), {len(rows) - len(tried)} left out for an empty language or a tokenizer "
        f"that is not installed. Seed {manifest['seed']}.",
        "Seconds are of the thread. What a budget ended is counted as refused.",
    ]
    refused = Counter(said.partition(":")[0] for said in values(timed, "refused"))
    calls = [
        {"what": what, "seconds": spent}
        for worst in timed["worst"]
        for what, spent in worst.items()
    ]
    shares = {"p50, s": 0.5, "p99, s": 0.99, "max, s": 1.0}
    columns = [
        Column("the slowest of each case", "what"),
        Column("cases", count),
        *(Column(name, quantiles("seconds", q), several(three)) for name, q in shares.items()),
        Column("refused", lambda group: refused[group["what"].iloc[0]]),
    ]
    groups = frame(calls).groupby("what", sort=False) if calls else []
    found = Counter(values(rows, "kinds"))
    lines = [(kind, str(n)) for kind, n in found.items()]
    wrong = [Table("Found by stress", ("what", "cases"), lines)] if found else []
    return [table("Stress", groups, columns, notes), *wrong]


def tried_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Without what was left out."""
    return rows[rows["left_out"].isna()] if "left_out" in rows else rows


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """cases: that were tried; wrong, timed: how many of them."""
    tried = tried_of(rows)
    timed = int((~tried["checked"].astype(bool)).sum())
    return {"cases": len(tried), "wrong": len(wrong(rows, manifest)), "timed": timed}


def wrong(rows: pd.DataFrame, manifest: Row) -> list[str]:
    """The cases in which something was found."""
    del manifest
    return [
        f"{row['key']}: {', '.join(row['kinds'])}: {row['tokenizer']} {row.get('least')!r}"
        for row in records(rows)
        if row["kinds"]
    ]
