"""All of `encode` except BPE, compiled to automata: alphabet, text automaton, boundaries.

The text automaton is crossed with the filters of the normalizers, which see the text between the
added tokens of the first pass, without the prefix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata._budget import check, check_bytes, with_room
from bpe_automata.errors import BudgetExceededError, UnsupportedTokenizerError
from bpe_automata.tokenizer.added_tokens import AddedCharacters
from bpe_automata.tokenizer.alphabet import (
    Alphabet,
    Ranges,
    build_alphabet,
    engine_class,
    from_pairs,
)
from bpe_automata.tokenizer.boundaries import Boundaries, Splitter, tabulate_boundaries
from bpe_automata.tokenizer.description import AddedToken, Description
from bpe_automata.tokenizer.filter_table import (
    FilterProduct,
    TableFilter,
    classes_of,
    numbered,
    product,
)
from bpe_automata.tokenizer.pike import Program
from bpe_automata.tokenizer.source import CharacterEngine
from bpe_automata.tokenizer.text_automaton import (
    IMPOSSIBLE,
    MOST_STATES,
    DistinctRows,
    TextAutomaton,
    build_text_automaton,
)

_NO_CHARACTERS: Ranges = from_pairs([])


@dataclass(frozen=True)
class Pipeline:
    """alphabet: the alphabet of `text`; coarse: int32 [alphabet.n_atoms], the class of each atom
    for the splitters; boundaries: over these classes."""

    alphabet: Alphabet
    coarse: np.ndarray
    boundaries: Boundaries
    text: TextAutomaton


def compile_pipeline(description: Description, engine: CharacterEngine) -> Pipeline:
    """The pipeline of a tokenizer. Raises UnsupportedTokenizerError if it is not modelled."""
    return with_room(lambda: _compiled(description, engine))


def _compiled(description: Description, engine: CharacterEngine) -> Pipeline:
    from bpe_automata.tokenizer.normalizer_filters import filters_of
    from bpe_automata.tokenizer.pattern import tree_of

    rules = description.splitters
    programs = [Program(tree_of(rule, engine.dialect), rule.pattern) for rule in rules]
    sources = list(dict.fromkeys(source for program in programs for source in program.classes))
    filters = filters_of(description.normalizers, engine)
    word, space = _neighbours(description.cut_out, engine)
    filter_classes = [ranges for filter_ in filters for ranges in filter_.classes]
    alphabet = _alphabet(
        description, [*(engine_class(engine, *s) for s in sources), *filter_classes, word, space]
    )
    _check_readable(alphabet, description)
    split = alphabet.inside[: len(sources)]
    coarse, members = _coarse(split, alphabet.n_atoms)
    for program in programs:
        program.bind([members[sources.index(source)] for source in program.classes])
    splitters = tuple(
        Splitter(program, rule.behavior, rule.invert)
        for program, rule in zip(programs, rules, strict=True)
    )
    text = build_text_automaton(
        description.added,
        AddedCharacters(description.cut_out, alphabet, word, space),
        description.prefix,
        alphabet.atom(" "),
        description.lost,
    )
    rows = alphabet.inside[len(sources) : len(sources) + len(filter_classes)]
    text = _filtered(text, filters, rows, description.added)
    table = tabulate_boundaries(splitters, int(coarse.max()) + 1)
    return Pipeline(alphabet, coarse, table, text)


def _alphabet(description: Description, classes: list[Ranges]) -> Alphabet:
    marked = {" ", *(c for token in description.cut_out for c in token.content)}
    if description.byte_level:
        missing = [byte for byte in range(256) if bytes([byte]) not in description.base]
        return build_alphabet(classes, marked, missing_bytes=missing)
    symbols = _symbols(description)
    if not description.byte_tokens:
        return build_alphabet(classes, marked, readable=symbols, unreadable=description.unreadable)
    _check_byte_tokens(description)
    return build_alphabet(classes, marked, symbols=symbols, unreadable=description.unreadable)


def _check_readable(alphabet: Alphabet, description: Description) -> None:
    if not alphabet.n_atoms:
        raise UnsupportedTokenizerError(
            "model.vocab",
            list(description.base),
            "no token is a readable character by itself, so BPE has nothing to begin with",
        )


def _symbols(description: Description) -> Ranges:
    """The characters that are base symbols."""
    symbols = [ord(s.decode("utf-8", "surrogatepass")) for s in description.base]
    return from_pairs([(c, c + 1) for c in symbols])


def _check_byte_tokens(description: Description) -> None:
    """Refuse a missing byte token: a character that needs it, and is no base symbol, becomes the
    unknown token. (Gemma-2 has no `<0x09>`, but a token for the tab.)"""
    ascii_ = {byte for byte in range(0x80) if bytes([byte]) not in description.base}
    used = {*ascii_, *range(0x80, 0xC0), *range(0xC2, 0xF5)}
    missing = sorted(used - description.byte_tokens.keys())
    if missing:
        raise UnsupportedTokenizerError(
            "byte fallback",
            f"<0x{missing[0]:02X}>",
            "this byte has no token, so some characters fall back and others do not; not modelled",
        )


def _neighbours(added: tuple[AddedToken, ...], engine: CharacterEngine) -> tuple[Ranges, Ranges]:
    """(word characters, white space), each empty if no added token has a flag that needs it."""
    word = any(token.single_word for token in added)
    space = any(token.lstrip or token.rstrip for token in added)
    return (
        engine_class(engine, "word", "") if word else _NO_CHARACTERS,
        engine_class(engine, "whitespace", "") if space else _NO_CHARACTERS,
    )


def _coarse(split: np.ndarray, n_atoms: int) -> tuple[np.ndarray, list[frozenset[int]]]:
    """(int32 [n_atoms]: a number of each atom, equal for atoms in the same classes; for each class,
    the numbers in it)."""
    if not len(split):
        return np.zeros(n_atoms, dtype=np.int32), []
    _, coarse = np.unique(split, axis=1, return_inverse=True)
    coarse = coarse.ravel().astype(np.int32)
    return coarse, [frozenset(coarse[row].tolist()) for row in split]


# ---------------------------------------------------------------- text automaton and normalizers


def _filtered(
    text: TextAutomaton,
    filters: tuple[TableFilter, ...],
    rows: np.ndarray,
    added: tuple[AddedToken, ...],
) -> TextAutomaton:
    """`text`, restricted to what all filters accept. rows: bool [n_classes, n_atoms], the atoms of
    the filters' classes, one filter after the other. Raises BudgetExceededError."""
    if not filters:
        return text
    allowed, (after_tokens, column) = _of_filters(filters, rows, added)
    n = len(allowed.next)
    # State 0 must remain the inside of a text with no added token partly read.
    states = np.unique(np.array([0, text.start * n], dtype=np.int64))
    levels, seen = [states], set(states.tolist())
    tables = [np.empty((0, rows.shape[1]), np.int64)]
    after, row_of = DistinctRows(), dict[int, int]()  # most states have the same row
    after_row: list[int] = []
    while len(states):
        check()
        check_bytes(8 * len(seen) * rows.shape[1], "the states of the text")
        t, f = states // n, states % n
        filters_next = np.where(text.put[t, None], f[:, None], allowed.next[f])
        tables.append(_paired(text.next[t], filters_next, n))
        n_rows = len(after.rows)
        for pair in (text.after_row[t].astype(np.int64) * n + f).tolist():
            if pair not in row_of:
                check_bytes(8 * len(after.rows) * len(added), "the states after added tokens")
                row = _paired(text.after[pair // n], after_tokens[pair % n, column], n)
                row_of[pair] = after.number(row)
            after_row.append(row_of[pair])
        reached = np.unique(np.concatenate([tables[-1].ravel(), *after.rows[n_rows:]])).tolist()
        states = np.array([s for s in reached if s >= 0 and s not in seen], dtype=np.int64)
        seen.update(states.tolist())
        levels.append(states)
        if len(seen) > MOST_STATES:
            raise BudgetExceededError(
                "text states", MOST_STATES, "added tokens and normalizers are too intricate"
            )
    afters = after.rows, np.array(after_row, dtype=np.int32)
    return _numbered(text, np.concatenate(levels), np.concatenate(tables), afters, allowed.ends)


def _paired(text: np.ndarray, filters: np.ndarray, n: int) -> np.ndarray:
    """int64: pairs of states as one number, -1 where either is impossible."""
    pairs = text.astype(np.int64) * n + filters
    return np.where((text < 0) | (filters < 0), IMPOSSIBLE, pairs)


def _numbered(
    text: TextAutomaton,
    states: np.ndarray,
    table: np.ndarray,
    after: tuple[list[np.ndarray], np.ndarray],
    ends: np.ndarray,
) -> TextAutomaton:
    """The automaton with the pairs `states` numbered in this order. after: the distinct rows, and
    the row of each state."""
    n = len(ends)
    t, f = states // n, states % n
    return TextAutomaton(
        next=numbered(states, table).astype(np.int32),
        ends=text.ends[t] & ends[f],
        after_row=after[1],
        after=np.array([numbered(states, row) for row in after[0]], dtype=np.int32),
        start=int(np.flatnonzero(states == text.start * n)[0]),
        token_start=text.token_start,
        data=text.data,
        ids=text.ids,
        put=text.put[t],
    )


def _of_filters(
    filters: tuple[TableFilter, ...], rows: np.ndarray, added: tuple[AddedToken, ...]
) -> tuple[FilterProduct, tuple[np.ndarray, np.ndarray]]:
    """(the product of the filters; `_after_tokens` of its states)."""
    characters = sorted({c for token in added if token.normalized for c in token.content})
    points = np.array(list(map(ord, characters)), dtype=np.int64)
    both = product(filters, np.concatenate([rows, classes_of(filters, points)], axis=1))
    allowed, spelled = np.split(both.next, [rows.shape[1]], axis=1)
    column_of = {c: k for k, c in enumerate(characters)}
    after = _after_tokens(both.ends, spelled, column_of, added)
    return FilterProduct(np.ascontiguousarray(allowed), both.ends), after


def _after_tokens(
    ends: np.ndarray, spelled: np.ndarray, column_of: dict[str, int], added: tuple[AddedToken, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """(int64 [n, columns], int64 [n_added]): entry (s, column of token k) is the filters' state
    after added token k in state s. The normalizers do not see tokens of the first pass; those of
    the second are text to them, whose characters have the columns `column_of` of `spelled`."""
    columns, cut_out = DistinctRows(), np.where(ends, 0, IMPOSSIBLE)
    which = []
    for token in added:
        check()
        check_bytes(8 * len(columns.rows) * len(ends), "the states after added tokens")
        column = cut_out
        if token.normalized:
            column = _through(spelled, [column_of[c] for c in token.content])
        which.append(columns.number(column))
    table = np.array(columns.rows, dtype=np.int64).reshape(len(columns.rows), len(ends))
    return table.T, np.array(which, dtype=np.int64)


def _through(table: np.ndarray, columns: list[int]) -> np.ndarray:
    """From each state, the state after the transitions of the columns, one after the other."""
    states = np.arange(len(table))
    for column in columns:
        states = np.where(states < 0, IMPOSSIBLE, table[states, column])
    return states
