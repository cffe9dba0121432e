"""One cell of the growth experiment, in a process of its own."""

from __future__ import annotations

import zlib
from pathlib import Path

from bpe_automata import TokenAutomaton, compile_regex
from experiments.article.fork import forked, limits, peak_mb
from experiments.article.growth_methods import METHODS, Bench, Built
from experiments.run.executors import Row
from experiments.shared.resources import timed


def measured(bench: Bench, cell: Row) -> Row:
    """What a forked process found out about a cell; if it died, of what.

    cell: method, regex, limit_seconds, limit_mb (10^6 bytes; both for the construction alone),
    file (.npz to which the automaton goes, or None), most_kept (its transitions at most).
    """
    return forked(lambda: _row(bench, cell))


def _row(bench: Bench, cell: Row) -> Row:
    """Construct within the limits; then, without limits, count, and keep the automaton."""
    dfa = compile_regex(cell["regex"])
    method = METHODS[cell["method"]]
    before = peak_mb()
    with limits(cell["limit_seconds"], cell["limit_mb"]):
        seconds, built = timed(lambda: method(bench, dfa))
    peak = max(0.0, peak_mb() - before)
    return {"seconds": seconds, "peak_mb": peak, **_sizes(built, cell)}


def _sizes(built: Built, cell: Row) -> Row:
    sizes = built.sizes()
    row: Row = {
        "states": sizes.states,
        "transitions": sizes.transitions,
        "integers": sizes.integers,
        "first_ids": len(sizes.first),
        "first_crc32": zlib.crc32(repr(sizes.first).encode()),
        "kept": False,
    }
    small = sizes.transitions is not None and sizes.transitions <= cell["most_kept"]
    if built.automaton and cell["file"] and small:
        automaton = built.automaton()
        # Without the spellings, which are the same for all.
        parts = (automaton.start, automaton.accepting, automaton.offsets, automaton.symbols)
        TokenAutomaton(*parts, automaton.targets).save(Path(cell["file"]))
        row["kept"] = True
    return row
