"""Laws about masks: against the trie of `encode` on finite languages, and against every id tried
on the others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from bpe_automata import ByteDFA, Constraint, Tokenizer
from bpe_automata.errors import EmptyLanguageError
from bpe_automata.kernels.bits import members
from bpe_automata.kernels.distance import NEVER
from bpe_automata.reference import canonical_trie, compare
from experiments.exact_sequences import Case, Found, faults
from experiments.walks import CannotFinishError, adds, finish, walk

MOST_STRINGS = 20_000
COMPLETIONS = 2
MOST_HOME = 50
"""Ids of one mask that are walked home; a sample, where more of them have no witness."""


def finite(constraint: Constraint, name: str, advance: Callable[[], None]) -> Found:
    """Every mask at every prefix, end of sequence included, equals the trie of `encode(s)` over
    all strings s of the language."""
    advance()
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


def every_id(
    constraint: Constraint, name: str, n: int, rng: random.Random, advance: Callable[[], None]
) -> Found:
    """At the states of n random walks: an id is in the mask iff some text that goes on so is
    encoded so. A witness is looked for among a few completions; for an id of the mask that has none
    there, on the way that the automaton itself takes to acceptance."""
    counts: Counter[str] = Counter()
    wrong: list[Case] = []
    language = _Language(constraint.dfa, rng)
    for most in range(n):
        advance()
        try:
            ids, state = walk(constraint, rng, most) if most else ([], constraint.engine.initial())
        except EmptyLanguageError:  # the law of walks looks into it
            return counts, wrong
        _every_id_at(constraint, ids, state, language, counts, wrong, rng)
    for case in wrong:
        case["regex"] = name
        counts[case["kind"]] += 1
    return counts, wrong


def _every_id_at(
    constraint: Constraint,
    ids: list[int],
    state: Any,
    language: _Language,
    counts: Counter[str],
    wrong: list[Case],
    rng: random.Random,
) -> None:
    engine, eos = constraint.engine, set(constraint.eos_ids)
    mask = set(members(engine.mask(state)).tolist()) - eos
    found = _witnessed(constraint, ids, language)
    counts.update(tried=engine.n_ids, allowed=len(mask), masks=1)
    wrong += [{"kind": "wrongly masked", "ids": ids, "token": i} for i in sorted(found - mask)]
    unseen = sorted(mask - found)
    counts["left unseen"] += max(0, len(unseen) - MOST_HOME)
    for token in rng.sample(unseen, min(len(unseen), MOST_HOME)):
        counts["walked home"] += 1
        try:
            whole = finish(constraint, [*ids, token], engine.step(state, token), rng)
        except CannotFinishError:
            wrong.append({"kind": "no way home", "ids": ids, "token": token})
        else:
            wrong += [{"kind": kind, "ids": whole} for kind in faults(constraint, whole)]


def _witnessed(constraint: Constraint, ids: list[int], language: _Language) -> set[int]:
    """The tokens that come next in `encode` of some text of the language."""
    tokenizer, n, eos = constraint.tokenizer, len(ids), set(constraint.eos_ids)
    before = tokenizer.text_bytes(ids)
    tried: list[tuple[int, str]] = []
    for token, added, state in language.readable(tokenizer, ids, constraint.dfa.walk(before)):
        if token not in eos:
            texts = (before + added + rest for rest in language.completions(state))
            tried += [(token, text.decode("utf-8")) for text in texts]
    encoded = tokenizer.encode_batch([text for _, text in tried])
    return {
        token
        for (token, text), own in zip(tried, encoded, strict=True)
        if own[: n + 1] == [*ids, token] and eos.isdisjoint(own) and tokenizer.decode(own) == text
    }


class _Language:
    """A DFA as nested lists, and for each state a few strings that lead from it to acceptance,
    drawn once."""

    def __init__(self, dfa: ByteDFA, rng: random.Random) -> None:
        self._dfa, self._rng = dfa, rng
        self._rows: list[list[int]] = dfa.trans[:, dfa.byte_class].tolist()
        self._alive = (dfa.distance() != NEVER).tolist()
        self._known: dict[int, set[bytes]] = {}

    def readable(
        self, tokenizer: Tokenizer, ids: Sequence[int], q: int
    ) -> Iterator[tuple[int, bytes, int]]:
        """(token, what it adds to the text of `ids`, the state there) wherever acceptance is still
        in reach."""
        for token, spelled in enumerate(tokenizer.spellings):
            added = adds(tokenizer, token, ids) if spelled else b""
            state = q
            for byte in added:
                state = self._rows[state][byte]
                if not state:
                    break
            if spelled and self._alive[state]:
                yield token, added, state

    def completions(self, state: int) -> set[bytes]:
        """The shortest one, and samples."""
        if state not in self._known:
            rest = replace(self._dfa, start=state)
            samples = {rest.sample(self._rng, 12) for _ in range(COMPLETIONS - 1)}
            self._known[state] = {rest.shortest() or b"", *samples}
        return self._known[state]
