"""The tables of forced tokens, and what the README says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from experiments.run.executors import FAILURE, Row
from experiments.run.tables import Table
from experiments.serving.forced_walks import METHODS

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


def shares(style: str, rows: Sequence[Row], manifest: Row) -> Table:
    """A line per tokenizer and method."""
    mine = [row for row in rows if row["style"] == style]
    lines = [line for name in manifest["tokenizers"] for line in _lines(name, mine)]
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
    failed = Counter(row["refused"].split(":")[0] for row in rows if row["refused"])
    reasons = "; ".join(f"{reason} {count}" for reason, count in sorted(failed.items()))
    used = sum(row.get("texts", 0) for row in rows)
    other = sum(row.get("other", 0) for row in rows)
    available, chosen = manifest["available"], manifest["sampled"]
    part = f"all {available:,}"
    if chosen < available:
        part = f"{chosen:,} of the {available:,} (seed {manifest['seed']})"
    data, without = config["regexes"] or config["schemas"], sum(failed.values())
    return [
        f"{data}: {part}; without a regex: {without} ({reasons or 'none'})",
        f"{used:,} valid instances match their regex and are walked; {other:,} do not and are not",
        *(_left_out(name, rows) for name in manifest["tokenizers"]),
        "a run: what a method appends at once; after one that is not of this text the walk goes on "
        "behind the id where it departs. Known ids: those that runs have right, of all ids",
    ]


def _left_out(name: str, rows: Sequence[Row]) -> str:
    found = [row["tokenizers"][name] for row in rows if "tokenizers" in row]
    changed = sum(row.get("not_canonical", 0) for row in found)
    failed = Counter(row[FAILURE].split(":")[0] for row in found if FAILURE in row)
    ids = total(found, METHODS[0])["ids"]
    refused = "".join(f", {count} schemas failed ({why})" for why, count in failed.items())
    return f"{name}: {ids:,} ids, {changed} instances without canonical ids left out{refused}"


def _sources() -> list[str]:
    return [
        "published, heuristic: llguidance, docs/fast_forward.md, on MaskBench (about 10,000 tests) "
        "with Llama-3; there a run is not canonical where it is not of this text",
        f"published, canonical and lift: {' and '.join(f'{n:,}' for n in ONLY_ONE.values())} of "
        f"{STEPS:,} ids were the only ones that were allowed, in the companion notebook of "
        "Tran-Thien 2024: Mistral-7B, Outlines' regexes of function-calling schemas, along the "
        "texts of the data",
    ]


# ---------------------------------------------------------------- generation


LOOPS = {"decode": "decode", "generate": "transformers' generate"}


def passes(rows: Sequence[Row], manifest: Row) -> Table:
    """A line per loop and mode: a model's passes and time with and without forced ids."""
    lines = [
        _passes(f"{LOOPS[loop]}, {mode}", some) for (loop, mode), some in by_loop(rows).items()
    ]
    model, most = manifest.get("model"), manifest["config"]["most_ids"]
    notes = [
        f"{model}, at most {most} ids a text, seed {manifest['seed']}; each text is written "
        "both ways in turn, masks made on the way",
        "decode: `sampling.decode` with `CausalModel`, the prompt read beforehand; transformers' "
        "generate: `model.generate` with `ConstraintLogitsProcessor`, without and with "
        "`custom_generate=ForcedDecoding(processor)`, the prompt read in the first pass and timed",
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


def by_loop(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """The texts of each loop and mode, in order."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["loop"], row["mode"]), []).append(row)
    return found


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


# ---------------------------------------------------------------- facts


def facts(schemas: Sequence[Row], texts: Sequence[Row], manifest: Row) -> Row:
    """known: percent of ids by method, least and most over tokenizers and styles; saved: percent of
    passes, least and most over loops and modes. None where nothing was measured."""
    known = {
        method: _ends(
            100 * counts["known"] / counts["ids"]
            for found in _measured(schemas)
            for counts in [total(found, method)]
            if counts["ids"]
        )
        for method in METHODS
    }
    saved = _ends(100 * _saved(some) for some in by_loop(texts).values())
    return {"known": known, "saved": saved, "model": manifest.get("model")}


def _measured(schemas: Sequence[Row]) -> list[list[Row]]:
    """What was found with each tokenizer in each style."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in schemas:
        for name, counts in row.get("tokenizers", {}).items():
            found.setdefault((name, row["style"]), []).append(counts)
    return list(found.values())


def _saved(texts: Sequence[Row]) -> float:
    """The share of the passes that forced ids save."""
    with_, without = (sum(row[way]["passes"] for row in texts) for way in ("with", "without"))
    return 1 - with_ / without


def _ends(values: Iterable[float]) -> list[float] | None:
    found = list(values)
    return [min(found), max(found)] if found else None


def sentence(facts: Row) -> str:
    """For the README, of `facts`."""
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
