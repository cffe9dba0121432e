"""A free text and a canonical one from the same random numbers.

Under the mask an id that it forbids gives way to one that is drawn from what the mask leaves, with
a number of its own,

    p(i) + p(forbidden) p(i) / p(allowed) = p(i) / p(allowed)

so the canonical text has the distribution that the mask gives it, and differs from the free one
only from the first forbidden id on. Where none was drawn the two are one text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from bpe_automata import Matcher, constrain
from bpe_automata.errors import LogitsError
from experiments.files import require
from experiments.models import LoadedModel, special_ids
from experiments.sampling import Text, drawn, sample


class Pair(NamedTuple):
    """fork: the place of the first id that the mask forbade, of all that were drawn; None where it
    forbade none, and both texts are one."""

    free: Text
    canonical: Text
    fork: int | None


class Mask:
    """Has the last word on the ids of a batch: see above."""

    def __init__(
        self, matchers: dict[int, Matcher], uniforms: np.ndarray, ends: Collection[int]
    ) -> None:
        """matchers: by the number of their text; uniforms: float64 [texts, ids]."""
        self.matchers, self._uniforms, self._ends = matchers, uniforms, ends

    def __call__(self, step: int, mass: Any, ids: Any) -> Any:
        torch, tokens = require("torch"), ids.tolist()
        refused = [k for k, matcher in self.matchers.items() if not matcher.allows(tokens[k])]
        if refused:
            allowed = np.stack([self.matchers[k].mask() for k in refused])
            left = mass[refused] * torch.from_numpy(allowed).to(mass.device)
            if not bool((left.sum(1) > 0).all()):
                raise LogitsError("the model gives no mass to any id that is allowed")
            uniforms = torch.from_numpy(self._uniforms[refused, step, None]).to(mass.device)
            ids = ids.clone()
            ids[refused] = drawn(left, uniforms)
            tokens = ids.tolist()
        for k in list(self.matchers):
            self.matchers[k].advance(tokens[k])
            if tokens[k] in self._ends:
                del self.matchers[k]
        return ids


class Forks(Mask):
    """Leaves the ids as they were drawn. found: by text (the step of the first that the mask
    forbids, the id in its place, the matcher after that; None where the text ends with it)."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.found: dict[int, tuple[int, int, Matcher | None]] = {}

    def __call__(self, step: int, mass: Any, ids: Any) -> Any:
        tokens, going = ids.tolist(), list(self.matchers)
        taken = super().__call__(step, mass, ids).tolist()
        for k in going:
            if taken[k] != tokens[k]:
                self.found[k] = (step, taken[k], self.matchers.pop(k, None))
        return ids


def drawn_pairs(
    loaded: LoadedModel,
    prompts: Sequence[Sequence[int]],
    which: Sequence[int],
    temperatures: Sequence[float],
    uniforms: np.ndarray,
) -> list[Pair]:
    """A pair after each of `which`, numbers of prompts. uniforms: float64 [texts, ids, 2], for an
    id and for the one in its place. The canonical text goes on from the fork, so that rounding
    cannot make it another one before that."""
    length, n_ids = uniforms.shape[1], loaded.tokenizer.n_ids
    ends = sorted(special_ids(loaded))
    constraint = constrain(loaded.tokenizer, r"(?s:.*)", "canonical", ends)
    starts = [constraint.matcher(prompt) for prompt in prompts]
    matchers = {row: starts[k].copy() for row, k in enumerate(which)}
    forks = Forks(matchers, uniforms[:, :, 1], ends)
    first = uniforms[:, :, 0]
    free = sample(loaded.model, prompts, which, temperatures, first, ends, n_ids, forks)
    made: dict[int, Text] = {}
    going: dict[int, Matcher] = {}
    for row, (step, token, matcher) in forks.found.items():
        begun = free[row].ids[:step]
        made[row] = Text(begun, True) if matcher is None else Text((*begun, token), False)
        if matcher is not None and step + 1 < length:
            going[row] = matcher
    if going:
        later = np.zeros((len(going), length - 1, 2))
        for k, row in enumerate(going):
            rest = uniforms[row, len(made[row].ids) :]
            later[k, : len(rest)] = rest
        mask = Mask(dict(enumerate(going.values())), later[:, :, 1], ends)
        rests = sample(
            loaded.model,
            [[*prompts[which[row]], *made[row].ids] for row in going],
            range(len(going)),
            [temperatures[row] for row in going],
            later[:, :, 0],
            ends,
            n_ids,
            mask,
        )
        for row, text in zip(going, rests, strict=True):
            left = length - len(made[row].ids)
            ids = (*made[row].ids, *text.ids[:left])
            made[row] = Text(ids, text.ended and len(text.ids) < left)
    return [
        Pair(text, made.get(row, text), forks.found[row][0] if row in made else None)
        for row, text in enumerate(free)
    ]
