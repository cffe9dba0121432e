"""The text automaton and the normalizers' filters, run side by side.

Normalizers see the text between the added tokens of the first pass, without the prefix.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.budget import check
from bpe_automata.errors import BudgetExceededError
from bpe_automata.tokenizer.description import AddedToken
from bpe_automata.tokenizer.filter_product import classes_held, product
from bpe_automata.tokenizer.filter_table import TableFilter
from bpe_automata.tokenizer.text_automaton import IMPOSSIBLE, MOST_STATES, TextAutomaton


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
    allowed = product(filters, rows)
    after_tokens = _after_tokens(filters, allowed.ends, added)
    n = len(allowed.next)
    # State 0 must stay the inside of a text with nothing under way.
    states = np.unique(np.array([0, text.start * n], dtype=np.int64))
    known, tables = states, [np.empty((0, rows.shape[1]), np.int64)]
    afters = [np.empty((0, len(added)), np.int64)]
    while len(states):
        check()
        t, f = states // n, states % n
        filters_next = np.where(text.put[t, None], f[:, None], allowed.next[f])
        tables.append(_paired(text.next[t], filters_next, n))
        afters.append(_paired(text.after[text.after_row[t]], after_tokens[f], n))
        reached = np.unique(np.concatenate([tables[-1].ravel(), afters[-1].ravel()]))
        states = reached[(reached >= 0) & ~np.isin(reached, known)]
        known = np.concatenate([known, states])
        if len(known) > MOST_STATES:
            raise BudgetExceededError(
                "text states", MOST_STATES, "added tokens and normalizers are too intricate"
            )
    return _numbered(text, known, np.concatenate(tables), np.concatenate(afters), allowed.ends)


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


def _after_tokens(
    filters: tuple[TableFilter, ...], ends: np.ndarray, added: tuple[AddedToken, ...]
) -> np.ndarray:
    """int64 [n, n_added]: the filters' state after each added token. Tokens of the first pass are
    cut out before the normalizers see them, those of the second are text to them."""
    second = [(k, token.content) for k, token in enumerate(added) if token.normalized]
    characters = sorted({c for _, content in second for c in content})
    points = np.array(list(map(ord, characters)), dtype=np.int64)
    spelled = product(filters, classes_held(filters, points)).next
    after = np.repeat(np.where(ends, 0, IMPOSSIBLE)[:, None], len(added), axis=1)
    for k, content in second:
        after[:, k] = _through(spelled[:, [characters.index(c) for c in content]])
    return after


def _through(table: np.ndarray) -> np.ndarray:
    """The state after reading all columns of the table, one after the other, from each state."""
    states = np.arange(len(table))
    for column in table.T:
        states = np.where(states < 0, IMPOSSIBLE, column[states])
    return states
