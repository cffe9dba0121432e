"""Builds the linked automaton of all JSON texts of a set of values (see `_automata.linked`).

    value      its scalars, and the first brackets of its arrays and objects: one part
    object     after each member, what may come next: one part for each set of members that may
    array      after each item, a comma or the end: one part for each count that matters

A context says in which object or array a value stands, with which members or items before it, and
what surrounds that. So values may be nested without limit and counted without limit, and members
may come in any order: what no text has led to is not written down.

Shapes of a union may contain one text, up to a late member or to its end: a value that may stand in
several contexts is read in one context that stands for all of them, up to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bpe_automata._automata.part_tables import Alternative, labelled
from bpe_automata._automata.parts import BYTE, FAR, Part, Place, length_of
from bpe_automata._budget import check
from bpe_automata._sharing import cached
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._boolean import uncontained
from bpe_automata.schemas._frames import (
    DONE,
    LONGEST,
    ROOT,
    Container,
    Frame,
    Order,
    State,
    Text,
    after_value,
    covers,
    rest_inside,
)
from bpe_automata.schemas._items import ComparedItems, DistinctItems, Items
from bpe_automata.schemas._ladders import Ladder, Rung, ladder
from bpe_automata.schemas._members import Members
from bpe_automata.schemas._scalar_sets import Finite, Limited, lower_bound
from bpe_automata.schemas._style import Context, Piece, Style
from bpe_automata.schemas._values import ArrayShape, Values

_MANY = 8  # shapes, beyond which those that others contain are not followed
_JOINED = 16  # levels of containers around a value: that many differ at once in few schemas


class Linker:
    """Makes the parts of all sets of values of one schema, each when it is first entered."""

    def __init__(
        self, style: Style, order: Order, unique_names: bool, depth: int | None = None
    ) -> None:
        """depth: how many objects and arrays may be around a value, None for no limit. (Lengths are
        those without a limit, so some states may lead to no end.)"""
        self.style, self.order, self.unique, self.depth = style, order, unique_names, depth
        self._values: dict[tuple[int, Context], _Value] = {}
        self._least: dict[int, int] = {}
        self._frames: dict[tuple[int, State, int], Frame] = {}
        self._joined: dict[frozenset[int], Frame] = {}  # by those that each stands for

    def begin(self, values: Values) -> list[Place]:
        """Where the texts of a set begin; nowhere, if it has none."""
        begin = self.value(values, self.style.root)
        return [(begin.part, ROOT)] if self.least(values) < FAR else []

    def value(self, values: Values, context: Context) -> _Value:
        """The texts of a set in a context of the style."""
        key = id(values), context
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = _Value(values, context, self)
        return found

    def part(self, values: Values, context: Context) -> Part:
        """The texts of a set in a context of the style."""
        return self.value(values, context).part

    def scalars(self, values: Values, context: Context) -> list[Text]:
        """Those that are neither arrays nor objects."""
        return self.value(values, context).scalars

    def frame(self, container: Container, state: State, parent: Frame) -> Frame:
        """The context of a member or an item, always the same object."""
        key = id(container), state, id(parent)
        found = self._frames.get(key)
        if found is None:
            rest = min(container.closing(state) + parent.rest, FAR)
            found = self._frames[key] = Frame(container, state, parent, rest, parent.level + 1)
        return found

    def joined(self, frames: Sequence[Frame], levels: int = _JOINED) -> Frame:
        """The one that stands for some, always the same object. Frames of one state of a container
        become one, within what stands for all that is around them. levels: of containers for which
        that is done."""
        if all(frame is frames[0] for frame in frames):
            return frames[0]
        check()
        inside: dict[tuple[int, int], list[Frame]] = {}  # by container and what is around it
        for frame in frames:
            for one in frame.several or (frame,):
                inside.setdefault((id(one.container), id(one.parent)), []).append(one)
        alike: dict[tuple[int, State], list[Frame]] = {}  # by container and state
        kept = dict[int, Frame]()
        for same in inside.values():
            container, parent = same[0].container, same[0].parent
            if container is None or parent is None or not levels:
                kept |= {id(one): one for one in same}
                continue
            for state in dict.fromkeys(one.state for one in same):
                one = self.frame(container, state, parent)
                alike.setdefault((id(container), state), []).append(one)
        for same in alike.values():
            one = self._within_all(same, levels)
            kept[id(one)] = one
        key, some = frozenset(kept), tuple(kept.values())
        if len(some) == 1:
            return some[0]
        if key not in self._joined:
            self._joined[key] = Frame(
                None, (), None, min(one.rest for one in some), some[0].level, some
            )
        return self._joined[key]

    def _within_all(self, frames: list[Frame], levels: int) -> Frame:
        """The one that stands for some of one state of a container."""
        one, parents = frames[0], [frame.parent for frame in frames if frame.parent]
        if len(frames) == 1 or one.container is None:
            return one
        return self.frame(one.container, one.state, self.joined(parents, levels - 1))

    def least(self, values: Values) -> int:
        """Length of the shortest text of a set, the same in all contexts; FAR where it has none.
        Sets may contain themselves: each needs those that it must contain, and from FAR all fall to
        the least solution."""
        if id(values) not in self._least:
            pending, needed = [values], dict[int, _Value]()
            while pending:
                check()
                found = self.value(pending.pop(), self.style.root)
                if id(found.values) not in needed and id(found.values) not in self._least:
                    needed[id(found.values)] = found
                    pending += found.needed()
            known, changed = {**self._least, **dict.fromkeys(needed, FAR)}, True
            while changed:
                check()
                changed = False
                for key, found in needed.items():
                    nearer = found.measured(known)
                    changed |= nearer < known[key]
                    known[key] = nearer
            for key in needed:
                if LONGEST * BYTE < known[key] < FAR:
                    raise BudgetExceededError("bytes", LONGEST, "the shortest text is longer")
                self._least[key] = known[key]
        return self._least[id(values)]


class _Value:
    """The texts of a set in a context: `values` stays alive, so that its id is its own."""

    def __init__(self, values: Values, context: Context, linker: Linker) -> None:
        self.values, self._context, self._linker = values, context, linker
        self._rungs: dict[int, Rung] = {}  # the first of long strings, by their frames

    @cached
    def containers(self) -> list[Container]:
        """One for each shape."""
        style, found = self._linker.style, list[Container]()
        objects = self.values.objects
        for shape in uncontained(objects) if len(objects) > _MANY else objects:
            found.append(Members(shape, style.objects(self._context), self._linker))
        for items in self.values.arrays:
            made = _kind_of(items)
            found.append(made(items, style.arrays(self._context), self._linker))
        return found

    @cached
    def scalars(self) -> list[Text]:
        """The texts that are no arrays or objects, but for those of the ladder."""
        style, values = self._linker.style, self.values
        pieces: list[Piece] = [style.null()] if values.null else []
        pieces += [style.boolean(value) for value in sorted(values.booleans)]
        if not values.numbers.is_empty:
            pieces.append(style.numbers(values.numbers))
        strings = lower_bound(values.strings)
        if isinstance(strings, Finite) and len(strings.elements) == 1:
            pieces.append(style.string(*strings.elements))
        elif not strings.is_empty and self.ladder is None:
            pieces.append(style.strings(strings, self._context))
        before, after = style.around(self._context)
        return [
            tuple(one for one in (before, piece, after) if one != b"")
            for piece in pieces
            if isinstance(piece, bytes) or piece.start
        ]

    @cached
    def ladder(self) -> Ladder | None:
        """Of strings with many characters."""
        strings, style = lower_bound(self.values.strings), self._linker.style
        if not isinstance(strings, Limited) or not style.quotes:
            return None
        spelled = style.strings(strings.base, self._context)
        most = strings.most
        return style.shared.once(("ladder", most), spelled, lambda: ladder(spelled, most))

    def needed(self) -> list[Values]:
        """The sets on which the length of the shortest text depends."""
        return [values for one in self.containers for values in one.needed()]

    def measured(self, known: dict[int, int]) -> int:
        """Length of the shortest text, by those of the sets that it depends on."""
        shortest = [sum(map(length_of, text)) for text in self.scalars]
        shortest += [one.measured(known) for one in self.containers]
        shortest += [self.ladder.shortest] if self.ladder else []
        return min(shortest, default=FAR)

    @cached
    def part(self) -> Part:
        """Scalars, and the beginnings of arrays and objects."""
        alternatives: list[Alternative] = [(text, DONE) for text in self.scalars]
        costs = {DONE: 0}
        for label, one in enumerate(self._read, 1):
            if one.may_be_empty:
                alternatives.append(((one.brackets.empty,), DONE))
            opening = one.opening()
            if opening < FAR:
                alternatives.append(((one.brackets.first,), label))
                costs[label] = opening
        if self.ladder:
            alternatives.append(((b'"',), 1 + len(self._read)))
            costs[1 + len(self._read)] = self.ladder.shortest - BYTE
        joined = self._linker.joined
        return labelled(alternatives, costs, self._follow, rest_inside, joined, self, covers)

    @cached
    def _read(self) -> list[Container]:
        """Those of which there are texts."""
        return [one for one in self.containers if one.measured(None) < FAR]

    def _follow(self, frame: Frame, label: int) -> Iterable[Place]:
        if self.ladder and label == 1 + len(self._read):
            rung = self._rungs.get(id(frame))
            if rung is None:
                rung = self._rungs[id(frame)] = Rung(0, frame, after_value)
            return self.ladder.entered(rung)
        if label != DONE:
            is_deepest = self._linker.depth == frame.level
            return () if is_deepest else self._read[label - 1].entered(frame)
        return after_value(frame)


def _kind_of(shape: ArrayShape) -> type[Items | DistinctItems | ComparedItems]:
    differ = shape.unique and (shape.most is None or shape.most > 1)
    if shape.counted or (differ and shape.prefix):
        return ComparedItems
    return DistinctItems if differ else Items
