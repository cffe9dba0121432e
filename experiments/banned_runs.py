"""One text of each mode, timed, and looked through for banned words by plain string search."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bpe_automata import Constraint, Tokenizer
from bpe_automata.banning import Ban, Spellings
from bpe_automata.decoding.generation import Generation
from bpe_automata.errors import EmptyLanguageError
from bpe_automata.sampling import decode
from bpe_automata.sampling.banned import BannedGeneration, decode_allowed
from bpe_automata.sampling.rollback import decode_without

Row = dict[str, Any]
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
    model: Callable[[Sequence[int]], np.ndarray],
    tokenizer: Tokenizer,
    ban: Ban,
    plain: Constraint,
    prompt: Sequence[int],
    before: str,
    **options: Any,
) -> dict[str, Row]:
    """A row for each mode. before: the text that the prompt ends in."""
    banned_in, banned = _timed(
        lambda: ban.constrain(
            tokenizer, plain.dfa, plain.method, plain.eos_ids, after=before, added_tokens=False
        )
    )
    spellings_in, spellings = _timed(lambda: Spellings(tokenizer, ban, plain.eos_ids))
    given = {"constraint": plain, "after": before, **options}
    calls: dict[str, Callable[[], Generation]] = {
        "free": lambda: decode(model, plain, prompt, **options),
        "exact": lambda: decode_allowed(model, ban, tokenizer, prompt, banned=banned, **given),
        "rollback": lambda: decode_without(
            model, ban, tokenizer, prompt, spellings=spellings, **given
        ),
    }
    prepared = {"free": 0.0, "exact": banned_in, "rollback": spellings_in}
    return {
        mode: _row(call, ban, before) | {"prepared": prepared[mode]} for mode, call in calls.items()
    }


def _row(call: Callable[[], Generation], ban: Ban, before: str) -> Row:
    try:
        seconds, run = _timed(call)
    except EmptyLanguageError as error:
        return {"error": str(error), "banned": []}
    row: Row = {
        "text": run.text,
        "ids": len(run.ids),
        "finish_reason": run.finish_reason,
        "passes": run.passes,
        "seconds": seconds,
        "banned": found(ban.words, run.text, before, ban.whole_word, ban.ignore_case),
    }
    if isinstance(run, BannedGeneration):
        row["acted"], row["discarded"] = run.acted, run.discarded
        row["log_mass_removed"] = run.log_mass_removed
        row["rollbacks"] = [[r.position, r.token, r.word, r.discarded] for r in run.rollbacks]
    return row


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result
