"""What samples say of features of a text: laws of each, under each method and of the model alone.

A feature is the first character, the length in bytes rounded down to a multiple of four, and,
where a truth is known, whether the text is a right answer. (A total variation distance between the
laws of whole texts could not be estimated from samples.) Values that are seen fewer than `SEEN`
times in all samples together are one value, the rest: resampling says too little about what is
seen once or twice. So the distance is one of coarser features, and at most that of the finer ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bpe_automata.sampling.weights import effective_sample_size
from experiments.run.executors import Row
from experiments.study.large_features import LEAST, Law, Part, distances, estimated, one_hot

WIDTH = 4
"""Bytes of a class of lengths."""
SEEN = 5
REST = "(rest)"


@dataclass(frozen=True)
class Texts:
    """What one method wrote. spelled: the bytes, those that were cut off too; log_weights: float64,
    -inf for what was cut off."""

    spelled: list[bytes]
    log_weights: np.ndarray

    def whole(self) -> Iterator[bytes]:
        """Those that came to their end."""
        ended = (self.log_weights > -np.inf).tolist()
        return (text for text, end in zip(self.spelled, ended, strict=True) if end)


def masses(texts: Mapping[str, Texts]) -> dict[str, np.ndarray]:
    """Weights of the lift and of canonical, divided by one number so that they can be written
    down."""
    logs = {method: texts[method].log_weights for method in ("lift", "canonical")}
    highest = max(float(found.max()) for found in logs.values())
    shift = highest if highest > -np.inf else 0.0
    return {
        method: np.where(found > -np.inf, np.maximum(np.exp(found - shift), LEAST), 0.0)
        for method, found in logs.items()
    }


def features(
    texts: Mapping[str, Texts],
    populations: Mapping[str, Sequence[Texts]],
    is_own: np.ndarray,
    truth: Sequence[str],
    rng: np.random.Generator,
) -> Row:
    """By feature: values, laws, and distances to the model's law; nothing where a method has no
    whole text. is_own: bool, which samples of the lift are canonical."""
    kinds: dict[str, Callable[[bytes], str]] = {"first": first_character, "length": length_class}
    if truth:
        right = {answer.encode() for answer in truth}
        kinds["right"] = lambda text: "right" if text in right else "wrong"
    pooled = [*texts.values(), *(one for found in populations.values() for one in found)]
    if not all((found.log_weights > -np.inf).any() for found in texts.values()):
        return {}
    made = {}
    for name, kind in kinds.items():
        seen = Counter(kind(text) for found in pooled for text in found.whole())
        values = sorted(value for value, n in seen.items() if n >= SEEN or name == "right")
        made[name] = _compared(_Coded([*values, REST], kind), texts, populations, is_own, rng)
    return made


def first_character(text: bytes) -> str:
    """But for a space before it."""
    return text.decode("utf-8", "replace").lstrip(" ")[:1]


def length_class(text: bytes) -> str:
    low = len(text) // WIDTH * WIDTH
    return f"{low}-{low + WIDTH - 1}"


@dataclass(frozen=True)
class _Coded:
    """values: of a feature, the rest last."""

    values: list[str]
    kind: Callable[[bytes], str]

    def added(self, texts: Texts, mass: np.ndarray) -> np.ndarray:
        """float64 [texts, values]."""
        number = {value: k for k, value in enumerate(self.values)}
        codes = [number.get(self.kind(text), len(self.values) - 1) for text in texts.spelled]
        return one_hot(np.array(codes), mass, len(self.values))


def _compared(
    coded: _Coded,
    texts: Mapping[str, Texts],
    populations: Mapping[str, Sequence[Texts]],
    is_own: np.ndarray,
    rng: np.random.Generator,
) -> Row:
    mass = masses(texts)
    other = mass["lift"] * ~is_own
    own = Part("canonical", coded.added(texts["canonical"], mass["canonical"]))
    free: Law = [own, Part("lift", coded.added(texts["lift"], other))]
    laws: dict[str, Law] = {
        method: [Part(method, coded.added(found, (found.log_weights > -np.inf).astype(float)))]
        for method, found in texts.items()
    }
    laws["canonical weighted"] = [own]
    for method, found in populations.items():
        taken = np.stack([_taken(coded, population) for population in found])
        if taken.any():
            laws[f"{method} SMC"] = [Part(f"{method} SMC", taken)]
    once = {
        part.source: np.ones((1, len(part.added))) for law in (free, *laws.values()) for part in law
    }
    with np.errstate(divide="ignore"):
        logs = np.log(np.concatenate([mass["canonical"] / len(own.added), other / len(other)]))
    return {
        "values": coded.values,
        "free": estimated(free, once)[0].tolist(),
        "laws": {name: estimated(law, once)[0].tolist() for name, law in laws.items()},
        "tv": distances(laws, free, rng),
        "effective": effective_sample_size(logs),
    }


def _taken(coded: _Coded, population: Texts) -> np.ndarray:
    """float64 [values]: the law of one text that is taken by its weight; zeros of none."""
    mass = np.exp(population.log_weights - max(population.log_weights.max(), -1e300))
    added: np.ndarray = coded.added(population, mass).sum(axis=0) / max(mass.sum(), LEAST)
    return added
