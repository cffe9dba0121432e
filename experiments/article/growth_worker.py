"""What the growth experiment measures: four ways from a byte DFA to its canonical tokenizations.

What depends on the tokenizer alone is made once, in a `Bench`: the article calls it the
preparation. `python -m experiments.article.growth_worker FILE` measures, each cell in a fork; FILE:
a tokenizer.json, BPE alone.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bpe_automata import ByteDFA, TokenAutomaton, Tokenizer, compile_regex
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.explicit import explore
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata._kernels.bits import members
from bpe_automata.reference import CartesianProduct, direct_merge, explicit, product_mask
from experiments.article.forks import forked, limits, peak_mb, serve, settle
from experiments.article.mistral import Reference
from experiments.run.executors import Row
from experiments.shared.resources import timed

WARM = ("[a-c]{3}", "(ab)*(true|false)*")
"""Regexes that need every kernel."""
_NO_LIMIT = 2**62  # the memory limit of the process is the limit


def sizes(
    first: Iterable[int],
    states: int | None = None,
    transitions: int | None = None,
    integers: int | None = None,
) -> Row:
    """What a row says of an automaton. states, transitions: if it was written out; integers: what
    has to be kept for this regex, 1 a state, 2 a transition (token, target) and 2 a relevant pair;
    first: the tokens of the first mask."""
    ids = tuple(sorted(first))
    return {
        "states": states,
        "transitions": transitions,
        "integers": integers,
        "first_ids": len(ids),
        "first_crc32": zlib.crc32(repr(ids).encode()),
    }


@dataclass(frozen=True)
class Built:
    """What a method made. Both are called when the clock has stopped."""

    sizes: Callable[[], Row]
    automaton: Callable[[], TokenAutomaton] | None


class Bench(Reference):
    """With what the package makes once."""

    def prepare(self, method: str) -> None:
        """Make what regexes share, and load the kernels."""
        if method == CARTESIAN:
            self.texts, self.spelled  # noqa: B018  # cached
        elif method in (LAZY, EXPLICIT):
            canonical_automaton(self.tokenizer)
            for regex in WARM:
                engine = CartesianMerge(self.tokenizer, compile_regex(regex))
                explore(engine, engine.initial()).minimised()


def direct(bench: Bench, dfa: ByteDFA) -> Built:
    """DirectMerge on base symbols, as published."""
    merged = direct_merge(bench.symbols(dfa), bench.merges)

    def counted() -> Row:
        states, transitions = len(merged.states()), sum(map(len, merged.out.values()))
        return sizes(merged.out[merged.start], states, transitions, states + 2 * transitions)

    return Built(counted, lambda: explicit(merged))


def cartesian(bench: Bench, dfa: ByteDFA) -> Built:
    """CartesianMerge as published: the lift, and the relevant states of the product."""
    lifted = bench.lifted(dfa)
    product = CartesianProduct(lifted, bench.texts)
    relevant = product.relevant

    def counted() -> Row:
        transitions = sum(len(product_mask(product, pair)) for pair in relevant)
        kept = len(lifted.states()) + 2 * sum(map(len, lifted.out.values())) + 2 * len(relevant)
        return sizes(product_mask(product, product.start), len(relevant), transitions, kept)

    return Built(counted, lambda: explicit(product.automaton()))


def lazy(bench: Bench, dfa: ByteDFA) -> Built:
    """CartesianMerge of the package, to its first mask; no automaton is written out."""
    engine = CartesianMerge(bench.tokenizer, dfa)
    mask = engine.mask(engine.initial())
    return Built(lambda: sizes(members(mask).tolist()), None)


def written_out(bench: Bench, dfa: ByteDFA) -> Built:
    """CartesianMerge of the package, the whole automaton. Its states hold the last id, so there are
    more than need be."""
    engine = CartesianMerge(bench.tokenizer, dfa)
    automaton = explore(engine, engine.initial(), _NO_LIMIT)

    def counted() -> Row:
        states, transitions = automaton.n_states, automaton.n_transitions
        first = automaton.row(automaton.start)[0].tolist()
        return sizes(first, states, transitions, states + 2 * transitions)

    return Built(counted, lambda: automaton)


DIRECT, CARTESIAN = "DirectMerge", "CartesianMerge"
LAZY, EXPLICIT = "package, first mask", "package, written out"
METHODS: dict[str, Callable[[Bench, ByteDFA], Built]] = {
    DIRECT: direct,
    CARTESIAN: cartesian,
    LAZY: lazy,
    EXPLICIT: written_out,
}
"""The first two are the reference: the published algorithms in plain Python."""

# ---------------------------------------------------------------- the process


def measured(bench: Bench, cell: Row) -> Row:
    """The row of a cell from a fork: construct within the limits; then, without limits, count, and
    keep the automaton.

    cell: method, regex, limit_seconds, limit_mb (10^6 bytes; both for the construction alone),
    file (.npz to which the automaton goes, or None), most_kept (its transitions at most).
    """
    dfa = compile_regex(cell["regex"])
    method = METHODS[cell["method"]]
    before = peak_mb()
    with limits(cell["limit_seconds"], cell["limit_mb"]):
        seconds, built = timed(lambda: method(bench, dfa))
    peak = max(0.0, peak_mb() - before)
    found = built.sizes()
    small = found["transitions"] is not None and found["transitions"] <= cell["most_kept"]
    kept = built.automaton is not None and bool(cell["file"]) and small
    if built.automaton and kept:
        automaton = built.automaton()
        # Without the spellings, which are the same for all.
        parts = (automaton.start, automaton.accepting, automaton.offsets, automaton.symbols)
        TokenAutomaton(*parts, automaton.targets).save(Path(cell["file"]))
    return {
        "seconds": seconds,
        "peak_mb": peak,
        **found,
        "kept": kept,
    }


def main(file: str) -> None:
    """Answer until the input ends. A method is to be prepared before its cells are asked for."""
    bench = Bench(Tokenizer.load(file))

    def answer(question: Row) -> Row:
        if "prepare" not in question:
            return forked(lambda: measured(bench, question))
        seconds, _ = timed(lambda: bench.prepare(question["prepare"]))
        settle()
        return {"seconds": seconds}

    serve(answer)


if __name__ == "__main__":
    main(sys.argv[1])
