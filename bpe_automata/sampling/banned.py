"""Decoding under a ban, the exact way: what is banned never gets into the mask.

    ids drawn under the constraint to L - { texts in which something is banned }

No rollback is needed, for the mask sees whether what is banned can still be avoided. See
`rollback.decode_without` for the other way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bpe_automata.automata.algebra import all_texts
from bpe_automata.banning import Ban, Spellings, Watch
from bpe_automata.decoding.constraint import Constraint, constrain, rebuilt
from bpe_automata.decoding.generation import Generation
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.errors import ArgumentError
from bpe_automata.sampling.logits import Model, draw, log_probabilities
from bpe_automata.sampling.loop import asked
from bpe_automata.tokenizer import Tokenizer


@dataclass(frozen=True)
class Rollback:
    """One time that decoding went back. position: how many ids stayed; token: the id that is banned
    there from then on (with a penalty: made less likely); word: what was banned in the text, None
    if all ids at the position after this one were; discarded: the ids that were thrown away, the
    banned one first. token None: all ids that a text could begin with were banned, so the bans were
    lifted, but those of ids that complete what is banned."""

    position: int
    token: int | None
    word: str | None
    discarded: tuple[int, ...]


@dataclass(frozen=True)
class BannedGeneration(Generation):
    """A generation under a ban, and how often the ban acted.

    acted: in exact mode the steps at which it took ids from the mask, in rollback mode how often
    decoding went back. log_mass_removed: exact mode; natural log, at most 0: the sum over the steps
    of the log share of the mask's mass that the ban left. rollbacks: in order. discarded: how many
    ids were thrown away, those that a truncated text was cut by among them. passed: with a penalty,
    the banned words that came again and were let through.
    """

    acted: int = 0
    log_mass_removed: float | None = None
    rollbacks: tuple[Rollback, ...] = ()
    discarded: int = 0
    passed: tuple[str, ...] = ()


def decode_allowed(
    model: Model,
    ban: Ban,
    tokenizer: Tokenizer,
    prompt: Sequence[int] = (),
    *,
    constraint: Constraint | None = None,
    after: str | None = None,
    max_new_tokens: int = 128,
    temperature: float = 1.0,
    seed: int | np.random.Generator | None = None,
    banned: Constraint | None = None,
) -> BannedGeneration:
    """A text in which nothing is banned, drawn under the mask that knows it.

    constraint: what else constrains; by default `free`. after: the text before, in which a banned
    word may begin; None: that of the prompt, see `tail`. The rest as for `decode`. A text that runs
    out of ids may end in what is a whole word only because nothing follows: it is cut before that.

    banned: what `ban.constrain` makes of all that, to use it for several calls.

    Raises what `decode` raises, and EmptyLanguageError if the ban leaves nothing.
    """
    check(max_new_tokens)
    plain = constraint or free(tokenizer)
    before = tail(tokenizer, prompt) if after is None else after
    banned = banned or rebuilt(plain, ban.allowed_in(plain.dfa, before))
    run = _Run(model, banned.matcher(prompt), plain.matcher(prompt), tuple(prompt), temperature)
    rng = np.random.default_rng(seed)
    while not run.matcher.is_finished and len(run.matcher.ids) < max_new_tokens:
        run.step(rng)
    watch = Watch(Spellings(tokenizer, ban, banned.eos_ids, plain.added_tokens), prompt, before)
    return run.result(banned, watch)


def free(tokenizer: Tokenizer) -> Constraint:
    """Any tokenization of any text, added tokens (but end-of-sequence) left out: what a model
    writes on its own, save for bytes that are no text."""
    return constrain(tokenizer, all_texts(), "lift", added_tokens=False)


def tail(tokenizer: Tokenizer, prompt: Sequence[int]) -> str:
    """The text that a prompt ends in: what its ids spell after the last added or control token."""
    silent = tokenizer.added_ids | tokenizer.description.controls
    first = max((k + 1 for k, token in enumerate(prompt) if token in silent), default=0)
    return tokenizer.decode(tuple(prompt[first:]), tuple(prompt[:first]))


def check(max_new_tokens: int) -> None:
    """Raises ArgumentError."""
    if max_new_tokens < 0:
        raise ArgumentError(f"max_new_tokens {max_new_tokens} is negative")


@dataclass
class _Run:
    """One sequence on its way, under both masks."""

    model: Model
    matcher: Matcher
    plain: Matcher
    prompt: tuple[int, ...]
    temperature: float
    log_weight: float = 0.0
    log_mass_removed: float = 0.0
    acted: int = 0
    passes: int = 0

    def step(self, rng: np.random.Generator) -> None:
        """Read one more id."""
        allowed, without = self.matcher.mask(), self.plain.mask()
        self.passes += 1
        logits = asked(self.model, self.prompt, self.matcher.ids)
        log_p = log_probabilities(logits, len(allowed), self.temperature)
        token, log_mass = draw(log_p, allowed, rng.random(), greedy=not self.temperature)
        self.log_weight += log_mass
        if (without & ~allowed).any():
            self.acted += 1
            self.log_mass_removed += min(0.0, log_mass - draw(log_p, without, 0.0)[1])
        self.matcher.advance(token)
        self.plain.advance(token)

    def result(self, banned: Constraint, watch: Watch) -> BannedGeneration:
        """How it ended."""
        eos_ids = set(banned.eos_ids)
        ids = [token for token in self.matcher.ids if token not in eos_ids]
        read = len(ids) < len(self.matcher.ids)
        ended = read or not set(self.matcher.allowed_ids().tolist()) - eos_ids
        seen = self.temperature and (read or (ended and not eos_ids))  # the end was drawn too
        for token in ids:
            watch.push(token)
        discarded = 0 if ended else cut(watch)
        if discarded:
            self.matcher.rollback(discarded)
        return BannedGeneration(
            watch.text().decode("utf-8", "replace"),
            watch.ids,
            self.matcher.is_accepting,
            "complete" if ended else "truncated",
            log_weight=self.log_weight if seen else None,
            passes=self.passes,
            forced=0,
            acted=self.acted,
            log_mass_removed=self.log_mass_removed,
            discarded=discarded,
        )


def cut(watch: Watch) -> int:
    """Take back ids until the text may end where it does: how many."""
    before = len(watch.ids)
    while found := watch.ended():
        watch.back(len(watch.ids) - found[0])
    return before - len(watch.ids)
