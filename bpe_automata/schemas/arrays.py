"""The texts of arrays of one shape.

[ ] with the items of the prefix, then others, `fewest` to `most` of them in all
"""

from __future__ import annotations

from bpe_automata.automata.assembly import Assembly
from bpe_automata.schemas.order import OrderTree
from bpe_automata.schemas.shapes import ArrayShape
from bpe_automata.schemas.spelling import Inside, Texts
from bpe_automata.schemas.style import Brackets
from bpe_automata.schemas.unique import unique_texts


def array_texts(
    shape: ArrayShape, brackets: Brackets, inside: Inside, order: OrderTree | None
) -> tuple[Assembly, int] | None:
    """Parts that read the arrays from the place returned, or None if there are none."""
    if shape.unique and (shape.most is None or shape.most > 1):
        return unique_texts(shape, brackets, inside, order)
    writing = _Array(shape, brackets, inside, order and order.item)
    return (writing.parts, writing.start) if writing.ends else None


class _Array:
    """The way through the items: one place for each number of items that matters."""

    def __init__(
        self, shape: ArrayShape, brackets: Brackets, inside: Inside, tree: OrderTree | None
    ) -> None:
        self.parts, self._brackets, self._shape = Assembly(), brackets, shape
        self._inside, self._tree = inside, tree
        self._end, self.start = self.parts.state(), self.parts.state()
        self.parts.accept(self._end)
        self.ends = shape.fewest == 0
        if self.ends:
            self.parts.put(self.start, brackets.empty, self._end)
        self._closing = self.parts.state()
        self.parts.put(self._closing, brackets.last, self._end)
        self._items()

    def _items(self) -> None:
        """One item after another, until there may be no more or all others are alike."""
        last, before = self._last(), self.parts.state()
        self.parts.put(self.start, self._brackets.first, before)
        for count in range(last + 1):
            texts = self._texts(count)
            if texts.is_empty:
                return
            after = self.parts.state()
            texts.put(self.parts, before, after)
            if count + 1 >= self._shape.fewest:
                self.parts.skip(after, self._closing)
                self.ends = True
            if count < last:
                before = self.parts.state()
            if count < last or self._shape.most is None:
                self.parts.put(after, self._brackets.between, before)

    def _last(self) -> int:
        """The last item, or the first of those after which all goes on as after the one before."""
        if self._shape.most is not None:
            return self._shape.most - 1
        return max(len(self._shape.prefix), self._shape.fewest - 1)

    def _texts(self, at: int) -> Texts:
        return self._inside(self._shape.item(at), self._tree)
