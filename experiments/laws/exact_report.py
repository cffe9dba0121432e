"""The tables of the exactness experiment, from its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.laws.exact_measure import ADVERSARIAL, IDS, LAWS, OTHERS, STRINGS, TRIES, WALKS
from experiments.run.executors import FAILURE, Row
from experiments.run.report import Report
from experiments.run.tables import Table

OURS = "the automaton"
CODE = "code"
KINDS_SHOWN = (CODE, "multilingual")
_COUNTS = (
    *("strings", "false_rejects", "other_ids", "false_accepts", "false_rejects_of_others"),
    *("walks", "wrong_walks", "masks", "wrong_masks"),
)
_FACTS = ("hypotheses", "rectangles", "forbidden", "unreachable", "build", "load")


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Three tables; wrong: every exception that was kept, and what could not be tried."""
    groups = by_tokenizer(rows)
    tables = [wide(groups, rows, manifest), beside(groups), detailed(groups)]
    found = {name: summary(own) for name, own in groups.items()}
    return Report("Exactness", tables, facts={"tokenizers": found}, wrong=exceptions(rows))


def exceptions(rows: Sequence[Row]) -> list[str]:
    """What must not be. A tokenizer that is absent or refused is none."""
    shown = [
        f"{row['tokenizer']}: one of {law['exceptions']} exceptions to {law['law']!r}: {case}"
        for row in rows
        for law in row.get("laws", ())
        for case in law["first"]
    ]
    failed = [row for row in rows if row.get(FAILURE) and "why_not" not in row]
    return [*shown, *(f"{row['key']} could not be tried: {row[FAILURE]}" for row in failed)]


def by_tokenizer(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Of each tokenizer the rows of its laws, in their order, after the one that has no law."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if "tokenizer" in row:
            group = groups.setdefault(row["tokenizer"], [])
            group += row["laws"] if "laws" in row else [{"law": None} | row]
    order = [None, *LAWS]
    for group in groups.values():
        group.sort(key=lambda row: (order.index(row["law"]), row.get("kind", "")))
    return groups


def summary(rows: list[Row]) -> Row:
    """The numbers of one tokenizer; sizes and seconds are None where they are not known."""
    own, other = of_law(rows, STRINGS), of_law(rows, OTHERS)
    wrong = {law: sum(row["exceptions"] for row in of_law(rows, law)) for law in LAWS}
    facts: Row = next((row["facts"] for row in rows if "facts" in row), {})
    return {
        "why_not": next((row["why_not"] for row in rows if "why_not" in row), None),
        "strings": counted(own, "tried"),
        "false_rejects": counted(own, "false reject"),
        "other_ids": counted(other, "tried"),
        "false_accepts": counted(other, "false accept") + counted(own, "false accept"),
        "false_rejects_of_others": counted(other, "false reject"),
        "walks": counted(of_law(rows, WALKS), "tried"),
        "wrong_walks": wrong[WALKS],
        "masks": counted(of_law(rows, TRIES), "tried") + counted(of_law(rows, IDS), "masks"),
        "wrong_masks": wrong[TRIES] + wrong[IDS],
        **{name: facts.get(name) for name in _FACTS},
        "approximations": rivals(own, other),
    }


def rivals(own: list[Row], other: list[Row]) -> Row:
    """Of each approximation the shares that it gets wrong; in_code: of the strings of code."""
    code = [row for row in own if row["kind"] == CODE]
    return {
        name: {
            "false_rejects": ratio(wrong_of(own, name, "false reject"), counted(own, "canonical")),
            "in_code": ratio(wrong_of(code, name, "false reject"), counted(code, "canonical")),
            "false_accepts": ratio(
                wrong_of(other, name, "false accept"),
                counted(other, "tried") - counted(other, "canonical"),
            ),
        }
        for name in (own[0]["approximations"] if own else ())
    }


def of_law(rows: Sequence[Row], law: str) -> list[Row]:
    """Those of one law, on all kinds of text."""
    return [row for row in rows if row["law"] == law]


def counted(rows: Sequence[Row], what: str) -> int:
    """The sum of a count."""
    return sum(row["counts"].get(what, 0) for row in rows)


def wrong_of(rows: Sequence[Row], test: str, kind: str) -> int:
    """How often a test was wrong in one way."""
    if test == OURS:
        return counted(rows, kind)
    return sum(row["approximations"][test].get(kind, 0) for row in rows)


def ratio(part: int, whole: int) -> float | None:
    """None of nothing."""
    return part / whole if whole else None


def percent(share: float | None) -> str:
    """A dash for None."""
    return "-" if share is None else f"{share:.2%}"


# ---------------------------------------------------------------- tables


def wide(groups: dict[str, list[Row]], rows: Sequence[Row], manifest: Row) -> Table:
    """One line for each tokenizer."""
    columns = [
        *("tokenizer", "strings", "false\nrejects", "re-segmen-\ntations", "false\naccepts"),
        *("false rejects\namong them", "walks", "wrong\nwalks", "masks", "wrong\nmasks"),
        *("hypo-\ntheses", "rec-\ntangles", "forbidden\npairs", "unreach-\nable"),
        *("build,\ns", "load from\ncache, s"),
    ]
    lines = [line(name, summary(group)) for name, group in groups.items()]
    return Table("Exactness", columns, lines, notes(rows, manifest))


def line(name: str, found: Row) -> list[str]:
    """A tokenizer's line; of one that was not measured only why not."""
    if found["why_not"]:
        return [f"{name}: {found['why_not']}", *[""] * 15]
    return [name, *(f"{found[count]:,}" for count in _COUNTS), *fact_cells(found)]


def fact_cells(found: Row) -> list[str]:
    """Sizes and seconds."""
    if found["build"] is None:
        return [""] * len(_FACTS)
    return [
        *(f"{found['hypotheses']:,}", f"{found['rectangles']:,}", percent(found["forbidden"])),
        *(f"{found['unreachable']:,}", f"{found['build']:.2f}", f"{found['load']:.2f}"),
    ]


def notes(rows: Sequence[Row], manifest: Row) -> list[str]:
    """What the numbers rest on."""
    texts, config = manifest.get("texts", {}), manifest["config"]
    return [
        f"seed {manifest['seed']}, n {config['n']:,}",
        *(f"{kind} text: {', '.join(names)}" for kind, names in texts.items()),
        *manifest.get("missing", ()),
        *(f"{row['tokenizer']}: {row[FAILURE]}" for row in rows if "why_not" in row),
        "false accepts: among re-segmentations, and among the ids of strings",
        "masks: at every prefix of finite regexes, held against the trie of encode, and at sampled "
        "states of others, where ids are tried one by one",
        "build: kernels warm, cache empty, without reading the file; load: from the cache; the "
        f"best of {config['repeats']}, with nothing beside them",
    ]


def beside(groups: dict[str, list[Row]]) -> Table:
    """What the approximations get wrong on the same ids."""
    columns = [
        *("tokenizer", "accepted by", "canonical\nstrings", "false\nrejects", "share"),
        *("share in\ncode", "share in\nmultilingual", "wrong re-seg-\nmentations"),
        *("false\naccepts", "share", "right re-seg-\nmentations", "false\nrejects"),
    ]
    lines = [cells for name, group in groups.items() for cells in tests(name, group)]
    return Table(
        "What exactness buys",
        columns,
        lines,
        [
            "pairs of BPE: every id reachable, every adjacent pair canonical, the pretokenizer "
            "ignored; re-encoded pairs: encode gives back every id and every adjacent pair. For "
            "the benefit of the doubt see experiments/laws/exact_sequences.py",
        ],
    )


def tests(name: str, rows: list[Row]) -> Iterator[list[str]]:
    """The automaton's line, then one for each approximation; none before a string was tried."""
    own, other = of_law(rows, STRINGS), of_law(rows, OTHERS)
    for test in [OURS, *own[0]["approximations"]] if own else ():
        rejects, accepts = (
            wrong_of(own, test, "false reject"),
            wrong_of(other, test, "false accept"),
        )
        canonical, right = counted(own, "canonical"), counted(other, "canonical")
        others = counted(other, "tried") - right
        kinds = [[row for row in own if row["kind"] == kind] for kind in KINDS_SHOWN]
        yield [
            *(name if test == OURS else "", test, f"{canonical:,}", f"{rejects:,}"),
            percent(ratio(rejects, canonical)),
            *(
                percent(ratio(wrong_of(some, test, "false reject"), counted(some, "canonical")))
                for some in kinds
            ),
            *(f"{others:,}", f"{accepts:,}", percent(ratio(accepts, others))),
            *(f"{right:,}", f"{wrong_of(other, test, 'false reject'):,}"),
        ]


def detailed(groups: dict[str, list[Row]]) -> Table:
    """One line for each law and kind of text."""
    columns = ["tokenizer", "law", "text", "tried", "exceptions", "counted besides", "seconds"]
    lines = [
        [
            *(name, row["law"], row.get("kind", "-")),
            *(f"{row['counts'].get('tried', 0):,}", f"{row['exceptions']:,}"),
            ", ".join(f"{v:,} {k}" for k, v in row["counts"].items() if k != "tried"),
            f"{row['seconds']:.0f}",
        ]
        for name, group in groups.items()
        for row in group
        if row["law"]
    ]
    kinds = f"tried: sequences, masks or ids; {ADVERSARIAL} text is made of bpe_automata.testing's"
    laws = [f"{law}: {meaning}" for law, meaning in LAWS.items()]
    return Table("Law by law", columns, lines, [*laws, f"{kinds} pieces and the tokenizer's own"])
