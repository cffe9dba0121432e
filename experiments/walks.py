"""Random walks of an engine, and their way home."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from bpe_automata import Constraint, Tokenizer
from bpe_automata.kernels.bits import members

STEPS_HOME = 400
"""Far more than any language here needs."""
WIDE = 64
"""Ids tried at each step home, besides the handy ones."""


class CannotFinishError(Exception):
    """A walk came to where nothing is allowed, or did not find acceptance; holds the ids."""


def walk(constraint: Constraint, rng: random.Random, most: int) -> tuple[list[int], Any]:
    """Up to `most` random ids from the start, and the state there. Ends early where only
    end-of-sequence is left."""
    engine = constraint.engine
    ids: list[int] = []
    state = engine.initial()
    for _ in range(rng.randrange(1, most + 1)):
        allowed = readable(constraint, state)
        if not len(allowed):
            break
        token = int(allowed[rng.randrange(len(allowed))])
        ids.append(token)
        state = engine.step(state, token)
    return ids, state


def readable(constraint: Constraint, state: Any) -> np.ndarray:
    """The allowed ids that are not end-of-sequence."""
    allowed = members(constraint.engine.mask(state))
    return allowed[~np.isin(allowed, constraint.eos_ids)]


def adds(tokenizer: Tokenizer, token: int, ids: Sequence[int]) -> bytes:
    """What one more id adds to the text of `ids`: its bytes, but for the space that decoding takes
    away where text begins (which the last of `ids` tells)."""
    return tokenizer.text_bytes((token,), ids[-1:])


def finish(constraint: Constraint, ids: list[int], state: Any, rng: random.Random) -> list[int]:
    """The ids up to acceptance, by those that come nearest to an accepting state of the DFA, of all
    short or added tokens and a sample; some steps are random, since there the tokens may not fit.
    """
    engine, dfa, tokenizer = constraint.engine, constraint.dfa, constraint.tokenizer
    distance, handy = dfa.distance(), tokenizer.derived("handy tokens", _handy)
    ids = list(ids)
    q = dfa.walk(tokenizer.text_bytes(ids))
    for _ in range(STEPS_HOME):
        if engine.accepting(state):
            return ids
        allowed = readable(constraint, state)
        if not len(allowed):
            break
        tried = rng.sample(range(len(allowed)), min(len(allowed), WIDE))
        near = np.intersect1d(allowed, handy).tolist()
        options = [*allowed[tried].tolist(), *rng.sample(near, min(len(near), 4 * WIDE))]
        ends = {token: dfa.walk(adds(tokenizer, token, ids), q) for token in options}
        token = min(options, key=lambda i: (distance[ends[i]], rng.random()))
        if rng.random() < 0.1:
            token = options[0]
        ids.append(token)
        state, q = engine.step(state, token), ends[token]
    raise CannotFinishError(ids)


def _handy(tokenizer: Tokenizer) -> np.ndarray:
    """The ids that make small steps, and those that alone spell what they spell."""
    short = [token for token, spelled in enumerate(tokenizer.spellings) if 0 < len(spelled) <= 2]
    return np.array([*short, *(token.id for token in tokenizer.description.added)])
