"""Regex -> minimal byte DFA.

    L(compile_regex(r)) = { s.encode() : re.fullmatch(r, s) }

pattern -> tree -> Thompson program over atoms of code points -> DFA -> minimal DFA -> UTF-8 bytes.
Where there are too many atoms for that, the program is made deterministic over bytes (`_by_bytes`).
"""

from __future__ import annotations

import re
import sys
from itertools import accumulate, chain
from operator import xor
from typing import Any

import numpy as np

from bpe_automata._budget import Budget, out_of_memory, spending
from bpe_automata._kernels.determinize import determinize
from bpe_automata.automata.assembly import Assembly, network
from bpe_automata.automata.codepoints import N_CODE_POINTS, SURROGATES, Inversion, Substituted
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.minimise import minimise
from bpe_automata.automata.program import JUMP, MATCH, SPLIT, Program
from bpe_automata.automata.syntax import Parsed, Unsupported, parse, parse_text
from bpe_automata.automata.utf8 import byte_table
from bpe_automata.errors import BudgetExceededError, UnsupportedRegexError

__all__ = ["Budget", "atoms", "compile_regex", "determinized", "finish"]

_SURROGATES = range(*SURROGATES)
_EDGE_BYTES = 80  # what minimisation keeps for one edge


def compile_regex(pattern: str, budget: Budget = Budget()) -> ByteDFA:  # noqa: B008 - frozen
    """The minimal DFA of `re.fullmatch(pattern, text)` over the UTF-8 bytes of text.

    Syntax and meaning are those of Python's `re` on str, with inline flags, plus `\\p{...}` and
    `\\P{...}` as the `regex` package reads them. An empty language gives a DFA that `is_empty`.
    Raises RegexSyntaxError, UnsupportedRegexError (both with a position), BudgetExceededError.
    """
    with spending(budget):
        try:
            return compile_tree(parse(pattern), budget)
        except RecursionError:
            raise nested_too_deeply() from None


def nested_too_deeply() -> BudgetExceededError:
    """The error for a regex that the standard library's parser, or what walks its tree, does not
    come to the end of."""
    advice = "groups are nested too deeply for the parser of the standard library"
    return BudgetExceededError("stack frames", sys.getrecursionlimit(), advice)


def compile_tree(parsed: Parsed, budget: Budget) -> ByteDFA:
    """The minimal DFA of a tree, or of a part of one. Raises UnsupportedRegexError,
    BudgetExceededError."""
    program = _program(parsed, budget)
    return (_by_atoms if _is_narrow(program, budget) else _by_bytes)(program, budget)


def _is_narrow(program: Program, budget: Budget) -> bool:
    """Do tables over atoms surely fit, with as many atoms as classes, and as many states as the
    program has lines? `determinize` doubles them, with the old and the new there at once."""
    atoms = len(program.classes)
    return 24 * (program.n_instructions + atoms) * atoms <= budget.max_bytes


def _by_atoms(program: Program, budget: Budget) -> ByteDFA:
    if 2 * len(program.classes) ** 2 > budget.max_bytes:  # which atom is of which class
        raise out_of_memory(budget)
    starts, atom_of, member = atoms(program.classes)
    trans, accepting = determinized(program.rows(), member, budget)
    return finish(trans, accepting, 1, starts, atom_of, budget)


def finish(
    trans: np.ndarray,
    accepting: np.ndarray,
    start: int,
    starts: np.ndarray,
    atom_of: np.ndarray,
    budget: Budget,
) -> ByteDFA:
    """The minimal byte DFA of a DFA over atoms of code points.

    trans: int32 [n, n_atoms], state 0 dead, column 0 all 0; accepting: bool [n]; starts, atom_of:
    int32, the atom of each interval of code points, surrogates in atom 0.
    """
    if np.count_nonzero(trans) * _EDGE_BYTES > budget.max_bytes:
        raise out_of_memory(budget)
    trans, accepting, start, column = minimise(trans, accepting, start)
    return ByteDFA(*byte_table(trans, accepting, start, starts, column[atom_of], budget))


def _program(parsed: Parsed, budget: Budget) -> Program:
    try:
        return Program(parsed, budget)
    except Unsupported as error:
        raise _unsupported(parsed.source, error.op, parsed.flags) from None


# Atoms: two code points share an atom iff every class holds both of them or neither.
#
#     atom(x) == atom(y)  <=>  for all classes C:  x in C <=> y in C
#
# A sweep over the ends of the ranges: between two neighbouring ends the set of classes that are
# open is constant. It is an integer with a bit for each class.


def atoms(classes: list[Inversion]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The atoms of the classes, no surrogate in any of them: (starts, atom_of, member).

    starts: int32 [k], starts[0] == 0, interval i ends where i + 1 begins (the last one at the last
    code point); atom_of: int32 [k], its atom; member: uint8 [n_atoms, n_classes]. Atom 0 is that of
    code points that no class holds.
    """
    lists = (*classes, SURROGATES)
    lengths = [len(members) for members in lists]
    toggles = np.fromiter(chain.from_iterable(lists), np.int32, sum(lengths))
    order = np.argsort(toggles, kind="stable")
    ends = toggles[order]
    owners = np.repeat(np.arange(len(lists)), lengths)[order].tolist()
    bits, hole, known = [1 << c for c in range(len(lists))], 1 << len(classes), {0: 0}
    opened = list(accumulate((bits[c] for c in owners), xor))
    last = np.append(ends[1:] != ends[:-1], True) & (ends < N_CODE_POINTS)
    atom_at = [0]
    for k in np.flatnonzero(last).tolist():
        found = 0 if opened[k] >= hole else opened[k]
        atom_at.append(known.setdefault(found, len(known)))
    starts = np.concatenate([np.zeros(1, np.int32), ends[last]])
    if starts[1] == 0:
        starts, atom_at = starts[1:], atom_at[1:]
    atom_of = np.array(atom_at, np.int32)
    changes = np.append(True, atom_of[1:] != atom_of[:-1])
    size = (len(classes) + 7) // 8
    rows = np.frombuffer(b"".join(held.to_bytes(size, "little") for held in known), np.uint8)
    columns = np.unpackbits(rows.reshape(len(known), size), axis=1, bitorder="little")
    return starts[changes], atom_of[changes], np.ascontiguousarray(columns[:, : len(classes)])


def determinized(
    rows: np.ndarray, member: np.ndarray, budget: Budget
) -> tuple[np.ndarray, np.ndarray]:
    """The reachable states of the subset construction: (trans, accepting), the start being 1.

    rows: as `Program.rows` gives them; member: uint8 [n_atoms, n_classes], as `atoms` does. Raises
    BudgetExceededError.
    """
    code, arg = rows[:2]
    read, split = np.flatnonzero(code >= 0), np.flatnonzero(code == SPLIT)
    moves = np.flatnonzero((code == SPLIT) | (code == JUMP))
    edges = np.stack([read, code[read], read + 1])
    silent = np.hstack([[split, split + 1], [moves, moves + arg[moves]]])
    classes = member.sum(axis=0, dtype=np.int32), np.nonzero(member.T)[1].astype(np.int32)
    net = network(code == MATCH, edges, silent, classes, rows[2:])
    return determinize(net, 0, len(member), budget.max_states, budget)


# Regexes with many different characters, such as a choice between thousands of Chinese words.
#
# A table over atoms has a column for each character that the regex tells apart, so its size is
# (states x characters), though each state of such a choice reads only a few of them. Here the
# program is put together of the bytes of its classes, of which there are 256.


def _by_bytes(program: Program, budget: Budget) -> ByteDFA:
    net = Assembly()
    for _ in range(program.n_instructions):
        net.state()
    classes = [one_of(one, budget) for one in program.classes]
    for at, (code, arg) in enumerate(program.rows()[:2].T.tolist()):
        if code >= 0:
            net.put(at, classes[code], at + 1)
        elif code == MATCH:
            net.accept(at)
        else:
            net.skip(at, at + arg)
        if code == SPLIT:
            net.skip(at, at + 1)
    return net.dfa(0, budget)


def one_of(members: Inversion, budget: Budget) -> bytes | ByteDFA:
    """The texts of one character of a class."""
    if len(members) == 2 and members[0] + 1 == members[1] and members[0] not in _SURROGATES:
        return chr(members[0]).encode()
    starts, atom_of, member = atoms([members])
    trans = np.zeros((3, len(member)), np.int32)
    trans[1] = 2 * member[:, 0]
    return finish(trans, np.array([False, False, True]), 1, starts, atom_of, budget)


# Where in the pattern an unsupported construct stands. The standard library's tree has no
# positions, so the pattern is read once more, after it was refused.

_LINE_COMMENT = r"(?P<line> \#[^\n]* ) |"  # of a verbose pattern
_TOKEN = r"""
      (?P<comment> \(\?\#[^)]*\)? )
    | (?P<lookaround> \(\?<?[=!] )
    | (?P<conditional> \(\?\( )
    | (?P<atomic> \(\?> )
    | (?P<backreference> \(\?P=[^)]*\) | \\(?![0-3]?[0-7]{3}) [1-9][0-9]? )
    | (?P<boundary> \\[bB] )
    | (?P<anchor> \\[AZ] | \^ | \$ )
    | (?P<class> \[\^?\]?(?:[^\]\\]|\\.)*\] )
    | (?P<possessive> (?:[*+?]|\{[0-9]*,?[0-9]*\})\+ )
    | (?P<other> \\. | [*+?] | . )
    """
_REASONS = {
    "lookaround": "lookaround is not supported",
    "conditional": "a conditional group is not supported",
    "atomic": "an atomic group is not supported",
    "backreference": "a backreference is not regular",
    "boundary": "a word boundary is not supported",
    "possessive": "a possessive repeat is not supported",
    "anchor": "an anchor that is not at the start or end of the whole regex is not supported",
}


def _unsupported(source: Substituted, op: Any, flags: int) -> UnsupportedRegexError:
    """The error for a pattern whose tree holds the unsupported node `op`."""
    pattern = (_LINE_COMMENT if flags & re.VERBOSE else "") + _TOKEN
    tokens = list(re.finditer(pattern, source.text, re.VERBOSE | re.DOTALL))
    for token in tokens:
        is_refused = token.lastgroup != "anchor" or _alone_is_refused(token, tokens)
        if token.lastgroup in _REASONS and is_refused:
            at = source.position(token.start())
            return UnsupportedRegexError(source.pattern, at, _REASONS[token.lastgroup])
    first = next((token.start() for token in tokens if token.lastgroup == "anchor"), 0)
    why = f"{str(op).lower()} is not supported"
    return UnsupportedRegexError(source.pattern, source.position(first), why)


def _alone_is_refused(anchor: re.Match[str], tokens: list[re.Match[str]]) -> bool:
    """Whether an anchor is still in the tree when all the others are replaced by `(?:)`."""
    others = {one.start() for one in tokens if one.lastgroup == "anchor"} - {anchor.start()}
    text = "".join("(?:)" if one.start() in others else one[0] for one in tokens)
    return "(AT, " in repr(parse_text(Substituted(text, text)))
