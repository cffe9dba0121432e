"""How the tokenizer divides a text before BPE: added tokens, and the pretokens between them.

The text's one surviving reading in the automaton of boundary hypotheses says where pretokens begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bpe_automata.sharing import cached
from bpe_automata.tokenizer.description import AddedToken
from bpe_automata.tokenizer.pipeline import Pipeline


@dataclass(frozen=True)
class Divided:
    """A text in pieces, by byte offsets. added: (begin, end, id) of each added token that is cut
    out; starts: where each piece begins, ascending (a pretoken or an added token); size: bytes in
    the text."""

    added: tuple[tuple[int, int, int], ...]
    starts: tuple[int, ...]
    size: int

    @cached
    def is_start(self) -> frozenset[int]:
        """`starts`, to look in."""
        return frozenset(self.starts)

    def pretokens(self) -> Iterator[tuple[int, int]]:
        """(begin, end) of each piece."""
        yield from pairwise((*self.starts, self.size))


def divide(pipeline: Pipeline, added: tuple[AddedToken, ...], text: str) -> Divided | None:
    """Divide a text as `encode` does; None if its splitters remove part of it. `text` may hold only
    characters that tokens can spell."""
    ids = {token.content: token.id for token in added}
    longest_first = sorted(ids, key=len, reverse=True)
    cuts: list[tuple[int, int, int]] = []
    starts: list[int] = []
    at = offset = 0  # in characters, in bytes
    pieces: list[tuple[str, int]] = []
    for match in re.finditer("|".join(map(re.escape, longest_first)) or r"(?!)", text):
        pieces.append((text[at : match.start()], offset))
        begin = offset + len(_encoded(text[at : match.start()]))
        offset, at = begin + len(_encoded(match.group())), match.end()
        cuts.append((begin, offset, ids[match.group()]))
        starts.append(begin)
    pieces.append((text[at:], offset))
    for piece, offset in pieces:
        found = _pretokens(pipeline, piece, offset)
        if found is None:
            return None
        starts += found
    return Divided(tuple(cuts), tuple(sorted(starts)), len(_encoded(text)))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _pretokens(pipeline: Pipeline, text: str, offset: int) -> list[int] | None:
    """Byte offsets at which pretokens begin in a text without added tokens; None if part of it is
    removed."""
    if not text:
        return []
    letters, follow = pipeline.alphabet, pipeline.boundaries.follow
    points = np.array([ord(c) for c in text])
    atoms = pipeline.coarse[
        letters.atoms[np.searchsorted(letters.starts, points, side="right") - 1]
    ]
    boundary = _reading(follow, pipeline.boundaries.ends, atoms.tolist())
    if boundary is None:
        return None
    sizes = np.cumsum([0, *(len(_encoded(c)) for c in text[:-1])])
    return (offset + sizes[boundary]).tolist()


def _reading(follow: np.ndarray, ends: np.ndarray, atoms: list[int]) -> np.ndarray | None:
    """bool [len(atoms)]: is there a boundary before each character, in the one reading that
    survives to the end; None if none does. follow, ends: as in `Boundaries`."""
    alive: list[np.ndarray] = [np.arange(len(ends)) == 0]
    for atom in atoms:
        alive.append(np.asarray(follow[:, alive[-1], atom].any(axis=(0, 1))))
    boundary = np.zeros(len(atoms), dtype=bool)
    here = alive[-1] & ends
    if not here.any():
        return None
    for index in range(len(atoms) - 1, -1, -1):
        sources = follow[:, :, atoms[index]][:, :, here].any(axis=2) & alive[index]
        boundary[index] = sources[1].any()
        here = sources.any(axis=0)
    return boundary
