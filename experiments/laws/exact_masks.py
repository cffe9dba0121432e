"""Laws about masks: against the trie of `encode` on finite languages, and against every id tried
on the others."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from bpe_automata import ByteDFA, Constraint
from bpe_automata.errors import EmptyLanguageError
from bpe_automata.kernels.bits import members
from bpe_automata.kernels.distance import NEVER
from bpe_automata.reference import canonical_trie, compare
from experiments.laws.exact_sequences import Case, Found, faults
from experiments.shared.walks import CannotFinishError, adds, ends, finish, walk

MOST_STRINGS = 20_000
COMPLETIONS = 2
MOST_IDS, MOST_HOME = 4000, 50
"""Ids of one mask for which a witness is looked for, and of those without one that are walked home;
samples, where there are more."""


def finite(constraint: Constraint, name: str) -> Found:
    """Every mask at every prefix, end of sequence included, equals the trie of `encode(s)` over
    all strings s of the language."""
    strings = [string.decode() for string in constraint.dfa.strings(MOST_STRINGS)]
    trie = canonical_trie(constraint.tokenizer, strings, (), constraint.eos_ids)
    counts, wrong = Counter(strings=len(strings)), list[Case]()
    try:
        initial = constraint.engine.initial()
    except EmptyLanguageError:
        counts.update({"tried": 1, "empty regexes": 1})
        return counts, [{"kind": "wrongly empty", "regex": name}] if trie else []
    for mismatch in compare(constraint.engine, initial, trie):
        counts["tried"] += 1
        if mismatch:
            counts["wrong mask"] += 1
            wrong.append({"kind": "wrong mask", "regex": name, **_shown(mismatch._asdict())})
    return counts, wrong


def _shown(fields: dict[str, Any]) -> dict[str, Any]:
    """Sets as lists that JSON can hold; None, the end of the text, becomes "end"."""
    return {
        key: sorted(("end" if i is None else i for i in value), key=str)
        if isinstance(value, frozenset)
        else list(value)
        for key, value in fields.items()
    }


def every_id(constraint: Constraint, name: str, n: int, rng: random.Random) -> Found:
    """At the states of n random walks: an id is in the mask iff some text that goes on so is
    encoded so. A witness is looked for among a few completions; for an id of the mask that has none
    there, on the way that the automaton itself takes to acceptance."""
    counts: Counter[str] = Counter()
    wrong: list[Case] = []
    completions = _Completions(constraint.dfa, rng)
    for most in range(n):
        try:
            ids, state = walk(constraint, rng, most) if most else ([], constraint.engine.initial())
        except EmptyLanguageError:  # the law of walks looks into it
            return counts, wrong
        _every_id_at(constraint, ids, state, completions, counts, wrong, rng)
    for case in wrong:
        case["regex"] = name
        counts[case["kind"]] += 1
    return counts, wrong


def _every_id_at(
    constraint: Constraint,
    ids: list[int],
    state: Any,
    completions: _Completions,
    counts: Counter[str],
    wrong: list[Case],
    rng: random.Random,
) -> None:
    engine, eos = constraint.engine, set(constraint.eos_ids)
    mask = set(members(engine.mask(state)).tolist()) - eos
    before = constraint.tokenizer.text_bytes(ids)
    after = _readable(constraint, ids, before)
    chosen = rng.sample(sorted(after), min(len(after), MOST_IDS))
    tried = {token: completions.after(after[token]) for token in chosen}
    found = _witnessed(constraint, ids, before, tried)
    unseen = sorted(mask.intersection(chosen) - found)
    home = rng.sample(unseen, min(len(unseen), MOST_HOME))
    left = len(after) - len(chosen) + len(unseen) - len(home)
    counts.update({"tried": engine.n_ids - left, "masks": 1, "left untried": left})
    counts.update({"witnessed": len(found), "walked home": len(home)})
    wrong += [{"kind": "no match", "ids": ids, "token": i} for i in sorted(mask - set(after))]
    wrong += [{"kind": "wrongly masked", "ids": ids, "token": i} for i in sorted(found - mask)]
    for token in home:
        try:
            whole = finish(constraint, [*ids, token], engine.step(state, token), rng)
        except CannotFinishError:
            wrong.append({"kind": "no way home", "ids": ids, "token": token})
        else:
            wrong += [{"kind": kind, "ids": whole} for kind in faults(constraint, whole)]


def _readable(constraint: Constraint, ids: list[int], before: bytes) -> dict[int, int]:
    """Each id after which acceptance is still in reach for the DFA, and the state there."""
    spellings, eos = constraint.tokenizer.spellings, set(constraint.eos_ids)
    tokens = np.array([i for i, spelled in enumerate(spellings) if spelled and i not in eos])
    states = ends(constraint, tokens, ids, constraint.dfa.walk(before))
    alive = constraint.dfa.distance()[states] != NEVER
    return dict(zip(tokens[alive].tolist(), states[alive].tolist(), strict=True))


def _witnessed(
    constraint: Constraint, ids: list[int], before: bytes, tried: dict[int, set[bytes]]
) -> set[int]:
    """Those ids that come next in `encode` of some text of the language. tried: for each some
    strings that lead from there to acceptance."""
    tokenizer, n, eos = constraint.tokenizer, len(ids), set(constraint.eos_ids)
    whole = [
        (token, (before + adds(tokenizer, token, ids) + rest).decode("utf-8"))
        for token, strings in tried.items()
        for rest in strings
    ]
    encoded = tokenizer.encode_batch([text for _, text in whole])
    return {
        token
        for (token, text), own in zip(whole, encoded, strict=True)
        if own[: n + 1] == [*ids, token] and eos.isdisjoint(own) and tokenizer.decode(own) == text
    }


class _Completions:
    """For each state of a DFA a few strings that lead from it to acceptance, drawn once."""

    def __init__(self, dfa: ByteDFA, rng: random.Random) -> None:
        self._dfa, self._rng = dfa, rng
        self._known: dict[int, set[bytes]] = {}

    def after(self, state: int) -> set[bytes]:
        """The shortest one, and samples."""
        if state not in self._known:
            rest = replace(self._dfa, start=state)
            samples = {rest.sample(self._rng, 12) for _ in range(COMPLETIONS - 1)}
            self._known[state] = {rest.shortest() or b"", *samples}
        return self._known[state]
