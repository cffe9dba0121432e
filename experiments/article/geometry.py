"""The automaton of all texts, of the Mistral-7B merge table, made in two ways in one run.

The reference is Algorithm 3 of the article in plain Python, with its last step, the fusion of equal
states; the article's own time stands beside it. The rectangles are the package's: every token's
derivation, and one rectangle per merge. Both are then compared on the complete table, row by row.
Last, DirectMerge itself on `.*` is compared with Algorithm 3 for growing beginnings of the table. A
difference is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.article.forks import DONE, worker
from experiments.article.mistral import MERGES_HELP, bpe_alone_of_mistral, name_of
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.run.measuring import Run, progress
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.tables import Column, Table, fixed, frame, several, table, whole
from experiments.statistics import median

VERSION = 1
SERVER = "experiments.article.geometry_worker"


@dataclass(frozen=True)
class Config(config.Config):
    """Of which table, how often, and how much is compared."""

    merges: int | None = option(None, MERGES_HELP)
    repeats: int = option(7, "how often the rectangles are made, before and after the reference")
    sampled: int = option(100_000, "random pairs of tokens that are compared merge by merge")
    budget: float = option(
        200, "seconds for growing beginnings of the table; the last may take as long again"
    )


SMOKE = Config(merges=300, repeats=2, sampled=1000, budget=0.5)


def measure(run: Run[Config]) -> None:
    """One row per part, each from a process of its own."""
    measure_on(run, json.dumps(bpe_alone_of_mistral(run.config.merges)))


def measure_on(run: Run[Config], tokenizer: str) -> None:
    """tokenizer: a tokenizer.json, BPE alone."""
    config = run.config
    # The rectangles before and after the reference, so that a busy machine slows both alike.
    parts: dict[str, tuple[str, list[float]]] = {
        "rectangles": ("rectangles", [config.repeats]),
        "reference": ("reference", [config.seed, config.sampled]),
        "rectangles again": ("rectangles", [config.repeats]),
        "beginnings": ("beginnings", [config.budget]),
    }
    if not (todo := run.expect(parts)):
        return
    with worker(SERVER, tokenizer) as process, progress() as bar:
        for key in bar.track(todo, description="geometry"):
            part, arguments = parts[key]
            run.add(key, {"kind": part} | process.answer({"part": part, "arguments": arguments}))


# ---------------------------------------------------------------- what the rows say

PUBLISHED_SECONDS = 20.8703916
PUBLISHED = (
    'published: printed by the companion notebook of Tran-Thien, "Fast, High-Fidelity LLM Decoding '
    'with Regex Constraints" (2024), for the complete table on his machine; not measured here'
)
GOAL = 100


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Three tables, of whatever rows there are."""
    title = name_of(manifest["config"]["merges"])
    found = facts(rows)
    tables = [costs(rows, found, title), comparison(found), beginnings(rows)]
    return Report(f"Geometry: {title}", tables, facts=found, wrong=found["wrong"])


def of_part(rows: Sequence[Row], part: str) -> list[Row]:
    """The rows of a part that were measured."""
    return [row for row in rows if row.get("kind") == part and row.get("status") == DONE]


def steps_of(rows: Sequence[Row]) -> list[Row]:
    """The growing beginnings of the table; `of`: how many merges the whole has."""
    found = of_part(rows, "beginnings")
    return [step | {"of": row["of"]} for row in found for step in row["steps"]]


def wrong(rows: Sequence[Row]) -> list[str]:
    """What the two ways, or DirectMerge and Algorithm 3, differ in."""
    pairs = [row["compared"]["differences"] for row in of_part(rows, "reference")]
    return [
        *(f"{n:,} pairs that Algorithm 3 and the rectangles differ in" for n in pairs if n),
        *(
            f"the first {step['merges']:,} merges: DirectMerge and Algorithm 3 differ in "
            f"{step['counterexample']}"
            for step in steps_of(rows)
            if step["counterexample"] is not None
        ),
    ]


def facts(rows: Sequence[Row]) -> Row:
    """Seconds, sizes and comparisons; only those that were measured. times_faster: the reference
    without its fusion over the median of the rectangles."""
    said: Row = {"published_seconds": PUBLISHED_SECONDS, "times_faster": None}
    made, references = of_part(rows, "rectangles"), of_part(rows, "reference")
    keys = ("seconds", "fusing_seconds", "states", "forbidden", "fused_states", "compared")
    seconds = [second for row in made for second in row["seconds"]]
    for reference in references:
        said["reference"] = {key: reference[key] for key in keys}
    if made:
        said["rectangles"] = {
            "seconds": median(seconds),
            "times": len(seconds),
            "number": made[0]["rectangles"],
            "kept_mb": made[0]["kept_mb"],
        }
    if made and references:
        said["times_faster"] = float(references[-1]["seconds"]) / median(seconds)
    if steps := steps_of(rows):
        said["last_beginning"] = {key: steps[-1][key] for key in steps[-1] if key != "of"}
    return said | {"wrong": wrong(rows)}


def readme(facts: Row) -> str:
    """Both times, and what was compared."""
    what = "all texts of the Mistral-7B table: which token may follow which"
    lines = [
        f"| {what} | seconds | what is kept |",
        "|:--|--:|--:|",
        f"| Algorithm 3, published, on another machine | {facts['published_seconds']:.1f} | |",
    ]
    if reference := facts.get("reference"):
        sets = f"{reference['forbidden']:,} forbidden tokens in {reference['states']:,} states"
        lines.append(f"| Algorithm 3, `reference` | {reference['seconds']:.1f} | {sets} |")
    if rectangles := facts.get("rectangles"):
        number = f"{rectangles['number']:,} rectangles"
        lines.append(f"| rectangles | {rectangles['seconds']:.3f} | {number} |")
    return "\n".join([*lines, "", wrapped(_agreement(facts))])


def _agreement(facts: Row) -> str:
    if "reference" not in facts:
        return "Algorithm 3 was not measured here."
    if facts["wrong"]:
        return f"They differ: {'; '.join(facts['wrong'])}."
    said = f"The two agree on all {facts['reference']['compared']['pairs']:,} pairs of tokens"
    if last := facts.get("last_beginning"):
        states, transitions = last["direct"]
        said += (
            f", and with DirectMerge of `.*` as far as that was followed, to the first "
            f"{last['merges']:,} merges ({states:,} states, {transitions / 1e6:.1f} million "
            "transitions)"
        )
    return said + "."


def costs(rows: Sequence[Row], facts: Row, title: str) -> Table:
    """Seconds and memory of both."""
    made = of_part(rows, "rectangles")
    seconds = [second for row in made for second in row["seconds"]]

    def line(of: str, seconds: float, mb: float, kept: str) -> list[str]:
        shown = f"{seconds:.3f}" if seconds < 10 else f"{seconds:.1f}"
        return [of, shown, f"{mb:.0f}", kept]

    lines = [["Algorithm 3, published, all merges", f"{PUBLISHED_SECONDS:.1f}", "-", "-"]]
    for row in of_part(rows, "reference"):
        fused = row["seconds"] + row["fusing_seconds"]
        sets = f"{row['states']:,} states, {row['forbidden']:,} forbidden tokens"
        states = f"{row['fused_states']:,} states"
        lines += [
            line("Algorithm 3, reference", row["seconds"], row["peak_mb"], sets),
            line("the same, fused", fused, row["fused_peak_mb"], states),
        ]
    if made:
        size = f"{made[0]['rectangles']:,} rectangles, {made[0]['kept_mb']:.1f} MB"
        peak = max(row["peak_mb"] for row in made)
        lines.append(line("rectangles", median(seconds), peak, size))
    if ratio := facts["times_faster"]:
        goal = f"rectangles: times faster (goal {GOAL})"
        lines.append([goal, f"{ratio:,.0f}", "", "yes" if ratio >= GOAL else "NO"])
    notes = [
        f"rectangles: median of {len(seconds)} (from {min(seconds, default=0):.3f} to "
        f"{max(seconds, default=0):.3f} s), derivations included, kernels loaded; "
        "from a tokenizer in memory",
        "MB: 10^6 bytes, peak of a process of its own over what it had with the tokenizer",
        PUBLISHED,
    ]
    columns = ["", "seconds", "MB", "what is kept"]
    return Table(f"The automaton of all texts: {title}", columns, lines, notes)


def comparison(facts: Row) -> Table:
    """Algorithm 3 against the rectangles, on the complete table."""
    compared = facts.get("reference", {}).get("compared", {})
    names = {
        "tokens": "tokens",
        "pairs": "pairs of tokens, all compared",
        "forbidden": "of them forbidden",
        "distinct_rows": "distinct rows of forbidden tokens",
        "by_row": "differences by row (clear_followers)",
        "by_column": "differences by column (clear_predecessors)",
        "sampled": "random pairs, half of them forbidden",
        "by_merge": "differences among them (breaking_merge)",
        "differences": "differences in all",
    }
    lines = [[text, whole(compared[key])] for key, text in names.items() if key in compared]
    return Table("Algorithm 3 against the rectangles", ["", "number"], lines)


def beginnings(rows: Sequence[Row]) -> Table:
    """DirectMerge on `.*` against Algorithm 3."""
    steps = frame(steps_of(rows))
    columns = [
        Column("merges", "merges", whole),
        Column("DirectMerge\nstates / transitions", "direct", several(whole)),
        Column("Algorithm 3, fused\nstates / trans.", "texts", several(whole)),
        Column("DirectMerge\ns", "direct_seconds", fixed(2)),
        Column("Algorithm 3\ns", "texts_seconds", fixed(2)),
        Column("equal", "counterexample", lambda ids: f"NO: {ids}", missing="yes"),
    ]
    last, of = "none", 0
    if not steps.empty:
        last, of = whole(steps["merges"].iloc[-1]), steps["of"].iloc[0]
    note = (
        f"the first merges of {of:,}, over all base symbols: {last} of them fit into the "
        "budget of time as an explicit automaton"
    )
    return table("DirectMerge on .* against Algorithm 3", steps, columns, [note])
