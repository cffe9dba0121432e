"""The cells of the exactness table: the facts of a tokenizer, and each law on it."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bpe_automata import Constraint, Tokenizer, constrain
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata._tokenizer.sources.named import names
from bpe_automata.errors import MissingDependencyError, MissingFileError, TokenizerError
from experiments.laws import exact_sequences
from experiments.laws.exact_sequences import Case, Found, approximations
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.shared.corpus import KINDS, Corpus, open_corpus
from experiments.shared.resources import timed
from experiments.shared.walks import FINITE, VARIED, own_finite
from experiments.texts import Adversary

ALL = "all"
"""Every tokenizer that has a name."""
SMOKE_TOKENIZER = str(Path(__file__).with_name("smoke_tokenizer"))
"""One of 400 tokens, part of the repository."""


def shown(source: str) -> str:
    """What a table and a row call a tokenizer: its name, or of a path the last part."""
    return source if source in names() else Path(source).name


SHOWN = 5
SKIPPED, REFUSED = "not installed", "refused"
ADVERSARIAL = "adversarial"
STRINGS, OTHERS, WALKS = "ids of strings", "other ids", "walks"
IDS, TRIES = "masks: ids", "masks: tries"
LAWS = {
    STRINGS: "what encode(s) gives is accepted iff encode(decode(ids)) = ids, so always but where "
    "s has no ids of its own",
    OTHERS: "re-segmentations of strings are accepted iff encode(decode(ids)) = ids",
    WALKS: "random walks of a constraint can be finished, are canonical and match",
    IDS: "at states of random walks an id is in the mask iff some text that goes on so is encoded "
    "so; an id without a witness among a few texts is walked home; where there are many ids, some "
    "are left untried",
    TRIES: "every mask at every prefix of a finite regex is that of the trie of encode(s)",
}
"""Each law and what it says."""


@dataclass(frozen=True)
class Config(config.Config):
    """The tokenizers, and how much of everything."""

    tokenizer: str = option(ALL, "exactness: a name, a path, or all that have a name")
    n: int = option(100_000, "exactness: strings, and re-segmentations")
    text: Path | None = option(None, "exactness: folder of further multilingual text")
    most_regexes: int | None = option(None, "exactness: of each sort the first so many; none: all")
    repeats: int = option(3, "how often a time is taken")

    def tokenizers(self) -> tuple[str, ...]:
        """What is to be loaded, in order."""
        return tuple(names()) if self.tokenizer == ALL else (self.tokenizer,)


@lru_cache(maxsize=1)
def loaded(source: str) -> Tokenizer:
    """The one that cells ask for one after the other. Raises what `Tokenizer.load` raises."""
    return Tokenizer.load(source)


@lru_cache(maxsize=1)
def corpus(seed: int, text: Path | None) -> Corpus:
    """The texts, collected once in a process."""
    return open_corpus(seed, text)


def kinds_of(texts: Corpus) -> tuple[str, ...]:
    """The kinds of text that there are."""
    return (ADVERSARIAL, *(kind for kind in KINDS if texts.of(kind)))


def shares(n: int, kinds: Sequence[str]) -> dict[str, int]:
    """How many strings of each kind: as even as can be."""
    most, rest = divmod(n, len(kinds))
    return {kind: most + (i < rest) for i, kind in enumerate(kinds)}


def facts_cell(work: Config) -> Cell:
    """What is asked first of a tokenizer."""
    return Cell(f"{shown(work.tokenizer)}: facts", facts_row, (work,))


def law_cells(work: Config, kinds: Sequence[str]) -> list[Cell]:
    """One for each kind of text, which tries two laws at once, and one for each other law."""
    name = shown(work.tokenizer)
    texts = shares(work.n, kinds).items()
    return [
        *(Cell(f"{name}: {kind} text", sequences_row, (work, kind, n)) for kind, n in texts),
        *(Cell(f"{name}: {law}", constraints_row, (work, law)) for law in (WALKS, IDS, TRIES)),
    ]


def facts_row(work: Config) -> Row:
    """Sizes and seconds; or `why_not`, of a tokenizer that is not there or is refused."""
    row: Row = {"tokenizer": shown(work.tokenizer)}
    try:
        tokenizer = loaded(work.tokenizer)
        found = facts(tokenizer, work.tokenizer, work.repeats)
    except (MissingDependencyError, MissingFileError) as error:
        return row | {"why_not": SKIPPED, FAILURE: str(error)}
    except TokenizerError as error:
        return row | {"why_not": REFUSED, FAILURE: str(error)}
    return row | {"facts": found, "sha256": tokenizer.fingerprint}


def sequences_row(work: Config, kind: str, n: int) -> Row:
    """The two laws of sequences on `n` texts of one kind, approximations beside them."""
    tokenizer = loaded(work.tokenizer)
    canonical_automaton(tokenizer)
    rng = random.Random(f"{work.seed} {kind}")
    if kind == ADVERSARIAL:
        texts: Iterable[str] = Adversary(tokenizer, rng).texts(n)
    else:
        texts = corpus(work.seed, work.text).strings(kind, n, rng)
    started = time.perf_counter()
    found = exact_sequences.sequences(tokenizer, texts, approximations(tokenizer), rng)
    seconds = (time.perf_counter() - started) / 2
    pairs = zip((STRINGS, OTHERS), found, strict=True)
    laws = [
        law_of(law, tally.counts, tally.wrong, seconds)
        | {"kind": kind, "approximations": {n: dict(c) for n, c in tally.approximations.items()}}
        for law, tally in pairs
    ]
    return {"tokenizer": shown(work.tokenizer), "laws": laws}


def constraints_row(work: Config, law: str) -> Row:
    """One law of constraints, on several regexes."""
    tokenizer = loaded(work.tokenizer)
    constraints = {
        name: constrain(tokenizer, regex, added_tokens=True)
        for name, regex in regexes(work, law, tokenizer).items()
    }
    started = time.perf_counter()
    counts, wrong = Counter[str](), list[Case]()
    for name, constraint in constraints.items():
        some, cases = _tried(work, law, name, constraint)
        counts.update(some)
        wrong += cases
    counts["regexes"] = len(constraints)
    seconds = time.perf_counter() - started
    return {"tokenizer": shown(work.tokenizer), "laws": [law_of(law, counts, wrong, seconds)]}


def regexes(work: Config, law: str, tokenizer: Tokenizer) -> dict[str, str]:
    """Those that the law is tried on, by name."""
    found = {**FINITE, **own_finite(tokenizer)} if law == TRIES else VARIED
    return dict(islice(found.items(), work.most_regexes))


def _tried(work: Config, law: str, name: str, constraint: Constraint) -> Found:
    rng = random.Random(f"{work.seed} {name}")
    if law == TRIES:
        return exact_sequences.finite(constraint, name)
    if law == WALKS:
        return exact_sequences.walks(constraint, name, max(2, work.n // 5_000), rng)
    return exact_sequences.every_id(constraint, name, max(2, work.n // 100_000), rng)


def law_of(law: str, counts: Counter[str], wrong: list[Case], seconds: float) -> Row:
    """What came out for one law; of the exceptions the first few in full."""
    return {
        "law": law,
        "counts": dict(counts),
        "exceptions": len(wrong),
        "first": wrong[:SHOWN],
        "seconds": round(seconds, 2),
    }


# ---------------------------------------------------------------- sizes and seconds

LONG = 5.0
"""A time is not taken again once that took so many seconds."""


def facts(tokenizer: Tokenizer, source: object, repeats: int) -> dict[str, Any]:
    """Sizes; and seconds to build with warm kernels and nothing in the cache, and to load what
    that left there (the best of `repeats`; reading the tokenizer's file, `source`, is not counted).

    hypotheses: of the pretokenizer; rectangles: merges that forbid some pair; forbidden: share of
    forbidden pairs among all pairs of reachable tokens; unreachable: ordinary tokens that BPE never
    makes.
    """
    automaton = canonical_automaton(tokenizer)
    description, reachable = tokenizer.description, automaton.derivation.reachable
    added = {token.id for token in description.added}
    ordinary = [i for i, t in enumerate(description.tokens) if t is not None and i not in added]
    return {
        "ids": tokenizer.n_ids,
        "added": len(added),
        "hypotheses": int(automaton.pipeline.boundaries.n),
        "rectangles": len(automaton.derivation.proper),
        "forbidden": automaton.geometry.forbidden_share(),
        "unreachable": sum(not reachable[i] for i in ordinary),
        **timings(source, repeats),
    }


def timings(source: object, repeats: int) -> dict[str, float]:
    """Seconds to build and to load from the cache."""
    build: list[float] = []
    load: list[float] = []
    while len(build) < repeats and sum(build) < LONG:
        with (
            tempfile.TemporaryDirectory() as empty,
            patch.dict(os.environ, BPE_AUTOMATA_CACHE=empty),
        ):
            for seconds in (build, load):
                tokenizer = Tokenizer.load(source)
                seconds.append(timed(partial(canonical_automaton, tokenizer))[0])
    return {"build": min(build), "load": min(load)}
