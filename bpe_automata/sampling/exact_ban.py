"""Decoding under a ban, the exact way: what is banned never gets into the mask.

    ids drawn under the constraint to L - { texts in which something is banned }

No rollback is needed, for the mask sees whether what is banned can still be avoided. See
`rollback.decode_without` for the other way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bpe_automata.banning import AppliedBan, Ban
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.errors import ArgumentError
from bpe_automata.sampling.arguments import checked
from bpe_automata.sampling.banned import BannedGeneration, free, kept, tail
from bpe_automata.sampling.ends import has_ended, only_the_end_follows
from bpe_automata.sampling.logits import Model, draw, log_probabilities
from bpe_automata.sampling.loop import asked
from bpe_automata.tokenizer import Tokenizer


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
    banned: AppliedBan | None = None,
) -> BannedGeneration:
    """A text in which nothing is banned, drawn under the mask that knows it.

    constraint: what else constrains; by default `free`. after: the text before, in which a banned
    word may begin; None: that of the prompt, see `tail`. The rest as for `decode`. A text that runs
    out of ids may end in what is a whole word only because nothing follows: it is cut before that.

    banned: `AppliedBan(ban, constraint)`, to use it for several calls, whatever comes before.

    Raises what `decode` raises, ArgumentError if `banned` is of another ban or constraint, and
    EmptyLanguageError if the ban leaves nothing.
    """
    prompt, max_new_tokens, temperature = checked(prompt, max_new_tokens, temperature)
    applied = _applied(ban, tokenizer, constraint, banned)
    before = tail(tokenizer, prompt) if after is None else after
    matcher, plain = applied.after(before).matcher(prompt), applied.constraint.matcher(prompt)
    run = _Run(model, matcher, plain, prompt, temperature)
    rng = np.random.default_rng(seed)
    while not run.matcher.is_finished and len(run.matcher.ids) < max_new_tokens:
        run.step(rng)
    return run.result(applied, before)


def _applied(
    ban: Ban, tokenizer: Tokenizer, constraint: Constraint | None, banned: AppliedBan | None
) -> AppliedBan:
    """What was prepared, if it is for this ban and constraint; else made now."""
    if banned is None:
        return AppliedBan(ban, constraint or free(tokenizer))
    if not isinstance(banned, AppliedBan):
        raise ArgumentError(
            f"banned is a {type(banned).__name__}; give AppliedBan(ban, constraint), which knows "
            "what it bans"
        )
    if banned.ban != ban:
        raise ArgumentError(f"banned is prepared for {banned.ban}, not for {ban}")
    if constraint is not None and banned.constraint is not constraint:
        raise ArgumentError(
            "banned is prepared for another constraint than the one given; leave that out, or "
            "prepare AppliedBan(ban, constraint)"
        )
    return banned


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

    def result(self, applied: AppliedBan, before: str) -> BannedGeneration:
        """How it ended."""
        constraint = applied.constraint
        tokenizer, eos_ids = constraint.tokenizer, constraint.eos_ids
        ids = [token for token in self.matcher.ids if token not in eos_ids]
        ended = only_the_end_follows(self.matcher, constraint)
        seen = self.temperature and has_ended(self.matcher, constraint)
        pieces = [
            tokenizer.text_bytes((token,), (*self.prompt, *ids[:k])[-1:])
            for k, token in enumerate(ids)
        ]
        n = len(ids) if ended else kept(applied.ban, before, pieces)
        if n < len(ids):
            self.matcher.rollback(len(ids) - n)
        return BannedGeneration(
            b"".join(pieces[:n]).decode("utf-8", "replace"),
            tuple(ids[:n]),
            self.matcher.is_accepting,
            "complete" if ended else "truncated",
            log_weight=self.log_weight if seen else None,
            passes=self.passes,
            forced=0,
            acted=self.acted,
            log_mass_removed=self.log_mass_removed,
            discarded=len(ids) - n,
        )
