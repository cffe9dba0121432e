"""Larger languages: how far constraints take a model where answers are too many to be enumerated.

Models are asked prompts of the study (`answers.cases`) whose languages are sampled. Samples of the
lift and of canonical carry weights w = p / q, so E[w f] is the sum of p f over all that the method
can write. What the model writes is what canonical can write and what it cannot:

    Z f = E_canonical[w f] + E_lift[w f where not canonical]      Z: the same with f = 1
    free share of canonical sequences = E_canonical[w] / Z

(The lift's samples alone would do in the limit, but most of them lie where the model has no mass.)
Besides both: populations of `SIZE` by sequential Monte Carlo, of which one text is taken in
proportion to the weights; chop and outlines-core, unweighted. As where answers are enumerated, a
text ends where nothing can follow it, and end-of-sequence has no factor.

What is compared are distributions of features of the texts: the first character, the length in
bytes rounded down to a multiple of four, and, where a truth is known, whether the text is a right
answer. (A total variation distance between distributions of whole texts could not be estimated from
samples.) Values that are seen fewer than `SEEN` times in all samples together are one value, the
rest: resampling says too little about what is seen once or twice. So the distance is one of coarser
features, and at most that of the finer ones. Its interval: `experiments.statistics`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bpe_automata import Constraint, Tokenizer, constrain
from bpe_automata._decoding.healing import heal
from bpe_automata.sampling import _weights as weights
from experiments.answers.asked import Opened, ask, described, given_back, opened, row_seed
from experiments.answers.cases import CASES, SHORT, StudyCase, chosen
from experiments.answers.methods import (
    MOST_GIVEN_BACK,
    OUR_METHODS,
    ChopLanguage,
    outlines_language,
)
from experiments.answers.populations import PARTICLES
from experiments.engines.interface import PeerError
from experiments.engines.peers import OutlinesCore
from experiments.models import Device, Dtype
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.run.measuring import Run
from experiments.shared.batched import Language
from experiments.statistics import LEAST, Distribution, Part, distances, estimated, one_hot
from experiments.study.sampled.draws import ReadTrie, Walk, Weighted, draw
from experiments.study.sampled.report import LANGUAGE, TITLE, facts, figures, readme, tables

VERSION = 1
LONG = True
__all__ = [
    "LONG",
    "ON_GPU",
    "SMOKE",
    "TITLE",
    "VERSION",
    "Config",
    "facts",
    "figures",
    "inputs",
    "measure",
]
__all__ += ["readme", "tables"]


@dataclass(frozen=True)
class Config(config.Config):
    """Which languages under which models, and how many samples."""

    models: tuple[str, ...] = option(
        ("smollm2", "gemma-3-270m"), "smollm2, gemma-3-270m, local folders, hub ids"
    )
    cases: tuple[str, ...] = option(SHORT, "names or families of cases, all if empty")
    temperature: float = option(1.0, "what logits are divided by")
    samples: int = option(1024, "samples per method of a larger language")
    longest: int = option(64, "ids of such a sample")
    device: Device = option("auto", "where the models run")
    dtype: Dtype = option("float32", "of the arithmetic")


ON_GPU = Config(models=("smollm2",), samples=4096, device="cuda")
SMOKE = Config(models=("smollm2",), cases=("choices_any_several",), samples=4, longest=12)


def inputs(asked: Config) -> Row:
    """The engine beside ours: rows with another version of it, or none, are not gone on with."""
    del asked
    return {"peers": {OutlinesCore.name: OutlinesCore.version()}}


def measure(run: Run[Config]) -> None:
    """A row for each model, then one for each model and language."""
    run.note(**inputs(run.config))
    larger = [case for case in CASES if not case.is_enumerated()]
    ask(run, chosen(larger, run.config.cases), sampled_row)


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
    logs = {method: texts[method].log_weights for method in OUR_METHODS}
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
    """By feature: values, distributions, and distances to the model's distribution; nothing where a
    method has no whole text. is_own: bool, which samples of the lift are canonical."""
    readers: dict[str, Callable[[bytes], str]] = {
        "first": lambda text: text.decode("utf-8", "replace").lstrip(" ")[:1],
        "length": lambda text: f"{(low := len(text) // WIDTH * WIDTH)}-{low + WIDTH - 1}",
    }
    if truth:
        right = {answer.encode() for answer in truth}
        readers["right"] = lambda text: "right" if text in right else "wrong"
    pooled = [*texts.values(), *(one for found in populations.values() for one in found)]
    if not all((found.log_weights > -np.inf).any() for found in texts.values()):
        return {}
    made = {}
    for name, value_of in readers.items():
        seen = Counter(value_of(text) for found in pooled for text in found.whole())
        values = sorted(value for value, n in seen.items() if n >= SEEN or name == "right")
        made[name] = _compared(_Coded([*values, REST], value_of), texts, populations, is_own, rng)
    return made


@dataclass(frozen=True)
class _Coded:
    """values: of a feature, the rest last."""

    values: list[str]
    value_of: Callable[[bytes], str]

    def added(self, texts: Texts, mass: np.ndarray) -> np.ndarray:
        """float64 [texts, values]."""
        number = {value: k for k, value in enumerate(self.values)}
        codes = [number.get(self.value_of(text), len(self.values) - 1) for text in texts.spelled]
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
    free: Distribution = [own, Part("lift", coded.added(texts["lift"], other))]
    distributions: dict[str, Distribution] = {
        method: [Part(method, coded.added(found, (found.log_weights > -np.inf).astype(float)))]
        for method, found in texts.items()
    }
    distributions["canonical weighted"] = [own]
    for method, found in populations.items():
        taken = np.stack([_taken(coded, population) for population in found])
        if taken.any():
            distributions[f"{method} SMC"] = [Part(f"{method} SMC", taken)]
    return {
        "values": coded.values,
        "free": estimated(free)[0].tolist(),
        "laws": {name: estimated(one)[0].tolist() for name, one in distributions.items()},
        "tv": distances(distributions, free, rng),
    }


def effective(texts: Mapping[str, Texts], is_own: np.ndarray) -> float:
    """How many samples the model's own distribution rests on, see above: those of canonical and
    those of the lift that are not canonical, by their weights. is_own: as in `features`."""
    mass = masses(texts)
    parts = [mass["canonical"] / len(mass["canonical"]), mass["lift"] * ~is_own / len(is_own)]
    with np.errstate(divide="ignore"):
        return weights.effective_sample_size(np.log(np.concatenate(parts)))


def _taken(coded: _Coded, population: Texts) -> np.ndarray:
    """float64 [values]: the distribution of one text that is taken by its weight; zeros of none."""
    mass = np.exp(population.log_weights - max(population.log_weights.max(), -1e300))
    added: np.ndarray = coded.added(population, mass).sum(axis=0) / max(mass.sum(), LEAST)
    return added


SIZE = PARTICLES[0]
"""Of a population."""


@dataclass(frozen=True)
class _Asked:
    """trie: after the ids of the prompt that stay; text: what was given back; seed: of the row."""

    config: Config
    trie: ReadTrie
    tokenizer: Tokenizer
    text: bytes
    seed: list[int]

    def drawn(self, walk: Walk, number: int) -> list[Weighted]:
        """Independent texts; the number is that of the method."""
        return [text for (text,) in self._drawn(walk, self.config.samples, 1, number)]

    def populations(self, walk: Walk, number: int) -> list[list[Weighted]]:
        """As many texts, in populations."""
        return self._drawn(walk, max(2, self.config.samples // SIZE), SIZE, number)

    def _drawn(self, walk: Walk, n: int, size: int, number: int) -> list[list[Weighted]]:
        seed = int(np.random.default_rng([*self.seed, number]).integers(2**31))
        return draw(walk, n, size, self.config.longest, seed)

    def texts(self, drawn: Sequence[Weighted]) -> Texts:
        """Without what was given back."""
        last = self.trie.prompt[-1:]
        whole = [self.tokenizer.text_bytes(one.ids, last) for one in drawn]
        spelled = [text.removeprefix(self.text) for text in whole]
        return Texts(spelled, np.array([one.log_weight for one in drawn]))


def sampled_row(config: Config, source: str, case: StudyCase) -> Row:
    """What samples of all methods say of one case under one model."""
    ready = opened(source, config.device, config.dtype)
    ids = ready.prompt_ids(case)
    constraint = constrain(ready.loaded.tokenizer, case.pattern or "", eos_ids=())
    healed = heal(constraint, ids, MOST_GIVEN_BACK)
    text = healed.healing.text if healed.healing else b""
    seed = row_seed(config.seed, source, case)
    lift = constrain(ready.loaded.tokenizer, healed.constraint.dfa, "lift", eos_ids=())
    prompt = list(healed.prefix)
    reader = ready.reader(ready.loaded.model, prompt)
    trie = ReadTrie(reader, lift, prompt, config.temperature)
    asked = _Asked(config, trie, ready.loaded.tokenizer, text, seed)
    own = Walk(trie, healed.constraint)
    drawn = {"lift": asked.drawn(trie.lift, 0), "canonical": asked.drawn(own, 1)}
    populations = {
        "lift": asked.populations(trie.lift, 2),
        "canonical": asked.populations(own, 3),
    }
    drawn["chop"], absent = asked.drawn(Walk(trie, ChopLanguage(lift)), 4), dict[str, str]()
    try:
        drawn["outlines"] = asked.drawn(Walk(trie, _outlines(ready, lift, text, case)), 5)
    except (PeerError, UnicodeDecodeError) as error:
        absent["outlines"] = str(error)
    is_own = np.array([follows(healed.constraint, prompt, one.ids) for one in drawn["lift"]])
    texts = {method: asked.texts(found) for method, found in drawn.items()}
    groups = {m: [asked.texts(one) for one in found] for m, found in populations.items()}
    return {
        "kind": LANGUAGE,
        **described(source, case),
        "pattern": case.pattern,
        "prompt_tokens": len(ids),
        "healing": given_back(healed.healing),
        "samples": config.samples,
        "particles": SIZE,
        "read": len(trie),
        "temperature": config.temperature,
        "methods": {m: summary(one, texts[m], case.truth) for m, one in drawn.items()},
        "smc": {m: smc_summary(found) for m, found in groups.items()},
        "absent": absent,
        "not_canonical": {"count": int((~is_own).sum()), "of": len(is_own)},
        "effective": effective(texts, is_own),
        "canonical_share": canonical_share(texts, is_own),
        "features": features(texts, groups, is_own, case.truth, np.random.default_rng(seed)),
    }


def _outlines(ready: Opened, lift: Constraint, before: bytes, case: StudyCase) -> Language:
    loaded = ready.loaded
    peer = _peer(loaded.tokenizer, loaded.eos_ids)
    return outlines_language(peer, lift, before, case.pattern or "", loaded.eos_ids[0])


@lru_cache(maxsize=1)
def _peer(tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> OutlinesCore:
    return OutlinesCore(tokenizer, eos_ids)


def follows(constraint: Constraint, prompt: Sequence[int], ids: Sequence[int]) -> bool:
    """Does the constraint allow these ids, one after the other?"""
    matcher = constraint.matcher(prompt)
    for token in ids:
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return True


def summary(drawn: Sequence[Weighted], texts: Texts, truth: Sequence[str]) -> Row:
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
