"""What lark would write a grammar out to, counted before it does.

lark writes groups, options and repeats of a rule out to alternatives, whose number is the product
of those of their parts; it makes a rule for each use of a template, and a regex of each terminal in
which the terminals that it names are written out. Each of these is exponential in the length of
some grammars.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bpe_automata.errors import BudgetExceededError

MOST_CHARACTERS = 60_000
MOST_SYMBOLS = 200_000


def check_length(text: str) -> None:
    """Raises BudgetExceededError for a grammar that is too long to be read."""
    if len(text) > MOST_CHARACTERS:
        raise _too_large("characters of a grammar", MOST_CHARACTERS, f"this one has {len(text):,}")


def check_terminals(statements: Any) -> None:
    """statements: a `lark.Tree` of a grammar, as it was read. Raises BudgetExceededError where
    the regexes of its terminals would be too long. Imported terminals are not counted."""
    trees = {str(one.children[0]): one.children[-1] for one in statements.find_data("term")}
    lengths: dict[str, int] = {}

    def length(tree: Any) -> int:
        """More or less, as a regex."""
        if not hasattr(tree, "children"):
            name = str(getattr(tree, "name", ""))
            return whole(name) if name in trees else len(str(tree)) + 4
        return 4 + sum(map(length, tree.children))

    def whole(name: str) -> int:
        if name not in lengths:
            lengths[name] = 0  # lark refuses a terminal that names itself
            lengths[name] = length(trees[name])
        return lengths[name]

    if sum(map(whole, trees)) > MOST_SYMBOLS:
        why = "terminals that name others are longer once these are written out"
        raise _too_large("characters of the terminals of a grammar", MOST_SYMBOLS, why)


def check_rules(grammar: Any) -> None:
    """grammar: a `lark.load_grammar.Grammar`, which nothing was written out of yet. Raises
    BudgetExceededError where that would take too many symbols."""
    rules = {name: (params, tree) for name, params, tree, _ in grammar.rule_defs}
    counting = _Counting(rules)
    for name, (params, tree) in rules.items():
        if not params:
            counting.rule(name, tree, {})


class _Counting:
    """rules: (names of parameters, tree) of each rule and template."""

    def __init__(self, rules: Mapping[str, tuple[tuple[str, ...], Any]]) -> None:
        self._rules, self._total = rules, 0
        self._name = ""

    def add(self, name: str, symbols: int) -> None:
        self._total += symbols
        if self._total > MOST_SYMBOLS:
            why = f"lark would write {name} and what comes before it out to more"
            raise _too_large("symbols of a grammar", MOST_SYMBOLS, why)

    def rule(self, name: str, tree: Any, lengths: Mapping[str, int]) -> None:
        """lengths: of the names that stand for the parameters."""
        self._name = name
        alternatives, symbols = self._made(tree, lengths)
        self.add(name, alternatives + symbols)

    def _made(self, tree: Any, lengths: Mapping[str, int]) -> tuple[int, int]:
        """(alternatives, symbols of all of them together)."""
        kind = getattr(tree, "data", None)
        if kind == "expr":
            return self._repeated(tree.children, lengths)
        if kind == "template_usage":
            self._used(tree, lengths)
            return 1, 1
        if kind is None or kind == "literal" or kind == "range":
            return 1, 1
        parts = [self._made(child, lengths) for child in tree.children]
        if kind == "expansions":
            return self._bounded(sum(n for n, _ in parts), sum(size for _, size in parts))
        if kind == "maybe":
            return parts[0][0] + 1, 2 * parts[0][1]
        alternatives, symbols = 1, 0
        for n, size in parts:
            alternatives, symbols = self._bounded(
                n * alternatives, symbols * n + size * alternatives
            )
        return alternatives, symbols

    def _bounded(self, alternatives: int, symbols: int) -> tuple[int, int]:
        if alternatives + symbols > MOST_SYMBOLS:
            self.add(self._name, alternatives + symbols)
        return alternatives, symbols

    def _repeated(self, children: Any, lengths: Mapping[str, int]) -> tuple[int, int]:
        tree, how, *counts = children
        n, size = self._made(tree, lengths)
        if how == "?":
            return n + 1, size
        if how in ("*", "+"):  # a rule of its own
            self.add(self._name, 2 * (n + size) + n)
            return 2, 1
        least, most = int(counts[0]), int(counts[-1])
        if (
            most >= 50
        ):  # lark factors the count; no rule that it makes repeats more than 5 times twice
            self.add(self._name, most.bit_length() * 20 * (size + 1) * n ** min(10, most))
            return 1, 2
        alternatives, symbols = 0, 0
        for count in range(least, most + 1):
            alternatives += n**count
            symbols += count * size * n ** max(0, count - 1)
        return self._bounded(alternatives, symbols)

    def _used(self, tree: Any, lengths: Mapping[str, int]) -> int:
        """The length of the name that lark gives to a template with these arguments."""
        name, *given = tree.children
        name = str(name.name)
        sizes = [self._argument(one, lengths) for one in given]
        length = len(name) + 2 + sum(sizes) + len(sizes)
        self.add(name, length)
        params, body = self._rules.get(name, ((), None))
        if body is not None:
            around = self._name
            self.rule(name, body, dict(zip(map(str, params), sizes, strict=False)))
            self._name = around
        return length

    def _argument(self, tree: Any, lengths: Mapping[str, int]) -> int:
        while getattr(tree, "data", None) == "value":
            [tree] = tree.children
        if getattr(tree, "data", None) == "template_usage":
            return self._used(tree, lengths)
        name = str(getattr(tree, "name", "")) or "ANONYMOUS_000000"
        return lengths.get(name, len(name))


def _too_large(resource: str, limit: int, why: str) -> BudgetExceededError:
    advice = f"{why}; use fewer alternatives, options and repeats, or regexes in their place"
    return BudgetExceededError(resource, limit, advice)
