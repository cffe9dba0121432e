"""The text automaton and the normalizers' filters, run side by side.

Normalizers see the text between the added tokens of the first pass, without the prefix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.errors import BudgetExceededError
from bpe_automata.tokenizer.alphabet import inside
from bpe_automata.tokenizer.description import AddedToken
from bpe_automata.tokenizer.filter_table import TableFilter
from bpe_automata.tokenizer.text_automaton import IMPOSSIBLE, MOST_STATES, TextAutomaton


class _Product(NamedTuple):
    """All filters as one: next int32 [n, n_atoms]; ends bool [n]; after int32 [n, n_added]."""

    next: np.ndarray
    ends: np.ndarray
    after: np.ndarray


def filtered(
    text: TextAutomaton,
    filters: tuple[TableFilter, ...],
    rows: np.ndarray,
    added: tuple[AddedToken, ...],
) -> TextAutomaton:
    """`text` cut down to what all filters accept. rows: bool [n_classes, n_atoms], the classes of
    the filters, one filter after the other. Raises BudgetExceededError."""
    if not filters:
        return text
    product = _product(filters, rows, added)
    n = len(product.next)
    # State 0 must stay the inside of a text with nothing under way.
    states = np.unique(np.array([0, text.start * n], dtype=np.int64))
    known, tables = states, [np.empty((0, rows.shape[1]), np.int64)]
    afters = [np.empty((0, len(added)), np.int64)]
    while len(states):
        t, f = states // n, states % n
        filters_next = np.where(text.put[t, None], f[:, None], product.next[f])
        tables.append(_paired(text.next[t], filters_next, n))
        afters.append(_paired(text.after[text.after_row[t]], product.after[f], n))
        reached = np.unique(np.concatenate([tables[-1].ravel(), afters[-1].ravel()]))
        states = reached[(reached >= 0) & ~np.isin(reached, known)]
        known = np.concatenate([known, states])
        if len(known) > MOST_STATES:
            raise BudgetExceededError(
                "text states", MOST_STATES, "added tokens and normalizers are too intricate"
            )
    return _numbered(text, known, np.concatenate(tables), np.concatenate(afters), product.ends)


def _paired(text: np.ndarray, filters: np.ndarray, n: int) -> np.ndarray:
    """int64: pairs of states as one number, -1 where either is impossible."""
    pairs = text.astype(np.int64) * n + filters
    return np.where((text < 0) | (filters < 0), IMPOSSIBLE, pairs)


def _numbered(
    text: TextAutomaton, known: np.ndarray, table: np.ndarray, after: np.ndarray, ends: np.ndarray
) -> TextAutomaton:
    n = len(ends)
    order = np.argsort(known)
    numbers = order[np.searchsorted(known[order], table)]
    next_ = np.where(table < 0, IMPOSSIBLE, numbers).astype(np.int32)
    numbers = order[np.searchsorted(known[order], after)]
    rows = np.where(after < 0, IMPOSSIBLE, numbers).astype(np.int32)
    distinct, after_row = _distinct(rows)
    t, f = known // n, known % n
    return TextAutomaton(
        next=next_,
        ends=text.ends[t] & ends[f],
        after_row=after_row,
        after=distinct,
        start=int(np.flatnonzero(known == text.start * n)[0]),
        token_start=text.token_start,
        data=text.data,
        ids=text.ids,
        put=text.put[t],
    )


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the distinct rows, int32: which of them each row is)."""
    numbers: dict[bytes, int] = {}
    which = [numbers.setdefault(row.tobytes(), len(numbers)) for row in rows]
    first = np.unique(np.array(which, dtype=np.int32), return_index=True)[1]
    return rows[first], np.array(which, dtype=np.int32)


def _product(
    filters: tuple[TableFilter, ...], rows: np.ndarray, added: tuple[AddedToken, ...]
) -> _Product:
    n_atoms, first = rows.shape[1], 0
    table = np.zeros((1, n_atoms), dtype=np.int64)
    ends = np.array([True])
    # Tokens of the first pass are cut out before the normalizers see them.
    second = [(k, token.content) for k, token in enumerate(added) if token.normalized]
    characters = sorted({c for _, content in second for c in content})
    points = np.array(list(map(ord, characters)), dtype=np.int64)
    spelled = np.zeros((1, len(points)), dtype=np.int64)
    for filter_ in filters:
        n_classes = len(filter_.classes)
        held = rows[first : first + n_classes]
        first += n_classes
        table = _crossed(table, filter_.table[:, _columns(held, n_atoms)])
        ends = (ends[:, None] & filter_.accepting[None]).ravel()
        spelled = _crossed(spelled, filter_.table[:, _columns_of(filter_, points)])
    after = np.repeat(np.where(ends, 0, IMPOSSIBLE)[:, None], len(added), axis=1)
    for k, content in second:
        after[:, k] = _through(spelled[:, [characters.index(c) for c in content]])
    return _Product(table, ends, after)


def _crossed(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """int64 [m * n, columns]: two tables side by side, state (a, b) being a * n + b."""
    m, n = len(one), len(other)
    pairs = one[:, None, :] * n + other[None, :, :]
    dead = (one[:, None, :] < 0) | (other[None, :, :] < 0)
    return np.where(dead, IMPOSSIBLE, pairs).reshape(m * n, one.shape[1])


def _columns(held: np.ndarray, n_atoms: int) -> np.ndarray:
    """The column of each atom; what is in no class has the last one."""
    columns = np.full(n_atoms, len(held))
    for k, row in enumerate(held):
        columns[row] = k
    return columns


def _columns_of(filter_: TableFilter, points: np.ndarray) -> np.ndarray:
    """The column of each code point."""
    held = np.stack([inside(ranges, points) for ranges in filter_.classes] or [points < 0])
    return _columns(held[: len(filter_.classes)], len(points))


def _through(table: np.ndarray) -> np.ndarray:
    """The state after reading all columns of the table, one after the other, from each state."""
    states = np.arange(len(table))
    for column in table.T:
        states = np.where(states < 0, IMPOSSIBLE, column[states])
    return states
