"""Everything of `encode` around BPE, compiled: alphabet, text automaton, boundary hypotheses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata.budget import with_room
from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer import alphabet, boundaries, text_automaton
from bpe_automata.tokenizer.added import Letters
from bpe_automata.tokenizer.alphabet import Alphabet
from bpe_automata.tokenizer.backend import CharacterEngine
from bpe_automata.tokenizer.boundaries import Boundaries
from bpe_automata.tokenizer.charclass import engine_class
from bpe_automata.tokenizer.description import AddedToken, Description
from bpe_automata.tokenizer.pike import Program
from bpe_automata.tokenizer.ranges import Ranges, from_pairs
from bpe_automata.tokenizer.splitter import Splitter
from bpe_automata.tokenizer.text_automaton import TextAutomaton

_NOBODY: Ranges = from_pairs([])


@dataclass(frozen=True)
class Pipeline:
    """alphabet: over which `text` runs; coarse: int32 [alphabet.n_atoms], the atoms that the
    splitters tell apart; boundaries: over the coarse atoms."""

    alphabet: Alphabet
    coarse: np.ndarray
    boundaries: Boundaries
    text: TextAutomaton


def compile_pipeline(description: Description, engine: CharacterEngine) -> Pipeline:
    """Raises UnsupportedTokenizerError for what is not modelled."""
    return with_room(lambda: _compiled(description, engine))


def _compiled(description: Description, engine: CharacterEngine) -> Pipeline:
    from bpe_automata.tokenizer.filtered_text import filtered
    from bpe_automata.tokenizer.filters import filters_of
    from bpe_automata.tokenizer.pattern import tree_of

    rules = description.splitters
    programs = [Program(tree_of(rule, engine.dialect), rule.pattern) for rule in rules]
    sources = list(dict.fromkeys(source for program in programs for source in program.classes))
    filters = filters_of(description.normalizers, engine)
    word, space = _neighbours(description.cut_out, engine)
    own = [ranges for filter_ in filters for ranges in filter_.classes]
    letters = _alphabet(
        description, [*(engine_class(engine, *s) for s in sources), *own, word, space]
    )
    _check_readable(letters, description)
    split = letters.inside[: len(sources)]
    coarse, members = _coarse(split, letters.n_atoms)
    for program in programs:
        program.bind([members[sources.index(source)] for source in program.classes])
    splitters = tuple(
        Splitter(program, rule.behavior, rule.invert)
        for program, rule in zip(programs, rules, strict=True)
    )
    text = text_automaton.build(
        description.added,
        Letters(description.cut_out, letters, word, space),
        description.prefix,
        letters.atom(" "),
        description.lost,
    )
    rows = letters.inside[len(sources) : len(sources) + len(own)]
    text = filtered(text, filters, rows, description.added)
    table = boundaries.tabulate(splitters, int(coarse.max()) + 1)
    return Pipeline(letters, coarse, table, text)


def _alphabet(description: Description, classes: list[Ranges]) -> Alphabet:
    marked = {" ", *(c for token in description.cut_out for c in token.content)}
    if description.byte_level:
        missing = [byte for byte in range(256) if bytes([byte]) not in description.base]
        return alphabet.build(classes, marked, missing_bytes=missing)
    symbols = _symbols(description)
    if not description.byte_tokens:
        return alphabet.build(classes, marked, readable=symbols, unreadable=description.unreadable)
    _check_byte_tokens(description)
    return alphabet.build(classes, marked, symbols=symbols, unreadable=description.unreadable)


def _check_readable(letters: Alphabet, description: Description) -> None:
    if not letters.n_atoms:
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
    """Every character that is no symbol must have all its byte tokens, or `encode` makes it
    unknown. (Gemma-2 has no `<0x09>`, but a token for the tab.)"""
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
    """The word characters and the white space that added tokens look at beside them."""
    word = any(token.single_word for token in added)
    space = any(token.lstrip or token.rstrip for token in added)
    return (
        engine_class(engine, "word", "") if word else _NOBODY,
        engine_class(engine, "whitespace", "") if space else _NOBODY,
    )


def _coarse(split: np.ndarray, n_atoms: int) -> tuple[np.ndarray, list[frozenset[int]]]:
    """Atoms that are in the same classes become one; (coarse atom of each, class members)."""
    if not len(split):
        return np.zeros(n_atoms, dtype=np.int32), []
    _, coarse = np.unique(split, axis=1, return_inverse=True)
    coarse = coarse.ravel().astype(np.int32)
    return coarse, [frozenset(coarse[row].tolist()) for row in split]
