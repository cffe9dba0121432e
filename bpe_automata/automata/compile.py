"""Regex -> minimal byte DFA.

    L(compile_regex(r)) = { s.encode() : re.fullmatch(r, s) }

pattern -> tree -> Thompson program over atoms of code points -> DFA -> minimal DFA -> UTF-8 bytes.
Where there are too many atoms for that, the tree is put together from its parts (`wide`).
"""

from __future__ import annotations

import sys
from itertools import chain

import numpy as np

from bpe_automata.automata.codepoints import SURROGATES, Inversion
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.locate import unsupported
from bpe_automata.automata.program import Program
from bpe_automata.automata.syntax import Parsed, Unsupported, parse
from bpe_automata.automata.wide import wide_dfa
from bpe_automata.budget import Budget, out_of_memory, out_of_states, spending
from bpe_automata.errors import BudgetExceededError
from bpe_automata.kernels.atoms import partition
from bpe_automata.kernels.determinize import OUT_OF_MEMORY, OUT_OF_STATES, determinize
from bpe_automata.kernels.minimise import minimise
from bpe_automata.kernels.utf8 import byte_table
from bpe_automata.kernels.watch import watched

__all__ = ["Budget", "atoms", "compile_regex", "determinized", "finish"]

_FIRST_STATES, _FIRST_POOL = 64, 256
_EDGE_BYTES = 48  # what minimisation keeps for one edge


def compile_regex(pattern: str, budget: Budget = Budget()) -> ByteDFA:  # noqa: B008 - frozen
    """The minimal DFA of `re.fullmatch(pattern, text)` over the UTF-8 bytes of text.

    Syntax and meaning are those of Python's `re` on str, with inline flags, plus `\\p{...}` and
    `\\P{...}` as the `regex` package reads them. An empty language gives a DFA that `is_empty`.
    Raises RegexSyntaxError, UnsupportedRegexError (both with a position), BudgetExceededError.
    """
    with spending(budget):
        try:
            parsed = parse(pattern)
            program = _program(parsed, budget)
            if _is_narrow(program, budget):
                return _by_atoms(program, budget)
            return wide_dfa(parsed, lambda part: _by_atoms(_program(part, budget), budget), budget)
        except RecursionError:
            advice = "groups are nested too deeply for the parser of the standard library"
            raise BudgetExceededError("stack frames", sys.getrecursionlimit(), advice) from None


def _is_narrow(program: Program, budget: Budget) -> bool:
    """Do tables over atoms surely fit, with as many atoms as classes and states as places?
    `determinize` doubles them with old and new there at once, and keeps room for a row's worth."""
    atoms = len(program.classes)
    return 24 * (program.n_places + atoms) * atoms <= budget.max_bytes


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
    if trans.size * _EDGE_BYTES > budget.max_bytes and (
        np.count_nonzero(trans) * _EDGE_BYTES > budget.max_bytes
    ):
        raise out_of_memory(budget)
    trans, accepting, start, column = watched(minimise, trans, accepting, start)
    ok, table, byte_class, accepting, start = watched(
        byte_table, trans, accepting, start, starts, column[atom_of], budget.max_bytes
    )
    if not ok:
        raise out_of_memory(budget)
    return ByteDFA(table, byte_class, accepting, int(start))


def _program(parsed: Parsed, budget: Budget) -> Program:
    try:
        return Program(parsed, budget)
    except Unsupported as error:
        raise unsupported(parsed.source, error.op, parsed.flags) from None


def atoms(classes: list[Inversion]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The atoms of the classes, no surrogate in any of them; see `kernels.atoms.partition`."""
    lists = (*classes, SURROGATES)
    ptr = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(members) for members in lists], out=ptr[1:])
    toggles = np.fromiter(chain.from_iterable(lists), np.int32, int(ptr[-1]))
    return watched(partition, toggles, np.argsort(toggles), ptr)


def determinized(
    rows: np.ndarray, member: np.ndarray, budget: Budget
) -> tuple[np.ndarray, np.ndarray]:
    """The reachable states of the subset construction: (trans, accepting), the start being 1.

    rows: as `Program.rows` gives them; member: uint8 [n_atoms, n_classes], as `atoms` does. Raises
    BudgetExceededError.
    """
    limits = np.array((budget.max_states, budget.max_bytes))
    counters = np.zeros(2, np.int64)
    tables: tuple[np.ndarray, ...] = (
        np.zeros((_FIRST_STATES, member.shape[0]), np.int32),
        np.zeros(_FIRST_POOL, np.int32),
        np.zeros(_FIRST_STATES, np.int32),
        np.zeros(_FIRST_STATES, np.bool_),
        np.zeros(_FIRST_STATES, np.uint64),
        np.zeros(2 * _FIRST_STATES, np.int32),
    )
    status, trans, accepting = watched(determinize, rows, member, limits, counters, *tables)
    if status == OUT_OF_STATES:
        raise out_of_states(budget)
    if status == OUT_OF_MEMORY:
        raise out_of_memory(budget)
    return trans[: counters[0]], accepting[: counters[0]]
