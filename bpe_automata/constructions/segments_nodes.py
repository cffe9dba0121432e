"""The rows of all nodes of a product, made segment by segment.

    nodes  contains  { (place, hypotheses) : some ids lead there from the start }

as `every_node` has it. Of a segment that the cache knows no node is visited: its `Closure` says at
which cuts its ids arrive, and its rows are in the cache already. This is for languages that are too
large to write out, as nearly all that hold a string are.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.budget import check
from bpe_automata.constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata.constructions.hypothesis_sets import BEGINNING
from bpe_automata.constructions.memo import BoundedMemo
from bpe_automata.constructions.relevance import Node as Pair
from bpe_automata.constructions.segments import At, Node
from bpe_automata.constructions.segments_pieces import Closure
from bpe_automata.constructions.segments_rows import SharedRows
from bpe_automata.kernels.bits import contained
from bpe_automata.kernels.segment_forms import after_added

Fan = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def prepared(engine: CartesianMerge, state: ProductState, common: bool = False) -> int:
    """Make the rows of all nodes that ids from `state` lead to; returns how many nodes. In a
    segment that is entered in several ways a node counts for each of them.

    common: only those at characters' ends, with no added token begun. They are few, and nearly all
    that decoding visits; with all of Unicode in a string and many added tokens, the others may be
    100,000."""
    walk = _Walk(engine, common)
    start = state.place, state.hypotheses
    seen, todo, count = {start}, [start], 0
    while todo:
        check()
        n_nodes, after = walk.beyond(todo.pop())
        count += n_nodes
        fresh = after - seen
        seen |= fresh
        todo += fresh
    return count


class _Walk:
    """Through one product."""

    def __init__(self, engine: CartesianMerge, common: bool) -> None:
        self._engine, self._common = engine, common
        self._rows, self._tables = engine.rows, engine.tables
        self._shared = self._rows if isinstance(self._rows, SharedRows) else None
        self._after: dict[Pair, set[Pair]] = {}
        self._fans: BoundedMemo[tuple[int, int], Fan] = BoundedMemo(4 * engine.n_ids)

    def beyond(self, start: Pair) -> tuple[int, set[Pair]]:
        """How many nodes there are from here to the next cuts, and those at the cuts; of a node in
        no segment, itself and where its ids lead."""
        shared = self._shared
        node = None if shared is None else shared.segments.of(*start)
        if shared is None or node is None:
            return 1, self._after_node(start)
        closure = shared.cache.of(node.segment.key).closures.get((node.at, self._common))
        strange: set[Pair] = set()
        if closure is None:
            closure, strange = self._closure(shared, node, start)
            if not strange:
                shared.cache.add_closure(node.segment.key, node.at, self._common, closure)
        return closure.n_inner, strange | self._exits(shared, node, closure)

    def _exits(self, shared: SharedRows, node: Node, closure: Closure) -> set[Pair]:
        return {shared.segments.pair(node.segment, at) for at in closure.exits}

    def _closure(self, shared: SharedRows, node: Node, start: Pair) -> tuple[Closure, set[Pair]]:
        """Up to the cuts of a segment, and what is met that is not in the segment."""
        inner, exits, strange, todo = {start}, dict[At, None](), set[Pair](), [start]
        while todo:
            check()
            for pair in self._after_node(todo.pop()) - inner:
                found = shared.segments.within(node.segment, *pair)
                if found is None:
                    strange.add(pair)
                elif found.is_cut:
                    exits[found.at] = None
                else:
                    inner.add(pair)
                    todo.append(pair)
        return Closure(len(inner), tuple(exits)), strange

    def _after_node(self, pair: Pair) -> set[Pair]:
        if pair not in self._after:
            found, sets = self._found(pair), self._engine.canonical.sets.sets
            if self._common:
                added = self._tables.memo.added
                found = {n for n in found if not (added[n[0]] or sets[n[1]].row)}
            self._after[pair] = found
        return self._after[pair]

    def _found(self, pair: Pair) -> set[Pair]:
        """Where the ids of a node lead, whatever the last id was."""
        row, sets = self._rows.row(*pair), self._engine.canonical.sets
        places, kinds, start, ids = self._fan(pair[0], sets.sets[pair[1]].row)
        group = np.repeat(np.arange(len(places)), np.diff(start))
        is_free, is_bound = (contained(side, ids) for side in row)
        free, bound = (after[kinds] for after in sets.rows(pair[1]))
        found: set[Pair] = set()
        for side, numbers in ((is_free, free), (is_bound & ~is_free, bound)):
            at = np.unique(group[side])
            found.update(zip(places[at].tolist(), numbers[at].tolist(), strict=True))
        for k in np.unique(group[is_free & is_bound]).tolist():
            found.add((int(places[k]), sets.union(int(free[k]), int(bound[k]))))
        steps = self._tables.ask(after_added, pair[0])
        live = steps[contained(row.free, steps[:, 0])]
        return found | {(place, BEGINNING) for place in live[:, 1].tolist()}

    def _fan(self, place: int, row: int) -> Fan:
        """Kept, as all sets at a place have it in common."""
        found = self._fans.get((place, row))
        if found is None:
            found = self._tables.fan(place, row)
            self._fans.put((place, row), found)
        return found
