"""A split pattern as a priority-ordered thread machine (Pike VM), one character at a time.

Threads are stored *before* their epsilon closure. It is computed with the next character, which
decides lookahead for one character, such as `(?!\\S)`. `END` stands for the end of the text: it is
in no class, so only negative lookahead holds there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bpe_automata._budget import check
from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.pattern_tree import Ahead, Alt, Char, Look, Node, Repeat, Seq, Start

END = -1
_MOST_INSTRUCTIONS = 100_000
Threads = tuple[int, ...]


class Part(NamedTuple):
    """tests: the character tests before a match; ahead: the address of that match's lookahead;
    matched: for the last part, is there a match without lookahead?"""

    tests: Threads
    ahead: int | None
    matched: bool


Outline = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Instruction:
    """`opcode` is "char", "look", "not", "start", "ahead", "fork" or "match".

    "char", "look" and "not" test class number `klass` and continue at `targets[0]`; "start" does so
    if nothing of the text has been read; "fork" continues at its targets in order of preference;
    "ahead" is a match if the code at `targets[0]` matches from here.
    """

    opcode: str
    klass: int = -1
    targets: tuple[int, ...] = ()


class Program:
    """A compiled pattern over numbered character classes.

    `classes`: (kind, pattern) of each class, in the order of `klass`; the engine interprets them.
    `members` (set by `bind`): the set of atoms in each class. Raises UnsupportedTokenizerError for
    a tree of more than `most` nodes once its repeats are written out.
    """

    def __init__(self, tree: Node, source: str, most: int = _MOST_INSTRUCTIONS) -> None:
        self.source = source
        self._numbers: dict[tuple[str, str], int] = {}
        self._code: list[Instruction] = [Instruction("match")]
        self._written, self._most = 0, most
        self.entry = self._emit(tree, 0)
        self.members: list[frozenset[int]] = []
        self._closures: dict[tuple[Threads, int, bool], tuple[Threads, bool]] = {}
        self._outlines: dict[tuple[Threads, int, bool], Outline] = {}

    def bind(self, members: list[frozenset[int]]) -> None:
        """Fix the alphabet: `members[k]` is the set of atoms in class k."""
        self.members = members
        self._closures.clear()
        self._outlines.clear()
        entry, atoms = (self.entry,), self._atoms()
        if any(
            self.closure(entry, atom, first)[1] or len(self.outline(entry, atom, first)) > 1
            for atom in atoms
            for first in (True, False)
        ):
            raise UnsupportedTokenizerError(
                "split pattern", self.source, "it can match the empty string"
            )

    @property
    def classes(self) -> list[tuple[str, str]]:
        return list(self._numbers)

    def _atoms(self) -> list[int]:
        return [END, *sorted(frozenset().union(*self.members))]

    # ------------------------------------------------------------ compilation (backwards)

    def _add(self, instruction: Instruction) -> int:
        self._code.append(instruction)
        return len(self._code) - 1

    def _count(self) -> None:
        """Count one more instruction. Raises UnsupportedTokenizerError for too many."""
        check()
        self._written += 1
        if self._written > self._most:
            raise UnsupportedTokenizerError(
                "split pattern",
                self.source,
                f"with its repeats written out it has over {self._most:,} parts: use "
                "smaller counts",
            )

    def _class(self, kind: str, source: str) -> int:
        return self._numbers.setdefault((kind, source), len(self._numbers))

    def _emit(self, node: Node, after: int) -> int:
        """The address of code that runs `node` and continues at `after`."""
        self._count()
        if isinstance(node, Char):
            return self._add(Instruction("char", self._class(node.kind, node.source), (after,)))
        if isinstance(node, Look):
            kind = "not" if node.negative else "look"
            return self._add(Instruction(kind, self._class("regex", node.source), (after,)))
        if isinstance(node, Ahead):
            return self._add(Instruction("ahead", targets=(self._emit(node.item, 0),)))
        if isinstance(node, Start):
            return self._add(Instruction("start", targets=(after,)))
        if isinstance(node, Seq):
            for item in reversed(node.items):
                after = self._emit(item, after)
            return after
        if isinstance(node, Alt):
            entries = tuple(self._emit(option, after) for option in node.options)
            return self._add(Instruction("fork", targets=entries))
        return self._emit_repeat(node, after)

    def _emit_repeat(self, node: Repeat, after: int) -> int:
        entry, least = after, node.least
        if node.most is None:
            loop, body = self._emit_loop(node, after)
            entry, least = (body, least - 1) if least else (loop, 0)
        else:
            for _ in range(node.most - least):
                entry = self._fork(self._emit(node.item, entry), after, node.greedy)
        for _ in range(least):
            entry = self._emit(node.item, entry)
        return entry

    def _emit_loop(self, node: Repeat, after: int) -> tuple[int, int]:
        """(address of a loop that may run zero times, address of one that runs at least once)."""
        loop = self._add(Instruction("fork"))
        body = self._emit(node.item, loop)
        targets = (body, after) if node.greedy else (after, body)
        self._code[loop] = Instruction("fork", targets=targets)
        return loop, body

    def _fork(self, body: int, after: int, greedy: bool) -> int:
        return self._add(Instruction("fork", targets=(body, after) if greedy else (after, body)))

    # ------------------------------------------------------------ running

    def closure(self, threads: Threads, atom: int, first: bool = False) -> tuple[Threads, bool]:
        """The character tests before the first match, in order, and whether there is a match.
        `first`: `atom` is the first character of the text. A match with lookahead counts as soon as
        its lookahead has been read."""
        key = (threads, atom, first)
        if key not in self._closures:
            check()
            self._closures[key] = self._closure(threads, atom, first)
        return self._closures[key]

    def _closure(self, threads: Threads, atom: int, first: bool) -> tuple[Threads, bool]:
        tests: list[int] = []
        for at in self._reached(threads, atom, first, through_ahead=True):
            if self._code[at].opcode == "match":
                return tuple(tests), True
            tests.append(at)
        return tuple(tests), False

    def outline(self, threads: Threads, atom: int, first: bool = False) -> Outline:
        """The character tests in order, divided at the matches with lookahead: each part has all
        tests so far and the lookahead of the match after it; the last part has no lookahead, and
        says whether a match without lookahead follows."""
        key = (threads, atom, first)
        if key not in self._outlines:
            check()
            self._outlines[key] = tuple(self._outline(threads, atom, first))
        return self._outlines[key]

    def _outline(self, threads: Threads, atom: int, first: bool) -> Iterator[Part]:
        tests: list[int] = []
        for at in self._reached(threads, atom, first, through_ahead=False):
            instruction = self._code[at]
            if instruction.opcode == "match":
                yield Part(tuple(tests), None, True)
                return
            if instruction.opcode == "ahead":
                yield Part(tuple(tests), instruction.targets[0], False)
            else:
                tests.append(at)
        yield Part(tuple(tests), None, False)

    def _reached(
        self, threads: Threads, atom: int, first: bool, *, through_ahead: bool
    ) -> Iterator[int]:
        """The addresses of the tests and matches that the threads reach before `atom`, each once,
        in order of preference; and of lookaheads, unless these are passed through."""
        seen: set[int] = set()
        stack = list(reversed(threads))
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = self._code[at]
            if instruction.opcode == "fork" or (instruction.opcode == "ahead" and through_ahead):
                stack.extend(reversed(instruction.targets))
            elif instruction.opcode in ("match", "char", "ahead"):
                yield at
            elif self._holds(instruction, atom, first):
                stack.append(instruction.targets[0])

    def _holds(self, instruction: Instruction, atom: int, first: bool) -> bool:
        """Does a zero-width condition hold before `atom`?"""
        if instruction.opcode == "start":
            return first
        return (atom in self.members[instruction.klass]) == (instruction.opcode == "look")

    def fire(self, tests: Threads, atom: int) -> Threads:
        """The threads after `atom`, in order, without repetitions."""
        code = self._code
        after = (code[at].targets[0] for at in tests if atom in self.members[code[at].klass])
        return tuple(dict.fromkeys(after))

    def steps(self, tests: Threads) -> dict[int, Threads]:
        """`fire` for each atom that some test reads."""
        found: dict[int, dict[int, None]] = {}
        for at in tests:
            for atom in self.members[self._code[at].klass]:
                found.setdefault(atom, {})[self._code[at].targets[0]] = None
        return {atom: tuple(threads) for atom, threads in found.items()}
