"""What the product kernels run on that depends on the tokenizer alone: parts of `kernels.world`."""

from __future__ import annotations

import numpy as np

from bpe_automata.constructions.canonical import CanonicalAutomaton
from bpe_automata.constructions.token_actions import INSIDE
from bpe_automata.kernels.beside import Beside, places_of
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
