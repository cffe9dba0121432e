"""The named parts of a text that is being written.

A joined text may be cut into its parts in several ways (see `joining`). The parser follows all of
them at once, by the automata of the parts themselves. A *reading* is one way to cut the text so
far: it stands in a state of one part's automaton, and says where named parts have begun and ended.
A part is finished once all readings agree on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bpe_automata._budget import check
from bpe_automata.automata.trees import Joined, JoinTree, Named, OneOf, Rounds
from bpe_automata.composition.joining import with_automata
from bpe_automata.errors import BudgetExceededError

_MOST_READINGS = 10_000


class _Told(NamedTuple):
    """What a reading says. begun: where the named parts around it began, the innermost last; None
    where readings differ. parts: (name, begin, end) of those that have ended. is_stuck: have
    readings differed on a part that has ended? Then no later part is told."""

    begun: tuple[int | None, ...]
    parts: tuple[tuple[str, int, int], ...]
    is_stuck: bool


_Frames = tuple[tuple[Any, int], ...]  # the nodes around a leaf, with an index or a count of each
_Reading = tuple[Any, int, _Frames]  # a leaf, its state, the frames; None at the end
_Readings = dict[_Reading, _Told]
_END: _Reading = (None, 0, ())


class Parser:
    """The parser of a tree of parts, whose automata it makes."""

    def __init__(self, tree: JoinTree) -> None:
        self._tree = with_automata(tree)

    def begin(self) -> _Readings:
        """The readings at the beginning of a text."""
        return self._closed(self._enter(self._tree, (), _Told((), (), False), 0, set()))

    def after(self, readings: _Readings, at: int, data: bytes) -> _Readings:
        """The readings behind some more bytes. at: how many bytes stand before them."""
        for offset, byte in enumerate(data, 1):
            found = list[tuple[_Reading, _Told]]()
            for (leaf, state, frames), told in readings.items():
                state = leaf.step(state, byte) if leaf is not None else 0
                if state:
                    found += self._at(leaf, state, frames, told, at + offset, set())
            readings = self._closed(found)
        return readings

    def finished(self, readings: _Readings, has_ended: bool) -> tuple[tuple[str, int, int], ...]:
        """The parts on which all readings agree: (name, begin, end). has_ended: has the text ended?
        Then only the reading at its end counts."""
        told = [readings[_END]] if has_ended and _END in readings else list(readings.values())
        common = told[0].parts if told else ()
        for one in told[1:]:
            common = _common(common, one.parts)
        return common

    def _closed(self, found: Iterable[tuple[_Reading, _Told]]) -> _Readings:
        made: _Readings = {}
        for reading, told in found:
            check()
            before = made.get(reading)
            made[reading] = told if before is None else _agreed(before, told)
            if len(made) > _MOST_READINGS:
                advice = "there are too many parts, or ways to cut it: put a text between parts"
                raise BudgetExceededError("readings of a text", _MOST_READINGS, advice)
        return made

    def _enter(
        self, node: JoinTree, frames: _Frames, told: _Told, at: int, seen: set[Any]
    ) -> Iterator[tuple[_Reading, _Told]]:
        """The readings at the beginning of a node. seen: the nodes entered since the last byte."""
        if (id(node), frames) in seen:
            return
        seen.add((id(node), frames))
        if isinstance(node, Named):
            told = told._replace(begun=(*told.begun, at))
            yield from self._enter(node.inner, (*frames, (node, 0)), told, at, seen)
        elif isinstance(node, Joined):
            yield from self._enter(node.inner[0], (*frames, (node, 0)), told, at, seen)
        elif isinstance(node, OneOf):
            for one in node.inner:
                yield from self._enter(one, frames, told, at, seen)
        elif isinstance(node, Rounds):
            yield from self._enter(node.inner, (*frames, (node, 1)), told, at, seen)
            if node.least == 0:
                yield from self._leave(frames, told, at, seen)
        else:
            yield from self._at(node, node.start, frames, told, at, seen)

    def _at(
        self, leaf: Any, state: int, frames: _Frames, told: _Told, at: int, seen: set[Any]
    ) -> Iterator[tuple[_Reading, _Told]]:
        """The readings of a leaf in a state, and behind it where its text may end."""
        ends = leaf.accepting[state]
        if not ends or len(leaf.live_bytes(state)):
            yield (leaf, state, frames), told
        if ends:
            yield from self._leave(frames, told, at, seen)

    def _leave(
        self, frames: _Frames, told: _Told, at: int, seen: set[Any]
    ) -> Iterator[tuple[_Reading, _Told]]:
        """The readings behind the node that the innermost frame is of."""
        if not frames:
            yield _END, told
            return
        *outer, (node, count) = frames
        around = tuple(outer)
        if isinstance(node, Named):
            *others, begun = told.begun
            parts, is_stuck = told.parts, told.is_stuck or begun is None
            if begun is not None and begun < at and not is_stuck:
                parts = (*parts, (node.name, begun, at))
            yield from self._leave(around, _Told(tuple(others), parts, is_stuck), at, seen)
        elif isinstance(node, Joined):
            if count + 1 < len(node.inner):
                inner = (*around, (node, count + 1))
                yield from self._enter(node.inner[count + 1], inner, told, at, seen)
            else:
                yield from self._leave(around, told, at, seen)
        else:
            # An empty round may be followed by any number of them: there is no need to count.
            is_empty = (id(node.inner), frames) in seen
            if is_empty or count >= node.least:
                yield from self._leave(around, told, at, seen)
            if not is_empty and (node.most is None or count < node.most):
                more = min(count + 1, max(node.least, 1)) if node.most is None else count + 1
                yield from self._enter(node.inner, (*around, (node, more)), told, at, seen)


def _common(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return one[:n]


def _agreed(one: _Told, other: _Told) -> _Told:
    begun = (a if a == b else None for a, b in zip(one.begun, other.begun, strict=True))
    parts = _common(one.parts, other.parts)
    is_stuck = one.is_stuck or other.is_stuck or one.parts != other.parts
    return _Told(tuple(begun), parts, is_stuck)
