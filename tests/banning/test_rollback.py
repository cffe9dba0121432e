"""Going back: to which id, what is banned there, and what is reported."""

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from tiny_bans import END, SPELLINGS, TOKENIZER, places, random_model

from bpe_automata import constrain
from bpe_automata.banning import AppliedBan, Ban, any_text
from bpe_automata.errors import ArgumentError, EmptyLanguageError
from bpe_automata.models import character_tokenizer
from bpe_automata.sampling import _banned as banned
from bpe_automata.sampling._banned import decode_allowed
from bpe_automata.sampling._rollback import decode_without


class Retries:
    """What greedy decoding comes to that goes back as the docstring of the mode says, with nothing
    remembered between its steps: what may follow is asked of a new matcher each time, and what is
    banned is found by trying every part of the text."""

    def __init__(self, model, ban, constraint, before, most):
        self.model, self.ban, self.constraint = model, ban, constraint
        self.before, self.most, self.ids, self.went = before, most, (), []
        self.taken, self.dead = defaultdict(set), defaultdict(set)
        self.end = None
        while self.end is None:
            self.step()

    def step(self):
        ids, matcher = self.ids, self.constraint.matcher()
        for token in ids:
            matcher.advance(token)
        may, likely = set(matcher.allowed_ids().tolist()), self.model(ids)
        if not may - self.taken[ids]:
            self.emptied(may)
            return
        token = max(may - self.taken[ids], key=lambda t: likely[t])
        if token == END:
            if new := self.complete(ids, True) - self.complete(ids, False):
                self.back(min(new), "banned")
                self.dead[ids].add(END)
            else:
                self.end = "complete"
            return
        self.ids = (*ids, token)
        if new := self.complete(self.ids, False) - self.complete(ids, False):
            self.dead[ids].add(token)
            self.back(min(new), "banned")

    def complete(self, ids, ended):
        return places(self.ban, self.before.encode(), [SPELLINGS[i] for i in ids], ended)

    def emptied(self, may):
        certain, ids = may <= self.dead[self.ids], self.ids
        if ids:
            if certain:
                self.dead[ids[:-1]].add(ids[-1])
            self.back(len(ids) - 1, "emptied")
        elif certain:
            self.end = "empty"
        elif len(self.went) == self.most:
            self.end = "truncated"
        else:
            self.went.append((0, None, "lifted", ()))
            self.taken = defaultdict(set, {where: {*bans} for where, bans in self.dead.items()})

    def back(self, first, why):
        self.ids, discarded = self.ids[:first], self.ids[first:]
        if len(self.went) == self.most:
            self.end = "truncated"
        else:
            self.went.append((first, discarded[0], why, discarded))
            self.taken[self.ids].add(discarded[0])


def reported(rollback):
    why = "lifted" if rollback.token is None else "banned" if rollback.word else "emptied"
    return (rollback.position, rollback.token, why, rollback.discarded)


LANGUAGES = ["[abé ]{0,3}", "a[ab]", "a| (b|ab)", "(ab|ba| ){2}"]
BEFORE = ["", "a", "xab"]
BANS = [Ban(["ab"]), Ban(["aba", "ba a"]), Ban(["b"]), Ban(["a", "b b"], whole_word=True)]


def test_it_is_what_all_retries_one_by_one_come_to():
    seen = Counter()
    languages = [
        constrain(TOKENIZER, regex, "lift", [END], added_tokens=False) for regex in LANGUAGES
    ]
    for plain, ban, before, seed in itertools.product(languages, BANS, BEFORE, range(30)):
        model, most, calls = random_model(seed), (1000, 1, 0)[seed % 3], []
        wanted = Retries(model, ban, plain, before, most)
        applied = AppliedBan(ban, plain)
        options = {"after": before, "temperature": 0, "max_rollbacks": most}

        def noted(ids, model=model, calls=calls):
            calls.append(tuple(ids))
            return model(ids)

        seen.update(why for _, _, why, _ in wanted.went)
        seen[wanted.end] += 1
        if wanted.end == "empty":
            with pytest.raises(EmptyLanguageError):
                decode_without(noted, applied, **options)
            continue
        run = decode_without(noted, applied, **options)
        assert (run.finish_reason, [*map(reported, run.rollbacks)]) == (wanted.end, wanted.went)
        stay = len(wanted.ids)
        if wanted.end == "truncated":
            stay = banned.kept(ban, before, [SPELLINGS[i] for i in wanted.ids])
        assert run.ids == wanted.ids[:stay]
        assert run.passes == len(calls)
        assert len({*calls}) == len(calls) or any(r.token is None for r in run.rollbacks)
    assert min(map(seen.get, ("banned", "emptied", "lifted", "complete", "truncated"))) > 3
    assert seen["empty"]


@pytest.mark.parametrize("options", [{"max_new_tokens": -1}, {"max_rollbacks": -1}])
def test_arguments(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        decode_without(random_model(0), AppliedBan(Ban(["a"]), any_text(TOKENIZER)), **options)


@pytest.mark.parametrize("eos_ids", [(), None])
def test_an_empty_language_is_found_with_and_without_end_of_sequence(eos_ids):
    """The only text is banned where it ends: that is certain after a few calls."""
    tokenizer, calls = character_tokenizer("abcdtalkxy "), []
    ban = Ban(["talk"], whole_word=True)
    plain = constrain(tokenizer, "talk", eos_ids=eos_ids)

    def uniform(ids):
        calls.append(ids)
        return np.zeros(tokenizer.n_ids)

    for mode in (decode_allowed, decode_without):
        with pytest.raises(EmptyLanguageError, match="talk"):
            mode(uniform, AppliedBan(ban, plain), seed=0)
    assert len(calls) < 30
