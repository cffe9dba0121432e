"""The steady set of a tokenizer without a pretokenizer: the one that reading leaves as it is.

    after(S, t) = (none, S)      for every ordinary token t of whole characters

Then a node of S is a DFA state, and its texts are spelled without a look at hypotheses: see
`kernels.steady`. Most tokenizers with a pretokenizer have no such set, and need none, as a boundary
can come at most nodes.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions.canonical import CanonicalAutomaton
from bpe_automata.constructions.hypothesis_sets import BEGINNING, NONE
from bpe_automata.kernels.distance import distances
from bpe_automata.kernels.steady import NOT_YET, Steady
from bpe_automata.kernels.suspects import weights

_LEADING = 4


def steady_for(canonical: CanonicalAutomaton, dfa: ByteDFA) -> Steady:
    """What the kernels need, for one DFA; where there is no steady set, as good as nothing."""
    steady = canonical.tokenizer.derived("steady", lambda _: _steady(canonical))
    distance = distances(dfa.trans, dfa.accepting)
    n = dfa.n_states if steady.number != NONE else 0
    leading = np.full((n, _LEADING), NONE, dtype=np.int32)
    unknown = np.full((2, n), NOT_YET, dtype=np.int32)
    return steady._replace(distance=distance, first=unknown[0], step=unknown[1], leading=leading)


def _steady(canonical: CanonicalAutomaton) -> Steady:
    """The part that does not depend on a DFA."""
    trie, derivation = canonical.trie, canonical.derivation
    number = _steady_set(canonical)
    token = np.full(len(trie.token), NONE, dtype=np.int32)
    if number != NONE:
        keeps = _keeps(canonical, number)[canonical.nodes.kind] & (canonical.nodes.text == 0)
        keeps &= (trie.token >= 0) & derivation.reachable[trie.token]
        token[keeps] = trie.token[keeps]
    root = np.full(256, NONE, dtype=np.int32)
    first = np.flatnonzero(trie.depth == 1)
    root[trie.label[first]] = first
    nothing, loose = np.empty(0, dtype=np.int32), _loose(canonical)
    return Steady(
        number,
        trie,
        token,
        root,
        _order(canonical),
        loose,
        _apart(canonical, loose),
        nothing,
        nothing,
        nothing,
        nothing[:, None],
    )


def _steady_set(canonical: CanonicalAutomaton) -> int:
    """Its number, NONE if there is none."""
    sets, kinds = canonical.sets, _whole_kinds(canonical)
    if canonical.whole.tokens or not canonical.pipeline.text.ends[0] or not len(kinds):
        return NONE
    free, bound = sets.rows(BEGINNING)
    for number in {int(free[kinds[0]]), int(bound[kinds[0]])} - {NONE, BEGINNING}:
        if _keeps(canonical, number)[kinds].all() and sets.ends(number):
            return number
    return NONE


def _keeps(canonical: CanonicalAutomaton, number: int) -> np.ndarray:
    """bool [n_classes]: the classes that leave the set as it is, and never have a boundary."""
    free, bound = canonical.sets.rows(number)
    return (free == NONE) & (bound == number)


def _whole_kinds(canonical: CanonicalAutomaton) -> np.ndarray:
    """The classes of whole characters."""
    classes = canonical.actions.classes
    whole = [k > 0 and not c.lead and not c.tail for k, c in enumerate(classes)]
    return np.flatnonzero(whole)


def _loose(canonical: CanonicalAutomaton) -> np.ndarray:
    """bool [n_ids]: every id may follow. None with `ignore_merges`, where more is forbidden."""
    n = canonical.tokenizer.n_ids
    if canonical.whole.tokens:
        return np.zeros(n, dtype=bool)
    weight = weights(np.arange(n), canonical.derivation.birth, canonical.geometry.after)
    return (weight == 0) & canonical.derivation.reachable


def _apart(canonical: CanonicalAutomaton, loose: np.ndarray) -> bool:
    """Has every byte inside a character an id of its own that may stand beside every id?"""
    trie, classes = canonical.trie, canonical.actions.classes
    single = np.flatnonzero((trie.depth == 1) & (trie.token >= 0) & (trie.label >= 0x80))
    tokens = trie.token[single].astype(np.int64)
    kinds = [classes[k] for k in canonical.actions.of_token[tokens]]
    plain = np.array([kind.lead != b"" and kind.own < 0 for kind in kinds], dtype=bool)
    weight = weights(tokens, canonical.derivation.birth, canonical.geometry.before)
    found = trie.label[single[plain & loose[tokens] & (weight == 0)]]
    return {*found.tolist()} >= {*range(0x80, 0xC0)}


def _order(canonical: CanonicalAutomaton) -> np.ndarray:
    """uint8 [256]: the bytes, by how many ids may not come before the token of that byte alone."""
    trie, derivation = canonical.trie, canonical.derivation
    single = np.flatnonzero((trie.depth == 1) & (trie.token >= 0))
    tokens = trie.token[single].astype(np.int64)
    weight = np.full(256, np.iinfo(np.int64).max)
    weight[trie.label[single]] = weights(tokens, derivation.birth, canonical.geometry.before)
    weight[0x80:] = np.iinfo(np.int64).max  # no character ends there
    return np.argsort(weight, kind="stable").astype(np.uint8)
