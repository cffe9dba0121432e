"""Bounds on what lark is given: once it reads, nothing stops it.

We estimate lark's cost beforehand in steps of about a microsecond, with factors that were measured
with lark 1.3 and rounded up. The lexer and the parser cost by the signs of the text; the rules that
lark makes of options, repeats and templates by their number and length, which are found without
making them; a terminal by the length of its regex, in which those that it names are written out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any, NoReturn

from bpe_automata._budget import check
from bpe_automata.errors import BudgetExceededError, GrammarError

CHARACTERS, IMPORTS, STEPS = 200_000, 100, 1_000_000
_SIGN = re.compile(
    r'(?P<literal>"(?:[^"\\\n]|\\[^\n])*"i?|/(?!/)(?:[^/\\]|\\[\s\S])*/[imslux]*)'
    r"|(?P<ignore>%ignore)|(?P<comment>//.*|#.*)|(?P<lines>(?:\r?\n)+)"
    r"|(?P<terminal>_?[A-Z][_A-Z0-9]*)(?P<begins>(?:\s*\.\s*\d+)?\s*:)?"
    r'|(?P<rule>_?[a-z]\w*)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<endless>["/])|\S'
)
_IMPORTED = 300  # how large a terminal that is imported is taken to be; lark's own are smaller
_LARK_SPLITS = 50  # from this count on lark makes nested rules of a repeat
Shape = tuple[int, int, int]
"""What becomes of a part of a rule: alternatives, symbols of all, symbols of the longest."""


def refuse(what: str, limit: int, found: int) -> NoReturn:
    """Raise the error for a grammar that is too large."""
    advice = (
        f"the grammar comes to {found:,} or more. This limit is fixed, as lark cannot be stopped: "
        "write fewer or shorter rules, options beside each other as alternatives, lists of words "
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
        terminals that contain themselves, and for a string or a regex without end, in which lark
        would look for one in exponential time."""
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
                self._count(len(sign[0]) ** 2 // 100)  # of each part of them lark looks for a `|`
            depth += (kind == "open") - (kind == "close")
            self._count(15 + depth * depth // 30)
            if kind == "literal":
                self._count(2 * len(sign[0]))  # of a regex lark asks the least width
            if kind in ("begins", "ignore"):
                terminal = terminals.setdefault(sign["terminal"] or sign[0], [])
            elif kind == "rule":
                terminal = []
            elif kind != "comment":
                terminal.append((sign[0], max(depth, 0) + 1))
        self._terminals(terminals)

    def _terminals(self, terminals: dict[str, list[tuple[str, int]]]) -> None:
        """Count what terminals take. terminals: of each name the signs, with one more than the
        number of brackets around each. lark writes out the terminals that one names, and reads the
        regex inside of each bracket."""
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
        if self._imports and largest > _IMPORTED:  # those that were taken to be small may not be
            self._count(self._terminal_steps * (largest // _IMPORTED))
            self._terminal_steps *= 1 + largest // _IMPORTED

    def source(self, folder: object, path: str) -> tuple[str, str]:
        """A source of imports for lark: files, which are counted. Raises OSError for what is no
        file, and lark then looks into its own library, which is small."""
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

    def rules(self, definitions: list[Any]) -> None:
        """Count what the rules take that lark makes of them (name, parameters, tree, options)."""
        known = {name: (params, tree) for name, params, tree, _ in definitions}
        steps = {}
        for name, (_, tree) in known.items():
            before = self._steps
            n, symbols, _ = self._shape(tree)
            self._count(25 * n + 3 * symbols)
            steps[name] = self._steps - before
        made: set[str] = set()
        waiting = [(tree, dict[str, str]()) for params, tree in known.values() if not params]
        for tree, names in waiting:
            for name, text, arguments in _usages(tree, names):
                self._count(len(text))
                if text not in made and name in known:
                    check()
                    made.add(text)
                    params, template = known[name]
                    self._count(steps[name] + len(known))
                    waiting.append((template, dict(zip(params, arguments, strict=False))))

    def _shape(self, tree: Any) -> Shape:
        """The shape of a rule's tree, in which each use of a template is one symbol."""
        if tree is None:
            return 1, 1, 1
        found: dict[int, Shape] = {}
        for node in tree.iter_subtrees():
            check()
            inner = [found.get(id(one), (1, 1, 1)) for one in node.children]
            found[id(node)] = shape = self._joined(node, inner)
            if shape[1] > STEPS or shape[0] > STEPS:
                refuse("symbols in rules", STEPS, max(shape))
        return found[id(tree)]

    def _joined(self, node: Any, inner: list[Shape]) -> Shape:
        self._count(5)
        kind = node.data
        if kind == "expansions":
            return sum(i[0] for i in inner), sum(i[1] for i in inner), max(i[2] for i in inner)
        if kind == "expansion":
            return self._product(inner)
        if kind == "alias":
            return inner[0]
        if kind == "maybe":
            n, symbols, longest = inner[0]
            return n + 1, symbols + longest, longest
        if kind == "expr":
            return self._repeat(inner[0], *node.children[1:])
        self._count(15)
        return 1, 1, 1

    def _product(self, inner: list[Shape]) -> Shape:
        """Of parts one behind the other: each combination is an alternative."""
        n, steps, longest = 1, 0, sum(part[2] for part in inner)
        for part in inner:
            n *= part[0]
            steps += n if part[0] > 1 else 0
            if n > STEPS:
                refuse("alternatives in rules", STEPS, n)
        self._count(steps * longest)
        return n, sum(n // part[0] * part[1] for part in inner), longest

    def _repeat(self, part: Shape, sign: str, *numbers: str) -> Shape:
        from lark.utils import small_factors

        n, symbols, longest = part
        if sign == "?":
            return n + 1, symbols, longest
        if sign != "~":
            self._count(50 * n + 10 * symbols)
            return (2 if sign == "*" else 1), 1, 1
        least, most = int(numbers[0]), int(numbers[-1])
        if most < _LARK_SPLITS:
            shapes = [self._product([part] * k) for k in range(max(least, 0), most + 1)]
            return sum(s[0] for s in shapes) or 1, sum(s[1] for s in shapes), most * longest
        for count in (least, most - least + 1):
            first = n
            for a, b in small_factors(max(count, 0), 5):
                made = 2 * (a + b + 1) * first**a * n**b
                self._count(made * (25 + 5 * (a + b + 1) * longest))
                first = 1
        return 1, 2, 2


def _usages(tree: Any, names: dict[str, str]) -> Iterator[tuple[str, str, list[str]]]:
    """(template, the name of the rule that lark makes, arguments) for each use of a template in a
    rule, where `names` stand for parameters."""
    found: dict[int, str] = {}
    for node in tree.iter_subtrees() if tree is not None else ():
        if node.data == "value":
            (one,) = node.children
            name = getattr(one, "name", None)
            found[id(node)] = names.get(name, name) if name else found.get(id(one), str(one))
        elif node.data == "template_usage":
            name, *arguments = node.children
            name = names.get(name.name, name.name)
            texts = [found[id(one)] for one in arguments]
            if sum(map(len, texts)) > STEPS:
                refuse("characters in names", STEPS, sum(map(len, texts)))
            found[id(node)] = text = f"{name}{{{','.join(texts)}}}"
            yield name, text, texts
