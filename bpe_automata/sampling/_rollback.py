"""Decoding under a ban by going back, for models that only give logits.

Ids are drawn as if nothing were banned. As soon as a banned text is complete, decoding goes back to
its first id, bans that id after the ids before it, and goes on. Where every id is banned, the id
before them is banned as well. End-of-sequence completes whole words.

The texts that can be written are those of exact mode, but their probabilities differ: an id that
was banned once stays banned after these ids, whatever else it might have led to. Such bans may come
to forbid every first id although some text is allowed. Then only the certain bans are kept: those
of ids that complete a banned text, and of ids after which every id has a certain ban.

The scheme is that of Clay, "Using Finite State Machine (FSM) and Rollback Mechanism to Restrict LLM
from Generating Banned Words" (2024); going further back, the cap, and words that begin or end
inside tokens are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from bpe_automata._arguments import at_least
from bpe_automata.banning import AppliedBan, Watch
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.errors import EmptyLanguageError
from bpe_automata.sampling._banned import BannedGeneration, Rollback, kept, text_before
from bpe_automata.sampling._logits import (
    Model,
    checked,
    draw,
    log_probabilities,
    only_the_end_follows,
)
from bpe_automata.sampling._loop import asked

_KEPT = 32  # positions whose distribution is cached, so that going back needs no new calls
_End = Literal["complete", "truncated"] | None
_Bans = dict[tuple[int, ...], set[int]]


def decode_without(
    model: Model,
    banned: AppliedBan,
    prompt: Sequence[int] = (),
    *,
    after: str | None = None,
    max_new_tokens: int = 128,
    temperature: float = 1.0,
    seed: int | np.random.Generator | None = None,
    max_rollbacks: int = 1000,
) -> BannedGeneration:
    """A text in which nothing is banned, by going back where something is.

    banned, after: as for `decode_allowed`. max_new_tokens: of the text with its end-of-sequence;
    ids that were thrown away are not counted. max_rollbacks: a text that would need more is
    truncated before the banned text. One uniform number is drawn for each id, also for those
    thrown away.

    Raises PromptError, LogitsError, ArgumentError, ModelError, and EmptyLanguageError if every text
    of the constraint that the model gives any mass is banned.
    """
    prompt, max_new_tokens, temperature = checked(prompt, max_new_tokens, temperature)
    max_rollbacks = at_least(0, max_rollbacks, "max_rollbacks")
    before, rng = text_before(banned, prompt, after), np.random.default_rng(seed)
    watch = Watch(banned.spellings, prompt, before)
    run = _Run(model, banned.constraint, prompt, watch, before, temperature, rng)
    run.max_rollbacks = max_rollbacks
    end: _End = None
    while end is None:
        end = run.step() if len(watch.ids) < max_new_tokens else run.out_of_ids()
    return run.result(end)


class _Run:
    """One sequence in progress. `_taken`: the ids that are banned, by the ids before them; `_dead`:
    those with a certain ban; `_distributions`: log-probabilities at the last positions."""

    max_rollbacks = 0

    def __init__(
        self,
        model: Model,
        constraint: Constraint,
        prompt: Sequence[int],
        watch: Watch,
        before: str,
        temperature: float,
        rng: np.random.Generator,
    ) -> None:
        self._model, self._prompt, self._rng = model, tuple(prompt), rng
        self._eos_ids, self._temperature = set(constraint.eos_ids), temperature
        self._constraint, self._matcher = constraint, constraint.matcher(prompt)
        self._watch, self._before = watch, before
        self._taken: _Bans = {}
        self._dead: _Bans = {}
        self._distributions: dict[int, np.ndarray] = {}
        self._rollbacks: list[Rollback] = []
        self._passes = self._cut = 0

    def step(self) -> _End:
        """Read one more id, or go back."""
        mask = self._matcher.mask()
        if not mask.any():  # nothing can follow, so the text ends
            return self._ended()
        ids = self._watch.ids
        distribution, taken = self._distribution(len(mask)), list(self._taken.get(ids, ()))
        possible = mask & (distribution > -np.inf)
        mask[taken] = False
        if taken and not (mask & possible).any():
            return self._emptied(set(np.flatnonzero(possible).tolist()))
        token, _ = draw(distribution, mask, self._rng.random(), greedy=not self._temperature)
        if token in self._eos_ids:
            return self._ended()
        self._matcher.advance(token)
        return self._matched(self._watch.push(token), ended=False)

    def out_of_ids(self) -> _End:
        """No more ids may be read: the text ends if only its end could follow."""
        ended = only_the_end_follows(self._matcher, self._constraint)
        return self._ended() if ended else "truncated"

    def _distribution(self, n_ids: int) -> np.ndarray:
        """float64 [n_ids]: the log-probabilities of the next id, cached for the last positions."""
        position = len(self._watch.ids)
        if position not in self._distributions:
            self._passes += 1
            logits = asked(self._model, self._prompt, self._watch.ids)
            self._distributions[position] = log_probabilities(logits, n_ids, self._temperature)
            self._distributions.pop(position - _KEPT, None)
        return self._distributions[position]

    def _ended(self) -> _End:
        """The text ends here, unless that completes a banned text."""
        before, ids = len(self._rollbacks), self._watch.ids
        could_follow = set(self._matcher.allowed_ids().tolist()) - self._eos_ids
        end = self._matched(self._watch.ended(), ended=True)
        if len(self._rollbacks) == before:
            return end or "complete"
        self._ban(self._dead, ids, self._eos_ids)
        if not could_follow:  # the last id is dead; without eos ids nothing else would say so
            self._ban(self._dead, ids[:-1], ids[-1:])
        return None

    def _matched(self, positions: Sequence[int], ended: bool) -> _End:
        """Go back to the first of the positions, in order of the text."""
        if not positions:
            return None
        ids, first = self._watch.ids, positions[0]
        if not ended:
            self._ban(self._dead, ids[:-1], ids[-1:])
        return self._back(first, self._watch.word(first, ended))

    def _emptied(self, possible: set[int]) -> _End:
        """Every id that could follow is banned, so ban the last id. possible: the ids that could
        follow."""
        ids = self._watch.ids
        certain = possible <= self._dead.get(ids, set())
        if ids:
            if certain:
                self._ban(self._dead, ids[:-1], ids[-1:])
            return self._back(len(ids) - 1, None)
        if certain:
            raise EmptyLanguageError(
                f"whatever the text begins with, {self._watch.ban} forbids it, or the model gives "
                "it no mass"
            )
        if len(self._rollbacks) == self.max_rollbacks:
            return "truncated"
        self._rollbacks.append(Rollback(0, None, None, ()))
        self._taken = {where: set(tokens) for where, tokens in self._dead.items()}
        return None

    def _ban(self, bans: _Bans, ids: tuple[int, ...], tokens: Iterable[int]) -> None:
        bans.setdefault(ids, set()).update(tokens)

    def _back(self, first: int, word: str | None) -> _End:
        """Take back the ids from position `first` on, and ban the first of them there."""
        ids = self._watch.ids
        discarded = ids[first:]
        self._take_back(len(discarded))
        if len(self._rollbacks) == self.max_rollbacks:
            self._cut += len(discarded)
            return "truncated"
        self._rollbacks.append(Rollback(first, discarded[0], word, discarded))
        self._ban(self._taken, ids[:first], discarded[:1])
        return None

    def _take_back(self, n: int) -> None:
        self._matcher.rollback(n)
        self._watch.back(n)
        self._distributions = {
            k: distribution
            for k, distribution in self._distributions.items()
            if k <= len(self._watch.ids)
        }

    def result(self, end: Literal["complete", "truncated"]) -> BannedGeneration:
        """The result of the run."""
        watch = self._watch
        if end == "truncated":
            n = len(watch.ids) - kept(watch.ban, self._before, watch.pieces)
            self._matcher.rollback(n)
            watch.back(n)
            self._cut += n
        return BannedGeneration(
            watch.text().decode("utf-8", "replace"),
            watch.ids,
            self._matcher.is_accepting,
            end,
            passes=self._passes,
            forced=0,
            acted=len(self._rollbacks),
            rollbacks=tuple(self._rollbacks),
            discarded=self._cut + sum(len(r.discarded) for r in self._rollbacks),
        )
