"""All laws on one tokenizer, as rows."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from bpe_automata import Constraint, Tokenizer, constrain
from bpe_automata.constructions import canonical_automaton
from experiments import exact_masks, exact_sequences
from experiments.adversarial import Adversary
from experiments.approximations import approximations
from experiments.corpus import KINDS, Corpus
from experiments.exact_facts import facts
from experiments.exact_sequences import Case, Found, Tally
from experiments.regexes import FINITE, VARIED, own_finite

SHOWN = 5
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
Row = dict[str, Any]
Progress = Callable[[str, int, int], None]
"""(what is going on, how many steps more are done, how many there are)."""


@dataclass(frozen=True)
class Work:
    """n: strings, and re-segmentations; walks and masks grow with it."""

    n: int
    seed: int
    corpus: Corpus

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of text that there are."""
        return (ADVERSARIAL, *(kind for kind in KINDS if self.corpus.of(kind)))

    @property
    def rows(self) -> int:
        """How many rows a tokenizer has."""
        return 2 * len(self.kinds) + 4

    def shares(self) -> dict[str, int]:
        """How many strings of each kind: as even as can be."""
        most, rest = divmod(self.n, len(self.kinds))
        return {kind: most + (i < rest) for i, kind in enumerate(self.kinds)}


def measured(source: object, work: Work, progress: Progress) -> Iterator[Row]:
    """The facts, then the laws."""
    tokenizer = Tokenizer.load(source)
    progress("building", 0, 1)
    found = facts(source)
    yield {"law": None, "facts": found, "sha256": tokenizer.fingerprint}
    canonical_automaton(tokenizer)
    yield from sequences(tokenizer, work, progress)
    yield from masks(tokenizer, work, progress)


def sequences(tokenizer: Tokenizer, work: Work, progress: Progress) -> Iterator[Row]:
    """Two rows for each kind of text."""
    rivals = approximations(tokenizer)
    for kind, n in work.shares().items():
        rng = random.Random(f"{work.seed} {kind}")
        texts: Iterable[str] = work.corpus.strings(kind, n, rng)
        if kind == ADVERSARIAL:
            texts = Adversary(tokenizer, rng).texts(n)
        started = time.perf_counter()
        advance = partial(_advance, progress, kind, n)
        found = exact_sequences.sequences(tokenizer, texts, rivals, rng, advance)
        seconds = time.perf_counter() - started
        for law, tally in zip((STRINGS, OTHERS), found, strict=True):
            yield sequences_row(law, kind, tally, seconds / 2)


def _advance(progress: Progress, what: str, total: int, done: int = 1) -> None:
    progress(what, done, total)


def sequences_row(law: str, kind: str, tally: Tally, seconds: float) -> Row:
    """The row of a law of sequences, approximations beside it."""
    rivals = {name: dict(counts) for name, counts in tally.approximations.items()}
    return row_of(law, tally.counts, tally.wrong, seconds) | {
        "kind": kind,
        "approximations": rivals,
    }


def masks(tokenizer: Tokenizer, work: Work, progress: Progress) -> Iterator[Row]:
    """The laws of constraints."""
    n_walks, n_masks = max(2, work.n // 5_000), max(2, work.n // 100_000)
    varied = {name: constrain(tokenizer, regex) for name, regex in VARIED.items()}
    finite = {**FINITE, **own_finite(tokenizer)}
    tries = {name: constrain(tokenizer, regex) for name, regex in finite.items()}
    yield over(WALKS, varied, exact_sequences.walks, n_walks, (n_walks, work.seed), progress)
    yield over(IDS, varied, exact_masks.every_id, n_masks, (n_masks, work.seed), progress)
    yield over(TRIES, tries, exact_masks.finite, 1, (), progress)


def over(
    law: str,
    constraints: dict[str, Constraint],
    each: Callable[..., Found],
    steps: int,
    more: tuple[int, ...],
    progress: Progress,
) -> Row:
    """One law on several regexes. more: (how many, seed), where the law draws at random."""
    started = time.perf_counter()
    counts, wrong, total = Counter[str](), list[Case](), steps * len(constraints)
    for name, constraint in constraints.items():
        drawn = (more[0], random.Random(f"{more[1]} {name}")) if more else ()
        some, cases = each(constraint, name, *drawn, partial(_advance, progress, law, total))
        counts.update(some)
        wrong += cases
    counts["regexes"] = len(constraints)
    return row_of(law, counts, wrong, time.perf_counter() - started)


def row_of(law: str, counts: Counter[str], wrong: list[Case], seconds: float) -> Row:
    """The row of one law; of the exceptions the first few in full."""
    return {
        "law": law,
        "counts": dict(counts),
        "exceptions": len(wrong),
        "first": wrong[:SHOWN],
        "seconds": round(seconds, 2),
    }
