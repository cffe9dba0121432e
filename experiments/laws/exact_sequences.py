"""Laws about sequences of ids and about masks, what they are tried on, and two approximations.

What `encode` gives is accepted, other ids exactly when `encode` gives them back; random walks of a
constraint are canonical, match, and can finish. A text that has no ids of its own (a byte without a
token, a character that the normalizer changes) is encoded as ids that are not canonical, so the law
of its ids is that of all others: accepted iff encode(decode(ids)) = ids. Masks are held against the
trie of `encode` on finite languages, and against every id tried on the others.

The approximations are what others use in place of the canonical automaton, tests of pairs of ids:

    BpePairs         every id is reachable and every adjacent pair is canonical by BPE alone
    ReencodedPairs   encode(decode([a])) = [a] for every id, encode(decode([a, b])) = [a, b] for
                     every adjacent pair

Both are given the benefit of the doubt where a tool would patch them by hand; see each. Neither is
exact: the first ignores the pretokenizer, the second whatever is further away than the next id.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from bpe_automata import ByteDFA, Constraint, Tokenizer
from bpe_automata._automata.linked import explicit
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata._kernels.bits import members
from bpe_automata._kernels.distance import NEVER
from bpe_automata.errors import EmptyLanguageError
from bpe_automata.reference import canonical_trie, compare
from experiments.shared.walks import CannotFinishError, adds, ends, finish, walk
from experiments.texts import Adversary

BATCH = 1000
LONGEST_WALK = 24
Case = dict[str, Any]
Found = tuple[Counter[str], list[Case]]
"""(what was counted, the exceptions in full; texts are escaped, for what is wrong in them is often
invisible)."""


@dataclass
class Tally:
    """One law on one kind of text: what was counted, the exceptions in full, and what each
    approximation counts on the same ids."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[Case] = field(default_factory=list)
    approximations: dict[str, Counter[str]] = field(default_factory=dict)


def sequences(
    tokenizer: Tokenizer,
    texts: Iterable[str],
    rivals: Sequence[Approximation],
    rng: random.Random,
) -> tuple[Tally, Tally]:
    """(the ids of each text, other ids of each text), judged alike."""
    adversary, own, other = Adversary(tokenizer, rng), Tally(), Tally()
    left = iter(texts)
    while batch := list(islice(left, BATCH)):
        encoded = tokenizer.encode_batch(batch)
        other_ids = list(map(adversary.resegmented, encoded, batch))
        judge(tokenizer, encoded, own, rivals)
        judge(tokenizer, other_ids, other, rivals)
    return own, other


def judge(
    tokenizer: Tokenizer,
    sequences: list[list[int]],
    tally: Tally,
    rivals: Sequence[Approximation] = (),
) -> None:
    """Compare the automaton, and each approximation, with what `encode` says."""
    automaton = canonical_automaton(tokenizer)
    texts = [tokenizer.decode(ids) for ids in sequences]
    encoded = tokenizer.encode_batch(texts)
    true = [own == ids for own, ids in zip(encoded, sequences, strict=True)]
    tally.counts.update(tried=len(true), canonical=sum(true), ids=sum(map(len, sequences)))
    found = [automaton.accepts(ids) for ids in sequences]
    for ids, text, own, said in zip(sequences, texts, encoded, found, strict=True):
        if said != (own == ids):
            kind = "false accept" if said else "false reject"
            tally.counts[kind] += 1
            tally.wrong.append({"kind": kind, "text": ascii(text), "ids": ids, "encode": own})
    for rival in rivals:
        counts = tally.approximations.setdefault(rival.name, Counter())
        for said, is_true in zip(rival.accepted(sequences), true, strict=True):
            counts["false accept"] += said and not is_true
            counts["false reject"] += is_true and not said


def walks(constraint: Constraint, name: str, n: int, rng: random.Random) -> Found:
    """Random walks of one constraint, then the way home: canonical, matching, always at an end."""
    counts, wrong = Counter[str](), list[Case]()
    for _ in range(n):
        try:
            ids, state = walk(constraint, rng, LONGEST_WALK)
        except EmptyLanguageError:
            return no_text(constraint, name, rng)
        counts["tried"] += 1
        try:
            ids = finish(constraint, ids, state, rng)
        except CannotFinishError as error:
            wrong.append({"kind": "no way home", "regex": name, "ids": error.args[0]})
            continue
        counts["ids"] += len(ids)
        wrong += [{"kind": kind, "regex": name, "ids": ids} for kind in faults(constraint, ids)]
    counts.update(case["kind"] for case in wrong)
    return counts, wrong


def no_text(constraint: Constraint, name: str, rng: random.Random, n: int = 200) -> Found:
    """The constraint says that none of its texts is canonical: then samples are not."""
    counts, wrong = Counter({"empty regexes": 1}), list[Case]()
    tokenizer, eos = constraint.tokenizer, set(constraint.eos_ids)
    for text in (constraint.dfa.sample(rng).decode("utf-8") for _ in range(n)):
        ids = tokenizer.encode(text)
        if tokenizer.decode(ids) == text and eos.isdisjoint(ids):
            counts["wrongly empty"] += 1
            wrong.append({"kind": "wrongly empty", "regex": name, "text": ascii(text), "ids": ids})
    return counts, wrong


def faults(constraint: Constraint, ids: list[int]) -> Iterator[str]:
    """What is wrong with ids that a constraint let through."""
    text = constraint.tokenizer.decode(ids)
    if constraint.tokenizer.encode(text) != ids:
        yield "not canonical"
    if not constraint.dfa.accepts(text.encode("utf-8")):
        yield "no match"


# ---------------------------------------------------------------- approximations

Ids = Sequence[int]
ANCHOR = "\n"
MOST_KNOWN = 500_000
"""Answers that a test remembers before it begins anew; some 100 MB."""


class BpePairs:
    """The pair test that ignores the pretokenizer. Added tokens go with everything, since no merge
    crosses them: a tool that did not know this could not read a chat template at all. The byte
    token of a byte that is a character with a token of its own counts as unreachable; of the bytes
    of longer characters a pair test cannot say as much.
    """

    name = "pairs of BPE"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._automaton = canonical_automaton(tokenizer)
        self._reachable = self._automaton.derivation.reachable.tolist()
        for byte, token in tokenizer.description.byte_tokens.items():
            if bytes((byte,)) in tokenizer.description.base:
                self._reachable[token] = False
        self._added = {token.id for token in tokenizer.description.added}
        self._known: dict[tuple[int, int], bool] = {}

    def accepted(self, sequences: Sequence[Ids]) -> list[bool]:
        """Reachable ids, and canonical pairs of them."""
        return list(map(self.accepts, sequences))

    def accepts(self, ids: Ids) -> bool:
        """The test on one sequence."""
        return all(map(self._id, ids)) and all(map(self._pair, ids, ids[1:]))

    def _id(self, token: int) -> bool:
        return self._reachable[token] or token in self._added

    def _pair(self, left: int, right: int) -> bool:
        if left in self._added or right in self._added:
            return True
        if (left, right) not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            broken = self._automaton.geometry.breaking_merge(left, right) >= 0
            self._known[left, right] = not broken
        return self._known[left, right]


class ReencodedPairs:
    """The pair test by re-encoding, through the whole pipeline.

    Where the tokenizer puts a space before a text, `decode` takes one away and `encode` puts it
    back, so that hardly any pair from the middle of a text would survive: only ids at the beginning
    are tried as they stand, all others after a line feed, whose own ids must come back before them.
    If the first id is only that space, nothing is left of it to encode: it passes if more follows.
    Bytes that are not whole characters are no text: such ids and pairs are left to BPE alone.
    """

    name = "re-encoded pairs"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, self._bpe = tokenizer, BpePairs(tokenizer)
        puts_space = tokenizer.description.prefix.name != "NONE"
        self._anchor = tokenizer.encode(ANCHOR) if puts_space else []
        self._known: dict[tuple[bool, Ids], bool] = {}

    def accepted(self, sequences: Sequence[Ids]) -> list[bool]:
        """Ids and pairs that are encoded as themselves, each tried once."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        parts = [list(self._parts(ids)) for ids in sequences]
        self._try({part for some in parts for part in some if part not in self._known})
        return [all(map(self._known.__getitem__, some)) for some in parts]

    def _parts(self, ids: Ids) -> Iterable[tuple[bool, Ids]]:
        """(is it tried as it stands, one or two ids)."""
        for i, token in enumerate(ids):
            if i or len(ids) == 1 or self._tokenizer.text_bytes((token,)):
                yield not self._anchor or not i, (token,)
            if i:
                yield not self._anchor or i == 1, (ids[i - 1], token)

    def _try(self, parts: Iterable[tuple[bool, Ids]]) -> None:
        todo: list[tuple[tuple[bool, Ids], list[int], str]] = []
        for part in parts:
            first, ids = part
            whole = [*([] if first else self._anchor), *ids]
            try:
                todo.append((part, whole, self._tokenizer.text_bytes(whole).decode("utf-8")))
            except UnicodeDecodeError:
                self._known[part] = self._bpe.accepts(ids)
        texts = [text for _, _, text in todo]
        for (part, whole, _), own in zip(todo, self._tokenizer.encode_batch(texts), strict=True):
            self._known[part] = own == whole


Approximation = BpePairs | ReencodedPairs


def approximations(tokenizer: Tokenizer) -> tuple[Approximation, ...]:
    """Both, in the order of the table."""
    return BpePairs(tokenizer), ReencodedPairs(tokenizer)


# ---------------------------------------------------------------- masks

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
    completions = _Completions(explicit(constraint.dfa, "its completions"), rng)
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
    alive = explicit(constraint.dfa, "its ids").far[states] != NEVER
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
