"""The rows of a batch on the host: what was read, which go on, and what each may read next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from bpe_automata.sampling.logits import has_ended
from experiments.run.files import require


class Language(Protocol):
    """What a batch needs of a constraint; a `bpe_automata.Constraint` is one.

    n_ids: of the masks; eos_ids: ids that end a text, none where a text ends as nothing can follow.
    """

    @property
    def n_ids(self) -> int: ...

    @property
    def eos_ids(self) -> tuple[int, ...]: ...

    def matcher(self, prefix: Sequence[int] = ()) -> Any:
        """At the beginning of a text after a prompt: what has the methods `copy`, `advance` and
        `mask`, and the properties `ids` and `is_accepting`, of a `Matcher`."""
        ...


class Rows:
    """Samples without a constraint. `order`: the sample at each place of the batch, for places of
    samples that have ended are given up now and then; `going`: bool [places], which have not."""

    bits: Any = None
    """Packed masks of the next ids, torch int32 [places, words] on the CPU; None for no masks."""

    def __init__(self, count: int, eos_ids: Sequence[int]) -> None:
        self.ids: list[list[int]] = [[] for _ in range(count)]
        self.order, self.going = np.arange(count), np.ones(count, dtype=bool)
        self._eos_ids = frozenset(eos_ids)
        self._was_ended = np.zeros(count, dtype=bool)

    def only_ends(self, tokens: Sequence[int]) -> bool:
        """Do all that go on end with these ids, one for each place?"""
        return all(tokens[place] in self._eos_ids for place in np.flatnonzero(self.going).tolist())

    def read(self, tokens: Sequence[int]) -> None:
        """One id for each place; those of places that do not go on are left out."""
        for place in np.flatnonzero(self.going).tolist():
            token, sample = tokens[place], int(self.order[place])
            ends = token in self._eos_ids
            if not ends:
                self.ids[sample].append(token)
            self._was_ended[sample] = ends
            self.going[place] = self._goes_on(sample, place, token) and not ends

    def keep(self, places: np.ndarray) -> None:
        """Give up the other places."""
        self.order, self.going = self.order[places], self.going[places]

    def ended(self) -> list[bool]:
        """Of each sample, whether it is whole."""
        return [bool(end) for end in self._was_ended]

    def _goes_on(self, sample: int, place: int, token: int) -> bool:
        """Read one id, and say whether any can follow, but for what end-of-sequence says."""
        del sample, place, token
        return True


class Masked(Rows):
    """Samples of a constraint: a matcher each, at its state after `prompt`. pinned: in memory that
    a GPU can copy from meanwhile."""

    def __init__(
        self, constraint: Language, prompt: Sequence[int], count: int, pinned: bool
    ) -> None:
        super().__init__(count, constraint.eos_ids)
        self._constraint: Any = constraint
        start = constraint.matcher(prompt)
        self._matchers = [start.copy() for _ in range(count)]
        torch, words = require("torch"), (constraint.n_ids + 31) // 32
        self.bits = torch.empty((count, words), dtype=torch.int32, pin_memory=pinned)
        self._written = self.bits.numpy()
        for place in range(count):
            self.going[place] = self._fill(place, place)

    def keep(self, places: np.ndarray) -> None:
        super().keep(places)
        self._written[: len(places)] = self._written[places]
        self.bits, self._written = self.bits[: len(places)], self._written[: len(places)]

    def copy(self, chosen: np.ndarray) -> None:
        """Place k goes on with what place chosen[k] has. No place may have been given up."""
        self._matchers = [self._matchers[k].copy() for k in chosen.tolist()]
        self.ids = [list(self.ids[k]) for k in chosen.tolist()]
        self.going, self._was_ended = self.going[chosen], self._was_ended[chosen]
        self._written[:] = self._written[chosen]

    def ended(self) -> list[bool]:
        return [has_ended(matcher, self._constraint) for matcher in self._matchers]

    def _goes_on(self, sample: int, place: int, token: int) -> bool:
        self._matchers[sample].advance(token)
        return self._fill(sample, place)

    def _fill(self, sample: int, place: int) -> bool:
        """Write the mask of the next id. A row that has none is left all ids, which are not read:
        logits of which nothing is left would be nan."""
        self._matchers[sample].mask(self._written, place)
        if self._written[place].any():
            return True
        self._written[place] = -1
        return False
