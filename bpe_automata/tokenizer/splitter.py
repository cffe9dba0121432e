"""One splitter, read character by character as boundary hypotheses.

A hypothesis about the text read so far says in which piece of the splitter we are, and what must
not happen:

    Piece(kind, live, banned)   kind: MATCH or GAP (text between matches) or START (nothing read)
                                live: the ordered threads of the match being read
                                banned: threads that must never match, or the hypothesis is wrong

On the next character: if the closure of `live` holds a match, the match may end here; then the
threads before it (preferred ones) become banned, and a new piece begins. If it does not end here,
only the threads before the match go on. While in a gap, the threads of a match that starts at
each of its characters are banned. Every text has exactly one surviving reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.pike import END, Program, Threads

START, MATCH, GAP = 0, 1, 2
BEHAVIORS = ("isolated", "removed", "mergedwithprevious", "mergedwithnext", "contiguous")


class Piece(NamedTuple):
    kind: int
    live: Threads
    banned: Threads


BEGINNING = Piece(START, (), ())


@dataclass(frozen=True)
class Splitter:
    """A `Split` of the pretokenizer: its program, behaviour (lower case) and `invert`."""

    program: Program
    behavior: str
    invert: bool

    def __post_init__(self) -> None:
        if self.behavior not in BEHAVIORS:
            raise UnsupportedTokenizerError(
                "Split behavior", self.behavior, f"known are {', '.join(BEHAVIORS)}"
            )

    def begin(self, atom: int, first: bool = True) -> Iterator[Piece]:
        """The pieces that can begin with `atom`; `first`: it is the first character of the text
        of this splitter."""
        tests, _ = self.program.closure((self.program.entry,), atom, first)
        after = self.program.fire(tests, atom)
        if after and self._kept(MATCH):
            yield Piece(MATCH, after, ())
        if self._kept(GAP):
            yield Piece(GAP, (), _as_set(after))

    def step(self, piece: Piece, atom: int) -> Iterator[tuple[bool, Piece]]:
        """(is there a boundary before `atom`, the piece after reading it), for each reading."""
        tests, wrong = self.program.closure(piece.banned, atom)
        if wrong:
            return
        banned = self.program.fire(tests, atom)
        if piece.kind == GAP:
            yield from self._step_gap(banned, atom)
        else:
            yield from self._step_match(piece.live, banned, atom)

    def _step_gap(self, banned: Threads, atom: int) -> Iterator[tuple[bool, Piece]]:
        for following in self.begin(atom, first=False):
            merged = Piece(following.kind, following.live, _as_set(banned + following.banned))
            ends = following.kind == MATCH and self._divides(GAP, MATCH)
            yield ends, merged

    def _step_match(
        self, live: Threads, banned: Threads, atom: int
    ) -> Iterator[tuple[bool, Piece]]:
        tests, matched = self.program.closure(live, atom)
        going_on = self.program.fire(tests, atom)
        if going_on:
            yield False, Piece(MATCH, going_on, _as_set(banned))
        if not matched:
            return
        for following in self.begin(atom, first=False):
            forbidden = _as_set(banned + going_on + following.banned)
            yield (
                self._divides(MATCH, following.kind),
                Piece(following.kind, following.live, forbidden),
            )

    def ends(self, piece: Piece) -> bool:
        """Can the text end here?"""
        if self.program.closure(piece.banned, END)[1]:
            return False
        return piece.kind != MATCH or self.program.closure(piece.live, END)[1]

    def _kept(self, kind: int) -> bool:
        """Is text of this kind kept? What is removed cannot be spelled by any ids."""
        if self.behavior != "removed":
            return True
        return (kind == MATCH) == self.invert

    def _divides(self, before: int, after: int) -> bool:
        """Does the behaviour keep these two neighbouring pieces apart?"""
        first, second = (before == MATCH) != self.invert, (after == MATCH) != self.invert
        if self.behavior == "mergedwithprevious":
            return first or not second
        if self.behavior == "mergedwithnext":
            return not first or second
        if self.behavior == "contiguous":
            return first != second
        return True


def _as_set(threads: Threads) -> Threads:
    return tuple(sorted(set(threads)))
