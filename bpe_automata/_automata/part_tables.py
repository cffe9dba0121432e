"""The tables of parts (see `parts`), out of texts and languages: the same for all who ask for the
same."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from bpe_automata._automata.assembly import Assembly, alphabet
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.parts import Table
from bpe_automata._automata.sources import of_texts

Alternative = tuple[tuple[bytes | ByteDFA, ...], int]
"""Texts and languages, one after another, and the label of the exit behind them, 0 or more."""
_KEPT, _LARGEST = 1_024, 500  # tables, and the letters and states that one of them is made of


def columns(pieces: Iterable[bytes | ByteDFA]) -> np.ndarray:
    """uint8 [256], as of a linked automaton: a column for all bytes that no piece tells apart; the
    space, which some tokenizers put before a text, has one of its own."""
    given = list(pieces)
    letters = b" " + b"".join(piece for piece in given if isinstance(piece, bytes))
    languages = [piece.byte_class for piece in given if isinstance(piece, ByteDFA)]
    return alphabet(languages, letters)[0].astype(np.uint8)


def table_of(alternatives: list[Alternative]) -> Table:
    """The table that reads one of some alternatives, and then is at the exit with its label. Raises
    BudgetExceededError."""
    given = tuple(alternatives)
    sizes = [
        len(piece) if isinstance(piece, bytes) else piece.n_states
        for pieces, _ in given
        for piece in pieces
    ]
    return (_made if sum(sizes) > _LARGEST else _kept)(given)


def _made(alternatives: tuple[Alternative, ...]) -> Table:
    return (
        _of_language(alternatives)
        or _of_texts(alternatives)
        or _of_texts_beside(alternatives)
        or _assembled(alternatives)
    )


_kept = lru_cache(_KEPT)(_made)


def _of_language(alternatives: tuple[Alternative, ...]) -> Table | None:
    """The table of one language alone, which shares its arrays."""
    if len(alternatives) != 1 or len(alternatives[0][0]) != 1:
        return None
    (language,), label = alternatives[0]
    if isinstance(language, bytes) or not language.start:
        return None
    ends = np.flatnonzero(language.accepting).tolist()
    return Table(language.trans, language.byte_class, language.start, dict.fromkeys(ends, (label,)))


def _of_texts(alternatives: tuple[Alternative, ...]) -> Table | None:
    """The table, where all are texts."""
    labels = dict[bytes, tuple[int, ...]]()
    for pieces, label in alternatives:
        if not all(isinstance(piece, bytes) for piece in pieces):
            return None
        text = b"".join(pieces)  # type: ignore[arg-type]
        labels[text] = *labels.get(text, ()), label
    kinds = {found: kind for kind, found in enumerate(dict.fromkeys(labels.values()), 1)}
    trans, byte_class, kind, start = of_texts({text: kinds[labels[text]] for text in labels})
    known = list(kinds)
    exits = {state: known[kind[state] - 1] for state in np.flatnonzero(kind).tolist()}
    return Table(trans, byte_class, start, exits)


def _of_texts_beside(alternatives: tuple[Alternative, ...]) -> Table | None:
    """The table, where all are texts but for a language behind one of them: a trie, in which the
    state of the language is known wherever it has begun, and the states of the language. It need
    not be minimal. Names that an object lists, beside all others, are read by such a table."""
    labels, languages = dict[bytes, set[int]](), list[tuple[bytes, ByteDFA, int]]()
    for pieces, label in alternatives:
        *before, last = pieces or (b"",)
        if not all(isinstance(piece, bytes) for piece in before):
            return None
        text = b"".join(before)  # type: ignore[arg-type]
        if isinstance(last, bytes):
            labels.setdefault(text + last, set()).add(label)
        else:
            languages.append((text, last, label))
    if len(languages) != 1:
        return None
    begin, language, label = languages[0]
    n, columns, node = language.n_states, language.byte_class, {b"": 0}
    inside, steps = [language.start if begin == b"" else 0], list[tuple[int, int, int]]()
    for text in (begin, *labels):
        for end in range(1, len(text) + 1):
            if text[:end] not in node:
                parent, byte = node[text[: end - 1]], text[end - 1]
                node[text[:end]] = child = len(inside)
                after = int(language.trans[inside[parent], columns[byte]])
                inside.append(language.start if text[:end] == begin else after)
                steps.append((n + parent, byte, n + child))
    tails, letters, heads = np.array(steps, np.int32).reshape(-1, 3).T
    column, some_byte = alphabet([columns], bytes(letters.tolist()))
    trans = language.trans[:, columns[some_byte]]
    trans = np.ascontiguousarray(np.concatenate([trans, trans[inside]]))
    trans[tails, column[letters]] = heads
    exits: dict[int, tuple[int, ...]] = {}
    exits |= dict.fromkeys(np.flatnonzero(language.accepting).tolist(), (label,))
    for text, found in labels.items():
        exits[n + node[text]] = tuple(sorted(found))
    for at in np.flatnonzero(language.accepting[inside]).tolist():
        exits[n + at] = tuple(sorted({*exits.get(n + at, ()), label}))
    return Table(trans, column.astype(np.uint8), n, exits)


def _assembled(alternatives: tuple[Alternative, ...]) -> Table:
    parts = Assembly()
    start = parts.state()
    for pieces, label in alternatives:
        parts.mark(parts.read(start, pieces), label)
    return Table(*parts.marked(start))
