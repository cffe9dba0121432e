"""Laws about masks: against the trie of `encode` on finite languages, and against every id tried
on the others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bpe_automata import ByteDFA, Constraint
from bpe_automata.kernels.bits import members
from bpe_automata.reference import canonical_trie, compare, lift_mask
from experiments.exact_sequences import Found, faults
from experiments.walks import CannotFinishError, finish, walk

MOST_STRINGS = 20_000
COMPLETIONS = 3


def finite(constraint: Constraint, name: str, advance: Callable[[], None]) -> Found:
    """Every mask at every prefix, end of sequence included, equals the trie of `encode(s)` over
    all strings s of the language."""
    strings = [string.decode() for string in constraint.dfa.strings(MOST_STRINGS)]
    trie = canonical_trie(constraint.tokenizer, strings, (), constraint.eos_ids)
    counts, wrong = Counter(strings=len(strings)), []
    for mismatch in compare(constraint.engine, constraint.engine.initial(), trie):
        counts["tried"] += 1
        if mismatch:
            counts["wrong mask"] += 1
            wrong.append({"kind": "wrong mask", "regex": name, **_shown(mismatch._asdict())})
    advance()
    return counts, wrong


def _shown(fields: dict[str, Any]) -> dict[str, Any]:
    """Sets as lists that JSON can hold; None, the end of the text, becomes "end"."""
    return {
        key: sorted(("end" if i is None else i for i in value), key=str)
        if isinstance(value, frozenset)
        else list(value)
        for key, value in fields.items()
    }


def every_id(
    constraint: Constraint, name: str, n: int, rng: random.Random, advance: Callable[[], None]
) -> Found:
    """At the states of n random walks: an id is in the mask iff some text that goes on so is
    encoded so. A witness is looked for among a few completions; for an id of the mask that has none
    there, on the way that the automaton itself takes to acceptance."""
    counts: Counter[str] = Counter()
    wrong: list[dict[str, Any]] = []
    completed = _Completions(constraint.dfa, rng)
    for most in range(n):
        ids, state = ([], constraint.engine.initial()) if not most else walk(constraint, rng, most)
        _every_id_at(constraint, ids, state, completed, counts, wrong, rng)
        advance()
    for case in wrong:
        case["regex"] = name
        counts[case["kind"]] += 1
    return counts, wrong


def _every_id_at(
    constraint: Constraint,
    ids: list[int],
    state: Any,
    completed: _Completions,
    counts: Counter[str],
    wrong: list[dict[str, Any]],
    rng: random.Random,
) -> None:
    tokenizer, engine, eos = constraint.tokenizer, constraint.engine, set(constraint.eos_ids)
    before = b"".join(map(tokenizer.token_bytes, ids))
    q = constraint.dfa.walk(before)
    possible = lift_mask(tokenizer, constraint.dfa, q) if engine.n_ids else set()
    mask = set(members(engine.mask(state)).tolist()) - eos
    found = _witnessed(constraint, ids, before, sorted(possible - eos), q, completed)
    counts.update(tried=engine.n_ids, allowed=len(mask), masks=1)
    wrong += [{"kind": "wrongly masked", "ids": ids, "token": i} for i in sorted(found - mask)]
    for token in sorted(mask - found):
        counts["walked home"] += 1
        try:
            whole = finish(constraint, [*ids, token], engine.step(state, token), rng)
        except CannotFinishError:
            wrong.append({"kind": "no way home", "ids": ids, "token": token})
        else:
            wrong += [{"kind": kind, "ids": whole} for kind in faults(constraint, whole)]


def _witnessed(
    constraint: Constraint,
    ids: list[int],
    before: bytes,
    tokens: Sequence[int],
    q: int,
    completed: _Completions,
) -> set[int]:
    """The tokens that come next in `encode` of some text of the language."""
    tokenizer, n = constraint.tokenizer, len(ids)
    tried: list[tuple[int, str]] = []
    for token in tokens:
        spelled = tokenizer.token_bytes(token)
        for rest in completed.after(constraint.dfa.walk(spelled, q)):
            tried.append((token, (before + spelled + rest).decode("utf-8")))
    texts = [text for _, text in tried]
    return {
        token
        for (token, text), own in zip(tried, tokenizer.encode_batch(texts), strict=True)
        if own[: n + 1] == [*ids, token]
        and set(own).isdisjoint(constraint.eos_ids)
        and tokenizer.decode(own) == text
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
