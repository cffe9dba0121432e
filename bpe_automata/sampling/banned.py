"""What both ways of decoding under a ban have in common: `exact_ban` and `rollback`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from bpe_automata.automata.algebra import all_texts
from bpe_automata.banning import Ban
from bpe_automata.decoding.constraint import Constraint, constrain
from bpe_automata.decoding.generation import Generation
from bpe_automata.tokenizer import Tokenizer

_UNKNOWN = "\N{REPLACEMENT CHARACTER}".encode()


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
    the banned words that are in the text all the same, in order, see `Ban.found_in`.
    """

    acted: int = 0
    log_mass_removed: float | None = None
    rollbacks: tuple[Rollback, ...] = ()
    discarded: int = 0
    passed: tuple[str, ...] = ()


def free(tokenizer: Tokenizer) -> Constraint:
    """Any tokenization of any text, added tokens (but end-of-sequence) left out: what a model
    writes on its own, save for bytes that are no text."""
    return constrain(tokenizer, all_texts(), "lift", added_tokens=False)


def tail(tokenizer: Tokenizer, prompt: Sequence[int]) -> str:
    """The text that a prompt ends in: what its ids spell after the last added or control token."""
    silent = tokenizer.added_ids | tokenizer.description.controls
    first = max((k + 1 for k, token in enumerate(prompt) if token in silent), default=0)
    return tokenizer.decode(tuple(prompt[first:]), tuple(prompt[:first]))


def kept(ban: Ban, before: str, pieces: Sequence[bytes]) -> int:
    """How many ids may stay of a text that ran out of them, so that nothing in it is banned now
    that nothing follows: whole words that end where it does, and what is banned of a text in which
    the beginning of a character is shown as U+FFFD.

    before: the text before. pieces: what each id spells; nothing may be banned in them if the text
    goes on.
    """
    first, n = before.encode(), len(pieces)
    ends = [*accumulate(map(len, pieces), initial=len(first))]  # of the first k ids
    while n:
        data = first + b"".join(pieces[:n])
        whole = len(data) - _unfinished(data)
        if not ban.whole_word and whole == len(data):
            return n
        shown = data if whole == len(data) else data[:whole] + _UNKNOWN
        found = next(ban.spans(shown, len(first)), None)
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
