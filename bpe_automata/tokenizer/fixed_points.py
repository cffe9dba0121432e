"""A proof that a sequence of normalizer steps changes every text that one of the steps changes.

That is not always so: NFD followed by NFC does not change `é`, though NFD does. Steps for which no
proof is found are refused.

The proof uses weights. Let phi(text) be a sum of weights >= 0 of its characters. Let no step ever
increase phi, and let step i decrease it whenever it changes the text. In a run N1, N2, ... that
ends in the text it began with, phi is constant, so step i changed nothing and may be dropped.
Another weight is then sought for the remaining steps, until one step remains, or only Unicode forms
of one kind: these are idempotent, and no other step is between them any more.

Unicode forms keep every phi in which the weight of a character is the sum over its full
decomposition, since a text and its form have the same decomposition. So weights are given to
decomposed characters, and added up for the others.

One weight comes first: 1 for each character that the form changes. The form removes all of these,
so if the other steps never add one, no text of such a run contains one, and texts that do need no
proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bpe_automata._budget import check
from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.alphabet import engine_class
from bpe_automata.tokenizer.description import Normalization
from bpe_automata.tokenizer.filter_table import N_CODE_POINTS, mask_of
from bpe_automata.tokenizer.pattern import parse
from bpe_automata.tokenizer.pattern_tree import Char, Node, lightest
from bpe_automata.tokenizer.probing import images, stripped
from bpe_automata.tokenizer.source import CharacterEngine
from bpe_automata.tokenizer.unicode_forms import FORMS, sibling

Weights = np.ndarray
"""float64 [0x110000]: what each character adds to phi."""


def check_fixed_points(steps: tuple[Normalization, ...], engine: CharacterEngine) -> None:
    """Raises UnsupportedTokenizerError, naming two steps that might undo one another."""
    if len(steps) < 2:
        return
    decomposed = _decompositions(steps)
    absent = _absent(steps, engine)
    remaining = [_step(step, engine, absent) for step in steps]
    while len(remaining) > 1 and not _one_form(remaining):
        redundant = next(
            (step for step in remaining if _is_redundant(step, remaining, decomposed)), None
        )
        if redundant is None:
            first, second = remaining[0].given, remaining[1].given
            raise UnsupportedTokenizerError(
                "normalizer Sequence",
                [_name(first), _name(second)],
                "not proved that they cannot undo one another",
            )
        remaining = [step for step in remaining if step is not redundant]


def _name(step: Normalization) -> str:
    if step.kind == "replace":
        return f"Replace {step.pattern[1]!r} -> {step.content!r}"
    return step.kind


def _decompositions(steps: tuple[Normalization, ...]) -> _Map:
    """The full decompositions of the forms among the steps; empty without forms."""
    forms = [step for step in steps if step.kind in FORMS]
    if not forms:
        return _Map({})
    kind = "nfkd" if any("k" in form.kind for form in forms) else "nfd"
    return _Map(images(sibling(forms[0], kind).apply, whole_blocks=True))


def _absent(steps: tuple[Normalization, ...], engine: CharacterEngine) -> np.ndarray:
    """bool [0x110000]: the characters in none of the texts of a run that ends as it began."""
    no_characters = np.zeros(N_CODE_POINTS, dtype=bool)
    forms = {step.kind: step for step in steps if step.kind in FORMS}
    if len(forms) != 1:
        return no_characters
    (form,) = forms.values()
    changed = _indicator(list(images(form.apply, whole_blocks=True)))
    others = [_step(step, engine, no_characters) for step in steps if step.kind != form.kind]
    return changed > 0 if all(step.keeps(changed) for step in others) else no_characters


def _one_form(remaining: list[_Step]) -> bool:
    kinds = {step.given.kind for step in remaining}
    return len(kinds) == 1 and kinds <= set(FORMS)


def _is_redundant(step: _Step, remaining: list[_Step], decomposed: _Map) -> bool:
    for suggested in step.weights():
        check()
        phi = suggested.copy()
        phi[decomposed.codes] = decomposed.weigh(suggested)
        if step.lowers(phi) and all(other.keeps(phi) for other in remaining if other is not step):
            return True
    return False


class _Map:
    """A map from characters to texts, whose weights are computed all at once."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.codes = np.array([ord(c) for c in texts], dtype=np.int64)
        self._letters = np.array([ord(d) for text in texts.values() for d in text], dtype=np.int64)
        self._owner = np.repeat(np.arange(len(texts)), [len(text) for text in texts.values()])

    def weigh(self, phi: Weights) -> np.ndarray:
        """float64 [n]: the weight of each text."""
        return np.bincount(self._owner, weights=phi[self._letters], minlength=len(self.codes))


def _weigh(phi: Weights, text: str) -> float:
    return float(phi[[ord(c) for c in text]].sum())


def _indicator(characters: str | list[str]) -> Weights:
    """1 for these characters, 0 for others."""
    weights = np.zeros(N_CODE_POINTS)
    weights[[ord(c) for c in characters]] = 1
    return weights


# ---------------------------------------------------------------- the kinds of steps


@dataclass(frozen=True, eq=False)
class _Step:
    """A Unicode form, and the base class of the other steps."""

    given: Normalization

    def weights(self) -> Iterator[Weights]:
        """Weights of decomposed characters whose sum this step may always decrease."""
        return iter(())

    def keeps(self, phi: Weights) -> bool:
        """Does the step never increase phi?"""
        return True

    def lowers(self, phi: Weights) -> bool:
        """Does the step decrease phi whenever it changes the text?"""
        return False


@dataclass(frozen=True, eq=False)
class _Characters(_Step):
    map: _Map

    def weights(self) -> Iterator[Weights]:
        weights = np.zeros(N_CODE_POINTS)
        weights[self.map.codes] = 1
        yield weights

    def keeps(self, phi: Weights) -> bool:
        return bool((self.map.weigh(phi) <= phi[self.map.codes]).all())

    def lowers(self, phi: Weights) -> bool:
        return bool((self.map.weigh(phi) < phi[self.map.codes]).all())


@dataclass(frozen=True, eq=False)
class _Strip(_Step):
    spaces: list[str]

    def weights(self) -> Iterator[Weights]:
        yield _indicator(self.spaces)
        yield np.ones(N_CODE_POINTS)

    def lowers(self, phi: Weights) -> bool:
        return all(_weigh(phi, c) > 0 for c in self.spaces)


@dataclass(frozen=True, eq=False)
class _Literal(_Step):
    def weights(self) -> Iterator[Weights]:
        yield np.ones(N_CODE_POINTS)
        for c in sorted(set(self.given.pattern[1])):
            yield _indicator(c)

    def _gain(self, phi: Weights) -> float:
        return _weigh(phi, self.given.content) - _weigh(phi, self.given.pattern[1])

    def keeps(self, phi: Weights) -> bool:
        return self._gain(phi) <= 0

    def lowers(self, phi: Weights) -> bool:
        return self._gain(phi) < 0


@dataclass(frozen=True, eq=False)
class _Regex(_Step):
    tree: Node
    engine: CharacterEngine
    absent: np.ndarray

    def weights(self) -> Iterator[Weights]:
        yield np.ones(N_CODE_POINTS)
        yield 2 - _indicator(self.given.content)

    def _least(self, phi: Weights) -> float:
        """A lower bound on the weight of every match."""

        def weigh(character: Char) -> float:
            ranges = engine_class(self.engine, character.kind, character.source)
            inside = phi[mask_of(ranges) & ~self.absent]
            return float(inside.min()) if len(inside) else np.inf

        return lightest(self.tree, weigh)

    def keeps(self, phi: Weights) -> bool:
        return self._least(phi) >= _weigh(phi, self.given.content)

    def lowers(self, phi: Weights) -> bool:
        content = self.given.content
        added = _weigh(phi, content)
        if len(content) != 1:
            return self._least(phi) > added
        # A match other than the content lacks that character, or has other characters too.
        without = phi.copy()
        without[ord(content)] = 2 * added + 1
        return bool(phi[~self.absent].min() > 0) and self._least(without) > added


def _step(step: Normalization, engine: CharacterEngine, absent: np.ndarray) -> _Step:
    if step.kind == "characters":
        present = {c: made for c, made in images(step.apply).items() if not absent[ord(c)]}
        return _Characters(step, _Map(present))
    if step.kind == "strip":
        return _Strip(step, [c for c in stripped(step) if not absent[ord(c)]])
    if step.kind == "replace" and step.pattern[0] == "literal":
        return _Literal(step)
    if step.kind == "replace":
        return _Regex(step, parsed_pattern(step, engine), engine, absent)
    return _Step(step)


def parsed_pattern(step: Normalization, engine: CharacterEngine) -> Node:
    """The pattern of a regex replacement. Raises UnsupportedTokenizerError."""
    try:
        return parse(step.pattern[1], engine.dialect)
    except UnsupportedTokenizerError as error:
        raise refused_pattern(step, error) from error


def refused_pattern(
    step: Normalization, error: UnsupportedTokenizerError
) -> UnsupportedTokenizerError:
    """The error of a pattern that is not modelled, for a normalizer."""
    return UnsupportedTokenizerError("normalizer Replace", step.pattern[1], error.why)
