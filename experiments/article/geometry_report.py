"""The geometry rows as tables."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.article.mistral import name_of
from experiments.article.server import DONE
from experiments.run.executors import Row
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.statistics import median
from experiments.run.tables import Table

PUBLISHED_SECONDS = 20.8703916
PUBLISHED = (
    'published: printed by the companion notebook of Tran-Thien, "Fast, High-Fidelity LLM Decoding '
    'with Regex Constraints" (2024), for the complete table on his machine; not measured here'
)
GOAL = 100


def report(rows: Sequence[Row], manifest: Row) -> Report:
    """Of whatever rows there are."""
    found = Found(rows)
    title = name_of(manifest["config"]["merges"])
    tables = [costs(found, title), comparison(found), beginnings(found)]
    return Report(f"Geometry: {title}", tables, facts=facts(found), wrong=wrong(found))


class Found:
    """The rows that were measured, by what they are."""

    def __init__(self, rows: Sequence[Row]) -> None:
        done = [row for row in rows if row.get("status") == DONE]
        self.made = [row for row in done if row["kind"] == "rectangles"]
        self.reference = next((row for row in done if row["kind"] == "reference"), None)
        last = next((row for row in done if row["kind"] == "beginnings"), None)
        self.steps: list[Row] = last["steps"] if last else []
        self.merges: int = last["of"] if last else 0

    @property
    def seconds(self) -> list[float]:
        """Of all times that the rectangles were made, before and after the reference."""
        return [second for row in self.made for second in row["seconds"]]

    @property
    def ratio(self) -> float | None:
        """How many times faster the rectangles are than Algorithm 3 without its fusion."""
        if self.reference is None or not self.made:
            return None
        return float(self.reference["seconds"]) / median(self.seconds)


def wrong(found: Found) -> list[str]:
    """What the two ways, or DirectMerge and Algorithm 3, differ in."""
    pairs = found.reference["compared"]["differences"] if found.reference else 0
    lines = [f"{pairs:,} pairs that Algorithm 3 and the rectangles differ in"] if pairs else []
    return lines + [
        f"the first {step['merges']:,} merges: DirectMerge and Algorithm 3 differ in "
        f"{step['counterexample']}"
        for step in found.steps
        if step["counterexample"] is not None
    ]


def facts(found: Found) -> Row:
    """Seconds, sizes and comparisons; only those that were measured."""
    said: Row = {"published_seconds": PUBLISHED_SECONDS}
    if reference := found.reference:
        keys = ("seconds", "fusing_seconds", "states", "forbidden", "fused_states", "compared")
        said["reference"] = {key: reference[key] for key in keys}
    if found.made:
        said["rectangles"] = {
            "seconds": median(found.seconds),
            "times": len(found.seconds),
            "number": found.made[0]["rectangles"],
            "kept_mb": found.made[0]["kept_mb"],
        }
    if found.steps:
        said["last_beginning"] = found.steps[-1]
    return said | {"times_faster": found.ratio, "wrong": wrong(found)}


def readme(facts: Row) -> str:
    """Both times, and what was compared."""
    what = "all texts of the Mistral-7B table: which token may follow which"
    published = f"{facts['published_seconds']:.1f}"
    lines = [
        f"| {what} | seconds | what is kept |",
        "|:--|--:|--:|",
        f"| Algorithm 3, published, on another machine | {published} | |",
    ]
    reference, rectangles = facts.get("reference"), facts.get("rectangles")
    if reference:
        sets = f"{reference['forbidden']:,} forbidden tokens in {reference['states']:,} states"
        lines.append(f"| Algorithm 3, `reference` | {reference['seconds']:.1f} | {sets} |")
    if rectangles:
        number = f"{rectangles['number']:,} rectangles"
        lines.append(f"| rectangles | {rectangles['seconds']:.3f} | {number} |")
    return "\n".join([*lines, "", wrapped(_agreement(facts))])


def _agreement(facts: Row) -> str:
    if "reference" not in facts:
        return "Algorithm 3 was not measured here."
    compared, last = facts["reference"]["compared"], facts.get("last_beginning")
    if facts["wrong"]:
        return f"They differ: {'; '.join(facts['wrong'])}."
    said = f"The two agree on all {compared['pairs']:,} pairs of tokens"
    if last:
        states, transitions = last["direct"]
        said += (
            f", and with DirectMerge of `.*` as far as that was followed, to the first "
            f"{last['merges']:,} merges ({states:,} states, {transitions / 1e6:.1f} million "
            "transitions)"
        )
    return said + "."


def costs(found: Found, title: str) -> Table:
    """Seconds and memory of both."""
    lines = [["Algorithm 3, published, all merges", f"{PUBLISHED_SECONDS:.1f}", "-", "-"]]
    if reference := found.reference:
        sets = f"{reference['states']:,} states, {reference['forbidden']:,} forbidden tokens"
        fused = reference["seconds"] + reference["fusing_seconds"]
        lines += [
            ["Algorithm 3, reference", *_cells(reference["seconds"], reference["peak_mb"]), sets],
            [
                "the same, fused",
                *_cells(fused, reference["fused_peak_mb"]),
                f"{reference['fused_states']:,} states",
            ],
        ]
    if found.made:
        first = found.made[0]
        size = f"{first['rectangles']:,} rectangles, {first['kept_mb']:.1f} MB"
        peak = max(row["peak_mb"] for row in found.made)
        lines.append(["rectangles", *_cells(median(found.seconds), peak), size])
    if found.ratio:
        met = "yes" if found.ratio >= GOAL else "NO"
        lines.append([f"rectangles: times faster (goal {GOAL})", f"{found.ratio:,.0f}", "", met])
    columns = ["", "seconds", "MB", "what is kept"]
    return Table(f"The automaton of all texts: {title}", columns, lines, _notes(found.seconds))


def _notes(seconds: Sequence[float]) -> list[str]:
    return [
        f"rectangles: median of {len(seconds)} (from {min(seconds, default=0):.3f} to "
        f"{max(seconds, default=0):.3f} s), derivations included, kernels loaded; "
        "from a tokenizer in memory",
        "MB: 10^6 bytes, peak of a process of its own over what it had with the tokenizer",
        PUBLISHED,
    ]


def _cells(seconds: float, megabytes: float) -> list[str]:
    return [f"{seconds:.3f}" if seconds < 10 else f"{seconds:.1f}", f"{megabytes:.0f}"]


def comparison(found: Found) -> Table:
    """Algorithm 3 against the rectangles, on the complete table."""
    compared = found.reference["compared"] if found.reference else {}
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
    lines = [[text, f"{compared[key]:,}"] for key, text in names.items() if key in compared]
    return Table("Algorithm 3 against the rectangles", ["", "number"], lines)


def beginnings(found: Found) -> Table:
    """DirectMerge on `.*` against Algorithm 3."""
    lines = [
        [
            f"{step['merges']:,}",
            "{:,} / {:,}".format(*step["direct"]),
            "{:,} / {:,}".format(*step["texts"]),
            f"{step['direct_seconds']:.2f}",
            f"{step['texts_seconds']:.2f}",
            "yes" if step["counterexample"] is None else f"NO: {step['counterexample']}",
        ]
        for step in found.steps
    ]
    columns = ["merges", "DirectMerge\nstates / transitions", "Algorithm 3, fused\nstates / trans."]
    columns += ["DirectMerge\ns", "Algorithm 3\ns", "equal"]
    last = f"{found.steps[-1]['merges']:,}" if found.steps else "none"
    note = (
        f"the first merges of {found.merges:,}, over all base symbols: {last} of them fit into the "
        "budget of time as an explicit automaton"
    )
    return Table("DirectMerge on .* against Algorithm 3", columns, lines, [note])
