"""The regexes of the exactness experiments, and random walks through the masks of a constraint,
which are completed to a text that it accepts.

The regexes are the lines of `regexes.tsv`: group, name and regex, unescaped. The masks of FINITE
ones, of at most 20,000 strings each, are compared with the trie of `encode` at every prefix; VARIED
ones, most of them infinite, are for the walks.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata import Constraint, Tokenizer
from bpe_automata._kernels.bits import members
from bpe_automata.automata.linked import explicit

STEPS = 400
"""A completion may take this many ids, and one more for each byte of the shortest completion."""
ASTRAY = 0.1
"""The share of random steps in a completion: the shortest way alone may lead in circles."""
MOST_IDS, CANDIDATES = 80, 48
"""`random_ids` chooses at most 80 ids at random: each among 48 that are drawn from its mask, and
those of the mask that have one byte."""


class CannotFinishError(Exception):
    """A walk came to a dead end, or did not reach an accepting state. It holds the ids."""


def walk(constraint: Constraint, rng: random.Random, most: int) -> tuple[list[int], Any]:
    """Up to `most` random ids from the start, and the state after them. Ends early if only
    end-of-sequence is allowed."""
    engine = constraint.engine
    ids: list[int] = []
    state = engine.initial()
    for _ in range(rng.randrange(1, most + 1)):
        allowed = text_ids(constraint, state)
        if not len(allowed):
            break
        token = int(allowed[rng.randrange(len(allowed))])
        ids.append(token)
        state = engine.step(state, token)
    return ids, state


def random_ids(constraint: Constraint, rng: random.Random) -> list[int]:
    """Random ids up to an accepting state. All states that the candidates for an id lead to are
    equally likely, so that quotes and braces come as often as letters do. After a random number of
    ids `finish` takes over. Raises CannotFinishError."""
    engine = constraint.engine
    ids, state = list[int](), engine.initial()
    for _ in range(rng.randrange(1, MOST_IDS + 1)):
        allowed = text_ids(constraint, state)
        if not len(allowed) or (engine.accepting(state) and rng.random() < 1 / 4):
            break
        if len(allowed) > CANDIDATES:
            some = [rng.randrange(len(allowed)) for _ in range(CANDIDATES)]
            single = _single_bytes(constraint.tokenizer)
            allowed = np.union1d(allowed[some], allowed[np.isin(allowed, single)])
        after = states_after(engine, state, allowed)
        q = int(rng.choice(np.unique(after).tolist()))
        ids.append(int(rng.choice(allowed[after == q].tolist())))
        state = engine.step(state, ids[-1])
    return finish(constraint, ids, state, rng)


def _single_bytes(tokenizer: Tokenizer) -> np.ndarray:
    return tokenizer.derived(
        "ids of one byte",
        lambda made: np.flatnonzero([len(spelled) == 1 for spelled in made.spellings]),
    )


def text_ids(constraint: Constraint, state: Any) -> np.ndarray:
    """The allowed ids that are not end-of-sequence."""
    allowed = members(constraint.engine.mask(state))
    return allowed[~np.isin(allowed, constraint.eos_ids)]


def finish(constraint: Constraint, ids: list[int], state: Any, rng: random.Random) -> list[int]:
    """The ids, and more up to an accepting state: each mostly the one that comes nearest to an
    accepting state of the DFA, sometimes a random one. Raises CannotFinishError."""
    engine, ids = constraint.engine, list(ids)
    distance = explicit(engine.dfa, "a walk home").far
    for _ in range(1 + STEPS + max(0, int(distance[engine.dfa_state(state)]))):
        if engine.accepting(state):
            return ids
        allowed = text_ids(constraint, state)
        if not len(allowed):
            break
        after = states_after(engine, state, allowed)
        near = np.arange(len(allowed))
        if rng.random() >= ASTRAY:
            near = np.flatnonzero(distance[after] == distance[after].min())
        ids.append(int(allowed[near[rng.randrange(len(near))]]))
        state = engine.step(state, ids[-1])
    raise CannotFinishError(ids)


def states_after(engine: Any, state: Any, tokens: np.ndarray) -> np.ndarray:
    """int64 [len(tokens)]: the state of `engine.dfa` after each of the tokens in a state."""
    found: np.ndarray = engine.product.after_each(*state[:3], tokens)[:, 0]
    for k in np.flatnonzero(np.isin(tokens, [*engine.tokenizer.added_ids])).tolist():
        found[k] = engine.dfa_state(engine.step(state, int(tokens[k])))
    return found


def read(path: Path) -> dict[str, dict[str, str]]:
    """The regexes of a file, by group and name. Its first line names the columns."""
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    found: dict[str, dict[str, str]] = {}
    for group, name, regex in (line.split("\t") for line in lines):
        found.setdefault(group, {})[name] = regex
    return found


FINITE, VARIED = read(Path(__file__).with_name("regexes.tsv")).values()


def own_finite(tokenizer: Tokenizer) -> dict[str, str]:
    """Finite regexes over the texts of at most three added tokens (end-of-sequence first, then the
    last ones): in whole, in part, and one after the other."""
    contents = {token.id: token.content for token in tokenizer.description.added}
    ends = [contents[token] for token in tokenizer.eos_ids if token in contents]
    chosen = list(dict.fromkeys([*ends, *list(contents.values())[-3:]]))[:3]
    found: dict[str, str] = {}
    for i, text in enumerate(chosen):
        whole, most, rest = re.escape(text), re.escape(text[:-1]), re.escape(text[1:])
        found[f"added token {i + 1}"] = f"(a| |\\n)?({whole}|{most}|{rest})( |b|{rest})?"
    if chosen:
        several = "|".join(map(re.escape, chosen))
        found["added tokens in a row"] = f"({several}| |a|\\n){{0,4}}"
    return found
