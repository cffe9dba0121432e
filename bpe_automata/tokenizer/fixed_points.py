"""When do several normalizer steps together leave only those texts as they are that each of them
leaves? Not always: NFD and then NFC leave `é`, though NFD does not.

Proved here, or refused, with weights. Let phi(text) be a sum of weights >= 0 of its characters. If
no step ever makes phi larger, and step i makes it smaller whenever it changes the text, then in a
run N1, N2, ... that ends in the text it began with, phi is the same all along, so step i changed
nothing: in such runs it may be left out. Then look for another weight for the steps that are left,
until one is left, or only Unicode forms of one kind: they are idempotent, and no others come
between them any more.

Unicode forms keep every phi whose weight of a character is the sum over its full decomposition,
since a text and its form have the same decomposition. So weights are given to decomposed
characters, and summed up for the others.

One weight comes first: 1 for each character that the form changes. The form itself leaves none of
these, so if the other steps make no more of them, no text of such a run holds any, and nothing need
be shown about them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bpe_automata.budget import check
from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.asking import images
from bpe_automata.tokenizer.backend import CharacterEngine
from bpe_automata.tokenizer.charclass import engine_class
from bpe_automata.tokenizer.description import Normalization
from bpe_automata.tokenizer.filter_table import N_CODE_POINTS, mask_of
from bpe_automata.tokenizer.pattern import Char, Node
from bpe_automata.tokenizer.pattern_length import lightest
from bpe_automata.tokenizer.replace_filter import pattern_tree
from bpe_automata.tokenizer.unicode_forms import FORMS, sibling
from bpe_automata.tokenizer.white_space import stripped

Weights = np.ndarray
"""float64 [0x110000]: what each character adds to phi."""


def check_fixed_points(steps: tuple[Normalization, ...], engine: CharacterEngine) -> None:
    """Raises UnsupportedTokenizerError, naming two steps that might undo one another."""
    if len(steps) < 2:
        return
    decomposed = _decompositions(steps)
    absent = _absent(steps, engine)
    left = [_step(step, engine, absent) for step in steps]
    while len(left) > 1 and not _one_form(left):
        settled = next((step for step in left if _settles(step, left, decomposed)), None)
        if settled is None:
            first, second = left[0].given, left[1].given
            raise UnsupportedTokenizerError(
                "normalizer Sequence",
                [_name(first), _name(second)],
                "not proved that they cannot undo one another",
            )
        left = [step for step in left if step is not settled]


def _name(step: Normalization) -> str:
    if step.kind == "replace":
        return f"Replace {step.pattern[1]!r} -> {step.content!r}"
    return step.kind


def _decompositions(steps: tuple[Normalization, ...]) -> _Map:
    """The full decompositions that belong to all forms among the steps; none without forms."""
    forms = [step for step in steps if step.kind in FORMS]
    if not forms:
        return _Map({})
    kind = "nfkd" if any("k" in form.kind for form in forms) else "nfd"
    return _Map(images(sibling(forms[0], kind).apply, whole_blocks=True))


def _absent(steps: tuple[Normalization, ...], engine: CharacterEngine) -> np.ndarray:
    """bool [0x110000]: characters that are in no text of a run that ends as it began."""
    nobody = np.zeros(N_CODE_POINTS, dtype=bool)
    forms = {step.kind: step for step in steps if step.kind in FORMS}
    if len(forms) != 1:
        return nobody
    (form,) = forms.values()
    changed = _of(list(images(form.apply, whole_blocks=True)))
    others = [_step(step, engine, nobody) for step in steps if step.kind != form.kind]
    return changed > 0 if all(step.keeps(changed) for step in others) else nobody


def _one_form(left: list[_Step]) -> bool:
    kinds = {step.given.kind for step in left}
    return len(kinds) == 1 and kinds <= set(FORMS)


def _settles(step: _Step, left: list[_Step], decomposed: _Map) -> bool:
    for suggested in step.weights():
        check()
        phi = suggested.copy()
        phi[decomposed.codes] = decomposed.weigh(suggested)
        if step.lowers(phi) and all(other.keeps(phi) for other in left if other is not step):
            return True
    return False


class _Map:
    """Texts that characters are mapped to, so that all can be weighed at once."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.codes = np.array([ord(c) for c in texts], dtype=np.int64)
        self._letters = np.array([ord(d) for text in texts.values() for d in text], dtype=np.int64)
        self._owner = np.repeat(np.arange(len(texts)), [len(text) for text in texts.values()])

    def weigh(self, phi: Weights) -> np.ndarray:
        """float64 [n]: the weight of each text."""
        return np.bincount(self._owner, weights=phi[self._letters], minlength=len(self.codes))


def _weigh(phi: Weights, text: str) -> float:
    return float(phi[[ord(c) for c in text]].sum())


def _of(characters: str | list[str]) -> Weights:
    """1 for these characters, 0 for others."""
    weights = np.zeros(N_CODE_POINTS)
    weights[[ord(c) for c in characters]] = 1
    return weights


# ---------------------------------------------------------------- the kinds of steps


@dataclass(frozen=True, eq=False)
class _Step:
    """A Unicode form, and what the other kinds have in common."""

    given: Normalization

    def weights(self) -> Iterator[Weights]:
        """Weights of decomposed characters that this step might always lower."""
        return iter(())

    def keeps(self, phi: Weights) -> bool:
        """Does it never make phi larger?"""
        return True

    def lowers(self, phi: Weights) -> bool:
        """Does it make phi smaller whenever it changes a text?"""
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
        yield _of(self.spaces)
        yield np.ones(N_CODE_POINTS)

    def lowers(self, phi: Weights) -> bool:
        return all(_weigh(phi, c) > 0 for c in self.spaces)


@dataclass(frozen=True, eq=False)
class _Literal(_Step):
    def weights(self) -> Iterator[Weights]:
        yield np.ones(N_CODE_POINTS)
        for c in sorted(set(self.given.pattern[1])):
            yield _of(c)

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
        yield 2 - _of(self.given.content)

    def _least(self, phi: Weights) -> float:
        """No match weighs less."""

        def weigh(character: Char) -> float:
            ranges = engine_class(self.engine, character.kind, character.source)
            inside = phi[mask_of(ranges) & ~self.absent]
            return float(inside.min()) if len(inside) else np.inf

        return lightest(self.tree, weigh)

    def keeps(self, phi: Weights) -> bool:
        return self._least(phi) >= _weigh(phi, self.given.content)

    def lowers(self, phi: Weights) -> bool:
        content = self.given.content
        written = _weigh(phi, content)
        if len(content) != 1:
            return self._least(phi) > written
        # A match that is not the content has no such character, or one and others beside it.
        without = phi.copy()
        without[ord(content)] = 2 * written + 1
        return bool(phi[~self.absent].min() > 0) and self._least(without) > written


def _step(step: Normalization, engine: CharacterEngine, absent: np.ndarray) -> _Step:
    if step.kind == "characters":
        present = {c: made for c, made in images(step.apply).items() if not absent[ord(c)]}
        return _Characters(step, _Map(present))
    if step.kind == "strip":
        return _Strip(step, [c for c in stripped(step) if not absent[ord(c)]])
    if step.kind == "replace" and step.pattern[0] == "literal":
        return _Literal(step)
    if step.kind == "replace":
        return _Regex(step, pattern_tree(step, engine), engine, absent)
    return _Step(step)
