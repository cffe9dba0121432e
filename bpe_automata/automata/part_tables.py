"""The tables of parts (see `parts`), out of texts and languages. Small ones are shared by all who
ask for the same."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from bpe_automata.automata.assembly import Assembly, alphabet
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.parts import Table
from bpe_automata.automata.sources import of_texts

Alternative = tuple[tuple[bytes | ByteDFA, ...], int]
"""Texts and languages, one after another, and the label of the exit behind them, 0 or more."""
_KEPT, _LARGEST = 1_024, 500  # tables, and the letters and states that one of them is made of


def columns(pieces: Iterable[bytes | ByteDFA]) -> np.ndarray:
    """uint8 [256], as of a linked automaton: one column for all bytes that no piece distinguishes;
    the space, which some tokenizers put before a text, has one of its own."""
    given = list(pieces)
    letters = b" " + b"".join(piece for piece in given if isinstance(piece, bytes))
    languages = [piece.byte_class for piece in given if isinstance(piece, ByteDFA)]
    return alphabet(languages, letters)[0].astype(np.uint8)


def table_of(alternatives: list[Alternative], is_tag: bool = False) -> Table:
    """The table that reads one of some alternatives, and then is at the exit with its label.
    is_tag: see `Table`. Raises BudgetExceededError."""
    given = tuple(alternatives)
    if is_tag:
        made = _made(given)
        return Table(made.trans, made.byte_class, made.start, made.exits, is_tag)
    sizes = [
        len(piece) if isinstance(piece, bytes) else piece.n_states
        for pieces, _ in given
        for piece in pieces
    ]
    return (_made if sum(sizes) > _LARGEST else _kept)(given)


def _made(alternatives: tuple[Alternative, ...]) -> Table:
    texts, languages = dict[bytes, set[int]](), list[tuple[bytes, ByteDFA, int]]()
    for pieces, label in alternatives:
        *before, last = pieces or (b"",)
        if not all(isinstance(piece, bytes) for piece in before):
            return _assembled(alternatives)
        text = b"".join(before)  # type: ignore[arg-type]
        if isinstance(last, bytes):
            texts.setdefault(text + last, set()).add(label)
        else:
            languages.append((text, last, label))
    exits_of = {text: tuple(sorted(labels)) for text, labels in texts.items()}
    if not languages:
        return _of_texts(exits_of)
    return _beside(exits_of, *languages[0]) if len(languages) == 1 else _assembled(alternatives)


_kept = lru_cache(_KEPT)(_made)


def _of_texts(labels: dict[bytes, tuple[int, ...]]) -> Table:
    """The table of texts alone."""
    kinds = {found: kind for kind, found in enumerate(dict.fromkeys(labels.values()), 1)}
    trans, byte_class, kind, start = of_texts({text: kinds[labels[text]] for text in labels})
    sets = list(kinds)
    exits = {state: sets[kind[state] - 1] for state in np.flatnonzero(kind).tolist()}
    return Table(trans, byte_class, start, exits)


def _beside(
    labels: dict[bytes, tuple[int, ...]], begin: bytes, language: ByteDFA, label: int
) -> Table:
    """The table of texts, and of a language with its label behind the text `begin`: names that an
    object lists, and all others. Behind the states of the language comes a trie, each node of which
    knows the state that the language is in; so the table need not be minimal."""
    exits: dict[int, tuple[int, ...]] = {}
    exits |= dict.fromkeys(np.flatnonzero(language.accepting).tolist(), (label,))
    if not labels and not begin:  # it shares the arrays of the language
        return Table(language.trans, language.byte_class, language.start, exits)
    n, columns, node = language.n_states, language.byte_class, {b"": 0}
    inside, steps = [0 if begin else language.start], list[tuple[int, int, int]]()
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
    exits |= {n + node[text]: found for text, found in labels.items()}
    for at in np.flatnonzero(language.accepting[inside]).tolist():
        exits[n + at] = tuple(sorted({*exits.get(n + at, ()), label}))
    return Table(trans, column.astype(np.uint8), n, exits)


def _assembled(alternatives: tuple[Alternative, ...]) -> Table:
    parts = Assembly()
    start = parts.state()
    for pieces, label in alternatives:
        parts.mark(parts.read(start, pieces), label)
    return Table(*parts.marked(start))
