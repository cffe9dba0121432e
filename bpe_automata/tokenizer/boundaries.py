"""A sequence of splitters as one machine of boundary hypotheses, tabulated.

A hypothesis is a tuple with one `Piece` per splitter. A boundary that one splitter makes is the
end of the text for the splitters after it. The tables say, for a hypothesis h, an atom c and
whether there is a boundary before c, which hypotheses follow:

    follow[b][h][c] = { h' : h --c--> h', with a boundary before c iff b }

Hypothesis 0 is the beginning of a text: the next character begins a piece (b = 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bpe_automata.budget import check
from bpe_automata.errors import MASK_OTHERWISE, BudgetExceededError
from bpe_automata.tokenizer.splitter import BEGINNING, Piece, Splitter

Hypothesis = tuple[Piece, ...]
MOST_EXPLORED = 1024
MOST_HYPOTHESES = 512
"""Deployed tokenizers have 17 to 53. Memory grows with the square of the number: 512 may take a
gigabyte."""
_COUNTS = re.compile(r"\{(?:\d+,)?(\d{1,9})\}")


@dataclass(frozen=True)
class Boundaries:
    """hypotheses: what each number stands for; ends: bool [n], can the text end there;
    follow: bool [2, n, n_atoms, n], see the module's docstring."""

    hypotheses: tuple[Hypothesis, ...]
    ends: np.ndarray
    follow: np.ndarray

    @property
    def n(self) -> int:
        return len(self.hypotheses)


def tabulate(splitters: tuple[Splitter, ...], n_atoms: int) -> Boundaries:
    """Explore all hypotheses from the beginning of a text; those that can be true are kept.

    Raises BudgetExceededError when there are more than `MOST_HYPOTHESES`, or more than
    `MOST_EXPLORED` before those are left out that cannot be true.
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
    told = f"; each count is a hypothesis, and they count to {max(counts)}" if counts else ""
    raise BudgetExceededError(
        "boundary hypotheses",
        most,
        f"the split patterns of this tokenizer are too intricate together{told}: {MASK_OTHERWISE}",
    )


def _trimmed(table: Boundaries) -> Boundaries:
    """Without the hypotheses that no text can confirm, such as "the word ended" in its middle. A
    wrong reading is then given up at once, not only when the next character is read."""
    leads = np.asarray(table.follow.any(axis=(0, 2)))
    alive = table.ends
    while not np.array_equal(alive, grown := alive | leads[:, alive].any(axis=1)):
        alive = grown
    kept = np.flatnonzero(alive)
    hypotheses = tuple(table.hypotheses[h] for h in kept)
    follow = table.follow[:, kept][:, :, :, kept]
    return Boundaries(hypotheses, table.ends[kept], np.ascontiguousarray(follow))


# Without any splitter the text is one piece: these two stand for its beginning and its inside.
_INSIDE: Hypothesis = (Piece(1, (), ()),)


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
    """All readings of `atom`; `ended` says that the text of these splitters ended before it."""
    if not splitters:
        yield ended, ()
        return
    first, piece = splitters[0], hypothesis[0]
    if ended:
        if piece != BEGINNING and not first.ends(piece):
            return
        heads: Iterator[tuple[bool, Piece]] = ((True, begun) for begun in first.begin(atom))
    else:
        heads = first.step(piece, atom)
    for boundary, head in heads:
        for any_boundary, tail in _combine(splitters[1:], hypothesis[1:], atom, boundary):
            yield any_boundary, (head, *tail)


def _ends(splitters: tuple[Splitter, ...], hypothesis: Hypothesis) -> bool:
    if hypothesis[0] == BEGINNING:
        return True
    return all(s.ends(p) for s, p in zip(splitters, hypothesis, strict=False))
