"""Free text: any text up to a trigger, or without some texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from bpe_automata._arguments import short
from bpe_automata._budget import Budget, spending
from bpe_automata.automata.algebra import all_texts, difference
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.linked import LinkedDFA
from bpe_automata.automata.parts import Marks
from bpe_automata.composition.joining import is_unicode, join, naming, perhaps_special, special
from bpe_automata.errors import ArgumentError

_DEFAULT = Budget()


def text_until(*triggers: Any, budget: Budget = _DEFAULT) -> LinkedDFA:
    """Any text up to the first trigger, with the trigger: none occurs before its end.

    triggers: texts, or what `special` makes of some; at least one. budget: as of `join`. Raises
    ArgumentError, BudgetExceededError.

        join(text_until(special("</think>")), {"type": "object"})
    """
    with spending(budget):
        any_of = _any_of(triggers, "text_until")
        holds = compile_regex(f"(?s:.*)({any_of})", budget)
        free = difference(holds, compile_regex(f"(?s:.*)({any_of})(?s:.+)", budget), budget)
        tags = [text.encode() for text in _texts(triggers, "text_until")]
        plain = Marks(tags=frozenset(tags))
        marks = plain.union(one.marks for one in triggers if isinstance(one, LinkedDFA))
        return naming(free, marks, partial(_until, tags, marks, budget), budget)


def _until(tags: list[bytes], marks: Marks, budget: Budget) -> LinkedDFA:
    """What `text_until` makes, made anew."""
    makes = dict.fromkeys(marks.special, special) | dict.fromkeys(marks.perhaps, perhaps_special)
    texts = [tag.decode() for tag in tags]
    return text_until(*(makes[t](t) if t in makes else t for t in texts), budget=budget)


def text_without(*texts: Any, budget: Budget = _DEFAULT) -> LinkedDFA:
    """Any text in which none of some texts occurs; the empty one is among them. Arguments and
    errors are those of `text_until`.

        join(repeat(join(text_until("<tool>"), tool, "</tool>")), text_without("<tool>"))
    """
    with spending(budget):
        holds = compile_regex(f"(?s:.*)({_any_of(texts, 'text_without')})(?s:.*)", budget)
        return join(difference(all_texts(), holds, budget), budget=budget)


def _any_of(texts: Sequence[Any], what: str) -> str:
    """The regex of some texts, which may be those of special tokens."""
    return "|".join(map(re.escape, _texts(texts, what)))


def _texts(texts: Sequence[Any], what: str) -> list[str]:
    found = list[str]()
    for one in texts:
        text = one
        if isinstance(one, LinkedDFA) and one.depth == 1:
            (text,) = one.marks.special | one.marks.perhaps or {""}
            text = text if one.marks.tags == {text.encode()} else ""
        if not isinstance(text, str) or not text or not is_unicode(text):
            raise ArgumentError(f"{short(one)} is no text of {what}: give texts, or `special`")
        found.append(text)
    if not found:
        raise ArgumentError(f"{what} has no text: give at least one")
    return found
