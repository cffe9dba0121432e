"""Weighted populations of texts from a causal LM: sequential Monte Carlo, many texts at once.

    w <- w m_t                       m_t: the mass that the mask leaves, before anything is drawn
    resample if ESS(w) < n / 2       within a population of n, systematically
    x_t ~ p( . | x_<t) under the mask

This is `bpe_automata.sampling.smc` in the loop of `shared.batched`: several populations side by
side in one batch, with keys and values kept. A resampled text takes those of its origin along.
Place k of all populations draws with the numbers of sample k of `sample_batch`, so where nothing is
resampled the two give the same texts, however many are drawn at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from bpe_automata.arguments import at_least
from bpe_automata.integrations.bitmask import apply_bitmask
from bpe_automata.sampling.smc import resample
from bpe_automata.sampling.weights import effective_sample_size, log_normaliser, normalised
from experiments.run.files import require
from experiments.shared.batched import Batch, Drawn, Language, Masked, log_total, settled, uniform

THRESHOLD = 0.5
"""Resample where the effective sample size is below this share of a population."""


def sample_populations(
    model: Any,
    prompt_ids: Sequence[int],
    constraint: Language,
    n: int,
    particles: int,
    *,
    max_new_tokens: int = 128,
    temperature: float = 1.0,
    seed: int = 0,
    batch: int = 64,
    threshold: float = THRESHOLD,
) -> list[list[Drawn]]:
    """`n` independent populations of `particles` texts; as many at a time as `batch` texts hold, at
    least one. threshold: 0 for never resampling. `log_weight` is that of the population, so the
    mean weight of each is an unbiased estimate of Z. For the rest see `sample_batch`.
    """
    prompt, settings = settled(prompt_ids, max_new_tokens, temperature, weights=True)
    n, particles = at_least(0, n, "the populations"), at_least(1, particles, "the particles")
    at_once = max(1, at_least(1, batch, "the batch") // particles)
    found = list[list[Drawn]]()
    with require("torch").inference_mode(), ThreadPoolExecutor(1) as beside:
        for first in range(0, n, at_once):
            numbers = range(first, min(first + at_once, n))
            rows = Masked(constraint, prompt, len(numbers) * particles, _pinned(model))
            streams = [np.random.default_rng((seed, k, particles)) for k in numbers]
            of_texts = range(first * particles, numbers.stop * particles)
            uniforms = np.stack([uniform(seed, k, settings.max_new_tokens) for k in of_texts])
            run = _Populations(model, prompt, rows, uniforms, settings, beside)
            found += run.populations(streams, threshold)
    return found


def _pinned(model: Any) -> bool:
    return bool(model.device.type == "cuda")


class _Populations(Batch):
    """Populations one after the other in the places of a batch."""

    _rows: Masked
    _weights: np.ndarray
    _streams: Sequence[np.random.Generator]
    _threshold: float

    def populations(
        self, streams: Sequence[np.random.Generator], threshold: float
    ) -> list[list[Drawn]]:
        """Run to the end. streams: of each population, what its resampling draws with."""
        self._streams, self._threshold = streams, threshold
        self._weights = np.zeros((len(streams), len(self._rows.going) // len(streams)))
        drawn = self.drawn()
        weights = self._weights.ravel().tolist()
        weighed = [
            replace(one, log_weight=weight if one.ended else -np.inf)
            for one, weight in zip(drawn, weights, strict=True)
        ]
        size = self._weights.shape[1]
        return [weighed[first : first + size] for first in range(0, len(weighed), size)]

    def _step(self, step: int) -> None:
        going = self._rows.going
        self._weights.ravel()[going] += self._masses()[going]
        chosen = np.arange(len(going)).reshape(self._weights.shape)
        for number, (logs, rng) in enumerate(zip(self._weights, self._streams, strict=True)):
            here = going.reshape(self._weights.shape)[number]
            poor = 0 < effective_sample_size(logs) < self._threshold * len(logs)
            if poor and here.any():
                places = resample(normalised(logs), "systematic", rng)
                chosen[number] = chosen[number][places]
                self._weights[number] = log_normaliser(logs).value
        if (chosen.ravel() != np.arange(chosen.size)).any():
            self._reorder(chosen.ravel())
        if self._rows.going.any():
            super()._step(step)

    def _masses(self) -> np.ndarray:
        """float64 [places]: the log of what the masks leave of each law."""
        before = log_total(*self._law(self._logits))
        left = self._logits.clone()
        apply_bitmask(left, self._rows.bits.to(left.device))
        masses: np.ndarray = (log_total(*self._law(left)) - before).cpu().numpy()
        return masses

    def _reorder(self, chosen: np.ndarray) -> None:
        """Place k goes on with what place chosen[k] has."""
        self._rows.copy(chosen)
        origin = require("torch").from_numpy(chosen).to(self._model.device)
        self._cache.batch_select_indices(origin)
        self._logits = self._logits[origin]
        self._sums = self._sums[:, chosen]

    def _give_up_places(self) -> None:
        """None: texts that have ended take part in resampling."""
