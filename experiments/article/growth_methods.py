"""What is measured: four ways from a regex, as a byte DFA, to its canonical tokenizations.

What depends on the tokenizer alone is made before, in a `Bench`: the article calls it the
preparation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bpe_automata import ByteDFA, TokenAutomaton, Tokenizer, compile_regex
from bpe_automata.constructions import CartesianMerge, canonical_automaton, explore
from bpe_automata.errors import ArgumentError
from bpe_automata.kernels.bits import members
from bpe_automata.reference import (
    AllTexts,
    CartesianProduct,
    Merge,
    all_texts,
    direct_merge,
    explicit,
    lift,
    merges_in_order,
    product_mask,
    spelled_in_symbols,
    symbol_dfa,
)
from bpe_automata.reference.token_dfa import Token

WARM = ("[a-c]{3}", "(ab)*(true|false)*")
"""Regexes that need every kernel."""
_NO_LIMIT = 2**62  # the memory limit of the process is the limit


@dataclass(frozen=True)
class Sizes:
    """states, transitions: of the automaton, if it was written out; integers: what has to be kept
    for this regex, 1 a state, 2 a transition (token, target) and 2 a relevant pair; first: the
    tokens of the first mask, ascending."""

    states: int | None
    transitions: int | None
    integers: int | None
    first: tuple[int, ...]


@dataclass(frozen=True)
class Built:
    """What a method made. Both are called when the clock has stopped."""

    sizes: Callable[[], Sizes]
    automaton: Callable[[], TokenAutomaton] | None


class Bench:
    """A tokenizer that is BPE alone, with what all regexes share."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.merges: list[Merge] = merges_in_order(tokenizer.description)

    @cached_property
    def texts(self) -> AllTexts:
        """Algorithm 3, fused."""
        return all_texts(self.tokenizer.description.base.values(), self.merges).fused()

    @cached_property
    def spelled(self) -> dict[Token, tuple[Token, ...]]:
        """The base symbols of each token."""
        return spelled_in_symbols([*self.tokenizer.description.base.values()], self.merges)

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
    merged = direct_merge(symbol_dfa(bench.tokenizer.description, dfa), bench.merges)

    def sizes() -> Sizes:
        states, transitions = len(merged.states()), sum(map(len, merged.out.values()))
        first = tuple(sorted(merged.out[merged.start]))
        return Sizes(states, transitions, states + 2 * transitions, first)

    return Built(sizes, lambda: explicit(merged))


def cartesian(bench: Bench, dfa: ByteDFA) -> Built:
    """CartesianMerge as published: the lift, and the relevant states of the product."""
    lifted = lift(symbol_dfa(bench.tokenizer.description, dfa), bench.spelled)
    product = CartesianProduct(lifted, bench.texts)
    relevant = product.relevant

    def sizes() -> Sizes:
        transitions = sum(len(product_mask(product, pair)) for pair in relevant)
        kept = len(lifted.states()) + 2 * sum(map(len, lifted.out.values())) + 2 * len(relevant)
        first = tuple(sorted(product_mask(product, product.start)))
        return Sizes(len(relevant), transitions, kept, first)

    return Built(sizes, lambda: explicit(product.automaton()))


def lazy(bench: Bench, dfa: ByteDFA) -> Built:
    """CartesianMerge of the package, to its first mask; no automaton is written out."""
    engine = CartesianMerge(bench.tokenizer, dfa)
    mask = engine.mask(engine.initial())
    return Built(lambda: Sizes(None, None, None, tuple(members(mask).tolist())), None)


def written_out(bench: Bench, dfa: ByteDFA) -> Built:
    """CartesianMerge of the package, the whole automaton. Its states hold the last id, so there are
    more than need be."""
    engine = CartesianMerge(bench.tokenizer, dfa)
    automaton = explore(engine, engine.initial(), _NO_LIMIT)

    def sizes() -> Sizes:
        symbols: np.ndarray = automaton.row(automaton.start)[0]
        states, transitions = automaton.n_states, automaton.n_transitions
        return Sizes(states, transitions, states + 2 * transitions, tuple(symbols.tolist()))

    return Built(sizes, lambda: automaton)


DIRECT, CARTESIAN = "DirectMerge", "CartesianMerge"
LAZY, EXPLICIT = "package, first mask", "package, written out"
METHODS: dict[str, Callable[[Bench, ByteDFA], Built]] = {
    DIRECT: direct,
    CARTESIAN: cartesian,
    LAZY: lazy,
    EXPLICIT: written_out,
}
"""The first two are the reference: the published algorithms in plain Python."""


# Regexes that grow: four families, each with a size n.


@dataclass(frozen=True)
class Family:
    """name: with n as a variable; regex: of a size; sizes: those of a default run, ascending."""

    name: str
    regex: Callable[[int], str]
    sizes: tuple[int, ...]

    def chosen(self, largest: int | None) -> tuple[int, ...]:
        """The sizes up to `largest` (None: those of a default run)."""
        if largest is None:
            return self.sizes
        doubling = self.sizes[-1] > len(self.sizes)
        grown = range(self.sizes[-1] + 1, largest + 1)
        extra = tuple(n for n in grown if not doubling or not n & (n - 1))
        return (*(n for n in self.sizes if n <= largest), *extra)


def anything(n: int) -> str:
    """Any n characters but a line break. The article's companion notebook plots n = 1 .. 6."""
    return f".{{{n}}}"


def letters(n: int) -> str:
    """n small letters."""
    return f"[a-z]{{{n}}}"


def nested(n: int) -> str:
    """Boolean expressions whose operators nest n - 1 deep: alternations within alternations."""
    if n == 1:
        return "(true|false)"
    inner = nested(n - 1)
    return rf"(not {inner}|\({inner} (and|or) {inner}\))"


def fields(n: int) -> str:
    """A JSON object of n fields."""
    value = r'(true|false|null|-?(0|[1-9][0-9]*)|"(low|medium|high)")'
    return r"\{" + ", ".join(rf'"field{i}": {value}' for i in range(1, n + 1)) + r"\}"


ANYTHING, LETTERS, NESTED, FIELDS = FAMILIES = (
    Family(".{n}", anything, (1, 2, 3, 4, 5, 6)),
    Family("[a-z]{n}", letters, (1, 2, 3, 4, 5, 6, 7)),
    Family("alternations nested n deep", nested, (1, 2, 3, 4, 5)),
    Family("JSON object of n fields", fields, (1, 2, 4, 8, 16)),
)
NAMES = tuple(family.name for family in FAMILIES)


def named(names: Sequence[str]) -> list[Family]:
    """The families of these names. Raises ArgumentError."""
    known = dict(zip(NAMES, FAMILIES, strict=True))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = f"{unknown[0]!r} is none of them" if unknown else "none is given"
        raise ArgumentError(f"--families: {wrong}; they are: {', '.join(NAMES)}")
    return [known[name] for name in names]
