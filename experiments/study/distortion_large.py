"""One case of the study whose language is too large to be listed: by sampling.

Samples of the lift and of canonical carry weights w = p / q, so E[w f] is the sum of p f over all
that the method can write. What the model writes is what canonical can write and what it cannot:

    Z f = E_canonical[w f] + E_lift[w f where not canonical]      Z: the same with f = 1
    free share of canonical sequences = E_canonical[w] / Z

(The lift's samples alone would do in the limit, but most of them lie where the model has no mass.)
f is the first character, or the length in bytes rounded down to a multiple of four. A total
variation distance between the laws of whole texts could not be estimated from samples. As in the
finite cases a text ends where nothing can follow it, and end-of-sequence has no factor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bpe_automata import Constraint, constrain
from bpe_automata.decoding.healing import heal
from bpe_automata.sampling import weights
from experiments.run.cells import Row
from experiments.shared.batched import Drawn, sample_batch
from experiments.study.cases.chat import prompt_text
from experiments.study.distortion_config import Config
from experiments.study.distortion_finite import Opened, described, opened, row_seed
from experiments.study.study_case import StudyCase
from experiments.study.study_methods import MOST_GIVEN_BACK

RESAMPLES = 1000
LEAST = 1e-300
"""Of a weight: 0 is for texts that did not come to their end."""
WIDTH = 4
"""Bytes of a class of lengths."""


def large_row(config: Config, source: str, case: StudyCase) -> Row:
    """What samples of both methods say of one case under one model."""
    ready = opened(source, config.device, config.dtype)
    ids = ready.loaded.prompt_ids(prompt_text(case, ready.loaded.name))
    constraint = constrain(ready.loaded.tokenizer, case.pattern or "", eos_ids=())
    healed = heal(constraint, ids, MOST_GIVEN_BACK)
    prompt, own = list(healed.prefix), healed.constraint
    lift = constrain(ready.loaded.tokenizer, own.dfa, "lift", eos_ids=())
    seed = row_seed(config, source, case)
    drawn = {
        method: _drawn(config, ready, prompt, followed, [*seed, k])
        for k, (method, followed) in enumerate((("lift", lift), ("canonical", own)))
    }
    is_own = np.array([follows(own, prompt, one.ids) for one in drawn["lift"]])
    return {
        "kind": "large",
        **described(source, case),
        "pattern": case.pattern,
        "prompt_tokens": len(ids),
        "samples": config.samples,
        "temperature": config.temperatures[config.draws()],
        "methods": {method: summary(found) for method, found in drawn.items()},
        "not_canonical": _share(~is_own),
        "canonical_share": canonical_share(drawn, is_own),
        "features": features(ready, prompt, drawn, is_own, np.random.default_rng(seed)),
    }


def _drawn(
    config: Config, ready: Opened, prompt: list[int], constraint: Constraint, seed: Sequence[int]
) -> list[Drawn]:
    return sample_batch(
        ready.loaded.model,
        prompt,
        constraint,
        config.samples,
        max_new_tokens=config.longest,
        temperature=config.temperatures[config.draws()],
        seed=int(np.random.default_rng(seed).integers(2**31)),
        batch=config.batch,
    )


def follows(constraint: Constraint, prompt: Sequence[int], ids: Sequence[int]) -> bool:
    """Does the constraint allow these ids, one after the other?"""
    matcher = constraint.matcher(prompt)
    for token in ids:
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return True


def summary(drawn: Sequence[Drawn]) -> Row:
    """ended: how many texts are whole; log_z with its standard error and effective: of those that
    are, None where none is."""
    logs = np.array([one.log_weight for one in drawn])
    found = weights.log_normaliser(logs)
    has = bool((logs > -np.inf).any())
    return {
        "ended": int((logs > -np.inf).sum()),
        "effective": weights.effective_sample_size(logs),
        "log_z": found.value if has else None,
        "log_z_error": found.standard_error if has and len(logs) > 1 else None,
        "tokens": float(np.mean([len(one.ids) for one in drawn])),
    }


def canonical_share(drawn: dict[str, list[Drawn]], is_own: np.ndarray) -> Row | None:
    """Of the free mass, with its standard error by the delta method; None where nothing is whole.
    is_own: bool, which samples of the lift are canonical."""
    masses = _masses(drawn)
    own, other = masses["canonical"], masses["lift"] * ~is_own
    a, b = own.mean(), other.mean()
    if not a + b > 0:
        return None
    spread = b**2 * own.var() / len(own) + a**2 * other.var() / len(other)
    return {"value": float(a / (a + b)), "error": float(np.sqrt(spread) / (a + b) ** 2)}


def _masses(drawn: dict[str, list[Drawn]]) -> dict[str, np.ndarray]:
    """Weights by method, all divided by the same number so that they can be written down."""
    logs = {method: np.array([one.log_weight for one in found]) for method, found in drawn.items()}
    highest = max(float(found.max()) for found in logs.values())
    if highest == -np.inf:
        return {method: np.zeros(len(found)) for method, found in logs.items()}
    return {
        method: np.where(found > -np.inf, np.maximum(np.exp(found - highest), LEAST), 0.0)
        for method, found in logs.items()
    }


def _share(flags: np.ndarray) -> Row:
    share = float(flags.mean())
    return {"value": share, "error": float(np.sqrt(share * (1 - share) / len(flags)))}


def features(
    ready: Opened,
    prompt: list[int],
    drawn: dict[str, list[Drawn]],
    is_own: np.ndarray,
    rng: np.random.Generator,
) -> Row:
    """By feature: laws, and distances to the free one; nothing where a method has no whole text."""
    tokenizer = ready.loaded.tokenizer
    texts = {
        method: [tokenizer.text_bytes(one.ids, prompt[-1:]) for one in found]
        for method, found in drawn.items()
    }
    masses = _masses(drawn)
    if not all(found.any() for found in masses.values()):
        return {}
    return {
        name: compared({m: [value(text) for text in texts[m]] for m in texts}, masses, is_own, rng)
        for name, value in {"first": first_character, "length": length_class}.items()
    }


def first_character(text: bytes) -> str:
    """But for a space before it."""
    return text.decode("utf-8", "replace").lstrip(" ")[:1]


def length_class(text: bytes) -> str:
    low = len(text) // WIDTH * WIDTH
    return f"{low}-{low + WIDTH - 1}"


def compared(
    values: dict[str, list[str]],
    masses: dict[str, np.ndarray],
    is_own: np.ndarray,
    rng: np.random.Generator,
) -> Row:
    """values: of the feature, by method. tv: with 95 % intervals from resampling the samples."""
    names = sorted({value for found in values.values() for value in found})
    number = {name: k for k, name in enumerate(names)}
    codes = {m: np.array([number[value] for value in found]) for m, found in values.items()}
    every = {m: np.arange(len(found)) for m, found in codes.items()}
    laws = _feature_laws(codes, masses, is_own, every, len(names))
    again = []
    for _ in range(RESAMPLES):
        chosen = {m: rng.integers(len(found), size=len(found)) for m, found in codes.items()}
        again.append(_feature_laws(codes, masses, is_own, chosen, len(names)))
    result: Row = {"values": names, "laws": {m: law.tolist() for m, law in laws.items()}, "tv": {}}
    for method in ("lift", "canonical"):
        distances = [_tv(one[method], one["free"]) for one in again]
        low, high = np.quantile(distances, (0.025, 0.975))
        distance = _tv(laws[method], laws["free"])
        result["tv"][method] = {"value": distance, "low": float(low), "high": float(high)}
    return result


def _feature_laws(
    codes: dict[str, np.ndarray],
    masses: dict[str, np.ndarray],
    is_own: np.ndarray,
    chosen: dict[str, np.ndarray],
    n: int,
) -> dict[str, np.ndarray]:
    """Of the chosen samples. codes: of the feature's value; n: how many values there are."""
    code = {m: codes[m][chosen[m]] for m in codes}
    mass = {m: masses[m][chosen[m]] for m in codes}
    other = mass["lift"] * ~is_own[chosen["lift"]]
    own = np.bincount(code["canonical"], mass["canonical"], n) / len(mass["canonical"])
    counts = {
        "free": own + np.bincount(code["lift"], other, n) / len(other),
        **{m: np.bincount(code[m], mass[m] > 0, n).astype(np.float64) for m in codes},
    }
    return {name: found / max(found.sum(), 1e-300) for name, found in counts.items()}


def _tv(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.abs(p - q).sum() / 2)
