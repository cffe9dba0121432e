"""The texts of a terminal: those of which its regex takes all.

    L(terminal) = { w : re.match(pattern, w).end() == len(w) }

A lazy repeat ends as soon as it can, and of alternatives the first one that matches is taken: so
`"a.*?b"` reads no text with `b` inside, though `re.fullmatch` would. These are the matches that
lark finds in a text, whatever follows them. The regex becomes threads in order of preference, where
a thread that matches ends those behind it (`tokenizer.pike`), and the lists of threads become
states.

A lookbehind for one character, as in the escaped strings of lark's library, is decided where that
character was read: for the threads it is a look at the last character, in place of the next one.
Other assertions look at what is outside the terminal, and are refused.
"""

from __future__ import annotations

from functools import lru_cache
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import numpy as np

from bpe_automata._budget import Budget, check, out_of_instructions, out_of_memory, out_of_states
from bpe_automata.automata.codepoints import Inversion, Substituted
from bpe_automata.automata.compile import atoms, finish
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.program import CHARACTERS, REPEATS, kept_flags, members
from bpe_automata.automata.syntax import parse_all
from bpe_automata.errors import UnsupportedRegexError, UnsupportedTokenizerError
from bpe_automata.tokenizer.pattern_tree import Alt, Char, Look, Node, Repeat, Seq
from bpe_automata.tokenizer.pike import END, Program, Threads

_LOOKBEHIND = -1  # the direction of an assertion, in the tree


@lru_cache(maxsize=256)
def texts_of(pattern: str, budget: Budget) -> ByteDFA:
    """The minimal DFA of the texts, over UTF-8. Raises RegexSyntaxError, UnsupportedRegexError and
    BudgetExceededError."""
    return _Terminal(pattern, budget).dfa()


class _Terminal:
    """A regex as threads, for which a character is the number of its class."""

    def __init__(self, pattern: str, budget: Budget) -> None:
        self._pattern, self._budget = pattern, budget
        self._classes: dict[Inversion, int] = {}
        self._looks_behind = False
        parsed = parse_all(Substituted(pattern, pattern))
        tree = self._sequence(parsed, parsed.state.flags)
        try:
            self._program = Program(tree, pattern, budget.max_instructions)
        except UnsupportedTokenizerError:
            raise out_of_instructions(budget) from None

    def _refuse(self, why: str) -> UnsupportedRegexError:
        return UnsupportedRegexError(self._pattern, 0, f"{why} is not supported in a terminal")

    def _sequence(self, items: Any, flags: int) -> Node:
        return Seq(tuple(self._item(op, av, flags) for op, av in items))

    def _item(self, op: Any, av: Any, flags: int) -> Node:
        check()
        if op in CHARACTERS:
            return Char(self._class((op, av), flags))
        if op is _parser.SUBPATTERN:
            return self._sequence(av[3], kept_flags(av, flags))
        if op is _parser.BRANCH:
            return Alt(tuple(self._sequence(body, flags) for body in av[1]))
        if op in REPEATS:
            return self._repeat(op, av, flags)
        if op not in (_parser.ASSERT, _parser.ASSERT_NOT):
            raise self._refuse(str(op).lower())
        direction, body = av
        if direction != _LOOKBEHIND or len(body) != 1 or body[0][0] not in CHARACTERS:
            raise self._refuse("an assertion other than a lookbehind for one character")
        self._looks_behind = True
        return Look(self._class(body[0], flags), op is _parser.ASSERT_NOT)

    def _class(self, item: tuple[Any, Any], flags: int) -> str:
        return str(self._classes.setdefault(members(*item, flags, {}), len(self._classes)))

    def _repeat(self, op: Any, bounds: Any, flags: int) -> Node:
        least, most, body = bounds
        shortest, longest = body.getwidth()
        item = self._sequence(body, flags)
        if shortest == 0 and _prefers(item):
            raise self._refuse("a repeat of what may be empty and has alternatives or lazy repeats")
        if longest == 0:  # nothing, however often
            least, most = min(least, 1), min(most, 1)
        bound = None if most == _parser.MAXREPEAT else most
        return Repeat(item, least, bound, op is _parser.MAX_REPEAT)

    def dfa(self) -> ByteDFA:
        """Of all texts that end where the first thread that matches does."""
        program = self._program
        starts, atom_of, member = atoms(list(self._classes))
        inside = [frozenset(np.flatnonzero(column).tolist()) for column in member.T]
        program.members = [inside[int(number)] for _, number in program.classes]
        before = [END, *range(len(member))] if self._looks_behind else [END]
        begin, *others = {program.closure((program.entry,), last) for last in before}
        if others:
            raise self._refuse("a lookbehind at the beginning")
        number: dict[tuple[Threads, bool], int] = {((), False): 0}
        start = number.setdefault(begin, 1)
        order, rows = list(number), list[np.ndarray]()
        for tests, _ in order:
            rows.append(np.zeros(len(member), np.int32))
            for atom, threads in program.steps(tests).items():
                then = program.closure(threads, atom if self._looks_behind else END)
                if then not in number:
                    number[then] = len(number)
                    order.append(then)
                rows[-1][atom] = number[then]
            if len(number) > self._budget.max_states:
                raise out_of_states(self._budget.max_states)
            if 4 * len(number) * len(member) > self._budget.max_bytes:
                raise out_of_memory(self._budget)
        accepting = np.array([matched for _, matched in number])
        return finish(np.array(rows), accepting, start, starts, atom_of, self._budget)


def _prefers(node: Node) -> bool:
    """Does it matter in which order the ways to match are tried?"""
    if isinstance(node, Seq):
        return any(map(_prefers, node.items))
    if isinstance(node, Repeat):
        return not node.greedy or _prefers(node.item)
    return isinstance(node, Alt)
