"""The pretokenizer as a nondeterministic automaton of boundary hypotheses, tabulated.

One splitter is read character by character. Whether a match has ended may depend on what follows,
so a state is a hypothesis about the text so far. It says what later text must do to confirm it:

    SplitState(inside, live, banned, wanted)
        inside: MATCH, GAP (text between matches) or START (nothing read)
        live: the ordered threads of the current match
        banned: threads of which none may ever match
        wanted: sets of threads; of each set, one thread must match

On the next character: if the closure of `live` contains a match, the match may end here; then the
threads before it (the preferred ones) become banned, and a new match or gap begins. If it does not
end here, only the threads before the match continue. In a gap, the threads of a match that would
start at any of its characters are banned. A match with a lookahead may end where the lookahead is
wanted; if the lookahead is banned instead, there is no such match. For every text exactly one
hypothesis survives.

For a sequence of splitters a hypothesis is a tuple with one `SplitState` each. A boundary made by
one splitter is the end of the text for those after it. With hypotheses h, atoms c and b = 1 for a
boundary before c:

    follow[b][h][c] = { h' : h --c--> h', with a boundary before c iff b }

Hypothesis 0 is the beginning of a text: the next character begins a pretoken (b = 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check, check_bytes
from bpe_automata.errors import MASK_OTHERWISE, BudgetExceededError, UnsupportedTokenizerError
from bpe_automata.tokenizer.pike import END, Program, Threads

START, MATCH, GAP = 0, 1, 2
BEHAVIORS = ("isolated", "removed", "mergedwithprevious", "mergedwithnext", "contiguous")


class SplitState(NamedTuple):
    """The state of one splitter; see the docstring of the module."""

    inside: int
    live: Threads
    banned: Threads
    wanted: tuple[Threads, ...] = ()


BEGINNING = SplitState(START, (), ())


class Choice(NamedTuple):
    """A hypothesis about the current match. live, banned, wanted: its threads after the next
    character, if the match does not end before that; matched: may the match end before that?"""

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

    def begin(self, atom: int, first: bool = True) -> Iterator[SplitState]:
        """The states after a match or gap that begins with `atom`; `first`: it is the first
        character of this splitter's text."""
        tests, _ = self.program.closure((self.program.entry,), atom, first)
        after = self.program.fire(tests, atom)
        if after and self._is_spelled(MATCH):
            yield SplitState(MATCH, after, ())
        if self._is_spelled(GAP):
            yield SplitState(GAP, (), _as_set(after))

    def step(self, state: SplitState, atom: int) -> Iterator[tuple[bool, SplitState]]:
        """(is there a boundary before `atom`, the state after it), for each transition."""
        banned, wanted = self._banned(state.banned, atom), self._wanted(state.wanted, atom)
        if banned is None or wanted is None:
            return
        if state.inside == GAP:
            yield from self._step_gap(banned, wanted, atom)
            return
        for choice in self._choices(state.live, atom):
            both = SplitState(
                MATCH, choice.live, _as_set(banned + choice.banned), _joined(wanted, choice.wanted)
            )
            yield from self._step_match(both, choice.matched, atom)

    def _banned(self, threads: Threads, atom: int) -> Threads | None:
        """The threads after `atom`, None if one of them matched before it."""
        tests, matched = self.program.closure(threads, atom)
        return None if matched else self.program.fire(tests, atom)

    def _wanted(self, sets: tuple[Threads, ...], atom: int) -> tuple[Threads, ...] | None:
        """The sets of threads after `atom`, without those that matched before it; None if one of
        them can no longer match."""
        open_sets: set[Threads] = set()
        for threads in sets:
            tests, matched = self.program.closure(threads, atom)
            if matched:
                continue
            after = self.program.fire(tests, atom)
            if not after:
                return None
            open_sets.add(_as_set(after))
        return tuple(sorted(open_sets))

    def _choices(self, live: Threads, atom: int) -> Iterator[Choice]:
        """For each match with a lookahead, the hypothesis that it is the first whose lookahead
        succeeds; and the hypothesis that none succeeds."""
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
    ) -> Iterator[tuple[bool, SplitState]]:
        for following in self.begin(atom, first=False):
            forbidden = _as_set(banned + following.banned)
            ends = following.inside == MATCH and self._divides(GAP, MATCH)
            yield ends, SplitState(following.inside, following.live, forbidden, wanted)

    def _step_match(
        self, after: SplitState, matched: bool, atom: int
    ) -> Iterator[tuple[bool, SplitState]]:
        """`after`: the state if the match continues with `atom`; it may end before if `matched`."""
        if after.live:
            yield False, after
        if not matched:
            return
        for following in self.begin(atom, first=False):
            forbidden = _as_set(after.banned + after.live + following.banned)
            yield (
                self._divides(MATCH, following.inside),
                SplitState(following.inside, following.live, forbidden, after.wanted),
            )

    def ends(self, state: SplitState) -> bool:
        """Can the text end here?"""
        if self.program.closure(state.banned, END)[1]:
            return False
        if not all(self.program.closure(threads, END)[1] for threads in state.wanted):
            return False
        return state.inside != MATCH or self.program.closure(state.live, END)[1]

    def _is_spelled(self, inside: int) -> bool:
        """Is this text kept by the splitter? Removed text is spelled by no ids."""
        if self.behavior != "removed":
            return True
        return (inside == MATCH) == self.invert

    def _divides(self, before: int, after: int) -> bool:
        """Does the behaviour put a boundary between a match or gap and the next one?"""
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


Hypothesis = tuple[SplitState, ...]
MOST_EXPLORED = 1024
MOST_HYPOTHESES = 512
"""Deployed tokenizers have 17 to 53. Memory grows with the square of the number: 512 hypotheses may
take a gigabyte."""
_COUNTS = re.compile(r"\{(?:\d+,)?(\d{1,9})\}")


@dataclass(frozen=True)
class Boundaries:
    """hypotheses: what each number stands for; ends: bool [n], may the text end there; follow: bool
    [2, n, n_atoms, n], see the docstring of the module."""

    hypotheses: tuple[Hypothesis, ...]
    ends: np.ndarray
    follow: np.ndarray

    @property
    def n(self) -> int:
        return len(self.hypotheses)


def tabulate_boundaries(splitters: tuple[Splitter, ...], n_atoms: int) -> Boundaries:
    """All reachable hypotheses that some text confirms, and their transitions.

    Raises BudgetExceededError when there are more than `MOST_HYPOTHESES`, or more than
    `MOST_EXPLORED` including those that no text confirms.
    """
    beginning: Hypothesis = (BEGINNING,) * max(1, len(splitters))
    numbers = {beginning: 0}
    order = [beginning]
    edges: list[tuple[int, int, int, int]] = []
    for number, hypothesis in enumerate(order):
        for atom in range(n_atoms):
            check()
            for boundary, after in _steps(splitters, hypothesis, atom):
                if after not in numbers:
                    numbers[after] = len(order)
                    order.append(after)
                edges.append((int(boundary), number, atom, numbers[after]))
        _check_few(len(order), MOST_EXPLORED, splitters)
    check_bytes(2 * len(order) ** 2 * n_atoms, "the table of pretoken boundaries")
    follow = np.zeros((2, len(order), n_atoms, len(order)), dtype=bool)
    if edges:
        follow[tuple(np.array(edges).T)] = True
    ends = np.array([_ends(splitters, h) for h in order])
    table = _trimmed(Boundaries(tuple(order), ends, follow))
    _check_few(table.n, MOST_HYPOTHESES, splitters)
    return table


def _check_few(count: int, most: int, splitters: tuple[Splitter, ...]) -> None:
    if count <= most:
        return
    patterns = [splitter.program.source for splitter in splitters]
    counts = [int(c) for pattern in patterns for c in _COUNTS.findall(pattern)]
    hint = f"; each count is a hypothesis, and they count to {max(counts)}" if counts else ""
    raise BudgetExceededError(
        "boundary hypotheses",
        most,
        f"the split patterns of this tokenizer are too intricate together{hint}: {MASK_OTHERWISE}",
    )


def _trimmed(table: Boundaries) -> Boundaries:
    """The table without the hypotheses that no text can confirm, such as that a word ended in its
    middle. So these are dropped at once, and not only with the next character."""
    leads = np.asarray(table.follow.any(axis=(0, 2)))
    alive = table.ends
    while not np.array_equal(alive, grown := alive | leads[:, alive].any(axis=1)):
        alive = grown
    confirmed = np.flatnonzero(alive)
    hypotheses = tuple(table.hypotheses[h] for h in confirmed)
    follow = table.follow[:, confirmed][:, :, :, confirmed]
    return Boundaries(hypotheses, table.ends[confirmed], np.ascontiguousarray(follow))


# Without any splitter the text is one pretoken; its two states are BEGINNING and this one.
_INSIDE: Hypothesis = (SplitState(1, (), ()),)


def _steps(
    splitters: tuple[Splitter, ...], hypothesis: Hypothesis, atom: int
) -> Iterator[tuple[bool, Hypothesis]]:
    if not splitters:
        yield hypothesis[0] == BEGINNING, _INSIDE
        return
    at_beginning = hypothesis[0] == BEGINNING
    yield from _combine(splitters, hypothesis, atom, at_beginning)


def _combine(
    splitters: tuple[Splitter, ...], hypothesis: Hypothesis, atom: int, ended: bool
) -> Iterator[tuple[bool, Hypothesis]]:
    """The transitions on `atom`; `ended`: the text of these splitters ended before it."""
    if not splitters:
        yield ended, ()
        return
    first, state = splitters[0], hypothesis[0]
    if ended:
        if state != BEGINNING and not first.ends(state):
            return
        heads: Iterator[tuple[bool, SplitState]] = ((True, begun) for begun in first.begin(atom))
    else:
        heads = first.step(state, atom)
    for boundary, head in heads:
        for any_boundary, tail in _combine(splitters[1:], hypothesis[1:], atom, boundary):
            yield any_boundary, (head, *tail)


def _ends(splitters: tuple[Splitter, ...], hypothesis: Hypothesis) -> bool:
    if hypothesis[0] == BEGINNING:
        return True
    return all(s.ends(p) for s, p in zip(splitters, hypothesis, strict=False))
