"""Text to try tokenizers on: named sources of two kinds, real ones wherever they can be had.

"multilingual": every language that is at hand; "code": source code, JSON and prose about programs,
as installed. What is absent is left out and named, so that a table can say what it rests on.
Strings are windows of random length, cut anywhere: inside a word, inside CR LF, before a combining
mark, in the middle of an indent.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.shared import corpus_sources

KINDS = ("multilingual", "code")
LONGEST, LONGEST_MADE_UP = 200, 60
"""Characters of the longest window; lengths are log-uniform, so the mean is about 38. What is made
up has about a token for each byte, and to have much of it would be slow."""


@dataclass(frozen=True)
class Source:
    """name: what the table calls it; kind: one of `KINDS`; documents: its texts, none empty;
    longest: characters of the longest window."""

    name: str
    kind: str
    documents: tuple[str, ...]
    longest: int = LONGEST

    def window(self, rng: random.Random) -> str:
        """A piece of a random document; every third begins at white space, most often a line's
        end with the indent after it."""
        document = self.documents[rng.randrange(len(self.documents))]
        length = round(math.exp(rng.uniform(0, math.log(self.longest))))
        start = rng.randrange(len(document))
        if rng.random() < 1 / 3:
            start = _white_space_before(document, start, rng.choice("\n\n "))
        return document[start : start + length]


def _white_space_before(document: str, place: int, wanted: str) -> int:
    """Where the run of `wanted` that comes last before `place` begins; `place` without one."""
    found = document.rfind(wanted, 0, place)
    if found < 0:
        return place
    while found and document[found - 1] == wanted:
        found -= 1
    return found


@dataclass(frozen=True)
class Corpus:
    """sources: those that were found; missing: a line for each that was not."""

    sources: tuple[Source, ...]
    missing: tuple[str, ...] = ()

    def strings(self, kind: str, n: int, rng: random.Random) -> Iterator[str]:
        """`n` windows of one kind, its sources in turn."""
        sources = self.of(kind)
        for i in range(n if sources else 0):
            yield sources[i % len(sources)].window(rng)

    def of(self, kind: str) -> Sequence[Source]:
        """The sources of one kind."""
        return [source for source in self.sources if source.kind == kind]

    def described(self) -> dict[str, list[str]]:
        """For a manifest: kind -> its sources, each with the number of its documents."""
        return {
            kind: [f"{source.name} ({len(source.documents):,})" for source in self.of(kind)]
            for kind in KINDS
        }


def open_corpus(seed: int, text: Path | None = None) -> Corpus:
    """All sources that are there; the same for the same seed and the same installed packages.

    text: a folder of further multilingual text. Raises `MissingFileError` if it holds none.
    """
    found: list[Source] = []
    missing: list[str] = []
    for name, kind, read, remedy in corpus_sources.readers(text):
        documents = tuple(d for d in read(random.Random(f"{seed} {name}")) if d)
        if documents:
            longest = LONGEST_MADE_UP if name == corpus_sources.MADE_UP else LONGEST
            found.append(Source(name, kind, documents, longest))
        else:
            missing.append(f"{kind} text without {name}: {remedy}")
    return Corpus(tuple(found), tuple(missing))
