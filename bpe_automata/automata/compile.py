"""Regex -> minimal byte DFA.

    L(compile_regex(r)) = { s.encode() : re.fullmatch(r, s) }

pattern -> tree -> Thompson program over atoms of code points -> DFA -> minimal DFA -> UTF-8 bytes.
Where there are too many atoms for that, the program is made deterministic over bytes (`_by_bytes`).
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, chain
from operator import xor

import numpy as np

from bpe_automata._budget import Budget, check, out_of_instructions, out_of_memory, spending
from bpe_automata._kernels.determinize import determinize
from bpe_automata.automata.assembly import Assembly, network
from bpe_automata.automata.codepoints import N_CODE_POINTS, SURROGATES, Inversion
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.minimise import minimise
from bpe_automata.automata.syntax import Alternation, Chars, Repetition, Tree, may_be_empty, parse
from bpe_automata.automata.utf8 import byte_table
from bpe_automata.errors import BudgetExceededError

__all__ = ["Budget", "atoms", "compile_regex", "determinized", "finish"]

_SURROGATES = range(*SURROGATES)
_EDGE_BYTES = 80  # what minimisation keeps for one edge


def compile_regex(pattern: str, budget: Budget = Budget()) -> ByteDFA:  # noqa: B008 - frozen
    """The minimal DFA of `re.fullmatch(pattern, text)` over the UTF-8 bytes of text.

    Syntax and meaning are those of Python's `re` on str, with inline flags, plus `\\p{...}` and
    `\\P{...}` as the `regex` package reads them. An empty language gives a DFA that `is_empty`.
    Raises RegexSyntaxError, UnsupportedRegexError (both with a position), BudgetExceededError.
    """
    with spending(budget), refusing_deep_nesting():
        return compile_tree(parse(pattern), budget)


@contextmanager
def refusing_deep_nesting() -> Iterator[None]:
    """Raises BudgetExceededError where the standard library's parser, or what walks a tree, does
    not come to the end of nested groups."""
    try:
        yield
    except RecursionError:
        advice = "groups are nested too deeply for the parser of the standard library"
        raise BudgetExceededError("stack frames", sys.getrecursionlimit(), advice) from None


def compile_tree(tree: Tree, budget: Budget) -> ByteDFA:
    """The minimal DFA of a tree without assertions. Raises BudgetExceededError."""
    program = _Program(tree, budget)
    return (_by_atoms if program.is_narrow() else _by_bytes)(program, budget)


# Thompson's construction: the tree as a program of characters, splits and jumps.
#
#     L(program) = { w : some path from instruction 0 to MATCH reads w }
#
# All jumps are relative, so that a repeated body is copied as a block. Copies of the body of a
# bounded repeat know how far they are from the first one (rows `near` and `far`), by which
# `_kernels.determinize` drops the copies that add nothing.
#
# A program is four parallel arrays `code, arg, near, far`: instruction i reads a character of class
# code[i] >= 0 and goes to i + 1; SPLIT goes to i + 1 and i + arg[i]; JUMP to i + arg[i]; MATCH
# ends. near[i] is the distance back to the same instruction in the first copy of the innermost
# bounded repeat, far[i] the same for the next repeat around it, -1 where there is none.

SPLIT, JUMP, MATCH = -1, -2, -3


class _Program:
    """A program under construction, and the classes that it reads."""

    def __init__(self, tree: Tree, budget: Budget) -> None:
        self._budget = budget
        self._rows = array("i")  # four numbers for each instruction
        self._class: dict[Inversion, int] = {}
        self._sequence(tree)
        self._add(MATCH, 0)

    @property
    def classes(self) -> list[Inversion]:
        return list(self._class)

    @property
    def n_instructions(self) -> int:
        return len(self._rows) // 4

    def rows(self) -> np.ndarray:
        """int32 [4, n], as the comment above says."""
        return np.ascontiguousarray(self._from(0).T)

    def is_narrow(self) -> bool:
        """Would tables over atoms fit, with as many atoms as classes, and about as many states as
        instructions? (`determinize` doubles them, with the old and the new there at once, and
        checks again.)"""
        atoms = len(self._class)
        return 24 * (self.n_instructions + atoms) * atoms <= self._budget.max_bytes

    def _from(self, first: int) -> np.ndarray:
        """int32 [n, 4]: the instructions from one on."""
        return np.array(self._rows[4 * first :], np.int32).reshape(-1, 4)

    def _add(self, code: int, arg: int) -> None:
        self._rows.extend((code, arg, -1, -1))

    def _lead(self, at: int) -> None:
        """Let a jump or a split lead to the next instruction that is added."""
        self._rows[4 * at + 1] = self.n_instructions - at

    def _sequence(self, tree: Tree) -> None:
        for node in tree:
            check()
            if isinstance(node, Chars):
                self._add(self._class.setdefault(node.members, len(self._class)), 0)
            elif isinstance(node, Alternation):
                self._alternation(node.options)
            elif isinstance(node, Repetition):
                self._repetition(node)
            else:
                raise TypeError(f"an assertion in a tree to be compiled: {node}")

    def _alternation(self, options: tuple[Tree, ...]) -> None:
        jumps = []
        for option in options[:-1]:
            split = self.n_instructions
            self._add(SPLIT, 0)
            self._sequence(option)
            jumps.append(self.n_instructions)
            self._add(JUMP, 0)
            self._lead(split)
        self._sequence(options[-1])
        for jump in jumps:
            self._lead(jump)

    def _repetition(self, node: Repetition) -> None:
        # What can be empty can be there as often as one likes.
        least, most = 0 if may_be_empty(node.body) else node.least, node.most
        start = self.n_instructions
        if least == 0:
            self._add(SPLIT, 0)
        first = self.n_instructions
        self._sequence(node.body)
        length = self.n_instructions - first
        copies = max(least, 1) if most is None else most
        if start + copies * (length + 1) > self._budget.max_instructions:
            raise out_of_instructions(self._budget)
        self._rows.extend(self._rows[4 * first :] * (max(least, 1) - 1))
        if most is None:
            self._add(SPLIT, -length)
        elif most > max(least, 1):
            self._optional_copies(length, most - max(least, 1))
        if least == 0:
            self._lead(start)
        if most == 0:
            del self._rows[4 * start :]

    def _optional_copies(self, length: int, times: int) -> None:
        """Append (SPLIT past all, body) `times` times, and tie the copies to the last body."""
        first, stride = self.n_instructions - length, length + 1
        body, distance = self._from(first), np.arange(times + 1)[:, None] * stride
        copies = np.full((times + 1, stride, 4), -1, np.int32)
        copies[:, 0, 0], copies[:, :1, 1] = SPLIT, (times + 1) * stride - distance
        copies[:, 1:] = body
        near, far = body[:, 2], body[:, 3]
        copies[:, 1:, 2] = np.where(near < 0, distance, near)
        copies[:, 1:, 3] = np.where((near >= 0) & (far < 0), distance, far)
        del self._rows[4 * first :]
        self._rows.frombytes(copies.ravel()[4:].tobytes())  # no split before the first


def _by_atoms(program: _Program, budget: Budget) -> ByteDFA:
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


# Atoms of a regex: two code points share an atom iff every class holds both of them or neither.
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
    bits, hole, number = [1 << c for c in range(len(lists))], 1 << len(classes), {0: 0}
    opened = list(accumulate((bits[c] for c in owners), xor))
    last = np.append(ends[1:] != ends[:-1], True) & (ends < N_CODE_POINTS)
    atom_at = [0]
    for k in np.flatnonzero(last).tolist():
        found = 0 if opened[k] >= hole else opened[k]
        atom_at.append(number.setdefault(found, len(number)))
    starts = np.concatenate([np.zeros(1, np.int32), ends[last]])
    if starts[1] == 0:
        starts, atom_at = starts[1:], atom_at[1:]
    atom_of = np.array(atom_at, np.int32)
    changes = np.append(True, atom_of[1:] != atom_of[:-1])
    size = (len(classes) + 7) // 8
    rows = np.frombuffer(b"".join(held.to_bytes(size, "little") for held in number), np.uint8)
    columns = np.unpackbits(rows.reshape(len(number), size), axis=1, bitorder="little")
    return starts[changes], atom_of[changes], np.ascontiguousarray(columns[:, : len(classes)])


def determinized(
    rows: np.ndarray, member: np.ndarray, budget: Budget
) -> tuple[np.ndarray, np.ndarray]:
    """The reachable states of the subset construction: (trans, accepting), the start being 1.

    rows: as `_Program.rows` gives them; member: uint8 [n_atoms, n_classes], as `atoms` does. Raises
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
# A table over atoms has a column for each character that the regex distinguishes, so its size is
# (states x characters), though each state of such a choice reads only a few of them. Here the
# program is put together of the bytes of its classes, of which there are 256.


def _by_bytes(program: _Program, budget: Budget) -> ByteDFA:
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
