"""The distortion rows as tables (terminal and Markdown) and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_automata.errors import MissingFileError
from experiments import distortion_figure
from experiments.runner import ROOT, Options, write_atomically
from experiments.tables import Table

Row = dict[str, Any]

PUBLISHED = {"free": 0.85879, "lift": 0.52852, "canonical": 0.85872}
"""P(" William"), published for Mistral-7B by Tran-Thien (2024); "lift" is his "Outlines"."""
PUBLISHED_BOOLEAN = {"lift": (17, 48), "canonical": (5, 4)}
"""States and transitions for `boolean: ((true)|(false))`, from the same article."""
SOURCE = (
    'Published values: Tran-Thien, "Fast, High-Fidelity LLM Decoding with Regex Constraints" '
    "(2024), Mistral-7B. Not measured here."
)


def render(rows: Sequence[Row], manifest: Row, options: Options) -> None:
    """Print the tables, write them beside the rows, and draw the figure."""
    cases = [row for row in rows if row["kind"] == "case"]
    if not cases:
        raise MissingFileError(f"no prompt was finished in {options.folder}; run without --render")
    boolean = next(row for row in rows if row["kind"] == "boolean")
    tables = [
        laws(cases, manifest),
        distances(cases),
        sizes(cases),
        article(cases, boolean, manifest),
    ]
    for table in tables:
        table.print()
    text = "\n".join([f"# Distortion: {manifest['model']}\n", *(t.markdown() for t in tables)])
    write_atomically(options.folder / "table.md", text)
    saved = distortion_figure.draw(cases, manifest, options.figures)
    seconds = manifest["wall_seconds"]
    print(f"rows, manifest and table.md: {shown_path(options.folder)} (measured in {seconds} s)")
    print("figure: " + ", ".join(map(shown_path, saved)))


def shown_path(path: Any) -> str:
    """Relative to the repository where it lies inside."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def laws(cases: Sequence[Row], manifest: Row) -> Table:
    """One line per answer: exact and sampled probabilities of the three methods."""
    lines = []
    for row in cases:
        for i, answer in enumerate(row["answers"]):
            name = row["name"] if i == 0 else ""
            lines.append([name, f"{answer!r}", *_law_cells(row, i)])
    columns = ["prompt", "answer", "free", "drawn", "lift", "drawn", "canonical", "drawn"]
    return Table("Probability of each answer", columns, lines, _law_notes(cases, manifest))


def _law_cells(row: Row, answer: int) -> list[str]:
    cells = []
    exact = {"free": row["free"]} | {name: row["methods"][name]["law"] for name in row["methods"]}
    for method, law in exact.items():
        cells += [f"{law[answer]:.4f}", _frequency(row["samples"][method], answer)]
    return cells


def _frequency(drawn: Row, answer: int) -> str:
    if drawn["n"] == 0:
        return "none"
    flag = "" if drawn["inside"][answer] else " !"
    return f"{drawn['counts'][answer] / drawn['n']:.4f}{flag}"


def _law_notes(cases: Sequence[Row], manifest: Row) -> list[str]:
    flags = [
        inside
        for row in cases
        for method in ("free", "lift", "canonical")
        for inside in row["samples"][method]["inside"]
        if row["samples"][method]["n"]
    ]
    config = manifest["config"]
    missing = manifest["rows_expected"] - manifest["rows"]
    notes = [f"INCOMPLETE: {missing} rows of an interrupted run are missing"] if missing else []
    return [
        *notes,
        "free: the model's own law over the answers, each summed over all its tokenizations; "
        "lift, canonical: masked and renormalised step by step",
        f"drawn: frequency among {config['samples']} samples (free: at least as many); "
        f"{sum(flags)} of {len(flags)} exact values lie in the Clopper-Pearson interval of their "
        f"sample (joint level {1 - config['alpha']:.0%}, Bonferroni); others are marked !",
        *([manifest["note"]] if manifest["note"] else []),
    ]


def distances(cases: Sequence[Row]) -> Table:
    """One line per prompt: how far each method is from the free law."""
    lines = [
        [
            row["name"],
            _tokens(row),
            f"{row['free_mass']:.1e}",
            _number(row["other_share"]),
            *(_number(row["methods"][m]["total_variation"]) for m in row["methods"]),
            _number(row["total_variation_given_canonical"]),
            *(_number(row["methods"][m]["kl_nats"]) for m in row["methods"]),
        ]
        for row in cases
    ]
    columns = ["prompt", "ids", "mass", "not\ncanonical", "TV\nlift", "TV\ncanonical"]
    columns += ["TV given\ncanonical", "KL\nlift", "KL\ncanonical"]
    notes = [
        "ids: length of the answers' canonical tokenizations; mass: of all answers together under "
        "the free model; not canonical: the share of it that is spelled by other tokenizations",
        "TV: total variation distance to the free law; KL(free || method) in nats",
        "TV given canonical: the free law conditioned on canonical ids. What TV canonical has "
        "above it comes from renormalising step by step, which no mask avoids",
    ]
    return Table("Distance to the free law", columns, lines, notes)


def sizes(cases: Sequence[Row]) -> Table:
    """One line per prompt: the automata in numbers."""
    lines = []
    for row in cases:
        both = [row["methods"]["lift"], row["methods"]["canonical"]]
        cells = [[str(m["states"]), str(m["transitions"]), *_forced(m)] for m in both]
        pairs = zip(*cells, strict=True)
        lines.append([row["name"], *(cell for pair in pairs for cell in pair)])
    columns = ["prompt"]
    for heading in ("states", "edges", "one option", "expected"):
        columns += [f"{heading}\nlift", f"{heading}\ncanon."]
    notes = [
        "one option: states with a single way on, of those that go on; "
        "expected: share of the steps of a drawn answer that have a single option"
    ]
    return Table("Automata after the prompt", columns, lines, notes)


def _forced(method: Row) -> list[str]:
    share = method["expected_forced"] / method["expected_steps"]
    return [f"{method['forced']}/{method['steps']}", f"{share:.1%}"]


def article(cases: Sequence[Row], boolean: Row, manifest: Row) -> Table:
    """The article's own two examples, published beside measured."""
    lines = []
    president = next((row for row in cases if row["name"] == "president"), None)
    if president:
        for method, value in PUBLISHED.items():
            law = president["methods"][method]["law"] if method != "free" else president["free"]
            lines.append([f"P(' William'), {method}", f"{value:.5f}", f"{law[0]:.5f}"])
    for method, (states, transitions) in PUBLISHED_BOOLEAN.items():
        ours = boolean["sizes"][method]
        measured = f"{ours['states']} / {ours['transitions']}"
        name = f"states / transitions, {method}"
        lines.append([name, f"{states} / {transitions}", measured])
    columns = ["president; boolean: ((true)|(false))", "Mistral-7B (published)", manifest["model"]]
    return Table("The article's examples", columns, lines, [SOURCE])


def _tokens(row: Row) -> str:
    low, high = min(row["canonical_tokens"]), max(row["canonical_tokens"])
    return str(low) if low == high else f"{low}-{high}"


def _number(value: float) -> str:
    """Four decimals, or an exponent where they would say nothing."""
    if value == 0:
        return "0"
    return f"{value:.4f}" if value >= 5e-4 else f"{value:.0e}"
