"""Laws about single sequences: what `encode` gives is accepted, other ids exactly when `encode`
gives them back, and random walks of a constraint are canonical, match, and can finish.

A text that has no ids of its own (a byte without a token, a character that the normalizer changes)
is encoded as ids that are not canonical, so the law of its ids is the same as that of all others:
accepted iff encode(decode(ids)) = ids.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from bpe_automata import Constraint, Tokenizer
from bpe_automata.constructions import canonical_automaton
from bpe_automata.errors import EmptyLanguageError
from experiments.article.approximations import Approximation
from experiments.laws.adversarial import Adversary
from experiments.shared.walks import CannotFinishError, finish, walk

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
