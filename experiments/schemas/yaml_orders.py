"""Is a value among the texts of an automaton of block YAML, in its own order of keys or another?

The automaton alone is asked, member by member, so that nothing of how it was made is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.schemas.yaml_style import INDENT, yaml_text

STEPS = 20_000  # members tried, of one value


class OutOfStepsError(Exception):
    """Neither an order was found, nor that there is none."""


def in_some_order(dfa: ByteDFA, value: Any, names: Sequence[str] = ()) -> bool:
    """Does some order of the keys, at each place, give an accepted text? names: which are likely to
    come first, in order. Raises OutOfStepsError."""
    return any(map(dfa.accepting.__getitem__, _Search(dfa, names).root(value)))


class _Search:
    """States after some text of a value: each method yields them, none twice in a row of calls."""

    def __init__(self, dfa: ByteDFA, names: Sequence[str]) -> None:
        self._dfa, self._rank = dfa, {name: i for i, name in reversed([*enumerate(names)])}
        self._left = STEPS

    def root(self, value: Any) -> Iterator[int]:
        yield from self._value(self._dfa.start, value, 0, False)

    def _read(self, state: int, text: str) -> int:
        return self._dfa.walk(text.encode(), state) if state else 0

    def _value(self, state: int, value: Any, level: int, after_key: bool) -> Iterator[int]:
        """From `state` over the value. level, after_key: its place."""
        if not isinstance(value, dict | list) or not value:
            yield self._read(state, " " * after_key + yaml_text(value))
            return
        margin = " " * (INDENT * level)
        state = self._read(state, f"\n{margin}" if after_key else "")
        if isinstance(value, dict):
            ranked = sorted(value.items(), key=lambda member: self._rank.get(member[0], 10**6))
            yield from self._members(state, tuple(ranked), "", margin, level, set())
        else:
            yield from self._items(state, value, "", margin, level)

    def _members(
        self,
        state: int,
        members: tuple[tuple[str, Any], ...],
        begin: str,
        margin: str,
        level: int,
        seen: set[tuple[int, frozenset[str]]],
    ) -> Iterator[int]:
        """All orders of the members that are left; begin: what stands before the next one."""
        key = (state, frozenset(name for name, _ in members))
        if state == 0 or key in seen:
            return
        seen.add(key)
        if not members:
            yield state
        for i, (name, value) in enumerate(members):
            self._step()
            rest = members[:i] + members[i + 1 :]
            after_name = self._read(state, begin + yaml_text({name: ""}).removesuffix(' ""\n'))
            for after in self._value(after_name, value, level + 1, True) if after_name else ():
                yield from self._members(after, rest, margin, margin, level, seen)

    def _items(
        self, state: int, items: Sequence[Any], begin: str, margin: str, level: int
    ) -> Iterator[int]:
        if not items:
            yield state
            return
        self._step()
        after_dash = self._read(state, f"{begin}- ")
        for after in self._value(after_dash, items[0], level + 1, False) if after_dash else ():
            if after:
                yield from self._items(after, items[1:], margin, margin, level)

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise OutOfStepsError
