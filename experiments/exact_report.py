"""The tables of the exactness experiment, from its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from experiments.exact_measure import ADVERSARIAL, IDS, LAWS, OTHERS, STRINGS, TRIES, WALKS
from experiments.runner import Options, write_atomically
from experiments.tables import Table

Row = dict[str, Any]
OURS = "the automaton"


def render(rows: list[Row], manifest: Row, options: Options) -> None:
    """Print the tables and every exception that was kept; write the tables beside the rows."""
    tables = [wide(rows, manifest), beside(rows), detailed(rows)]
    for table in tables:
        table.print()
    for row in rows:
        for case in row.get("first", ()):
            print(f"EXCEPTION of {row['tokenizer']} to {row['law']!r}: {case}")
        if "why_not" in row:
            print(f"{row['tokenizer']} {row['why_not']}: {row['error']}")
    text = "\n".join(table.markdown() for table in tables)
    write_atomically(options.folder / "table.md", text)


def wide(rows: list[Row], manifest: Row) -> Table:
    """One line for each tokenizer."""
    columns = [
        *("tokenizer", "strings", "false\nrejects", "re-segmen-\ntations", "false\naccepts"),
        *("false rejects\namong them", "walks", "wrong\nwalks", "masks", "wrong\nmasks"),
        *("hypo-\ntheses", "rec-\ntangles", "forbidden\npairs", "unreach-\nable"),
        *("build,\ns", "load from\ncache, s"),
    ]
    groups = by_tokenizer(rows)
    lines = [line(name, group) for name, group in groups.items()]
    return Table("Exactness", columns, lines, notes(rows, manifest))


def by_tokenizer(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of each tokenizer."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["tokenizer"], []).append(row)
    return groups


def line(name: str, rows: list[Row]) -> list[str]:
    """A tokenizer's line; of one that was not measured only why not."""
    reasons = [row["why_not"] for row in rows if "why_not" in row]
    if reasons:
        return [f"{name}: {reasons[0]}", *[""] * 15]
    of = {law: total(rows, law) for law in (STRINGS, OTHERS, WALKS, IDS, TRIES)}
    wrong = {law: sum(r["exceptions"] for r in rows if r["law"] == law) for law in of}
    cells = (
        *(of[STRINGS]["tried"], of[STRINGS]["false reject"], of[OTHERS]["tried"]),
        of[OTHERS]["false accept"] + of[STRINGS]["false accept"],
        *(of[OTHERS]["false reject"], of[WALKS]["tried"], wrong[WALKS]),
        *(of[TRIES]["tried"] + of[IDS]["masks"], wrong[TRIES] + wrong[IDS]),
    )
    return [name, *(f"{cell:,}" for cell in cells), *fact_cells(rows)]


def total(rows: list[Row], law: str) -> Counter[str]:
    """What was counted for a law, on all kinds of text."""
    counts = Counter[str]()
    for row in rows:
        if row["law"] == law:
            counts.update(row["counts"])
    return counts


def fact_cells(rows: list[Row]) -> list[str]:
    """Sizes and seconds."""
    found = next((row["facts"] for row in rows if "facts" in row), None)
    if found is None:
        return [""] * 6
    counted = [f"{found[name]:,}" for name in ("hypotheses", "rectangles")]
    share, unreachable = f"{found['forbidden']:.2%}", f"{found['unreachable']:,}"
    return [*counted, share, unreachable, f"{found['build']:.2f}", f"{found['load']:.2f}"]


def notes(rows: list[Row], manifest: Row) -> list[str]:
    """What the numbers rest on."""
    config = manifest["config"]
    found = [f"seed {manifest['seed']}, n {config['n']:,}"]
    if not manifest["complete"]:
        found.insert(0, f"INCOMPLETE: {len(rows)} of {manifest['rows_expected']} rows")
    found += [f"{kind} text: {', '.join(names)}" for kind, names in config["texts"].items()]
    found += config["missing"]
    found += [f"{row['tokenizer']}: {row['error']}" for row in rows if "why_not" in row]
    return [
        *found,
        "false accepts: among re-segmentations, and among the ids of strings",
        "masks: at every prefix of finite regexes, held against the trie of encode, and at sampled "
        "states of others, where ids are tried one by one",
        "build: kernels warm, cache empty, without reading the file; load: from the cache",
    ]


def beside(rows: list[Row]) -> Table:
    """What the approximations get wrong on the same ids."""
    columns = [
        *("tokenizer", "accepted by", "canonical\nstrings", "false\nrejects", "share"),
        *("share in\ncode", "share in\nmultilingual", "wrong re-seg-\nmentations"),
        *("false\naccepts", "share", "right re-seg-\nmentations", "false\nrejects"),
    ]
    lines = [cells for name, group in by_tokenizer(rows).items() for cells in tests(name, group)]
    return Table(
        "What exactness buys",
        columns,
        lines,
        [
            "pairs of BPE: every id reachable, every adjacent pair canonical, the pretokenizer "
            "ignored; re-encoded pairs: encode gives back every id and every adjacent pair. For "
            "the benefit of the doubt see experiments/approximations.py",
        ],
    )


def tests(name: str, rows: list[Row]) -> Iterator[list[str]]:
    """The automaton's line, then one for each approximation."""
    own, other = ([r for r in rows if r["law"] == law] for law in (STRINGS, OTHERS))
    for test in [OURS, *(own[0]["approximations"] if own else ())]:
        rejects, accepts = wrong(own, test, "false reject"), wrong(other, test, "false accept")
        canonical, right = counted(own, "canonical"), counted(other, "canonical")
        others = counted(other, "tried") - right
        kinds = {kind: [row for row in own if row["kind"] == kind] for kind in KINDS_SHOWN}
        yield [
            *(name if test == OURS else "", test, f"{canonical:,}", f"{rejects:,}"),
            share(rejects, canonical),
            *(
                share(wrong(some, test, "false reject"), counted(some, "canonical"))
                for some in kinds.values()
            ),
            *(f"{others:,}", f"{accepts:,}", share(accepts, others)),
            *(f"{right:,}", f"{wrong(other, test, 'false reject'):,}"),
        ]


KINDS_SHOWN = ("code", "multilingual")


def wrong(rows: list[Row], test: str, kind: str) -> int:
    """How often a test was wrong in one way."""
    if test == OURS:
        return counted(rows, kind)
    return sum(row["approximations"][test].get(kind, 0) for row in rows)


def counted(rows: list[Row], what: str) -> int:
    """The sum of a count."""
    return sum(row["counts"].get(what, 0) for row in rows)


def share(part: int, whole: int) -> str:
    """In percent; nothing of nothing is a dash."""
    return f"{part / whole:.2%}" if whole else "-"


def detailed(rows: list[Row]) -> Table:
    """One line for each law and kind of text."""
    columns = ["tokenizer", "law", "text", "tried", "exceptions", "counted besides", "seconds"]
    lines = [
        [
            *(row["tokenizer"], row["law"], row.get("kind", "-")),
            *(f"{row['counts'].get('tried', 0):,}", f"{row['exceptions']:,}"),
            ", ".join(f"{v:,} {k}" for k, v in row["counts"].items() if k != "tried"),
            f"{row['seconds']:.0f}",
        ]
        for row in rows
        if row["law"]
    ]
    kinds = f"tried: sequences, masks or ids; {ADVERSARIAL} text is made of bpe_automata.testing's"
    laws = [f"{law}: {meaning}" for law, meaning in LAWS.items()]
    return Table("Law by law", columns, lines, [*laws, f"{kinds} pieces and the tokenizer's own"])
