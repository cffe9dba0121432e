"""What an engine is asked about one constraint: ids that it must allow, ids that it must not, and
those that tell whether it keeps to the tokenizer's own.

The answers come from `encode` and from `bpe_automata.reference`, not from any automaton.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.kernels.bits import packed
from bpe_automata.reference import canonical_trie
from experiments.serving.peers_cases import Case
from experiments.shared.engines import ordinary

Ids = list[int]
TRIES = 20
"""Random respellings that are tried for each one that is wanted."""
MOST_PLACES = 60


@dataclass(frozen=True)
class Exam:
    """inside, outside: `encode` of the texts; offers: other ids for texts of the language, none of
    them what the tokenizer makes of its text.

    places: beginnings of texts of a small language; canonical, possible: packed int32 [places,
    words], the ordinary ids that may follow in the tokenizer's own ids of a text, and in any ids.
    """

    regex: str
    inside: tuple[Ids, ...]
    outside: tuple[Ids, ...]
    offers: tuple[Ids, ...]
    places: tuple[Ids, ...]
    canonical: np.ndarray
    possible: np.ndarray


def exam(tokenizer: Tokenizer, case: Case, offers: int, rng: random.Random) -> Exam:
    """The exam of a case. Texts that the tokenizer cannot spell are left out."""
    inside = [ids for text in case.inside if (ids := spelled(tokenizer, text)) is not None]
    outside = [ids for text in case.outside if (ids := spelled(tokenizer, text)) is not None]
    places, canonical, possible = _places(tokenizer, case, rng)
    offered = list(respellings(tokenizer, inside, offers, rng))
    return Exam(
        case.regex,
        tuple(inside),
        tuple(outside),
        tuple(offered),
        tuple(places),
        canonical,
        possible,
    )


def spelled(tokenizer: Tokenizer, text: str) -> Ids | None:
    """`encode`, if what it makes decodes to the text."""
    ids = tokenizer.encode(text)
    return ids if tokenizer.text_bytes(ids) == text.encode() else None


def respellings(
    tokenizer: Tokenizer, texts: Sequence[Ids], most: int, rng: random.Random
) -> Iterator[Ids]:
    """Up to `most` different sequences of ordinary ids that spell one of `texts` as the tokenizer
    does not: `encode` of what they decode to is something else."""
    seen = {tuple(ids) for ids in texts}
    ids_of = tokenizer.derived("ordinary ids of bytes", _ids_of)
    full = [ids for ids in texts if ids]
    for _ in range(TRIES * most if full else 0):
        if len(seen) >= most + len({tuple(ids) for ids in texts}):
            return
        found = _respelled(tokenizer, rng.choice(full), ids_of, rng)
        if found is None or tuple(found) in seen:
            continue
        if tokenizer.encode(tokenizer.decode(found)) != found:
            seen.add(tuple(found))
            yield found


def _respelled(
    tokenizer: Tokenizer, ids: Ids, ids_of: dict[bytes, Ids], rng: random.Random
) -> Ids | None:
    """One to three neighbours spelled anew, each next token as likely as any other; None where that
    comes to what no token begins."""
    first = rng.randrange(len(ids))
    last = min(len(ids), first + rng.randint(1, 3))
    rest, found = b"".join(map(tokenizer.token_bytes, ids[first:last])), list[int]()
    while rest:
        options = [i for n in range(1, len(rest) + 1) for i in ids_of.get(rest[:n], ())]
        if not options:
            return None
        found.append(rng.choice(options))
        rest = rest[len(tokenizer.token_bytes(found[-1])) :]
    return [*ids[:first], *found, *ids[last:]]


def _ids_of(tokenizer: Tokenizer) -> dict[bytes, Ids]:
    """bytes -> the ordinary ids that spell them."""
    found: dict[bytes, Ids] = {}
    for token, text in ordinary(tokenizer).items():
        found.setdefault(text, []).append(token)
    return found


def _places(
    tokenizer: Tokenizer, case: Case, rng: random.Random
) -> tuple[list[Ids], np.ndarray, np.ndarray]:
    """See `Exam`; of a larger number of places some are drawn."""
    words = (tokenizer.n_ids + 31) // 32
    places: list[Ids] = []
    masks: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    if case.is_small:
        trie = canonical_trie(tokenizer, case.inside, banned=tokenizer.added_ids)
        inner = sorted(ids for ids, follow in trie.items() if follow != {None})
        ids_of = tokenizer.derived("ordinary ids of bytes", _ids_of)
        for ids in sorted(rng.sample(inner, min(MOST_PLACES, len(inner)))):
            follow = [token for token in trie[ids] if token is not None]
            places.append(list(ids))
            masks[0].append(packed(follow, tokenizer.n_ids))
            written = tokenizer.text_bytes(ids)
            masks[1].append(packed(possible(ids_of, case.inside, written), tokenizer.n_ids))
    empty = np.zeros((0, words), dtype=np.int32)
    return places, np.array(masks[0] or empty), np.array(masks[1] or empty)


def possible(ids_of: dict[bytes, Ids], texts: Sequence[str], written: bytes) -> set[int]:
    """The ordinary ids that lead from `written` to what begins a text of a finite language: all
    that `reference.lift_mask` allows there, where every byte has a token."""
    rests = {
        text.encode().removeprefix(written) for text in texts if text.encode().startswith(written)
    }
    return {
        token
        for rest in rests
        for end in range(1, len(rest) + 1)
        for token in ids_of.get(rest[:end], ())
    }
