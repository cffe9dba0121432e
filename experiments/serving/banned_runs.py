"""One text of each mode, timed, and looked through for banned words by plain string search."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bpe_automata import Constraint, Tokenizer
from bpe_automata.banning import AppliedBan, Ban, Spellings
from bpe_automata.decoding.constraint import rebuilt
from bpe_automata.decoding.generation import Generation
from bpe_automata.errors import EmptyLanguageError, LogitsError, ModelError
from bpe_automata.sampling import BannedGeneration, decode, decode_allowed, decode_without
from bpe_automata.sampling.loop import asked
from experiments.run.executors import Row
from experiments.shared.resources import timed

Model = Callable[[Sequence[int]], np.ndarray]
MODES = ("free", "exact", "rollback")


def found(words: Sequence[str], text: str, before: str, whole: bool, any_case: bool) -> list[str]:
    """The words that stand in `before + text` and end in `text`: by searching strings, with nothing
    of the library."""
    return [word for word in words if _stands(word, before + text, len(before), whole, any_case)]


def _stands(word: str, text: str, past: int, whole: bool, any_case: bool) -> bool:
    """Does the word end somewhere after `past`?"""
    spans = _folded_spans(word, text) if any_case else []
    pattern = re.compile(f"(?={re.escape(word)})", re.IGNORECASE if any_case else 0)
    spans += [(m.start(), m.start() + len(word)) for m in pattern.finditer(text)]
    return any(end > past and (not whole or _alone(text, start, end)) for start, end in spans)


def _folded_spans(word: str, text: str) -> list[tuple[int, int]]:
    """Where whole characters of the text fold to what the word folds to."""
    places = {0: 0}
    for k, character in enumerate(text):
        places[max(places) + len(character.casefold())] = k + 1
    folded, wanted = text.casefold(), word.casefold()
    starts = [m.start() for m in re.finditer(f"(?={re.escape(wanted)})", folded)]
    ends = [(s, s + len(wanted)) for s in starts]
    return [(places[s], places[e]) for s, e in ends if s in places and e in places]


def _alone(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    return re.search(r"\w", around) is None


def runs(
    model: Model,
    tokenizer: Tokenizer,
    ban: Ban,
    plain: Constraint,
    prompt: Sequence[int],
    before: str,
    turn: int = 0,
    **options: Any,
) -> dict[str, Row]:
    """A row for each mode. before: the text that the prompt ends in. turn: how far the order of the
    modes is rotated.

    No mode finds anything ready that one before it made: each has a constraint and a ban of its
    own, and the prompt is read before its clock starts (to a model that keeps a cache, what the
    mode before wrote is taken back by that)."""
    found = {}
    for mode in _order(turn):
        own, its_ban = rebuilt(plain, plain.dfa), replace(ban)
        given = {"prompt": prompt, **options}
        if mode != "free":
            given |= {"constraint": own, "after": before}
        prepare = _preparing(mode, tokenizer, its_ban, own, before)
        call = _calling(mode, model, tokenizer, its_ban, own, given)
        found[mode] = _row(lambda: asked(model, prompt, ()), prepare, call, ban, before)
    return {mode: found[mode] | {"turn": _order(turn).index(mode)} for mode in MODES}


def _order(turn: int) -> tuple[str, ...]:
    """The modes in the order in which they are timed."""
    first = turn % len(MODES)
    return MODES[first:] + MODES[:first]


def _preparing(
    mode: str, tokenizer: Tokenizer, ban: Ban, plain: Constraint, before: str
) -> Callable[[], Any]:
    """Makes what several calls could share: what `_calling` gives to the mode."""

    def applied() -> AppliedBan:
        made = AppliedBan(ban, plain)
        made.after(before)
        return made

    def spellings() -> Spellings:
        return Spellings(tokenizer, ban, plain.eos_ids, plain.added_tokens)

    return {"free": lambda: None, "exact": applied, "rollback": spellings}[mode]


def _calling(
    mode: str, model: Model, tokenizer: Tokenizer, ban: Ban, plain: Constraint, given: Row
) -> Callable[[Any], Generation]:
    """The mode, as a function of what was prepared."""
    modes: dict[str, Callable[[Any], Generation]] = {
        "free": lambda _: decode(model, plain, **given),
        "exact": lambda made: decode_allowed(model, ban, tokenizer, banned=made, **given),
        "rollback": lambda made: decode_without(model, ban, tokenizer, spellings=made, **given),
    }
    return modes[mode]


def _row(
    read: Callable[[], Any],
    prepare: Callable[[], Any],
    call: Callable[[Any], Generation],
    ban: Ban,
    before: str,
) -> Row:
    """What one mode wrote, or why it did not. read: the model reads the prompt."""
    try:
        prepared, made = timed(prepare)
        read()
        seconds, run = timed(lambda: call(made))
    except (EmptyLanguageError, LogitsError, ModelError) as error:
        return {"error": str(error), "raised": type(error).__name__, "banned": []}
    row: Row = {
        "text": run.text,
        "ids": len(run.ids),
        "finish_reason": run.finish_reason,
        "passes": run.passes,
        "seconds": seconds,
        "prepared": prepared,
        "banned": found(ban.words, run.text, before, ban.whole_word, ban.ignore_case),
    }
    if isinstance(run, BannedGeneration):
        row["acted"], row["discarded"] = run.acted, run.discarded
        row["log_mass_removed"] = run.log_mass_removed
        row["rollbacks"] = [[r.position, r.token, r.word, r.discarded] for r in run.rollbacks]
    return row
