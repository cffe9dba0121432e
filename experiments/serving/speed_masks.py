"""Seconds of one mask along random texts of a regex: at a new state, at a known one, and as other
engines do it along the same ids."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

import numpy as np

from bpe_automata import Constraint, Tokenizer, constrain
from bpe_automata.kernels.bits import members
from experiments.run.cells import Row
from experiments.shared.engines import Engine, PeerError, refusals
from experiments.shared.timing import batched, timed

WALKS, STEPS = 6, 30
BATCH = 200
"""Calls per reading of the clock at known states."""


def masks(
    name: str,
    regex: str,
    tokenizers: tuple[Tokenizer, Tokenizer],
    eos_ids: tuple[int, ...],
    peers: Sequence[Engine],
    seed: int,
) -> Row:
    """Raw seconds. tokenizers: one to draw the walks with, one that has seen none of them."""
    # Peers do not read added tokens as text, so no walk goes through one.
    drawing = constrain(tokenizers[0], regex, eos_ids=eos_ids, added_tokens=False)
    timing = constrain(tokenizers[1], regex, eos_ids=eos_ids)
    rng = random.Random(f"{seed} {regex}")
    walks = [walk(drawing, rng) for _ in range(WALKS)]
    row: Row = {"kind": "masks", "name": name, "ids": sum(map(len, walks))}
    row |= first_time(timing, walks)
    row |= known(timing, walks)
    words = (tokenizers[0].n_ids + 31) // 32
    row["peers"] = {peer.name: along(peer, regex, walks, words) for peer in peers}
    return row


def walk(constraint: Constraint, rng: random.Random) -> list[int]:
    """Random ids, each mask's alike likely, until there are none but end of sequence."""
    engine = constraint.engine
    state, ids = engine.initial(), []
    for _ in range(STEPS):
        allowed = members(engine.mask(state))
        allowed = allowed[~np.isin(allowed, engine.eos_ids)]
        if not len(allowed):
            break
        ids.append(int(rng.choice(allowed)))
        state = engine.step(state, ids[-1])
    return ids


def first_time(constraint: Constraint, walks: Sequence[list[int]]) -> Row:
    """`all`: each mask as it comes, into a packed buffer; `first`: those at states that are new to
    the constraint; `advance`: each step. The buffer's 1 or 2 microseconds are included."""
    engine, seen = constraint.engine, set()
    buffer = np.zeros((1, (constraint.n_ids + 31) // 32), dtype=np.int32)
    row: Row = {"all": [], "first": [], "advance": []}
    for ids in walks:
        state, matcher = engine.initial(), constraint.matcher()
        seen.add(state)  # its mask came with the matcher, and is part of "regex to first mask"
        for token in ids:
            spent, _ = timed(partial(matcher.mask, buffer))
            row["all"].append(spent)
            if state not in seen:
                row["first"].append(spent)
            seen.add(state)
            advanced, _ = timed(partial(matcher.advance, token))
            row["advance"].append(advanced)
            state = engine.step(state, token)
    return row


def known(constraint: Constraint, walks: Sequence[list[int]]) -> Row:
    """Each state of the walks again: `engine.mask` alone, and `Matcher.mask` into a buffer."""
    engine = constraint.engine
    buffer = np.zeros((1, (constraint.n_ids + 31) // 32), dtype=np.int32)
    row: Row = {"known_engine": [], "known_matcher": []}
    for ids in walks[:2]:
        state, matcher = engine.initial(), constraint.matcher()
        for token in ids:
            row["known_engine"].append(batched(partial(engine.mask, state), BATCH))
            row["known_matcher"].append(batched(partial(matcher.mask, buffer), BATCH))
            state = engine.step(state, token)
            matcher.advance(token)
    return row


def along(peer: Engine, regex: str, walks: Sequence[list[int]], words: int) -> Row:
    """Each mask of a peer along the same ids; it need not be the same mask."""
    buffer = np.zeros((1, words), dtype=np.int32)
    row: Row = {"all": [], "failure": None}
    try:
        for ids in walks:
            with refusals():
                session = peer.compile(regex)
                for token in ids:
                    spent, _ = timed(partial(session.mask, buffer))
                    row["all"].append(spent)
                    session.advance(token)
    except PeerError as error:
        row["failure"] = str(error)
    return row
