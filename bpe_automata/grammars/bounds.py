"""Bounds what lark is given, since nothing stops lark once it reads.

We estimate lark's cost beforehand in steps of about a microsecond, with factors that were measured
with lark 1.3 and rounded up. The lexer and the parser take steps for each sign of the text; a
terminal takes steps by the length of its regex, in which the terminals that it names are written
out.
"""

from __future__ import annotations

import os
import re
from graphlib import CycleError, TopologicalSorter
from typing import NoReturn

from bpe_automata._budget import check
from bpe_automata.errors import BudgetExceededError, GrammarError

CHARACTERS, IMPORTS, STEPS = 200_000, 100, 1_000_000
_SIGN = re.compile(
    r'(?P<literal>"(?:[^"\\\n]|\\[^\n])*"i?|/(?!/)(?:[^/\\]|\\[\s\S])*/[imslux]*)'
    r"|(?P<ignore>%ignore)|(?P<comment>//.*|#.*)|(?P<lines>(?:\r?\n)+)"
    r"|(?P<terminal>_?[A-Z][_A-Z0-9]*)(?P<begins>(?:\s*\.\s*\d+)?\s*:)?"
    r'|(?P<rule>_?[a-z]\w*)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<endless>["/])|\S'
)
_IMPORTED = 300  # the assumed size of an imported terminal; lark's own are smaller


def refuse(what: str, limit: int, found: int) -> NoReturn:
    """Raise the error for a grammar that is too large."""
    advice = (
        f"the grammar comes to {found:,} or more. This limit is fixed, as lark cannot be stopped: "
        "write fewer or shorter rules, adjacent optional parts as alternatives, lists of words "
        "as one regex, or compile the grammar in pieces"
    )
    raise BudgetExceededError(what, limit, advice)


class Bounds:
    """The cost of one grammar and its imports, as far as it was counted."""

    def __init__(self) -> None:
        self._characters = self._imports = self._steps = self._terminal_steps = 0

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > STEPS:
            refuse("steps of lark", STEPS, self._steps)

    def text(self, text: str) -> None:
        """Count what reading a text takes. Raises BudgetExceededError; and GrammarError for
        terminals that contain themselves, and for a string or a regex without an end, which lark
        would seek in exponential time."""
        self._characters += len(text)
        if self._characters > CHARACTERS:
            refuse("characters", CHARACTERS, self._characters)
        depth, terminals = 0, dict[str, list[tuple[str, int]]]()
        terminal: list[tuple[str, int]] = []
        for sign in _SIGN.finditer(text):
            kind = sign.lastgroup
            if kind == "endless":
                line = text.count("\n", 0, sign.start()) + 1
                raise GrammarError(f"the string or regex that begins in line {line} has no end")
            if kind == "lines":
                self._count(len(sign[0]) ** 2 // 100)  # lark looks for a `|` in each part of them
            depth += (kind == "open") - (kind == "close")
            self._count(15 + depth * depth // 30)
            if kind == "literal":
                self._count(2 * len(sign[0]))  # lark computes the least width of a regex
            if kind in ("begins", "ignore"):
                terminal = terminals.setdefault(sign["terminal"] or sign[0], [])
            elif kind == "rule":
                terminal = []
            elif kind != "comment":
                terminal.append((sign[0], max(depth, 0) + 1))
        self._terminals(terminals)

    def _terminals(self, terminals: dict[str, list[tuple[str, int]]]) -> None:
        """Count what terminals take. terminals: for each name its signs, each with one more than
        the number of brackets around it. lark writes out the terminals that a terminal names, and
        reads the regex inside each bracket anew."""
        inside = {name: {one for one, _ in signs} for name, signs in terminals.items()}
        try:
            order = [*TopologicalSorter(inside).static_order()]
        except CycleError as error:
            names = " in ".join(error.args[1])
            raise GrammarError(f"terminals contain themselves: {names}") from None
        sizes: dict[str, tuple[int, int]] = {}  # length of the regex, characters that are read
        for name in order:
            check()
            if name not in terminals:
                size = _IMPORTED if name[0].isalpha() or name[0] == "_" else 4 + len(name)
                sizes[name] = size, size
                continue
            size = sum(sizes[one][0] for one, _ in terminals[name])
            work = sum(sizes[one][1] + depth * sizes[one][0] for one, depth in terminals[name])
            sizes[name] = size, work
            self._terminal_steps += work
            self._count(work)
        largest = max((sizes[name][0] for name in terminals), default=0)
        if self._imports and largest > _IMPORTED:  # imported ones may be larger than assumed
            self._count(self._terminal_steps * (largest // _IMPORTED))
            self._terminal_steps *= 1 + largest // _IMPORTED

    def source(self, folder: object, path: str) -> tuple[str, str]:
        """A source of imports for lark: the name and text of a file, which are counted. Raises
        OSError if there is no such file; lark then looks into its own library, which is small."""
        check()
        self._imports += 1
        if self._imports > IMPORTS:
            refuse("imports", IMPORTS, self._imports)
        if not isinstance(folder, str):
            raise FileNotFoundError(path)
        name = os.path.join(folder, path)
        with open(name, encoding="utf8") as file:
            text = file.read(CHARACTERS + 1)
        self.text(text)
        return name, text
