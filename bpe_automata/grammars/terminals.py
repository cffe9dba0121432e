"""The texts of a terminal: those that its regex consumes to the end.

    L(terminal) = { w : re.match(pattern, w).end() == len(w) }

A lazy repeat ends as soon as it can, and the first alternative that matches is taken. So `"a.*?b"`
reads no text with `b` inside, though `re.fullmatch` would. These are the matches that lark finds in
a text, whatever follows them. The regex becomes threads in order of preference, where a thread that
matches ends those of lower preference (`tokenizer.pike`), and the lists of threads become states.

A lookbehind for one character, as in the escaped strings of lark's library, is decided where that
character was read: for the threads it is a look at the last character, instead of the next one.
Other assertions look at what is outside the terminal, and are refused.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bpe_automata._budget import Budget, check, out_of_instructions, out_of_memory, out_of_states
from bpe_automata.automata.codepoints import Inversion
from bpe_automata.automata.compile import atoms, finish, refusing_deep_nesting
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.syntax import (
    Alternation,
    Anchor,
    Chars,
    Look,
    Repetition,
    Substituted,
    Tree,
    may_be_empty,
    parse_assertions,
)
from bpe_automata.automata.syntax import Node as RegexNode
from bpe_automata.errors import UnsupportedRegexError, UnsupportedTokenizerError
from bpe_automata.tokenizer.pattern_tree import Alt, Char, Node, Repeat, Seq, longest
from bpe_automata.tokenizer.pattern_tree import Look as CharLook
from bpe_automata.tokenizer.pike import END, Program, Threads


@lru_cache(maxsize=256)
def texts_of(pattern: str, budget: Budget) -> ByteDFA:
    """The minimal DFA of the texts, over UTF-8. Raises RegexSyntaxError, UnsupportedRegexError and
    BudgetExceededError."""
    with refusing_deep_nesting():
        return _Terminal(pattern, budget).dfa()


class _Terminal:
    """A regex as threads, for which a character is the number of its class."""

    def __init__(self, pattern: str, budget: Budget) -> None:
        self._pattern, self._budget = pattern, budget
        self._classes: dict[Inversion, int] = {}
        self._looks_behind = False
        tree = self._sequence(parse_assertions(Substituted(pattern, pattern)))
        try:
            self._program = Program(tree, pattern, budget.max_instructions)
        except UnsupportedTokenizerError:
            raise out_of_instructions(budget) from None

    def _refuse(self, why: str) -> UnsupportedRegexError:
        return UnsupportedRegexError(self._pattern, 0, f"{why} is not supported in a terminal")

    def _sequence(self, tree: Tree) -> Node:
        return Seq(tuple(self._node(node) for node in tree))

    def _node(self, node: RegexNode) -> Node:
        check()
        if isinstance(node, Chars):
            return Char(self._class(node))
        if isinstance(node, Alternation):
            return Alt(tuple(self._sequence(option) for option in node.options))
        if isinstance(node, Repetition):
            return self._repetition(node)
        if isinstance(node, Look) and node.behind and len(node.body) == 1:
            one = node.body[0]
            if isinstance(one, Chars):
                self._looks_behind = True
                return CharLook(self._class(one), node.denied)
        if isinstance(node, Anchor):
            raise self._refuse("an anchor")
        raise self._refuse("lookaround other than a lookbehind for one character")

    def _class(self, chars: Chars) -> str:
        return str(self._classes.setdefault(chars.members, len(self._classes)))

    def _repetition(self, node: Repetition) -> Node:
        item = self._sequence(node.body)
        if may_be_empty(node.body) and _prefers(item):
            raise self._refuse("a repeat of what may be empty and has alternatives or lazy repeats")
        least, most = node.least, node.most
        if longest(item) == 0:  # nothing, however often
            least, most = min(least, 1), 1 if most is None else min(most, 1)
        return Repeat(item, least, most, node.greedy)

    def dfa(self) -> ByteDFA:
        """The DFA of all texts that end where the first thread that matches does."""
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
