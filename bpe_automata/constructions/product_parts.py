"""What the product kernels run on that depends on the tokenizer alone: parts of `kernels.world`."""

from __future__ import annotations

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions.canonical import CanonicalAutomaton
from bpe_automata.constructions.hypothesis_sets import BEGINNING, NONE
from bpe_automata.constructions.token_actions import INSIDE
from bpe_automata.kernels.beside import Beside, places_of
from bpe_automata.kernels.distance import distances
from bpe_automata.kernels.geometry import weights
from bpe_automata.kernels.steady import NOT_YET, Steady
from bpe_automata.kernels.world import Fragments, Reading
from bpe_automata.limits import NUMBERS, check_fits


def reading_of(canonical: CanonicalAutomaton) -> Reading:
    boundaries = canonical.pipeline.boundaries
    n, n_coarse = boundaries.n, boundaries.follow.shape[2]
    rows = boundaries.follow.reshape(2 * n * n_coarse, n)
    steps = rows.sum(axis=1)
    check_fits("steps of hypotheses", int(steps.sum()), NUMBERS, "more than are numbered")
    return Reading(
        utf8=canonical.pipeline.alphabet.utf8,
        coarse=canonical.pipeline.coarse,
        ends=boundaries.ends,
        step_start=np.append(0, np.cumsum(steps)).astype(np.int32),
        step_to=np.nonzero(rows)[1].astype(np.int32),
    )


def beside_of(canonical: CanonicalAutomaton) -> Beside:
    before, after = canonical.geometry.before, canonical.geometry.after
    birth = canonical.derivation.birth
    places = places_of(before.order, len(birth)), places_of(after.order, len(birth))
    return Beside(before, after, birth, *places)


def fragments_of(canonical: CanonicalAutomaton) -> Fragments:
    actions, trie = canonical.actions, canonical.trie
    classes = actions.classes
    pure = np.array([c.element == INSIDE and c.lead != b"" and not c.tail for c in classes])
    plain = np.array([c.own < 0 for c in classes])
    inner = np.flatnonzero(pure[actions.of_token]).astype(np.int32)
    tails = np.array([c.tail for c in classes])[actions.of_token]
    row, token = _open_ends(canonical, tails, inner)
    order = np.argsort(row, kind="stable")
    start = np.zeros(len(canonical.pipeline.alphabet.utf8) + 1, dtype=np.int32)
    np.cumsum(np.bincount(row, minlength=len(start) - 1), out=start[1:])
    usable = inner[plain[actions.of_token[inner]]]
    spelled = [trie.data[trie.start[i] : trie.start[i + 1]] for i in usable]
    return Fragments(
        open_start=start,
        open_ids=token[order].astype(np.int32),
        start=np.cumsum([0, *map(len, spelled)]).astype(np.int32),
        data=np.concatenate([*spelled, np.empty(0, dtype=np.uint8)]),
        ids=usable,
        covers=np.empty((0, 0, 0, 0), dtype=np.int32),  # see `set_arrays.Proofs`
    )


def _open_ends(
    canonical: CanonicalAutomaton, tails: np.ndarray, inner: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (UTF-8 row inside a character, token that can end there)."""
    utf8, trie = canonical.pipeline.alphabet.utf8, canonical.trie
    ending = np.flatnonzero(tails > 0)
    rows, tokens = [tails[ending]], [ending]
    for token in inner:
        ends = np.arange(1, len(utf8))
        for byte in trie.data[trie.start[token] : trie.start[token + 1]]:
            ends = utf8[ends, byte]
            ends = ends[ends > 0]
        ends = np.unique(ends)
        rows.append(ends)
        tokens.append(np.full(len(ends), token))
    return np.concatenate(rows), np.concatenate(tokens)


# The steady set of a tokenizer without a pretokenizer: the one that reading leaves as it is.
#
#     after(S, t) = (none, S)      for every ordinary token t of whole characters
#
# Then a node of S is a DFA state, and its texts are spelled without a look at hypotheses: see
# `kernels.steady`. Most tokenizers with a pretokenizer have no such set, and need none, as a
# boundary can come at most nodes.

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
