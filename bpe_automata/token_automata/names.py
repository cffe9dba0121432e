"""How symbols are shown to people."""

from __future__ import annotations

from collections.abc import Iterable

from bpe_automata.token_automata.table import Table
from bpe_automata.viz import visible

_LONGEST = 24
_MANY = 8


def symbol_text(table: Table, symbol: int) -> str:
    """What the symbol spells, every byte of it visible; its number if that is not known."""
    spelled = _spelling(table, symbol)
    return str(symbol) if spelled is None else visible(spelled, _LONGEST)


def named(table: Table, symbol: int) -> str:
    """For a sentence: `271 (␣the)`."""
    spelled = _spelling(table, symbol)
    return str(symbol) if spelled is None else f"{symbol} ({visible(spelled, _LONGEST)})"


def sequence(table: Table, symbols: Iterable[int]) -> str:
    """For a sentence: `4 (a), 5 (b)`, `nothing` for the empty sequence."""
    return ", ".join(named(table, symbol) for symbol in symbols) or "nothing"


def some(table: Table, symbols: Iterable[int]) -> str:
    """The first few of many."""
    listed = list(symbols)
    more = f" … +{len(listed) - _MANY:,} more" if len(listed) > _MANY else ""
    return sequence(table, listed[:_MANY]) + more


def plural(number: int, noun: str) -> str:
    """`1 state`, `2 states`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def size(table: Table) -> str:
    """`4 states, 1 transition`."""
    return f"{plural(table.n_states, 'state')}, {plural(table.n_transitions, 'transition')}"


def _spelling(table: Table, symbol: int) -> bytes | None:
    """None where there is none, or none that is worth showing."""
    spellings = table.spellings
    known = spellings is not None and 0 <= symbol < len(spellings)
    return (spellings[symbol] or None) if spellings is not None and known else None
