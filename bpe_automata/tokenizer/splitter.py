"""One splitter, read character by character as boundary hypotheses.

A hypothesis about the text read so far says in which piece of the splitter we are, and what must
not happen:

    Piece(kind, live, banned, wanted)
        kind: MATCH or GAP (text between matches) or START (nothing read)
        live: the ordered threads of the match being read
        banned: threads that must never match, or the hypothesis is wrong
        wanted: sets of threads; of each one must match, or the hypothesis is wrong

On the next character: if the closure of `live` holds a match, the match may end here; then the
threads before it (preferred ones) become banned, and a new piece begins. If it does not end here,
only the threads before the match go on. While in a gap, the threads of a match that starts at
each of its characters are banned. A match that looks ahead may end where what it looks for is
wanted; if that is banned instead, it is as if the match were not there. Every text has exactly one
surviving reading.
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
    wanted: tuple[Threads, ...] = ()


BEGINNING = Piece(START, (), ())


class Choice(NamedTuple):
    """What may be true of a match under way: live, banned and wanted after the next character if it
    does not end before it; matched: may it end there?"""

    live: Threads
    banned: Threads
    wanted: tuple[Threads, ...]
    matched: bool


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
        banned, wanted = self._banned(piece.banned, atom), self._wanted(piece.wanted, atom)
        if banned is None or wanted is None:
            return
        if piece.kind == GAP:
            yield from self._step_gap(banned, wanted, atom)
            return
        for choice in self._choices(piece.live, atom):
            both = Piece(
                MATCH, choice.live, _as_set(banned + choice.banned), _joined(wanted, choice.wanted)
            )
            yield from self._step_match(both, choice.matched, atom)

    def _banned(self, threads: Threads, atom: int) -> Threads | None:
        """The threads after `atom`, None if one of them matched before it."""
        tests, matched = self.program.closure(threads, atom)
        return None if matched else self.program.fire(tests, atom)

    def _wanted(self, sets: tuple[Threads, ...], atom: int) -> tuple[Threads, ...] | None:
        """The sets of which none matched before `atom`, after it; None if one cannot any more."""
        left: set[Threads] = set()
        for threads in sets:
            tests, matched = self.program.closure(threads, atom)
            if matched:
                continue
            after = self.program.fire(tests, atom)
            if not after:
                return None
            left.add(_as_set(after))
        return tuple(sorted(left))

    def _choices(self, live: Threads, atom: int) -> Iterator[Choice]:
        """Which is the first match that looks ahead and finds what it looks for, or that none is;
        with what the threads before it become, and whether the match may end here."""
        banned: Threads = ()
        for part in self.program.outline(live, atom):
            after = self.program.fire(part.tests, atom)
            if part.ahead is None:
                yield Choice(after, banned, (), part.matched)
                return
            wanted = self._wanted(((part.ahead,),), atom)
            if wanted is not None:
                yield Choice(after, banned, wanted, True)
            missed = self._banned((part.ahead,), atom)
            if missed is None:
                return
            banned += missed

    def _step_gap(
        self, banned: Threads, wanted: tuple[Threads, ...], atom: int
    ) -> Iterator[tuple[bool, Piece]]:
        for following in self.begin(atom, first=False):
            forbidden = _as_set(banned + following.banned)
            ends = following.kind == MATCH and self._divides(GAP, MATCH)
            yield ends, Piece(following.kind, following.live, forbidden, wanted)

    def _step_match(self, after: Piece, matched: bool, atom: int) -> Iterator[tuple[bool, Piece]]:
        """`after`: the match after `atom`, if it does not end before it, as it may if `matched`."""
        if after.live:
            yield False, after
        if not matched:
            return
        for following in self.begin(atom, first=False):
            forbidden = _as_set(after.banned + after.live + following.banned)
            yield (
                self._divides(MATCH, following.kind),
                Piece(following.kind, following.live, forbidden, after.wanted),
            )

    def ends(self, piece: Piece) -> bool:
        """Can the text end here?"""
        if self.program.closure(piece.banned, END)[1]:
            return False
        if not all(self.program.closure(threads, END)[1] for threads in piece.wanted):
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


def _joined(ones: tuple[Threads, ...], others: tuple[Threads, ...]) -> tuple[Threads, ...]:
    return tuple(sorted({*ones, *others})) if others else ones
