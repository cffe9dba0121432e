"""The tables of peers: what each costs, and what it lets pass."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.run.executors import FAILURE, Row
from experiments.run.readme import wrapped
from experiments.run.report import Report, without_paths
from experiments.run.statistics import median, quantile
from experiments.run.tables import Table, markdown
from experiments.serving.peers_figure import figures, medians_over
from experiments.serving.peers_numbers import EXACT, LISTED, Asked, all_asked, exact, tokenizers
from experiments.shared.more_engines import OURS

TITLE = "Engines beside each other: what masks cost, and which ids they admit"
_TIMES = (
    "of this package: canonical (the tokenizer's own ids, rows made when they are come to), "
    "explicit (the same, all states and transitions listed while compiling), lift (any ids)",
    "came up: seconds from a loaded tokenizer to a first mask. A peer's own packages are imported "
    "on this clock, and are in its MB; Python, numpy, numba and this package with the loaded "
    "tokenizer are there before, in the process of every engine, and in neither: so what the "
    "engines of this package run on is not counted for them. MB: 10^6 bytes resident: of the "
    "process before, what the engine added, and what the most demanding constraint took on top at "
    "its highest",
    "compile and first mask: medians over constraints of each one's median; cold masks: along the "
    "tokenizer's own ids of texts of the language; warm: once more, in new sessions of what was "
    "compiled; median and 99 % over all their masks",
    "lm-format-enforcer, kbnf and genlm-control answer with lists of ids, and writing these as "
    "bits, as the others do themselves, is on their clock: a warm answer of lm-format-enforcer is "
    "a look into a dictionary, and its warm mask mostly this writing",
    "one process for each engine and tokenizer, one thread; calls from Python, so that a mask "
    "costs at least the microsecond of a call",
)
_ADMITS = (
    "own ids blocked: texts of the language of whose own ids one was not allowed, or the end; "
    "completed: texts that are not of the language and could be read to the end",
    "other ids admitted: sequences of ids that spell a text of the language, are not `encode` of "
    "it, and could be read to the end; each was looked at by the tokenizer first",
    "small languages, ids summed over all places: own ids missing, ids that lead to no text, and "
    "ids that are not the tokenizer's own, by `bpe_automata.reference`; places: how many of them "
    "the engine let its reader come to",
)


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Tables, figure and facts of the rows."""
    asked = all_asked(rows, manifest.get("peers", {}))
    tables = [_times(asked), _admits(asked), *_unanswered(rows), *_first_masks(asked)]
    facts = {"asked": [one.facts() for one in asked], "exact": exact(asked)}
    return Report(TITLE, tables, figures(asked), facts, [*wrong(asked), *lost(rows)])


def lost(rows: Sequence[Row]) -> list[str]:
    """What the engines of this package did not answer. An automaton may be too large for `explicit`
    to write out; it may not crash."""
    return [
        f"{row['key']}: {why}"
        for row in rows
        if (why := row.get(FAILURE)) and row.get("engine") in OURS
        if row["engine"] != LISTED or why.startswith("crashed")
    ]


def wrong(asked: Sequence[Asked]) -> list[str]:
    """What may not be of the engines of this package."""
    found = []
    for one in asked:
        sums = {"blocked": one.blocked, "completed": one.completed}
        sums |= {name: one.total(name) for name in ("missing", "impossible", "unreached")}
        if one.engine in EXACT:
            sums |= {"admitted": one.admitted, "other": one.total("other")}
        if one.engine in OURS:
            found += [f"{one.label}: {name} {n}" for name, n in sums.items() if n]
    return found


def readme(facts: Row) -> str:
    """What the README says of it: the first tokenizer's lines. What masks cost it says elsewhere,
    of fewer engines."""
    if not facts["asked"]:
        return ""
    tokenizer = facts["asked"][0]["tokenizer"]
    lines = []
    for found in facts["asked"]:
        if found["tokenizer"] == tokenizer:
            blocked = f"{found['blocked']} of {found['inside']}"
            admitted = f"{found['admitted']} of {found['offered']}"
            lines.append([found["name"], blocked, admitted])
    told = wrapped(
        f"`python -m experiments peers`, tokenizer {tokenizer} ([times](paper_figures/peers.md)): "
        "*own ids blocked*: texts of the language whose `encode` an engine does not let through; "
        "*others*: sequences of ids that spell such a text and are not its `encode`, of those "
        "offered, which it lets through."
    )
    return f"{told}\n\n{markdown(('engine', 'own ids blocked', 'others'), lines)}"


def _times(asked: Sequence[Asked]) -> Table:
    columns = ["engine, tokenizer", "came up\ns", "process before\nMB", "engine\nMB", "answered"]
    columns += ["compile\nms", "first mask\nms", "cold µs\nmedian", "\n99 %"]
    columns += ["warm µs\nmedian", "\n99 %", "on top\nMB"]
    over = (
        "answered: constraints, of all; what stands right of it is over the n = "
        f"{medians_over(asked)} that all engines answered (of engines that answered any; "
        f"{LISTED} is over those of them that it answered, for it can only answer small ones)"
    )
    return Table("Times and memory", columns, [_line(one) for one in asked], (over, *_TIMES))


def _line(one: Asked) -> list[str]:
    cold, warm = one.seconds("cold"), one.seconds("warm")
    masks = [1e6 * of for raw in (cold, warm) for of in (median(raw), quantile(raw, 0.99))]
    peaks = [row["peak_mb"] for row in one.shared]
    return [
        one.label,
        _number(one.start["ready"]),
        f"{one.start['process_mb']:.0f}",
        f"{one.start['engine_mb']:.0f}",
        f"{len(one.exams)} of {len(one.exams) + one.failed}",
        _number(1e3 * one.typical("compile")),
        _number(1e3 * one.typical("first")),
        *map(_number, masks),
        f"{max(peaks):.0f}" if peaks else "",
    ]


def _admits(asked: Sequence[Asked]) -> Table:
    columns = ["engine, tokenizer", "own ids\nblocked", "outside\ncompleted", "other ids\nadmitted"]
    columns += ["own ids\nmissing", "ids to\nno text", "other\nids", "places"]
    rows = [
        [
            one.label,
            f"{one.blocked} of {one.total('inside')}",
            f"{one.completed} of {one.total('outside')}",
            f"{one.admitted} of {one.offered}",
            *(f"{one.total(name):,}" for name in ("missing", "impossible", "other")),
            f"{one.total('places') - one.total('unreached')} of {one.total('places')}",
        ]
        for one in asked
    ]
    return Table("What is allowed", columns, rows, (*_ADMITS, *_named(asked)))


def _named(asked: Sequence[Asked]) -> list[str]:
    """Which constraints the texts that went wrong are of."""
    found: dict[str, list[str]] = {}
    for one in asked:
        for what in ("blocked", "completed"):
            for row in one.exams:
                if row[what]:
                    place = f"{one.tokenizer}: {row['constraint']}"
                    found.setdefault(f"{one.engine}, {what}", []).append(place)
    return [f"{engine}: {', '.join(where)}" for engine, where in found.items()]


def _unanswered(rows: Sequence[Row]) -> list[Table]:
    """Engines that did not come up, and constraints that an engine refused or was lost with."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if why := row.get(FAILURE):
            head = ", ".join(filter(None, (row.get("engine"), row.get("tokenizer"))))
            found.setdefault((head, without_paths(why)), []).append(row.get("constraint", "all"))
    lines = [[head, ", ".join(which), why] for (head, why), which in found.items()]
    columns = ["engine, tokenizer", "constraints", "why"]
    note = "all: the engine did not come up"
    return [Table("What was not answered", columns, lines, [note])] if lines else []


def _first_masks(asked: Sequence[Asked]) -> list[Table]:
    """One for each tokenizer."""
    made = []
    for tokenizer in tokenizers(asked):
        shown = [one for one in asked if one.tokenizer == tokenizer]
        names = dict.fromkeys(row["constraint"] for one in shown for row in one.exams)
        lines = [[name, *(_first(one, name) for one in shown)] for name in names]
        note = "medians; compiling included; empty where it was refused or not in time"
        title = f"From a regex to its first mask, ms, {tokenizer}"
        made.append(Table(title, ["constraint", *(one.engine for one in shown)], lines, [note]))
    return made


def _first(one: Asked, constraint: str) -> str:
    return _number(1e3 * one.each_to_first_mask().get(constraint, float("nan")))


def _number(value: float | None) -> str:
    """Three digits; nothing of nan and None."""
    if value is None or value != value:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
