"""What the geometry experiment measures: the rectangles, Algorithm 3, and whether they agree.

`python -m experiments.article.geometry_worker FILE` answers questions that name a `part` of `PARTS`
and its `arguments`, each in a fork; FILE: a tokenizer.json, BPE alone. Memory is in 10^6 bytes, the
peak of the fork over that of the worker, which has read the tokenizer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._core.geometry import Geometry
from bpe_automata._tokenizer.derivation import derive
from bpe_automata.reference import (
    AllTexts,
    Merge,
    TokenDFA,
    all_texts,
    direct_merge,
    explicit,
    merges_in_order,
)
from bpe_automata.reference._token_dfa import Token
from bpe_automata.testing import small_tokenizer
from experiments.article.forks import forked, peak_mb, serve, settle
from experiments.run.executors import Row
from experiments.shared.resources import repeated, timed


def rectangles(tokenizer: Tokenizer, repeats: int) -> Row:
    """Derivations and rectangles of a loaded tokenizer."""
    description = tokenizer.description

    def make() -> Geometry:
        return Geometry(derive(description))

    before = peak_mb()
    geometry = make()
    peak = peak_mb() - before
    return {
        "seconds": repeated(make, repeats),
        "peak_mb": peak,
        "kept_mb": kept_mb(geometry),
        "rectangles": len(geometry.derivation.proper),
    }


def kept_mb(geometry: Geometry) -> float:
    """What the rectangles and derivations occupy, in 10^6 bytes."""
    holders = (geometry.derivation, geometry.tables, geometry.rows, geometry.columns)
    arrays = (value for holder in holders for value in vars(holder).values())
    return sum(array.nbytes for array in arrays if hasattr(array, "nbytes")) / 1e6


def reference(tokenizer: Tokenizer, seed: int, sampled: int) -> Row:
    """Algorithm 3, fused; then every row compared with the rectangles, and `sampled` pairs."""
    merges = merges_in_order(tokenizer.description)
    before = peak_mb()
    seconds, texts = timed(lambda: all_texts(tokenizer.description.base.values(), merges))
    peak = peak_mb() - before
    fusing, fused = timed(texts.fused)
    return {
        "seconds": seconds,
        "fusing_seconds": fusing,
        "peak_mb": peak,
        "fused_peak_mb": peak_mb() - before,
        "states": len(texts.forbidden),
        "forbidden": sum(map(len, texts.forbidden)),
        "fused_states": len(fused.forbidden),
        "merges": len(merges),
        "compared": compared(fused, Geometry(derive(tokenizer.description)), seed, sampled),
    }


def beginnings(tokenizer: Tokenizer, budget: float) -> Row:
    """DirectMerge on `.*` and Algorithm 3 on 1, 2, 4, ... merges, until the next would not fit into
    the budget (seconds)."""
    base = [*tokenizer.description.base.values()]
    merges = merges_in_order(tokenizer.description)
    started, steps, k = time.perf_counter(), list[Row](), 1
    while True:
        spent, step = timed(lambda k=k: beginning(base, merges[:k]))  # type: ignore[misc]
        steps.append(step)
        # Twice the merges take up to three times as long.
        if k >= len(merges) or time.perf_counter() - started + 3 * spent > budget:
            return {"steps": steps, "of": len(merges)}
        k = min(2 * k, len(merges))


def beginning(base: list[Token], merges: list[Merge]) -> Row:
    """Both automata of all texts over some merges, compared as languages."""
    start = TokenDFA.of([("all", symbol, "all") for symbol in base], "all", ["all"])
    direct_seconds, direct = timed(lambda: direct_merge(start, merges))
    texts_seconds, texts = timed(lambda: all_texts(base, merges).fused())
    direct_automaton, texts_automaton = explicit(direct), explicit(texts.automaton())
    differing = direct_automaton.equivalent(texts_automaton)
    return {
        "merges": len(merges),
        "direct": [direct_automaton.n_states, direct_automaton.n_transitions],
        "texts": [texts_automaton.n_states, texts_automaton.n_transitions],
        "direct_seconds": direct_seconds,
        "texts_seconds": texts_seconds,
        "counterexample": None if differing is None else list(differing.ids),
    }


# Algorithm 3 against the rectangles: every pair of tokens of a table.


def compared(texts: AllTexts, geometry: Geometry, seed: int, sampled: int) -> dict[str, Any]:
    """How many pairs the two say different things of: by row (`clear_followers`) and by column
    (`clear_predecessors`) of all pairs, and by `breaking_merge` on `sampled` random pairs, half of
    which are forbidden."""
    tokens = np.array(sorted(texts.delta), dtype=np.int64)
    reachable = np.flatnonzero(geometry.derivation.reachable)
    if not np.array_equal(tokens, reachable):
        return {"tokens": len(tokens), "differences": len(np.setxor1d(tokens, reachable))}
    allowed = allowed_rows(texts, tokens, geometry.n_words)
    whole = packed(tokens, geometry.n_words)
    followers = _followed(allowed, whole, tokens, geometry.clear_followers)
    before = transposed(allowed, tokens, geometry.n_words)
    predecessors = _followed(before, whole, tokens, geometry.clear_predecessors)
    trials = min(sampled, len(tokens) ** 2)
    wrong = broken(allowed, tokens, geometry, seed, trials)
    return {
        "tokens": len(tokens),
        "pairs": len(tokens) ** 2,
        "forbidden": len(tokens) ** 2 - int(np.bitwise_count(allowed.view(np.uint32)).sum()),
        "distinct_rows": len(np.unique(allowed, axis=0)),
        "differences": followers + predecessors + wrong,
        "by_row": followers,
        "by_column": predecessors,
        "by_merge": wrong,
        "sampled": trials,
    }


def packed(tokens: np.ndarray, n_words: int) -> np.ndarray:
    """int32 [n_words]: a bit for each of some ids."""
    flags = np.zeros(n_words * 32, dtype=np.bool_)
    flags[tokens] = True
    return np.packbits(flags, bitorder="little").view(np.int32)


def allowed_rows(texts: AllTexts, tokens: np.ndarray, n_words: int) -> np.ndarray:
    """int32 [k, n_words]: for each of the tokens what may follow it, packed by id."""
    known: dict[int, np.ndarray] = {}
    rows = np.empty((len(tokens), n_words), dtype=np.int32)
    for k, token in enumerate(tokens.tolist()):
        state = texts.delta[token]
        if state not in known:
            forbidden = np.array([*texts.forbidden[state]], dtype=np.int64)
            known[state] = packed(np.setdiff1d(tokens, forbidden), n_words)
        rows[k] = known[state]
    return rows


def transposed(rows: np.ndarray, tokens: np.ndarray, n_words: int) -> np.ndarray:
    """int32 [k, n_words]: for each of the tokens the ones whose row holds it, packed by id."""
    columns = np.empty_like(rows)
    for k, token in enumerate(tokens.tolist()):
        holds = rows[:, token // 32] >> (token % 32) & 1
        columns[k] = packed(tokens[holds.astype(np.bool_)], n_words)
    return columns


def _followed(rows: np.ndarray, whole: np.ndarray, tokens: np.ndarray, clear: Any) -> int:
    """In how many bits the rows differ from what `clear` leaves of all tokens."""
    differences = 0
    for k, token in enumerate(tokens.tolist()):
        bits = whole.copy()
        clear(token, bits)
        differences += int(np.bitwise_count((bits ^ rows[k]).view(np.uint32)).sum())
    return differences


def broken(
    allowed: np.ndarray, tokens: np.ndarray, geometry: Geometry, seed: int, trials: int
) -> int:
    """In how many of so many random pairs `breaking_merge` says something else."""
    rng = np.random.default_rng(seed)
    wrong = 0
    for trial in range(trials):
        left = int(rng.integers(len(tokens)))
        flags = np.unpackbits(allowed[left].view(np.uint8), bitorder="little").astype(np.bool_)
        among = tokens if trial % 2 else tokens[~flags[tokens]]
        if len(among):
            right = int(among[rng.integers(len(among))])
            breaks = geometry.breaking_merge(int(tokens[left]), right) >= 0
            wrong += breaks == flags[right]
    return int(wrong)


PARTS: dict[str, Callable[..., Row]] = {
    "rectangles": rectangles,
    "reference": reference,
    "beginnings": beginnings,
}


def main(file: str) -> None:
    """Load everything that is to be neither timed nor counted; then answer until the input ends."""
    tokenizer = Tokenizer.load(file)
    small = small_tokenizer(("a", "b", "ab"), (("a", "b"),)).description
    Geometry(derive(small))  # loads the kernels
    settle()

    def answer(question: Row) -> Row:
        return forked(lambda: PARTS[question["part"]](tokenizer, *question["arguments"]))

    serve(answer)


if __name__ == "__main__":
    main(sys.argv[1])
