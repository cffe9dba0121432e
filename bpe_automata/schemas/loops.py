"""The loops of a schema: the parts that come back to themselves through their $refs.

Parts are nodes, with edges to the schemas inside them and to what their $ref leads to; a loop is a
strongly connected component with an edge inside (Tarjan 1972, without recursion). On the way every
part that can be reached is looked at once by `check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bpe_automata.budget import check
from bpe_automata.schemas.documents import Document, Part
from bpe_automata.schemas.drafts import ASSERTING, below, parts

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass
class Loops:
    """of: the loop of each part that is on one, by pointer. entries: the parts that a $ref of
    their own loop leads to."""

    of: dict[str, int] = field(default_factory=dict)
    entries: set[str] = field(default_factory=set)


def references(part: Part) -> list[str]:
    """The reference keywords that a part has."""
    return [k for k in REFERENCES if isinstance(part.schema, dict) and k in part.schema]


def find_loops(document: Document, check: Callable[[Part], None]) -> Loops:
    """The loops below the root. check: called with each part that is reached."""
    walk = _Walk(document, check)
    walk.run(document.part("#"))
    loops = Loops()
    for number, members in enumerate(walk.components):
        if len(members) > 1 or members[0] in walk.to[members[0]]:
            loops.of.update(dict.fromkeys(members, number))
    for source, target in walk.referred:
        if source in loops.of and loops.of[source] == loops.of.get(target):
            loops.entries.add(target)
    return loops


class _Walk:
    """Depth-first search with the components found so far."""

    def __init__(self, document: Document, check: Callable[[Part], None]) -> None:
        self._document, self._check = document, check
        self.components: list[list[str]] = []
        self.referred: list[tuple[str, str]] = []
        self.to: dict[str, list[str]] = {}
        self._low: dict[str, int] = {}
        self._open: list[str] = []
        self._is_open: set[str] = set()
        self._ways: list[tuple[str, int, Iterator[str]]] = []

    def run(self, start: Part) -> None:
        """Search from one part."""
        self._enter(start.pointer)
        while self._ways:
            check()
            here, order, others = self._ways[-1]
            for other in others:
                if other not in self._low:
                    self._enter(other)
                    break
                if other in self._is_open:
                    self._low[here] = min(self._low[here], self._low[other])
            else:
                self._ways.pop()
                self._leave(here, order)

    def _enter(self, pointer: str) -> None:
        part = self._document.part(pointer)
        self._check(part)
        self.to[pointer] = list(self._next(part))
        order = len(self._low)
        self._low[pointer] = order
        self._open.append(pointer)
        self._is_open.add(pointer)
        self._ways.append((pointer, order, iter(self.to[pointer])))

    def _leave(self, pointer: str, order: int) -> None:
        if self._ways:
            above = self._ways[-1][0]
            self._low[above] = min(self._low[above], self._low[pointer])
        if self._low[pointer] == order:
            at = _last(self._open, pointer)
            self.components.append(self._open[at:])
            self._is_open.difference_update(self._open[at:])
            del self._open[at:]

    def _next(self, part: Part) -> Iterator[str]:
        """Where a part leads: to what its reference names, and to the schemas inside it."""
        for keyword in references(part):
            target = self._document.target(part, keyword)
            self.referred.append((part.pointer, target.pointer))
            yield target.pointer
        if not isinstance(part.schema, dict) or (part.draft.ref_alone and "$ref" in part.schema):
            return
        for keyword, value in part.schema.items():
            if keyword in ASSERTING:
                for way, _ in parts(keyword, value):
                    yield below(part.pointer, keyword, *way)


def _last(items: list[str], item: str) -> int:
    """The last place of an item."""
    at = len(items) - 1
    while items[at] != item:
        at -= 1
    return at
