"""The texts of a terminal: those of which its regex takes all.

    L(terminal) = { w : re.match(pattern, w).end() == len(w) }

A lazy repeat ends as soon as it can, and of alternatives the first one that matches is taken: so
`"a.*?b"` reads no text with `b` inside, though `re.fullmatch` would. These are the matches that
lark finds in a text, whatever follows them. The regex becomes threads in order of preference, where
a thread that matches ends those behind it (Pike's machine), and the lists of threads become states.

A lookbehind for one character is decided where that character was read, as in the escaped strings
of lark's library. Other assertions look at what is outside the terminal, and are refused.
"""

from __future__ import annotations

from functools import lru_cache
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import numpy as np

from bpe_automata._automata.codepoints import Inversion, Substituted
from bpe_automata._automata.compile import atoms, finish
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.program import CHARACTERS, REPEATS, kept_flags, members
from bpe_automata._automata.syntax import parse_all
from bpe_automata._budget import (
    Budget,
    check,
    out_of_instructions,
    out_of_memory,
    out_of_states,
    spending,
)
from bpe_automata.errors import UnsupportedRegexError

_CHAR, _FORK, _BEHIND, _MATCH = range(4)
_LOOKBEHIND = -1  # the direction of an assertion, in the tree
Threads = tuple[int, ...]


@lru_cache(maxsize=256)
def texts_of(pattern: str, budget: Budget) -> ByteDFA:
    """The minimal DFA of the texts, over UTF-8. Raises RegexSyntaxError, UnsupportedRegexError and
    BudgetExceededError."""
    with spending(budget):
        return _Threads(pattern, budget).dfa()


class _Threads:
    """Instructions: (_CHAR, class, 0) and (_BEHIND, class, is it negative?) go on to the next one,
    (_FORK, one, other) to two places, of which the first is preferred."""

    def __init__(self, pattern: str, budget: Budget) -> None:
        self._pattern, self._budget = pattern, budget
        self._code: list[tuple[int, int, int]] = []
        self._classes: dict[Inversion, int] = {}
        self._looks_behind = False
        tree = parse_all(Substituted(pattern, pattern))
        self._sequence(tree, tree.state.flags)
        self._add(_MATCH)

    def _add(self, code: int, one: int = 0, other: int = 0) -> int:
        check()
        if len(self._code) == self._budget.max_instructions:
            raise out_of_instructions(self._budget)
        self._code.append((code, one, other))
        return len(self._code) - 1

    def _refuse(self, why: str) -> UnsupportedRegexError:
        return UnsupportedRegexError(self._pattern, 0, why)

    def _class_of(self, op: Any, av: Any, flags: int) -> int:
        return self._classes.setdefault(members(op, av, flags, {}), len(self._classes))

    def _sequence(self, items: Any, flags: int) -> None:
        for op, av in items:
            if op in CHARACTERS:
                self._add(_CHAR, self._class_of(op, av, flags))
            elif op is _parser.SUBPATTERN:
                self._sequence(av[3], kept_flags(av, flags))
            elif op is _parser.BRANCH:
                self._branch(av[1], flags)
            elif op in REPEATS:
                self._repeat(op, av, flags)
            elif op in (_parser.ASSERT, _parser.ASSERT_NOT):
                self._assert(op, av, flags)
            else:
                raise self._refuse(f"{str(op).lower()} is not supported in a terminal")

    def _branch(self, alternatives: list[Any], flags: int) -> None:
        ends = []
        for body in alternatives[:-1]:
            fork = self._add(_FORK)
            self._sequence(body, flags)
            ends.append(self._add(_FORK))
            self._code[fork] = _FORK, fork + 1, len(self._code)
        self._sequence(alternatives[-1], flags)
        for end in ends:
            self._code[end] = _FORK, len(self._code), len(self._code)

    def _repeat(self, op: Any, bounds: Any, flags: int) -> None:
        least, most, body = bounds
        if body.getwidth()[0] == 0 and _prefers(body):
            why = "a repeat of what may be empty and has alternatives or lazy repeats"
            raise self._refuse(f"{why} is not supported in a terminal")
        for _ in range(least):
            before = len(self._code)
            self._sequence(body, flags)
            if len(self._code) == before:
                break  # nothing, however often
        forks = []
        for _ in range(1 if most is _parser.MAXREPEAT else most - least):
            check()
            forks.append(self._add(_FORK))
            self._sequence(body, flags)
        if most is _parser.MAXREPEAT:
            self._add(_FORK, forks[0], forks[0])
        for fork in forks:
            ways = fork + 1, len(self._code)
            self._code[fork] = (_FORK, *(ways if op is _parser.MAX_REPEAT else ways[::-1]))

    def _assert(self, op: Any, av: Any, flags: int) -> None:
        direction, body = av
        if direction != _LOOKBEHIND or len(body) != 1 or body[0][0] not in CHARACTERS:
            why = "an assertion other than a lookbehind for one character is not supported"
            raise self._refuse(f"{why} in a terminal")
        self._looks_behind = True
        op_inside, set_inside = body[0]
        self._add(
            _BEHIND, self._class_of(op_inside, set_inside, flags), int(op is _parser.ASSERT_NOT)
        )

    # The lists of threads.

    def dfa(self) -> ByteDFA:
        """Of all texts that end where the first thread that matches does."""
        starts, atom_of, member = atoms(list(self._classes))
        atoms_of = [np.flatnonzero(column).tolist() for column in member.T]
        inside = [frozenset(column) for column in atoms_of]
        begin = self._closed((0,), None, inside)
        number, order = {(): 0, begin: 1}, [begin]
        edges: list[tuple[int, int, int]] = []
        known: dict[tuple[Threads, int | None], Threads] = {}
        for threads in order:
            after: dict[int, list[int]] = {}
            for at in threads:
                code, klass, _ = self._code[at]
                if code == _CHAR:
                    for atom in atoms_of[klass]:
                        after.setdefault(atom, []).append(at + 1)
            for atom, reached in after.items():
                key = tuple(reached), atom if self._looks_behind else None
                if key not in known:
                    check()
                    known[key] = self._closed(key[0], atom, inside)
                then = known[key]
                if then not in number:
                    number[then] = len(number)
                    order.append(then)
                edges.append((number[threads], atom, number[then]))
            if len(number) > self._budget.max_states:
                raise out_of_states(self._budget)
        if 4 * len(number) * len(member) > self._budget.max_bytes:
            raise out_of_memory(self._budget)
        trans = np.zeros((len(number), len(member)), np.int32)
        if edges:
            tail, column, head = np.array(edges).T
            trans[tail, column] = head
        accepting = np.array([self._is_match(threads) for threads in number], np.bool_)
        return finish(trans, accepting, 1, starts, atom_of, self._budget)

    def _is_match(self, threads: Threads) -> bool:
        return bool(threads) and self._code[threads[-1]][0] == _MATCH

    def _closed(self, threads: Threads, last: int | None, inside: list[frozenset[int]]) -> Threads:
        """What the threads reach without a character, in order, up to the first match. last: the
        atom that was read before, None at the beginning."""
        found: list[int] = []
        seen: set[int] = set()
        stack = list(reversed(threads))
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            code, one, other = self._code[at]
            if code == _FORK:
                stack += (other, one)
            elif code == _BEHIND:
                if last is None:
                    raise self._refuse(
                        "a lookbehind at the beginning of a terminal is not supported"
                    )
                if (last in inside[one]) != bool(other):
                    stack.append(at + 1)
            else:
                found.append(at)
                if code == _MATCH:
                    break
        return tuple(found)


def _prefers(items: Any) -> bool:
    """Does it matter in which order the ways to match are tried?"""
    for op, av in items:
        if op is _parser.BRANCH or op is _parser.MIN_REPEAT:
            return True
        if op is _parser.SUBPATTERN and _prefers(av[3]):
            return True
        if op is _parser.MAX_REPEAT and _prefers(av[2]):
            return True
    return False
