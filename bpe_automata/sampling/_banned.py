"""Decoding under a ban: what both modes share, and the exact mode, whose masks allow only texts in
which nothing is banned. The other mode, which goes back, is `_rollback`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from bpe_automata._arguments import short
from bpe_automata.banning import AppliedBan, Ban
from bpe_automata.composition.joining import is_unicode
from bpe_automata.decoding.matcher import Generation, Matcher
from bpe_automata.errors import ArgumentError
from bpe_automata.sampling._logits import (
    Model,
    checked,
    draw,
    has_ended,
    only_the_end_follows,
)
from bpe_automata.sampling._loop import Run
from bpe_automata.tokenizer.tokenizer import Tokenizer

_UNKNOWN = "\N{REPLACEMENT CHARACTER}".encode()


@dataclass(frozen=True)
class Rollback:
    """One time that decoding went back. position: how many ids stayed; token: the id that is banned
    there from then on; word: the banned text, None if `token` was banned because all ids after it
    were; discarded: the ids that were thrown away, the banned one first. Where all ids that a text
    could begin with were banned, token is None: all bans but the certain ones were lifted, see
    `_rollback`."""

    position: int
    token: int | None
    word: str | None
    discarded: tuple[int, ...]


@dataclass(frozen=True)
class BannedGeneration(Generation):
    """A generation under a ban, and how often the ban acted.

    acted: in exact mode at how many steps the ban took ids from the mask, in rollback mode how
    often decoding went back. log_mass_removed: in exact mode the sum, over the steps, of the
    natural log of the share of the mask's mass that the ban keeps; at most 0. rollbacks: in order.
    discarded: how many ids were thrown away, including those cut off a truncated text.
    """

    acted: int = 0
    log_mass_removed: float | None = None
    rollbacks: tuple[Rollback, ...] = ()
    discarded: int = 0


def text_before(banned: AppliedBan, prompt: Sequence[int], after: str | None) -> str:
    """The text before, in which what is banned may begin: `after`, else that of the prompt. Raises
    ArgumentError for what is no AppliedBan or no text."""
    if not isinstance(banned, AppliedBan):
        raise ArgumentError(
            f"banned is a {type(banned).__name__}: give AppliedBan(ban, constraint), with "
            "any_text(tokenizer) as the constraint if there is no other"
        )
    if after is None:
        return tail(banned.constraint.tokenizer, prompt)
    if not isinstance(after, str) or not is_unicode(after):
        raise ArgumentError(f"after is {short(after)}: give a text, without lone surrogates")
    return after


def tail(tokenizer: Tokenizer, prompt: Sequence[int]) -> str:
    """The text at the end of a prompt: what its ids spell after the last added or control token."""
    silent = tokenizer.added_ids | tokenizer.description.controls
    first = max((k + 1 for k, token in enumerate(prompt) if token in silent), default=0)
    return tokenizer.decode(tuple(prompt[first:]), tuple(prompt[:first]))


def kept(ban: Ban, before: str, pieces: Sequence[bytes]) -> int:
    """How many ids of a truncated text may stay, so that nothing in it is banned although nothing
    follows. Whole words at its end then count, as does what is banned once an incomplete character
    at its end is decoded as U+FFFD.

    before: the text before. pieces: what each id spells; they hold nothing that would be banned
    whatever follows.
    """
    first, n = before.encode(), len(pieces)
    ends = [*accumulate(map(len, pieces), initial=len(first))]  # of the first k ids
    while n:
        data = first + b"".join(pieces[:n])
        whole = len(data) - _unfinished(data)
        if not ban.whole_word and whole == len(data):
            return n
        readable = data if whole == len(data) else data[:whole] + _UNKNOWN
        found = next(ban.spans(readable, len(first)), None)
        if found is None:
            return n
        n = max((k for k in range(n) if ends[k] <= found[0]), default=0)
    return 0


def _unfinished(data: bytes) -> int:
    """How many bytes at the end are the beginning of a character."""
    for size in range(1, min(3, len(data)) + 1):
        byte = data[-size]
        if byte >= 0xC0:
            return size if size < 2 + (byte >= 0xE0) + (byte >= 0xF0) else 0
        if byte < 0x80:
            return 0
    return 0


# The exact mode.
#
#     ids drawn under the constraint to L - { texts in which something is banned }
#
# No rollback is needed: the mask has no id after which a banned text could not be avoided.


def decode_allowed(
    model: Model,
    banned: AppliedBan,
    prompt: Sequence[int] = (),
    *,
    after: str | None = None,
    max_new_tokens: int = 128,
    temperature: float = 1.0,
    seed: int | np.random.Generator | None = None,
) -> BannedGeneration:
    """A text in which nothing is banned, drawn under the mask of these texts.

    banned: the ban, and what else constrains: `AppliedBan(ban, any_text(tokenizer))` for nothing
    else. after: the text before, in which a banned word may begin; None: the text of the prompt
    that follows its last added or control token. The rest as for `decode`. A truncated text that
    ends in a banned whole word, only because nothing follows, is cut before that word.

    Raises what `decode` raises, and EmptyLanguageError if every text is banned.
    """
    prompt, max_new_tokens, temperature = checked(prompt, max_new_tokens, temperature)
    before = text_before(banned, prompt, after)
    matcher, rng = banned.after(before).matcher(prompt), np.random.default_rng(seed)
    run = _Run(model, matcher, prompt, temperature, rng)
    run.plain = banned.constraint.matcher(prompt)
    while not run.matcher.is_finished and len(run.matcher.ids) < max_new_tokens:
        run.step()
    return run.banned_result(banned, before)


class _Run(Run):
    """One sequence in progress. Its mask obeys the ban, that of `plain` does not."""

    plain: Matcher
    log_mass_removed = 0.0
    acted = 0

    def step(self, forced: bool = False) -> None:
        """Read one more id."""
        allowed, without = self.matcher.mask(), self.plain.mask()
        token, log_mass, log_p = self.drawn(allowed, self.rng.random())
        if (without & ~allowed).any():
            self.acted += 1
            self.log_mass_removed += min(0.0, log_mass - draw(log_p, without, 0.0)[1])
        self.matcher.advance(token)
        self.plain.advance(token)

    def banned_result(self, banned: AppliedBan, before: str) -> BannedGeneration:
        """The result of the run."""
        constraint = banned.constraint
        tokenizer, eos_ids = constraint.tokenizer, constraint.eos_ids
        ids = [token for token in self.matcher.ids if token not in eos_ids]
        ended = only_the_end_follows(self.matcher, constraint)
        seen = has_ended(self.matcher, constraint)
        pieces = [
            tokenizer.text_bytes((token,), (*self.prompt, *ids[:k])[-1:])
            for k, token in enumerate(ids)
        ]
        n = len(ids) if ended else kept(banned.ban, before, pieces)
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
