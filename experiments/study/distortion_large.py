"""One case of the study whose language is too large to be listed: by sampling.

Samples of the lift and of canonical carry weights w = p / q, so E[w f] is the sum of p f over all
that the method can write. What the model writes is what canonical can write and what it cannot:

    Z f = E_canonical[w f] + E_lift[w f where not canonical]      Z: the same with f = 1
    free share of canonical sequences = E_canonical[w] / Z

(The lift's samples alone would do in the limit, but most of them lie where the model has no mass.)
Besides both: populations of `PARTICLES` by sequential Monte Carlo, of which one text is taken in
proportion to the weights; chop and outlines-core, unweighted. As in the finite cases a text ends
where nothing can follow it, and end-of-sequence has no factor. What is compared of the texts:
`large_distributions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bpe_automata import Constraint, Tokenizer, constrain
from bpe_automata.decoding.healing import Healed, heal
from bpe_automata.sampling import weights
from experiments.engines.interface import PeerError
from experiments.engines.peers import OutlinesCore
from experiments.run.executors import Row
from experiments.shared.batched import Drawn, Language, sample_batch, sample_populations
from experiments.study.distortion_finite import Opened, described, opened, row_seed
from experiments.study.large_distributions import Texts, features, masses
from experiments.study.large_walkers import ChopLanguage, outlines_language
from experiments.study.study_case import PARTICLES, Config, StudyCase
from experiments.study.study_methods import MOST_GIVEN_BACK

SIZE = PARTICLES[0]
"""Of a population."""


@dataclass(frozen=True)
class _Asked:
    """ready: the model; prompt: the ids that stay; text: what was given back; seed: of the row."""

    config: Config
    ready: Opened
    prompt: list[int]
    text: bytes
    seed: list[int]

    def drawn(self, followed: Language, number: int) -> list[Drawn]:
        """Independent texts; the number is that of the method."""
        count, seed = self.config.samples, self._seed(number)
        model, given = self.ready.loaded.model, self._given()
        return sample_batch(model, self.prompt, followed, count, seed=seed, **given)

    def populations(self, followed: Language, number: int) -> list[list[Drawn]]:
        """As many texts, in populations."""
        count, seed = max(2, self.config.samples // SIZE), self._seed(number)
        model, given = self.ready.loaded.model, self._given()
        return sample_populations(model, self.prompt, followed, count, SIZE, seed=seed, **given)

    def texts(self, drawn: Sequence[Drawn]) -> Texts:
        """Without what was given back."""
        tokenizer, last = self.ready.loaded.tokenizer, self.prompt[-1:]
        whole = [tokenizer.text_bytes(one.ids, last) for one in drawn]
        spelled = [text.removeprefix(self.text) for text in whole]
        return Texts(spelled, np.array([one.log_weight for one in drawn]))

    def _seed(self, number: int) -> int:
        return int(np.random.default_rng([*self.seed, number]).integers(2**31))

    def _given(self) -> Row:
        heat = self.config.temperatures[self.config.draws()]
        longest, batch = self.config.longest, self.config.batch
        return {"max_new_tokens": longest, "temperature": heat, "batch": batch}


def large_row(config: Config, source: str, case: StudyCase) -> Row:
    """What samples of all methods say of one case under one model."""
    ready = opened(source, config.device, config.dtype)
    ids = ready.prompt_ids(case)
    constraint = constrain(ready.loaded.tokenizer, case.pattern or "", eos_ids=())
    healed = heal(constraint, ids, MOST_GIVEN_BACK)
    text = healed.healing.text if healed.healing else b""
    seed = row_seed(config, source, case)
    asked = _Asked(config, ready, list(healed.prefix), text, seed)
    own = healed.constraint
    lift = constrain(ready.loaded.tokenizer, own.dfa, "lift", eos_ids=())
    drawn = {"lift": asked.drawn(lift, 0), "canonical": asked.drawn(own, 1)}
    populations = {"lift": asked.populations(lift, 2), "canonical": asked.populations(own, 3)}
    drawn["chop"], absent = asked.drawn(ChopLanguage(lift), 4), dict[str, str]()
    try:
        drawn["outlines"] = asked.drawn(_outlines(asked, lift, case), 5)
    except (PeerError, UnicodeDecodeError) as error:
        absent["outlines"] = str(error)
    is_own = np.array([follows(own, asked.prompt, one.ids) for one in drawn["lift"]])
    texts = {method: asked.texts(found) for method, found in drawn.items()}
    groups = {m: [asked.texts(one) for one in found] for m, found in populations.items()}
    return {
        "kind": "large",
        **described(source, case),
        "pattern": case.pattern,
        "prompt_tokens": len(ids),
        "healing": _healing(healed),
        "samples": config.samples,
        "particles": SIZE,
        "temperature": config.temperatures[config.draws()],
        "methods": {m: summary(one, texts[m], case.truth) for m, one in drawn.items()},
        "smc": {m: smc_summary(found) for m, found in groups.items()},
        "absent": absent,
        "not_canonical": {"count": int((~is_own).sum()), "of": len(is_own)},
        "canonical_share": canonical_share(texts, is_own),
        "features": features(texts, groups, is_own, case.truth, np.random.default_rng(seed)),
    }


def _outlines(asked: _Asked, lift: Constraint, case: StudyCase) -> Language:
    loaded = asked.ready.loaded
    peer = _peer(loaded.tokenizer, loaded.eos_ids)
    return outlines_language(peer, lift, asked.text, case.pattern or "", loaded.eos_ids[0])


@lru_cache(maxsize=1)
def _peer(tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> OutlinesCore:
    return OutlinesCore(tokenizer, eos_ids)


def _healing(healed: Healed) -> Row | None:
    """What was given back of the prompt, as in the finite cases."""
    if healed.healing is None:
        return None
    return {
        "given_back": len(healed.healing.given_back),
        "text": healed.healing.text.decode("utf-8", "replace"),
        "reason": healed.healing.reason,
    }


def follows(constraint: Constraint, prompt: Sequence[int], ids: Sequence[int]) -> bool:
    """Does the constraint allow these ids, one after the other?"""
    matcher = constraint.matcher(prompt)
    for token in ids:
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return True


def summary(drawn: Sequence[Drawn], texts: Texts, truth: Sequence[str]) -> Row:
    """ended: how many texts are whole; right: how many are a right answer, None where none is
    known; log_z with its standard error and effective: of those that are whole, None where none
    is."""
    right = {answer.encode() for answer in truth}
    hits = [text in right for text in texts.whole()]
    ended = int((texts.log_weights > -np.inf).sum())
    return {
        "ended": ended,
        "right": sum(hits) if right else None,
        "effective": weights.effective_sample_size(texts.log_weights),
        **_normaliser(texts.log_weights),
        "tokens": float(np.mean([len(one.ids) for one in drawn])),
    }


def smc_summary(groups: Sequence[Texts]) -> Row:
    """ended: of all texts; log_z: of the populations' mean weights, which are independent."""
    means = np.array([weights.log_normaliser(one.log_weights).value for one in groups])
    ended = sum(int((one.log_weights > -np.inf).sum()) for one in groups)
    return {"populations": len(groups), "ended": ended, **_normaliser(means)}


def _normaliser(logs: np.ndarray) -> Row:
    found = weights.log_normaliser(logs)
    has = bool((logs > -np.inf).any())
    return {
        "log_z": found.value if has else None,
        "log_z_error": found.standard_error if has and len(logs) > 1 else None,
    }


def canonical_share(texts: dict[str, Texts], is_own: np.ndarray) -> Row | None:
    """Of the free mass, with its standard error by the delta method; None where nothing is whole.
    The error is None where no sample tells of one of the two parts: then it is unknown, not 0.
    is_own: bool, which samples of the lift are canonical."""
    mass = masses(texts)
    own, other = mass["canonical"], mass["lift"] * ~is_own
    a, b = own.mean(), other.mean()
    if not a + b > 0:
        return None
    error = None
    if a > 0 and b > 0:
        spread = b**2 * own.var() / len(own) + a**2 * other.var() / len(other)
        error = float(np.sqrt(spread) / (a + b) ** 2)
    return {"value": float(a / (a + b)), "error": error}
