"""Random calls of matchers, of random tokenizers and languages, against the trie of `encode`.

    python -m experiments.fuzz --minutes 60

Hypothesis draws a tokenizer (with any pipeline that is modelled), a finite regex and a prompt, and
then calls in any order. They go to matchers of the constraint, of the constraint within a number of
ids, and of the automaton that is written out, and to copies of these. Which ids may follow is read
from the trie of `encode` over all texts of the language, which needs the tokenizer alone. A failure
is made smaller and printed as a program. Draws are new each time; `--seed` repeats an earlier run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import numpy as np
from hypothesis import HealthCheck, Phase, assume, seed, settings, stateful
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from bpe_automata import Matcher, Tokenizer, compile_regex, constrain, errors
from bpe_automata.decoding.matcher import matcher_of
from bpe_automata.reference import canonical_trie
from bpe_automata.testing import bpe_tokenizers, finite_regexes, texts, trained_tokenizers
from bpe_automata.testing._inputs import own_pieces

MOST_STRINGS = 300
"""The most texts of a language."""
STEPS = 40
"""The most calls of one example."""

NUMBERS = st.integers(0, 2**16)
Ids = tuple[int, ...]


class Walk(NamedTuple):
    """A matcher, how many ids it may read (None: any number), and those that it has read."""

    matcher: Matcher
    most: int | None
    ids: list[int]


class Matchers(stateful.RuleBasedStateMachine):
    """The walks of one constraint."""

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Draw a tokenizer, a language and a prompt with which some text is possible."""
        self.tokenizer: Tokenizer = data.draw(st.one_of(bpe_tokenizers(), trained_tokenizers()))
        pieces = st.lists(st.sampled_from(own_pieces(self.tokenizer)), min_size=2, max_size=5)
        regex = data.draw(finite_regexes(data.draw(pieces)))
        prompt = data.draw(st.one_of(st.just(""), texts(self.tokenizer, 4)))
        added = [token.id for token in self.tokenizer.description.added]
        self.ends: Ids = data.draw(st.sampled_from([(), *((token,) for token in added)]))
        self.prefix = self.tokenizer.encode(prompt)
        try:
            dfa = compile_regex(regex)
            strings = [text.decode() for text in dfa.strings(MOST_STRINGS)]
        except errors.BudgetExceededError:
            assume(False)
        self.trie = canonical_trie(self.tokenizer, strings, self.prefix, self.ends)
        try:
            self.constraint = constrain(self.tokenizer, dfa, eos_ids=self.ends, added_tokens=True)
            self.constraint.matcher(self.prefix)
        except (errors.EmptyLanguageError, errors.PromptError):
            assert not self.trie, f"{regex!r} after {self.prefix} was said to be impossible"
            assume(False)
        self.least = cache(self._least)
        self._begin_walks(data.draw(st.integers(0, 4)))

    def _least(self, ids: Ids) -> int:
        """The number of ids that complete the text, at least."""
        follow = self.trie[ids]
        ways = (self.least((*ids, token)) for token in follow if token is not None)
        return 0 if None in follow else 1 + min(ways)

    def _begin_walks(self, more: int) -> None:
        """Begin walks of the constraint, of the automaton written out, and within a few more ids
        than are needed; within one less than needed, no text is possible."""
        written = matcher_of(
            self.constraint.automaton(self.prefix), self.ends, self.tokenizer.n_ids
        )
        self.every = [Walk(self.constraint.matcher(self.prefix), None, []), Walk(written, None, [])]
        for most in (self.least(()) - 1, self.least(()) + more):
            if most >= 0:
                with suppress(errors.BudgetTooSmallError):
                    matcher = self.constraint.within(most).matcher(self.prefix)
                    self.every.append(Walk(matcher, most, []))
                    assert most >= self.least(()), f"{most} ids are too few"

    @rule(which=NUMBERS)
    def copy(self, which: int) -> None:
        """A copy of a matcher is a walk of its own from there on."""
        walk = self._walk(which)
        self.every.append(Walk(walk.matcher.copy(), walk.most, list(walk.ids)))

    def _walk(self, which: int) -> Walk:
        return self.every[which % len(self.every)]

    @rule(which=NUMBERS, choices=st.lists(NUMBERS, min_size=1, max_size=6))
    def advance(self, which: int, choices: list[int]) -> None:
        """A matcher reads allowed ids, until there are none."""
        walk = self._walk(which)
        for choice in choices:
            if options := walk.matcher.allowed_ids().tolist():
                walk.ids.append(options[choice % len(options)])
                walk.matcher.advance(walk.ids[-1])

    @rule(which=NUMBERS, choice=NUMBERS)
    def advance_by_another(self, which: int, choice: int) -> None:
        """An id that is not allowed is refused, and nothing changes."""
        walk, token = self._walk(which), choice % self.tokenizer.n_ids
        if token in self.allowed(walk):
            return
        try:
            walk.matcher.advance(token)
        except errors.TokenNotAllowedError:
            return
        raise AssertionError(f"{token} was taken after {walk.ids}")

    @rule(which=NUMBERS, choice=NUMBERS)
    def rollback(self, which: int, choice: int) -> None:
        """A matcher goes back by as many ids as it read, at most."""
        walk = self._walk(which)
        n = choice % (len(walk.ids) + 2)
        try:
            walk.matcher.rollback(n)
        except errors.DecodingError:
            assert n > len(walk.ids)
        else:
            del walk.ids[len(walk.ids) - n :]

    @rule(which=NUMBERS)
    def look_ahead(self, which: int) -> None:
        """The distance to the end and the forced ids, which have no alternative, are right."""
        walk = self._walk(which)
        assert walk.matcher.min_tokens_to_accept() == self.least(self.text(walk))
        ids = here = self.text(walk)
        while len(follow := self.trie[here]) == 1 and None not in follow:
            here = (*here, *(token for token in follow if token is not None))
        if walk.most is None:
            assert walk.matcher.forced_tokens() == here[len(ids) :]

    def text(self, walk: Walk) -> Ids:
        """The ids that were read, without end-of-sequence."""
        return tuple(token for token in walk.ids if token not in self.ends)

    def allowed(self, walk: Walk) -> set[int]:
        """The ids that may follow; none after end-of-sequence."""
        ids = self.text(walk)
        if len(ids) < len(walk.ids):
            return set()
        remaining = np.inf if walk.most is None else walk.most - len(ids) - 1
        found = {i for i in self.trie[ids] if i is not None and self.least((*ids, i)) <= remaining}
        return found | (set(self.ends) if None in self.trie[ids] else set())

    @invariant()
    def masks_are_right(self) -> None:
        """The masks of all walks are right, whatever was done to one. `within` may lack some ids,
        but not all."""
        for walk in getattr(self, "every", ()):
            wanted, found = self.allowed(walk), set(walk.matcher.allowed_ids().tolist())
            complete = None in self.trie[self.text(walk)]
            assert walk.matcher.ids == tuple(walk.ids)
            assert walk.matcher.is_accepting == complete
            assert found == wanted or (walk.most is not None and found < wanted), walk.ids
            assert found or complete


SETTINGS = settings(
    max_examples=50,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    derandomize=False,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


def main() -> None:
    """Run until the time is up, or a failure is found."""
    parser = argparse.ArgumentParser(prog="experiments.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    chosen = parser.parse_args()
    end, number = time.monotonic() + 60 * chosen.minutes, chosen.seed
    warnings.simplefilter("ignore", errors.EndlessTextWarning)
    while time.monotonic() < end:
        print(f"seed {number}", flush=True)
        stateful.run_state_machine_as_test(seed(number)(Matchers), settings=SETTINGS)
        number += 1


if __name__ == "__main__":
    main()
