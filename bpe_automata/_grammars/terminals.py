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
from bpe_automata._budget import Budget, check, out_of_instructions, out_of_memory, out_of_states
from bpe_automata.errors import UnsupportedRegexError

_MATCH, _FORK, _CHAR, _BEHIND, _NOT_BEHIND = range(5)
_LOOKBEHIND = -1  # the direction of an assertion, in the tree
Threads = tuple[int, ...]


@lru_cache(maxsize=256)
def texts_of(pattern: str, budget: Budget) -> ByteDFA:
    """The minimal DFA of the texts, over UTF-8. Raises RegexSyntaxError, UnsupportedRegexError and
    BudgetExceededError."""
    return _Threads(pattern, budget).dfa()


class _Threads:
    """Instructions, each written after those it leads to: (_FORK, *places), of which the first is
    preferred; (_CHAR, class, place), and (_BEHIND, class, place) and (_NOT_BEHIND, class, place)
    for the character that was read last. A match is at place 0."""

    def __init__(self, pattern: str, budget: Budget) -> None:
        self._pattern, self._budget = pattern, budget
        self._code: list[tuple[int, ...]] = [(_MATCH,)]
        self._classes: dict[Inversion, int] = {}
        self._looks_behind = False
        tree = parse_all(Substituted(pattern, pattern))
        self._begin = self._sequence(tree, tree.state.flags, 0)

    def _refuse(self, why: str) -> UnsupportedRegexError:
        return UnsupportedRegexError(self._pattern, 0, f"{why} is not supported in a terminal")

    def _add(self, *instruction: int) -> int:
        check()
        if len(self._code) == self._budget.max_instructions:
            raise out_of_instructions(self._budget)
        self._code.append(instruction)
        return len(self._code) - 1

    def _test(self, code: int, item: tuple[Any, Any], flags: int, then: int) -> int:
        klass = self._classes.setdefault(members(*item, flags, {}), len(self._classes))
        return self._add(code, klass, then)

    def _sequence(self, items: Any, flags: int, then: int) -> int:
        """Where what matches the items, and goes on to `then`, begins."""
        for op, av in reversed(items):
            if op in CHARACTERS:
                then = self._test(_CHAR, (op, av), flags, then)
            elif op is _parser.SUBPATTERN:
                then = self._sequence(av[3], kept_flags(av, flags), then)
            elif op is _parser.BRANCH:
                then = self._add(_FORK, *[self._sequence(body, flags, then) for body in av[1]])
            elif op in REPEATS:
                then = self._repeat(op, av, flags, then)
            elif op in (_parser.ASSERT, _parser.ASSERT_NOT):
                direction, body = av
                if direction != _LOOKBEHIND or len(body) != 1 or body[0][0] not in CHARACTERS:
                    raise self._refuse("an assertion other than a lookbehind for one character")
                self._looks_behind = True
                code = _BEHIND if op is _parser.ASSERT else _NOT_BEHIND
                then = self._test(code, body[0], flags, then)
            else:
                raise self._refuse(str(op).lower())
        return then

    def _repeat(self, op: Any, bounds: Any, flags: int, then: int) -> int:
        least, most, body = bounds
        if body.getwidth()[0] == 0 and _prefers(body):
            raise self._refuse("a repeat of what may be empty and has alternatives or lazy repeats")
        order = 1 if op is _parser.MAX_REPEAT else -1
        at = then
        if most is _parser.MAXREPEAT:
            at = self._add(_FORK)
            self._code[at] = _FORK, *(self._sequence(body, flags, at), then)[::order]
        else:
            for _ in range(most - least):
                at = self._add(_FORK, *(self._sequence(body, flags, at), then)[::order])
        for _ in range(least):
            before, at = at, self._sequence(body, flags, at)
            if at == before:
                break  # nothing, however often
        return at

    # The lists of threads.

    def dfa(self) -> ByteDFA:
        """Of all texts that end where the first thread that matches does."""
        starts, atom_of, member = atoms(list(self._classes))
        inside = [frozenset(np.flatnonzero(column).tolist()) for column in member.T]
        begin = self._closed((self._begin,), None, inside)
        number, order = {(): 0, begin: 1}, [begin]
        rows = [np.zeros(len(member), np.int32)]
        known: dict[tuple[Threads, int | None], Threads] = {}
        for threads in order:
            rows.append(np.zeros(len(member), np.int32))
            after: dict[int, list[int]] = {}
            for at in threads:
                for atom in inside[self._code[at][1]] if at else ():
                    after.setdefault(atom, []).append(self._code[at][2])
            for atom, reached in after.items():
                key = tuple(reached), atom if self._looks_behind else None
                if key not in known:
                    check()
                    known[key] = self._closed(key[0], atom, inside)
                then = known[key]
                if then not in number:
                    number[then] = len(number)
                    order.append(then)
                rows[-1][atom] = number[then]
            if len(number) > self._budget.max_states:
                raise out_of_states(self._budget)
            if 4 * len(number) * len(member) > self._budget.max_bytes:
                raise out_of_memory(self._budget)
        accepting = np.array([0 in threads for threads in number])
        return finish(np.array(rows), accepting, 1, starts, atom_of, self._budget)

    def _closed(self, threads: Threads, last: int | None, inside: list[frozenset[int]]) -> Threads:
        """What the threads reach without a character, in order, up to the first match. last: the
        atom that was read before, None at the beginning; inside: the atoms of each class."""
        found: list[int] = []
        seen: set[int] = set()
        stack = list(reversed(threads))
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            code, *rest = self._code[at]
            if code == _FORK:
                stack += reversed(rest)
            elif code in (_BEHIND, _NOT_BEHIND):
                if last is None:
                    raise self._refuse("a lookbehind at the beginning")
                if (last in inside[rest[0]]) == (code == _BEHIND):
                    stack.append(rest[1])
            else:
                found.append(at)
                if code == _MATCH:
                    break
        return tuple(found)


def _prefers(items: Any) -> bool:
    """Does it matter in which order the ways to match are tried?"""
    return any(
        op in (_parser.BRANCH, _parser.MIN_REPEAT)
        or (op in (_parser.SUBPATTERN, _parser.MAX_REPEAT) and _prefers(av[-1]))
        for op, av in items
    )
