"""What "exact" means here, on texts that are drawn the same way each time.

sequences: the canonical automaton accepts ids iff encode(decode(ids)) == ids;
masks: every mask at every prefix of a finite regex is the trie of `encode`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import product
from typing import Any

from bpe_automata import Tokenizer, compile_regex, constrain
from bpe_automata.constructions import canonical_automaton
from bpe_automata.errors import EmptyLanguageError, PromptError
from bpe_automata.reference import canonical_trie, compare

TEXTS, REGEXES, RESPELLINGS = 200, 3, 2


def texts_of(pieces: Sequence[str], n: int = TEXTS, seed: int = 0) -> list[str]:
    """`n` texts of up to eight pieces."""
    rng = random.Random(seed)
    return ["".join(rng.choices(pieces, k=rng.randint(0, 8))) for _ in range(n)]


def regexes_of(pieces: Sequence[str], n: int = REGEXES) -> list[str]:
    """`n` regexes, each of the 84 texts of one to three out of four pieces."""
    rng = random.Random(1)
    chosen = [rng.sample(pieces, min(4, len(pieces))) for _ in range(n)]
    return ["({}){{1,3}}".format("|".join(map(re.escape, some))) for some in chosen]


def obey(tokenizer: Tokenizer, pieces: Sequence[str]) -> None:
    """Both laws, on texts of these pieces; and they are not empty: some ids are canonical, some
    are not, and some regex can be written."""
    judged = [is_accepted_rightly(tokenizer, ids) for ids in some_ids(tokenizer, pieces)]
    assert judged.count(True) > 20
    assert judged.count(False) > 20
    assert sum(masks_are_right(tokenizer, regex) for regex in regexes_of(pieces)) > 0


def is_accepted_rightly(tokenizer: Tokenizer, ids: Sequence[int]) -> bool:
    """Are the ids canonical? The automaton must say so too."""
    canonical = tokenizer.encode(tokenizer.decode(ids)) == list(ids)
    assert canonical_automaton(tokenizer).accepts(ids) == canonical, (ids, tokenizer.decode(ids))
    return canonical


def some_ids(tokenizer: Tokenizer, pieces: Sequence[str]) -> list[list[int]]:
    """What `encode` gives for the texts, other ids for the same bytes, and ids that spell the text
    as it is, even if the normalizer would change it."""
    rng, found = random.Random(2), list[list[int]]()
    spelled = _spelled(tokenizer)
    for text in texts_of(pieces):
        own = tokenizer.encode(text)
        found += [own, *(_respelled(tokenizer, own, spelled, rng) for _ in range(RESPELLINGS))]
        found.append(_spelling(text.encode(), spelled, rng))
    return found


def _spelled(tokenizer: Tokenizer) -> dict[bytes, list[int]]:
    ids: dict[bytes, list[int]] = {}
    for token, data in enumerate(tokenizer.spellings):
        if data:
            ids.setdefault(data, []).append(token)
    return ids


def _respelled(
    tokenizer: Tokenizer, ids: list[int], spelled: dict[bytes, list[int]], rng: random.Random
) -> list[int]:
    """The ids with a stretch of up to four written by other tokens."""
    first = rng.randint(0, len(ids))
    last = min(len(ids), first + rng.randint(1, 4))
    stretch = b"".join(map(tokenizer.token_bytes, ids[first:last]))
    return [*ids[:first], *_spelling(stretch, spelled, rng), *ids[last:]]


def _spelling(data: bytes, spelled: dict[bytes, list[int]], rng: random.Random) -> list[int]:
    """Random ids for the bytes, up to where no token goes on."""
    left, made, longest = data, list[int](), max(map(len, spelled))
    while left:
        parts = [left[:k] for k in range(1, min(len(left), longest) + 1) if left[:k] in spelled]
        if not parts:
            break
        part = rng.choice(parts)
        made.append(rng.choice(spelled[part]))
        left = left[len(part) :]
    return made


def masks_are_right(tokenizer: Tokenizer, regex: str, prompt: Sequence[int] = ()) -> bool:
    """Compare every mask of a finite regex, after a prompt; whether there was anything to write."""
    constraint = constrain(tokenizer, regex, added_tokens=True)
    strings = [string.decode() for string in constraint.dfa.strings(1000)]
    trie = canonical_trie(tokenizer, strings, prompt, constraint.eos_ids)
    try:
        state = constraint.engine.initial(prompt)
    except (EmptyLanguageError, PromptError):
        assert not trie, "the language is not empty"
        return False
    assert [wrong for wrong in compare(constraint.engine, state, trie) if wrong] == []
    return True


def language_is(regex: str, alphabet: str, longest: int, engine: Any = re) -> None:
    """The regex's texts up to a length are those that `engine.fullmatch` finds, and there are some
    of each kind. `engine`: `re`, or the package `regex`."""
    dfa = compile_regex(regex)
    words = ["".join(w) for n in range(longest + 1) for w in product(alphabet, repeat=n)]
    accepted = [word for word in words if dfa.accepts(word.encode())]
    assert accepted == [word for word in words if engine.fullmatch(regex, word)]
    assert 0 < len(accepted) < len(words)
