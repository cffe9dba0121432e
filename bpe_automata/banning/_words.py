"""Bans as automata over text.

    L(ban.occurrence) = the banned texts themselves
    L(ban.contains)   = { t : some part of t is banned },   L(ban.allowed) = UTF-8 - L(ban.contains)

A constraint over `allowed` cannot write a banned word, whatever its tokens, as only the text counts
that they spell. So there is no list of tokens, nothing depends on spaces before words, and a
boundary mark or a leading space is banned only where it is part of the given word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._budget import Budget, spending
from bpe_automata._sharing import Immutable, cached
from bpe_automata.automata import algebra
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import explicit
from bpe_automata.banning._patterns import (
    checked_regex,
    not_of_word,
    word_has_ended,
    word_may_begin,
    word_pattern,
)
from bpe_automata.composition.language import automaton_of
from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.errors import ArgumentError, EmptyLanguageError
from bpe_automata.tokenizer.tokenizer import AddedTokens, Tokenizer

_CONTINUES = range(0x80, 0xC0)


class Found(NamedTuple):
    """A banned part of a text: text[start:end] == word, positions in characters."""

    start: int
    end: int
    word: str


@dataclass(frozen=True)
class Ban(Immutable):
    """Texts that must not be written.

    words: each as it is, leading spaces and marks included. regexes: Python syntax as
    `compile_regex` takes it; without anchors, as they are looked for anywhere. whole_word: if true,
    a banned text counts only where no word character (`\\w` of Python's `re`, Unicode) stands right
    before or after it; else anywhere, inside words too. ignore_case: as `re.IGNORECASE`, and for
    words also by full case folding, see `banning._patterns`. Texts are compared without
    normalization: `é` written as two characters is another text. budget: that of each automaton.

    Raises ArgumentError (nothing is banned, an empty word, one given twice), RegexError,
    EmptyLanguageError (a regex that matches the empty text would forbid everything),
    BudgetExceededError.
    """

    words: Sequence[str] = ()
    regexes: Sequence[str] = ()
    whole_word: bool = False
    ignore_case: bool = False
    budget: Budget = field(default=Budget(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", _strings(self.words, "words"))
        object.__setattr__(self, "regexes", _strings(self.regexes, "regexes"))
        if not self.words and not self.regexes:
            raise ArgumentError("nothing is banned: give at least one word or regex")
        _check_words(self.words, self.ignore_case)
        _refuse_repeated(self.regexes, self.regexes, "regex")
        with spending(self.budget):
            _ = self._patterns  # refuses regexes that cannot be used

    @cached
    def _patterns(self) -> tuple[str, ...]:
        """One regex for all words, then the regexes, each a group."""
        words = [word_pattern(word, self.ignore_case) for word in self.words]
        regexes = [checked_regex(r, self.ignore_case, self.budget) for r in self.regexes]
        return (*([f"(?:{'|'.join(words)})"] if words else []), *regexes)

    @cached
    def occurrence(self) -> ByteDFA:
        """The banned texts themselves, wherever they stand."""
        return self._union(self._patterns)

    @cached
    def _ending(self) -> ByteDFA:
        """The texts that end in a banned one, whether or not a whole word ends there."""
        before = r"(?:[\s\S]*\W)?" if self.whole_word else r"[\s\S]*"
        return self._union(before + pattern for pattern in self._patterns)

    @cached
    def contains(self) -> ByteDFA:
        """The texts in which something is banned. Raises BudgetExceededError."""
        return self.contains_after("")

    @cached
    def allowed(self) -> ByteDFA:
        """The texts in which nothing is banned. Raises BudgetExceededError."""
        return self.allowed_after("")

    def contains_after(self, before: str) -> ByteDFA:
        """{ t : before + t holds a banned text that ends after `before` }. A word that begins in
        `before` and ends in t counts; one that lies inside `before` does not."""
        return self._contains_from(self.context(before))

    def allowed_after(self, before: str) -> ByteDFA:
        """The texts that are not in `contains_after(before)`."""
        state = self.context(before)
        if state not in self._allowed_from:
            with spending(self.budget):
                found = algebra.complement(self._contains_from(state), self.budget)
            self._allowed_from.setdefault(state, found)
        return self._allowed_from[state]

    def context(self, before: str) -> int:
        """A number for the text `before`. After texts with the same number, the same is banned."""
        return self._ending.walk(_encoded(before))

    @cached
    def _allowed_from(self) -> dict[int, ByteDFA]:
        """The state of `_ending` after a text before -> the texts that are then allowed."""
        return {}

    def _contains_from(self, state: int) -> ByteDFA:
        """{ u v : u not empty, `_ending` accepts after u from the state, v may follow }."""
        ending, follows = self._ending, word_has_ended() if self.whole_word else algebra.all_texts()
        trans = np.concatenate([ending.trans, ending.trans[state : state + 1]])
        accepting = np.append(ending.accepting, np.False_)
        begun = ByteDFA(trans, ending.byte_class, accepting, ending.n_states)
        return algebra.concatenation(begun, follows, budget=self.budget)

    def found_in(self, text: str, before: str = "") -> tuple[Found, ...]:
        """The banned parts of `text`, in order: from each position the shortest. A part that begins
        in the text `before` has a negative start; a part that also ends there is not reported."""
        first = _encoded(before)
        whole, shift = before + text, len(before)
        position = _characters(first + _encoded(text))
        return tuple(
            Found(position[a] - shift, position[b] - shift, whole[position[a] : position[b]])
            for a, b in self.spans(first + _encoded(text), len(first))
        )

    def spans(self, data: bytes, past: int = 0, ended: bool = True) -> Iterator[tuple[int, int]]:
        """(start, end), in bytes, of the banned parts of the text `data` that end after `past`:
        from each position the shortest. ended: does a word end where the text does, or may it still
        go on?"""
        begins = _may_begin(data) if self.whole_word else None
        for start in range(len(data)):
            if data[start] not in _CONTINUES and (begins is None or begins[start]):
                end = self._shortest(data, start, past, ended)
                if end is not None:
                    yield start, end

    def _shortest(self, data: bytes, start: int, past: int, ended: bool) -> int | None:
        """Where the shortest banned part from `start` ends."""
        dfa, state = self.occurrence, self.occurrence.start
        for end in range(start + 1, len(data) + 1):
            state = dfa.step(state, data[end - 1])
            if state == 0:
                return None
            ends = dfa.accepting[state] and end > past
            if ends and (not self.whole_word or _has_ended(data[end : end + 4], ended)):
                return end
        return None

    def constrain(
        self,
        tokenizer: Tokenizer,
        language: Any = None,
        method: Method = "canonical",
        eos_ids: Iterable[int] | None = None,
        *,
        after: str = "",
        added_tokens: AddedTokens = False,
        budget: Budget | None = None,
    ) -> Constraint:
        """A constraint to the texts of `language` in which nothing is banned.

        language: None for all texts; else as for `constrain`, but no linked automaton (of a schema
        give what `to_dfa` makes). after: the text before, at the end of the prompt; a banned word
        that begins in it cannot be completed. added_tokens: which added tokens may be read as the
        text they spell. The default is none, as a decoder that skips special tokens joins the texts
        around them: it prints `tal`, `<|im_start|>`, `k` as a banned `talk`. budget: that of the
        intersection (by default the ban's), and then as for `constrain`.

        A truncated text may end in a banned whole word that would have gone on as a longer word;
        `sampling.decode_allowed` cuts it off. Raises what `constrain` raises, and
        EmptyLanguageError if every text is banned.
        """
        allowed = self.allowed_in(language, after, budget)
        return constrain(
            tokenizer, allowed, method, eos_ids, added_tokens=added_tokens, budget=budget
        )

    def allowed_in(self, language: Any, after: str = "", budget: Budget | None = None) -> ByteDFA:
        """The texts of `language` (None: all) in which nothing is banned, after the text `after`.
        Raises EmptyLanguageError if every text is banned, RegexError, BudgetExceededError."""
        budget = budget or self.budget
        with spending(budget):
            allowed = self.allowed_after(after)
            if language is None:
                return allowed
            given = explicit(automaton_of(language, budget), "a ban")
            both = algebra.intersection(given, allowed, budget)
        if both.is_empty and not given.is_empty:
            raise EmptyLanguageError(f"every text of the constraint is banned by {self}")
        return both

    def __str__(self) -> str:
        banned = [*map(repr, self.words), *(f"regex {r!r}" for r in self.regexes)]
        return "the ban of " + ", ".join(banned[:5]) + (", ..." if len(banned) > 5 else "")

    def _union(self, patterns: Iterable[str]) -> ByteDFA:
        with spending(self.budget):
            compiled = [compile_regex(pattern, self.budget) for pattern in patterns]
            return reduce(lambda a, b: algebra.union(a, b, self.budget), compiled)


def _strings(given: object, name: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ArgumentError(f"{name} is {given!r}, not a list of strings")
    found = tuple(given)
    for entry in found:
        if not isinstance(entry, str):
            raise ArgumentError(f"{name} holds {entry!r}, which is not a string")
    return found


def _check_words(words: Sequence[str], ignore_case: bool) -> None:
    for word in words:
        if not word:
            raise ArgumentError("an empty word is in every text; leave it out of words")
        _encoded(word)
    folded = [word.casefold() for word in words] if ignore_case else words
    _refuse_repeated(words, folded, "word")


def _refuse_repeated(given: Sequence[str], keys: Sequence[str], what: str) -> None:
    seen: dict[str, str] = {}
    for entry, key in zip(given, keys, strict=True):
        if key in seen:
            raise ArgumentError(f"the {what} {entry!r} is given twice, before as {seen[key]!r}")
        seen[key] = entry


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        lone = text[error.start]
        raise ArgumentError(f"{text!r} has a lone surrogate, {lone!r}: no text holds it") from None


def _characters(data: bytes) -> list[int]:
    """For each position between bytes: how many characters have begun before it."""
    found = [0]
    for byte in data:
        found.append(found[-1] + (byte not in _CONTINUES))
    return found


def _may_begin(data: bytes) -> list[bool]:
    """For each position of a text: may a word begin there?"""
    dfa = word_may_begin()
    state, found = dfa.start, [True]
    for byte in data:
        state = dfa.step(state, byte)
        found.append(bool(dfa.accepting[state]))
    return found


def _has_ended(rest: bytes, ended: bool) -> bool:
    """Does a whole word end before `rest`? It does before a character that is no word character,
    and at the end of the text; not before an incomplete character."""
    if not rest:
        return ended
    return any(not_of_word().accepts(rest[:n]) for n in range(1, len(rest) + 1))
