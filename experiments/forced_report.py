"""The tables of forced tokens, for the terminal and as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from experiments.distortion_report import shown_path
from experiments.forced_options import ForcedOptions
from experiments.forced_walks import METHODS
from experiments.runner import write_atomically
from experiments.tables import Table

Row = dict[str, Any]

_PATH = re.compile(r"(?<!\w)[~.]*/[^\s'\",;]+")
"""Absolute paths, those that begin with ~ or a dot, and what comes after the scheme of a URL."""
PUBLISHED = {"canonical": "20.4 %", "lift": "4.0 %", "chop 4": "12.7 %"}
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


def render(rows: Sequence[Row], manifest: Row, options: ForcedOptions) -> None:
    """Print the tables, and write them beside the paper's figures."""
    schemas = [row for row in rows if row["kind"] == "schema"]
    texts = [row for row in rows if row["kind"] == "generation"]
    tables = [shares(style, schemas, manifest) for style in manifest["config"]["styles"]]
    if texts:
        tables.append(passes(texts, manifest))
    for table in tables:
        table.print()
    path = options.figures / "forced.md"
    write_atomically(path, "\n".join(table.markdown() for table in tables))
    print(f"table: {shown_path(path)} (measured in {manifest['wall_seconds']} s)")


def shares(style: str, rows: Sequence[Row], manifest: Row) -> Table:
    """A line per tokenizer and method."""
    mine = [row for row in rows if row["style"] == style]
    lines = [line for name in manifest["config"]["tokenizers"] for line in _lines(name, mine)]
    columns = [
        "tokenizer, method",
        "known ids",
        "published",
        "runs",
        "not of this text",
        "of no text that matches",
        "of no text at all",
        "not canonical, published",
    ]
    title = f"Forced tokens: ids that are known before the model is asked; {WRITTEN[style]}"
    return Table(title, columns, lines, [*_notes(mine, manifest), *_sources()])


def _lines(name: str, rows: Sequence[Row]) -> list[list[str]]:
    found = [row["tokenizers"][name] for row in rows if "tokenizers" in row]
    return [_line(f"{name}, {TITLES[m]}", m, total(found, m)) for m in METHODS]


def total(found: Sequence[Row], method: str) -> Counter[str]:
    """The counts of a method over all schemas."""
    result: Counter[str] = Counter()
    for row in found:
        if row.get("methods"):
            result.update(row["methods"][method])
    return result


def _line(title: str, method: str, counts: Counter[str]) -> list[str]:
    wrong = [_of(counts[key], counts["runs"]) for key in ("departing", "no_match", "no_text")]
    published = PUBLISHED.get(method, "-"), PUBLISHED_WRONG.get(method, "-")
    known = _share(counts["known"], counts["ids"])
    return [title, known, published[0], f"{counts['runs']:,}", *wrong, published[1]]


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _of(part: int, whole: int) -> str:
    return f"{part:,} ({_share(part, whole)})" if part else "0"


def _notes(rows: Sequence[Row], manifest: Row) -> list[str]:
    """What was measured, and what was not."""
    config = manifest["config"]
    failed = Counter(row["failure"].split(":")[0] for row in rows if row["failure"])
    reasons = "; ".join(f"{reason} {count}" for reason, count in sorted(failed.items()))
    used = sum(row.get("texts", 0) for row in rows)
    other = sum(row.get("other", 0) for row in rows)
    missing = config["sampled"] - len(rows)
    part = f"all {config['schemas']:,}"
    if config["sampled"] < config["schemas"]:
        part = f"{config['sampled']:,} of the {config['schemas']:,} (seed {manifest['seed']})"
    return [
        *([f"INCOMPLETE: {missing} schemas are not measured yet"] if missing else []),
        f"{config['data']}: {part}; without a regex: {sum(failed.values())} ({reasons or 'none'})",
        f"{used:,} valid instances match their regex and are walked; {other:,} do not and are not",
        *(_left_out(name, rows) for name in config["tokenizers"]),
        "a run: what a method appends at once; after one that is not of this text the walk goes on "
        "behind the id where it departs. Known ids: those that runs have right, of all ids",
    ]


def _left_out(name: str, rows: Sequence[Row]) -> str:
    found = [row["tokenizers"][name] for row in rows if "tokenizers" in row]
    changed = sum(row.get("not_canonical", 0) for row in found)
    failed = Counter(row["failure"].split(":")[0] for row in found if "failure" in row)
    ids = total(found, METHODS[0])["ids"]
    refused = "".join(f", {count} schemas failed ({why})" for why, count in failed.items())
    return f"{name}: {ids:,} ids, {changed} instances without canonical ids left out{refused}"


def _sources() -> list[str]:
    return [
        "published, heuristic: llguidance, docs/fast_forward.md, on MaskBench (about 10,000 tests) "
        "with Llama-3; there a run is not canonical where it is not of this text",
        "published, canonical and lift: shares of steps with one possible id, as handed down to "
        "this project; with which regexes and tokenizer they were taken was not at hand",
    ]


# ---------------------------------------------------------------- generation


LOOPS = {"decode": "decode", "generate": "transformers' generate"}


def passes(rows: Sequence[Row], manifest: Row) -> Table:
    """A line per loop and mode: a model's passes and time with and without forced ids."""
    done = [row for row in rows if not row["failure"]]
    kinds = dict.fromkeys((row["loop"], row["mode"]) for row in rows)
    lines = [
        _passes(f"{LOOPS[loop]}, {mode}", [r for r in done if (r["loop"], r["mode"]) == kind])
        for kind in kinds
        for loop, mode in (kind,)
    ]
    config = manifest["config"]["generation"]
    model = done[0]["model"] if done else "no model"
    notes = [
        f"{model}, at most {config['max_new_tokens']} ids a text, seed {manifest['seed']}; each "
        "text is written both ways in turn, masks made on the way",
        "decode: `sampling.decode` with `CausalModel`, the prompt read beforehand; transformers' "
        "generate: `model.generate` with `ConstraintLogitsProcessor`, without and with "
        "`custom_generate=ForcedDecoding(processor)`, the prompt read in the first pass and timed",
        *(
            f"{r['id']}, {r['loop']}, {r['mode']}: {shown(r['failure'])}"
            for r in rows
            if r["failure"]
        ),
    ]
    columns = [
        "decoding",
        "texts",
        "ids",
        "forced",
        "passes without",
        "passes with",
        "saved",
        "seconds without",
        "seconds with",
        "with / without",
        "same ids",
    ]
    return Table("Generation with and without forced ids", columns, lines, notes)


def _passes(title: str, rows: Sequence[Row]) -> list[str]:
    def summed(way: str, key: str) -> float:
        return float(sum(row[way][key] for row in rows))

    without, with_ = summed("without", "passes"), summed("with", "passes")
    seconds, seconds_with = summed("without", "seconds"), summed("with", "seconds")
    return [
        title,
        str(len(rows)),
        f"{sum(row['ids'] for row in rows):,}",
        f"{summed('with', 'forced'):.0f}",
        f"{without:.0f}",
        f"{with_:.0f}",
        _share(without - with_, without),
        f"{seconds:.1f}",
        f"{seconds_with:.1f}",
        f"{seconds_with / seconds:.2f}" if seconds else "-",
        f"{sum(row['same'] for row in rows)} of {len(rows)}",
    ]


def shown(failure: str) -> str:
    """The error's class and its first words; the rows have the whole. Tables are read on other
    machines, so they show no path of this one."""
    return textwrap.shorten(_PATH.sub("...", failure), 80, placeholder=" ...")
