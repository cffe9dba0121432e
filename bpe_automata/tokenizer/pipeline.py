"""Everything of `encode` but BPE, compiled to automata: alphabet, text automaton, boundaries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata.budget import with_room
from bpe_automata.errors import UnsupportedTokenizerError
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
from bpe_automata.tokenizer.pike import Program
from bpe_automata.tokenizer.source import CharacterEngine
from bpe_automata.tokenizer.text_automaton import TextAutomaton, build_text_automaton

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
    """Raises UnsupportedTokenizerError for what is not modelled."""
    return with_room(lambda: _compiled(description, engine))


def _compiled(description: Description, engine: CharacterEngine) -> Pipeline:
    from bpe_automata.tokenizer.filtered_text import filtered
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
    text = filtered(text, filters, rows, description.added)
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
    """Refuse a missing byte token: `encode` makes characters unknown that need it and are no base
    symbols. (Gemma-2 has no `<0x09>`, but a token for the tab.)"""
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
    """(int32 [n_atoms], equal for atoms in the same classes; these numbers in each class)."""
    if not len(split):
        return np.zeros(n_atoms, dtype=np.int32), []
    _, coarse = np.unique(split, axis=1, return_inverse=True)
    coarse = coarse.ravel().astype(np.int32)
    return coarse, [frozenset(coarse[row].tolist()) for row in split]
