"""The laws of all methods over the answers of one case, and how far each is from the free law.

At temperature T the model's law of a sequence is the product of softmax(logits / T) over its ids.

- *free*: each answer summed over all its tokenizations, given that the model writes an answer;
- a method's law: each step renormalised over the ids that the method allows;
- a method's *weighted* law: what self-normalised importance weights, or SMC, converge to: the model
  given the sequences that the method can write. For the lift that is the free law; for canonical
  it is the free law given canonical ids.

Errors are total variation distances to the free law, and they are taken apart so:

    TV(lift) = [TV(lift) - TV(canonical)] + [TV(canonical) - TV(weighted)] + TV(weighted)
                 tokenization, may be < 0     myopia of masking, may be < 0    rest

where "weighted" is canonical with weights. The rest is the effect of the free mass that is not
canonical, which no method over canonical ids can have.

The outcomes are the answers and *no answer*: what a method loses in dead ends is probability of the
latter, which is 0 under the free law. It counts in the distance; the divergence KL(free || law) has
no term of it. Weighted laws lose nothing: a sequence that is no answer has weight 0. The lift and
canonical have no dead ends, so the sum above holds as it stands.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from experiments.run.executors import Row
from experiments.study.path_measures import (
    along_paths,
    kl_divergence,
    masked_steps,
    normalised,
    per_answer,
    total_variation,
)
from experiments.study.study_laws_tree import Explored

ROUNDING = 1e-9
"""Probability that is taken for none."""
Numbers = Sequence[float] | np.ndarray
"""A law in the order of the answers."""


def laws(
    found: Explored,
    heat: int,
    methods: Sequence[str],
    n: int,
    right: Sequence[int],
    unsure: Collection[str] = (),
) -> Row:
    """All that is known at one temperature. heat: its number; methods: names of `states`' columns,
    "lift" first; n: number of answers; right: the numbers of those that are right; unsure: methods
    that may run into a dead end."""
    own = along_paths(found.trie, found.scores[heat])
    mass = per_leaf(found, found.complete, own, n)
    free = normalised(mass)
    result: Row = {
        "free": free.tolist(),
        "log10_mass": float(np.logaddexp.reduce(mass) / np.log(10)),
        "free_slack": _slack(found, own, np.ones(len(own), dtype=bool)),
        **judged(free, free, right, ""),
        "methods": {},
    }
    for column, method in enumerate(methods):
        alive = found.trie.alive(column)
        part = one_law(found, heat, alive, n, method in unsure)
        log_law = np.array(part.pop("log_law"))
        kept = per_leaf(found, found.complete & alive, own, n)
        limit = normalised(kept)
        result["methods"][method] = {
            **part,
            "law": np.exp(log_law).tolist(),
            "tv": tv_between(free, np.exp(log_law), part["lost"]),
            "kl": _finite(kl_divergence(free, log_law)),
            **judged(np.exp(log_law), free, right, ""),
            "share": float(np.exp(np.logaddexp.reduce(kept) - np.logaddexp.reduce(mass))),
            "weighted": limit.tolist(),
            "weighted_tv": total_variation(free, limit),
            "weighted_kl": _finite(kl_divergence(free, _log(limit))),
            "weighted_slack": _slack(found, own, alive),
            **judged(limit, free, right, "weighted_"),
        }
    return result


def one_law(found: Explored, heat: int, alive: np.ndarray, n: int, unsure: bool = False) -> Row:
    """The masked law of a method. log_law: float64 [n]; slack: probability that is not assigned to
    an answer, or that a dead end may still take from it where the method is `unsure`; unread: of
    ending in a node that was not asked; lost: of a dead end."""
    steps = masked_steps(found.trie, found.scores[heat], alive)
    paths = along_paths(found.trie, steps)
    ends = alive & (found.complete | found.open)
    log_law = per_leaf(found, ends, paths, n)
    undecided = ends & (found.answer < 0)
    if unsure:
        undecided |= alive & found.open
    return {
        "log_law": log_law.tolist(),
        "slack": _sum(paths[undecided]),
        "unread": _sum(paths[alive & found.open]),
        "lost": lost if (lost := 1.0 - _sum(paths[ends])) > ROUNDING else 0.0,
    }


def per_leaf(found: Explored, leaves: np.ndarray, paths: np.ndarray, n: int) -> np.ndarray:
    """float64 [n]: log of the summed probability of those leaves (bool) whose answer is known."""
    nodes = np.flatnonzero(leaves & (found.answer >= 0))
    return per_answer(nodes, found.answer[nodes], paths, n)


def judged(law: np.ndarray, free: np.ndarray, right: Sequence[int], prefix: str) -> Row:
    """Probability of the right answers, whether the likeliest answer is one of them (None where
    nothing is known), and whether it is the free law's."""
    best = int(np.argmax(law))
    known = bool(right)
    return {
        f"{prefix}p_right": float(law[list(right)].sum()) if known else None,
        f"{prefix}is_right": best in right if known else None,
        f"{prefix}same_answer": best == int(np.argmax(free)),
    }


def tv_between(p: Numbers, q: Numbers, lost: float = 0.0) -> float:
    """Total variation distance of two laws in the order of the answers. lost: probability of no
    answer, under one of the two."""
    return total_variation(np.array(p), np.array(q)) + lost / 2


def _slack(found: Explored, own: np.ndarray, alive: np.ndarray) -> float:
    """The model's probability of open nodes, relative to that of the complete ones."""
    complete = np.logaddexp.reduce(own[found.complete & alive])
    return float(np.exp(np.logaddexp.reduce(own[found.open & alive]) - complete))


def _sum(log_values: np.ndarray) -> float:
    return float(np.exp(log_values).sum())


def _log(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _finite(value: float) -> float | None:
    """None for infinity: an answer that the model would give has probability 0, or what of it was
    found has, where a law has slack."""
    return value if np.isfinite(value) else None
