"""Are ids that a model wrote freely its tokenizer's own, and if not, what is wrong at which joint?

A text that ended must be canonical as it stands: encode(decode(ids)) = ids, after the prompt. A
text that was cut off must be the beginning of a canonical one: more text could change how its last
characters are divided (GPT-2 reads two line breaks as one token at the end of a text, and as two
before a word). So an end that more text would mend is no fault, half a character included.

Whether a text is canonical is said by the matcher of all texts, which looks at all that could
follow. The faults after the first are found by reading on with the automaton of canonical
sequences: it takes a forbidden pair as if it were allowed, and after any other fault it begins
anew, with the token at which the fault showed.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce

from bpe_automata import Constraint, Matcher, Tokenizer, constrain, explain
from bpe_automata._core.canonical import (
    CanonicalAutomaton,
    CanonicalState,
    canonical_automaton,
)
from bpe_automata._core.sets import NONE
from bpe_automata._decoding.visible import visible_tokens
from bpe_automata.errors import PromptError, TokenNotAllowedError

# All texts, as a constraint: what may follow is what some canonical text goes on with.


def all_texts(tokenizer: Tokenizer) -> Constraint:
    """Made once for a tokenizer. Without end-of-sequence: added tokens are text."""
    return tokenizer.derived(
        "all texts", lambda it: constrain(it, r"(?s:.*)", eos_ids=(), added_tokens=True)
    )


def after(tokenizer: Tokenizer, ids: Iterable[int]) -> Matcher:
    """A matcher that has read these ids, which begin a canonical text and may end inside a
    character. Raises PromptError for ids that begin none."""
    matcher = all_texts(tokenizer).matcher()
    try:
        for token in ids:
            matcher.advance(token)
    except TokenNotAllowedError as error:
        raise PromptError(f"the prompt's ids are not canonical: {error}") from error
    return matcher


PAIR, SPELLING, SPLIT, BROKEN, ADDED, END, LATER = KINDS = (
    "two tokens that BPE would have joined or divided otherwise",
    "a token that BPE never makes, or the bytes of a character that has a token",
    "a token across a boundary of the pretokenizer",
    "bytes that are no UTF-8",
    "the text of an added token, spelled out",
    "an end where a canonical text cannot end",
    "a text that no canonical text goes on from",
)


@dataclass(frozen=True)
class Fault:
    """position: of the token at which it shows, from 0 after the prompt (of the end: how many
    tokens there are); kind: one of KINDS; tokens: those at the joint, readable; reason: as
    `bpe_automata.explain` words it of the first fault of a text, and of any two tokens that cannot
    stand side by side even alone; else ""."""

    position: int
    kind: str
    tokens: str
    reason: str = ""


@dataclass(frozen=True)
class Verdict:
    """faults: in order, none if it is canonical."""

    canonical: bool
    faults: tuple[Fault, ...] = ()


class Judge:
    """Of texts after one prompt, whose ids must be canonical themselves."""

    def __init__(self, tokenizer: Tokenizer, prompt_ids: Sequence[int]) -> None:
        """Raises PromptError for a prompt that is not canonical."""
        self.tokenizer = tokenizer
        self._before = tokenizer.last_text(prompt_ids)
        self._automaton = canonical_automaton(tokenizer)
        self._matcher = after(tokenizer, self._before)

    def verdict(self, ids: Sequence[int], ended: bool) -> Verdict:
        """ids: without end-of-sequence or other special tokens; ended: did the text end there, or
        was it cut off?"""
        refused = self._refused(ids, ended)
        if refused is None:
            return Verdict(True)
        reading = _Reading(self._automaton, self._before)
        for token in ids:
            reading.read(token)
        if ended:
            reading.end()
        faults = reading.faults
        if not faults:
            kind = END if refused == len(ids) else LATER
            faults = [Fault(refused, kind, reading.shown(ids[refused : refused + 1]))]
        explained = explain(self.tokenizer, [*self._before, *ids])
        return Verdict(False, (replace(faults[0], reason=explained.reason), *faults[1:]))

    def _refused(self, ids: Sequence[int], ended: bool) -> int | None:
        """The first id that no canonical text has there; None if there is none."""
        matcher = self._matcher.copy()
        try:
            for token in ids:
                matcher.advance(token)
        except TokenNotAllowedError:
            return len(matcher.ids)
        return len(ids) if ended and not matcher.is_accepting else None


@dataclass
class _Reading:
    """What is known after some ids, whatever was wrong with them."""

    automaton: CanonicalAutomaton
    before: Sequence[int]
    faults: list[Fault] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._state = reduce(self._followed, self.before, self.automaton.start)
        self._last = list(self.before[-1:])
        self._position = 0
        self._bytes = codecs.getincrementaldecoder("utf-8")()
        for token in self.before:
            self._bytes.decode(self.automaton.tokenizer.token_bytes(token))

    def _followed(self, state: CanonicalState, token: int) -> CanonicalState:
        """After an id of the prompt, which is canonical."""
        return self.automaton.step(state, token) or state

    def read(self, token: int) -> None:
        """One more id."""
        state = self.automaton.step(self._state, token)
        broken = self._breaks(token)
        if state is None:
            kind, state = self._fault(token, broken)
            joint = [*self._last, token]
            alone = explain(self.automaton.tokenizer, joint) if kind == PAIR else None
            reason = alone.reason if alone and not alone.canonical else ""
            self.faults.append(Fault(self._position, kind, self.shown(joint), reason))
        self._state, self._last = state, [token]
        self._position += 1

    def end(self) -> None:
        """The text ends here."""
        if not self.automaton.ends(self._state):
            self.faults.append(Fault(self._position, END, self.shown(self._last)))

    def _fault(self, token: int, broken: bool) -> tuple[str, CanonicalState]:
        """Its kind, and where to read on from."""
        automaton, state = self.automaton, self._state
        anew = automaton.step(automaton.start, token) or automaton.start
        if broken:
            return BROKEN, anew
        if automaton.is_added(token):
            return ADDED, anew
        if not automaton.usable[token]:
            return SPELLING, anew
        text = automaton.text_after(state.text, state.hypotheses, token)
        if text < 0:
            return ADDED, anew
        _, bound = automaton.sets.successors(state.hypotheses)
        inside = int(bound[automaton.actions.of_token[token]])
        if inside == NONE:
            return SPLIT, anew
        return PAIR, CanonicalState(text, inside, token)

    def _breaks(self, token: int) -> bool:
        """Can the bytes so far no longer become UTF-8? Then the next character begins here, if one
        can."""
        data = self.automaton.tokenizer.token_bytes(token)
        try:
            self._bytes.decode(data)
        except UnicodeDecodeError:
            self._bytes.reset()
            with suppress(UnicodeDecodeError):
                self._bytes.decode(data)
            return True
        return False

    def shown(self, ids: Sequence[int]) -> str:
        """Tokens, readable."""
        return visible_tokens(self.automaton.tokenizer, ids)
