"""Writes rules without repeats, options and templates, from the trees that lark reads.

Each group, repeat and use of a template becomes a rule of its own, in place of all combinations of
their alternatives, of which there may be exponentially many.
"""

from __future__ import annotations

from typing import Any

from bpe_automata._budget import check
from bpe_automata.errors import GrammarError
from bpe_automata.grammars.bounds import STEPS, refuse

Rules = dict[str, list[tuple[str, ...]]]
"""The alternatives of each rule, which are sequences of symbols."""
_FEW = 50  # rounds of a repeat that are written one by one


class Writer:
    """Writes the rules of a grammar. rules: those written so far."""

    def __init__(self, definitions: dict[str, tuple[tuple[str, ...], Any]]) -> None:
        """definitions: the parameters and the tree of each rule. Raises BudgetExceededError where
        templates use one another without end, GrammarError for repeats of contradicting counts."""
        self.rules: Rules = {}
        self._definitions, self._steps = definitions, 0
        self._made: dict[tuple[object, ...], str] = {}  # the rules that are added here
        whole = {name: tree for name, (parameters, tree) in definitions.items() if not parameters}
        self._waiting = [(name, tree, dict[str, str]()) for name, tree in whole.items()]
        for name, tree, symbols in self._waiting:
            self.rules[name] = self._alternatives(tree, symbols)

    def _alternatives(self, tree: Any, symbols: dict[str, str]) -> list[tuple[str, ...]]:
        """The alternatives of a tree. symbols: what parameters stand for."""
        if tree is None:
            return []
        data = getattr(tree, "data", "")
        if data == "expansions":
            return [one for part in tree.children for one in self._alternatives(part, symbols)]
        if data == "alias":
            return self._alternatives(tree.children[0], symbols)
        if data == "maybe":
            return [*self._alternatives(tree.children[0], symbols), ()]
        parts = tree.children if data == "expansion" else [tree]
        return [tuple(self._symbol(part, symbols) for part in parts)]

    def _symbol(self, tree: Any, symbols: dict[str, str]) -> str:
        """A symbol that reads what a tree reads; its rule is made if there is none."""
        check()
        self._steps += 1
        if self._steps > STEPS:
            refuse("symbols in rules", STEPS, self._steps)
        data = getattr(tree, "data", None)
        if data is None:
            return symbols.get(tree.name, str(tree.name))
        if data == "template_usage":
            name, *given = tree.children
            return self._used(symbols.get(name.name, str(name.name)), given, symbols)
        if data == "expr":
            item, sign, *counts = tree.children
            return self._repeat(self._symbol(item, symbols), str(sign), *map(int, counts))
        return self._rule((), self._alternatives(tree, symbols))

    def _rule(self, key: tuple[object, ...], alternatives: list[tuple[str, ...]]) -> str:
        """The name of a new rule."""
        name = f"<{len(self._made)}>"
        self._made[key or (name,)] = name
        self.rules[name] = alternatives
        return name

    def _used(self, template: str, given: list[Any], symbols: dict[str, str]) -> str:
        """The rule of a template with arguments."""
        key = template, *(self._symbol(one, symbols) for one in given)
        if key not in self._made:
            parameters, tree = self._definitions[template]
            name = self._rule(key, [])
            self._waiting.append((name, tree, dict(zip(parameters, key[1:], strict=True))))
        return self._made[key]

    def _repeat(self, symbol: str, sign: str, least: int = 0, most: int | None = None) -> str:
        """The rule of a repeat of a symbol; for `~`, of `least` to `most` rounds, or by default of
        exactly `least`."""
        most = least if most is None else most
        if not 0 <= least <= most:
            raise GrammarError(f"a repeat of {least} to {most} rounds: give the smaller one first")
        if sign == "~":
            rounds = self._exactly(symbol, least) + self._up_to(symbol, most - least)
            return self._rule((), [rounds])
        if (sign, symbol) in self._made:
            return self._made[sign, symbol]
        name = self._rule((sign, symbol), [() if sign in "*?" else (symbol,)])
        self.rules[name].append((symbol,) if sign == "?" else (name, symbol))
        return name

    def _exactly(self, symbol: str, rounds: int) -> tuple[str, ...]:
        """Symbols that read exactly so many rounds; many are written as two halves."""
        if rounds <= _FEW:
            return (symbol,) * rounds
        key = "exactly", symbol, rounds
        if key not in self._made:
            half = rounds // 2
            self._rule(key, [self._exactly(symbol, half) + self._exactly(symbol, rounds - half)])
        return (self._made[key],)

    def _up_to(self, symbol: str, rounds: int) -> tuple[str, ...]:
        """Symbols that read at most so many rounds: one after another, or many as two halves."""
        if rounds == 0:
            return ()
        key = "up to", symbol, rounds
        if key not in self._made:
            half = 1 if rounds <= _FEW else rounds // 2
            first = (symbol,) if half == 1 else self._up_to(symbol, half)
            self._rule(key, [(), first + self._up_to(symbol, rounds - half)])
        return (self._made[key],)
