"""Seconds from a regex to its first mask, every engine in turns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bpe_automata import compile_regex
from experiments.run.cells import Row
from experiments.shared.engines import Engine, PeerError, refusals
from experiments.shared.timing import repeated, timed

BUDGET = 12.0
"""Seconds that one engine may take of one regex; beyond fewer rounds have to do, at least two."""
SLOW = 1.0
"""Seconds of a first try, beyond which it counts: it is no longer the caches' doing."""


def compiled(name: str, regex: str, engines: Sequence[Engine], ordinary: np.ndarray, n: int) -> Row:
    """Rounds in which each engine compiles once and makes one mask, so that drift hits all alike.

    `seconds`: [compiling, first mask] of each round; the first round is not counted; `ids`: how
    many of the first mask's are `ordinary` (packed int32 [V / 32]); `failure`: why there are none.
    """
    results: Row = {
        engine.name: {"seconds": [], "ids": None, "failure": None} for engine in engines
    }
    first: dict[str, list[float]] = {}
    for _ in range(n + 1):
        for engine in engines:
            result = results[engine.name]
            if result["failure"] is None and not _spent(result["seconds"]):
                _round(engine, regex, ordinary, result, first)
    dfa = compile_regex(regex)
    alone = repeated(lambda: compile_regex(regex), n)
    row = {"kind": "regex", "name": name, "pattern": regex, "dfa_states": dfa.n_states}
    return row | {"regex_seconds": alone, "engines": results}


def _spent(seconds: list[list[float]]) -> bool:
    return len(seconds) >= 2 and sum(map(sum, seconds)) > BUDGET


def _round(
    engine: Engine, regex: str, ordinary: np.ndarray, result: Row, first: dict[str, list[float]]
) -> None:
    buffer = np.zeros((1, len(ordinary)), dtype=np.int32)
    try:
        with refusals():
            compiling, session = timed(lambda: engine.compile(regex))
            masking, _ = timed(lambda: session.mask(buffer))
    except PeerError as error:
        result["failure"] = str(error)
        return
    result["ids"] = int(np.unpackbits((buffer[0] & ordinary).view(np.uint8)).sum())
    warm = engine.name in first
    first.setdefault(engine.name, [compiling, masking])
    if warm or compiling + masking > SLOW:
        result["seconds"].append([compiling, masking])
