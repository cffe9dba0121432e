"""Everything of `encode` around BPE, compiled: alphabet, boundary hypotheses, added tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata.tokenizer import added, alphabet, boundaries
from bpe_automata.tokenizer.added import AddedAutomaton
from bpe_automata.tokenizer.alphabet import Alphabet
from bpe_automata.tokenizer.boundaries import Boundaries
from bpe_automata.tokenizer.charclass import Ranges, engine_class, engine_digits, from_pairs
from bpe_automata.tokenizer.description import Description, SplitRule
from bpe_automata.tokenizer.pattern import Char, Node, literal, parse
from bpe_automata.tokenizer.pike import Program
from bpe_automata.tokenizer.splitter import Splitter

_DIGITS = "digits"


@dataclass(frozen=True)
class Pipeline:
    """alphabet: over which `added` runs; coarse: int32 [alphabet.n_atoms], the atoms that the
    splitters tell apart; boundaries: over the coarse atoms."""

    alphabet: Alphabet
    coarse: np.ndarray
    boundaries: Boundaries
    added: AddedAutomaton


def compile_pipeline(description: Description) -> Pipeline:
    """Raises UnsupportedTokenizerError for a pattern that is not modelled."""
    programs = [Program(_tree(rule), rule.pattern) for rule in description.splitters]
    sources = list(dict.fromkeys(c for program in programs for c in program.classes))
    letters = alphabet.build(
        [_class(source) for source in sources],
        marked={c for token in description.added for c in token.content},
        readable=None if description.byte_level else _readable(description),
        missing_bytes=_missing(description),
    )
    coarse, members = _coarse(letters, len(sources))
    for program in programs:
        program.bind([members[sources.index(source)] for source in program.classes])
    splitters = tuple(
        Splitter(program, rule.behavior, rule.invert)
        for program, rule in zip(programs, description.splitters, strict=True)
    )
    table = boundaries.tabulate(splitters, int(coarse.max()) + 1)
    return Pipeline(letters, coarse, table, added.build(description.added, letters))


def _tree(rule: SplitRule) -> Node:
    if rule.kind == "digits":
        return Char(_DIGITS)
    return literal(rule.pattern) if rule.kind == "literal" else parse(rule.pattern)


def _class(source: str) -> Ranges:
    return engine_digits() if source == _DIGITS else engine_class(source)


def _readable(description: Description) -> Ranges:
    """The characters that are base symbols."""
    symbols = [ord(s.decode("utf-8", "surrogatepass")) for s in description.base]
    return from_pairs([(c, c + 1) for c in symbols])


def _missing(description: Description) -> list[int]:
    """Byte values that no token spells. Without ByteLevel, symbols are characters instead."""
    if not description.byte_level:
        return []
    return [byte for byte in range(256) if bytes([byte]) not in description.base]


def _coarse(letters: Alphabet, n_classes: int) -> tuple[np.ndarray, list[frozenset[int]]]:
    """Atoms that are in the same classes become one; (coarse atom of each, class members)."""
    inside = np.zeros((n_classes, letters.n_atoms), dtype=bool)
    for row, members in zip(inside, letters.members, strict=True):
        row[sorted(members)] = True
    _, coarse = np.unique(inside, axis=1, return_inverse=True)
    coarse = coarse.ravel().astype(np.int32)
    return coarse, [frozenset(coarse[row].tolist()) for row in inside]
