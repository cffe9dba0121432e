"""Engines over automata that compare items (`uniqueItems`), and what *bound* states are: see
`_automata.comparing`.

A state of the inner engine knows a state of the byte automaton, which is exact as long as no item
of an array ends. So here a state knows the text too, as far as items are still open, and

    step(q, id)  =  the inner step, put to the state that is bound to the text behind the id
    mask(q)      =  { id in the inner mask : no item ends in id, or the bound state behind it leads
                      to acceptance }

Items end in few ids. Most of these are settled in groups, by the state behind them. An id leads on
if no item before had the value of its item, and behind it the array may close, or items of at least
two values may follow, of which one is not this value. The others are looked at one by one: by what
may follow this value, else by binding the state and asking the inner engine of it.

For the lift this is exact. The canonical engine asks whether some text goes on from an id, and that
text may repeat an item further on. So one thing is not ruled out: an id whose only canonical
continuations repeat an item. It takes merges across the whole of that item, or an id with several
items of which a later one is repeated, and was met only where few values are left to an item, all
in one pretoken. Where no id is left then, the mask raises DecodingError.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from bpe_automata._automata.comparing import ComparingDFA
from bpe_automata._automata.json_texts import (
    BETWEEN,
    ESCAPE,
    SCALAR,
    SPACE,
    STRING,
    End,
    JsonPosition,
    Name,
    differs,
    first_of,
    kind_of,
    may_end_an_item,
    next_item,
)
from bpe_automata._budget import Budget, check, spent
from bpe_automata._constructions.engine import TextEngine, travelling
from bpe_automata._constructions.prefixed import PrefixedDfa
from bpe_automata._kernels.bits import clear_bits, members, packed
from bpe_automata._sharing import BoundedMemo, Immutable
from bpe_automata._tokenizer.tokenizer import Tokenizer
from bpe_automata.errors import DecodingError

State = TypeVar("State", bound=Hashable)


class BindingEngine(TextEngine[State], Protocol[State]):
    """An engine whose states can be put elsewhere in its automaton."""

    budget: Budget | None
    prefixed: PrefixedDfa
    spells_all: bool  # whatever comes next: does that depend on no more than the bytes?

    def moved(self, state: State, dfa_state: int) -> State:
        """The state that differs in that of `dfa` alone."""

    def configuration(self, state: State) -> Hashable:
        """What all of a state but the last id is."""

    def followers(self, at: Any) -> tuple[list[int], list[int]]:
        """Some of the ids that may come next in a configuration: whatever the last id is, and after
        some."""

    def may_follow(self, state: State, token: int) -> bool:
        """May an id of the second kind come after the last one? (Of the first kind all may, and
        this may say that one may not.)"""

    def led(self, state: State, tokens: list[int], dfa_states: list[int]) -> list[State]:
        """The states behind some ids of the mask. dfa_states: where they lead in `dfa`."""

    def leads_on(self, state: State) -> bool:
        """Can acceptance be reached? Also of states that are not relevant."""


class TextState(NamedTuple, Generic[State]):
    """inner: of the inner engine; position: where the text is."""

    inner: State
    position: JsonPosition


class _Next(NamedTuple):
    """What may follow an item whose value is not known.

    is_sure: is it seen that an item of another value may, or none, whatever the last id is?
    others: if not, ids after which that is seen; firsts: ids that begin items of different values,
    of which two are needed.
    """

    is_sure: bool
    others: Sequence[int] = ()
    firsts: Sequence[int] = ()


class Comparing(Immutable, Generic[State]):
    """A `TextEngine` around another one, whose automaton compares items."""

    def __init__(self, inner: BindingEngine[State], dfa: ComparingDFA) -> None:
        """dfa: that of the inner engine."""
        self.inner, self.dfa, self.prefixed = inner, dfa, inner.prefixed
        self.tokenizer, self.budget = inner.tokenizer, inner.budget
        self._masks: BoundedMemo[TextState[State], np.ndarray] = BoundedMemo(inner.n_ids)
        self._sure: BoundedMemo[tuple[State, bytes, str], bool] = BoundedMemo(1 << 12)
        self._next: BoundedMemo[tuple[Hashable, bytes, str], _Next] = BoundedMemo(1 << 13)

    def __reduce__(self) -> tuple[object, ...]:
        return around, (travelling(self.inner),)

    @property
    def n_ids(self) -> int:
        return self.inner.n_ids

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return self.inner.eos_ids

    def initial(self, prefix: Sequence[int] = ()) -> TextState[State]:
        inner = self.inner.initial(prefix)
        # The state in front of the start reads the space that the tokenizer puts there.
        spaced = self.inner.dfa_state(inner) != self.dfa.start
        return TextState(inner, self.dfa.position(spaced))

    def accepting(self, state: TextState[State]) -> bool:
        return self.inner.accepting(state.inner)

    def dfa_state(self, state: TextState[State]) -> int:
        return self.inner.dfa_state(state.inner)

    def mask(self, state: TextState[State]) -> np.ndarray:
        bits = self._masks.get(state)
        if bits is None:
            bits = self._mask(state)
            self._masks.put(state, bits)
        return bits

    @spent
    def _mask(self, state: TextState[State]) -> np.ndarray:
        bits = self.inner.mask(state.inner)
        mode, skipped = state.position.mode, state.position.skipped
        # Behind what is skipped the mode may be another one.
        some = members(bits if skipped else bits & _ending(self.tokenizer, mode))
        unsettled = self._unsettled(state, some.tolist())
        wrong = [token for token in unsettled if not self._leads_on(state, token)]
        if wrong:
            bits = bits.copy()
            clear_bits(bits, np.array(wrong, dtype=np.int64))
            if not bits.any() and not self.accepting(state):
                raise DecodingError(
                    "what canonical ids may follow would repeat an item (uniqueItems): take back "
                    'the last id, or use method "lift"'
                )
            bits.flags.writeable = False
        return bits

    def _unsettled(self, state: TextState[State], tokens: list[int]) -> list[int]:
        """Of some ids of the inner mask, those that cannot be settled as a group: of the others it
        is seen that they lead on, once they are bound."""
        position, spellings = state.position, self.tokenizer.spellings
        left, single = list[int](), list[tuple[int, End]]()
        for token in tokens:
            ends = position.ends(spellings[token]) if token not in self.eos_ids else []
            if len(ends) == 1:
                single.append((token, ends[0]))
            elif ends:
                left.append(token)
        if not single:
            return left
        at = self.dfa_state(state)
        inside = self.dfa.after_each(at, [spellings[token][: end.at] for token, end in single])
        behind = self.dfa.after_each(at, [spellings[token] for token, _ in single])
        after = self.inner.led(state.inner, [token for token, _ in single], behind)
        earlier = {ended: self.dfa.earlier(ended) for ended in set(inside)}
        names, differing = dict[bytes, Name](), dict[tuple[int, bytes], bool]()
        for (token, end), ended, then in zip(single, inside, after, strict=True):
            before, data = earlier[ended], spellings[token]
            if before is None:  # nothing is compared there
                continue
            own = data[: end.at]
            begun = position.begun(end) or own[end.start - position.read.end :]
            key = ended, begun
            if key not in differing:
                check()
                differing[key] = all(differs(name, begun) for name in before.names)
            if not differing[key] and own not in names:
                names[own] = position.item(data, end)
            is_new = before.has_room and (differing[key] or names[own] not in before.names)
            if not is_new or not self._goes_on(then, data[end.at :], kind_of(begun)):
                left.append(token)
        return left

    def _goes_on(self, then: State, behind: bytes, kind: str) -> bool:
        """Is it seen that what follows an item of a kind may be an item of another value, or none,
        whatever value it was? behind: what was read behind it."""
        key = then, behind, kind
        found = self._sure.get(key)
        if found is None:
            found = self._is_seen(then, self._next_items(self.inner.configuration(then), *key[1:]))
            self._sure.put(key, found)
        return found

    def _is_seen(self, then: State, following: _Next) -> bool:
        if following.is_sure:
            return True
        others, firsts = (
            (token for token in some if self.inner.may_follow(then, token))
            for some in (following.others, following.firsts)
        )
        return next(others, None) is not None or len(list(islice(firsts, 2))) == 2

    def _next_items(self, *key: Any) -> _Next:
        """key: a configuration; what was read behind the item, and its type."""
        found = self._next.get(key)
        if found is None:
            found = self._found_next(*key)
            self._next.put(key, found)
        return found

    def _found_next(self, at: Hashable, behind: bytes, kind: str) -> _Next:
        begun = next_item(behind)
        if begun and _is_none_or_other(begun, kind):
            return _Next(True)
        if self.inner.spells_all:
            return _Next(not begun)  # any item may begin, and there are values enough
        sure, others, firsts = False, list[int](), dict[str, int]()
        for k, some in enumerate(self.inner.followers(at)):
            for token in some:
                text = next_item(behind + self.tokenizer.spellings[token])
                if text and _is_none_or_other(text, kind):
                    others.append(token)
                elif first := first_of(text):
                    firsts.setdefault(first, token)
            sure |= k == 0 and (bool(others) or len(firsts) > 1)
        return _Next(sure, others, list(firsts.values()))

    def _leads_on(self, state: TextState[State], token: int) -> bool:
        """Does an id of the inner mask in which an item ends lead on, once it is bound?"""
        check()
        data = self.tokenizer.spellings[token]
        found = self.dfa.compared(self.dfa_state(state), state.position, data)
        if found and not found.names:
            return True
        inner = self.inner.step(state.inner, token)
        if found and self._is_followed(inner, *found):
            return True
        bound = self._bound(state, token)
        return bound != 0 and self.inner.leads_on(self.inner.moved(inner, bound))

    def _is_followed(self, inner: State, names: tuple[Name, ...], behind: bytes) -> bool:
        """Is it seen that another item than those may follow, or none? inner: a state that does not
        know their values."""

        def is_other(behind: bytes) -> bool:
            return all(differs(name, behind) for name in names)

        if is_other(behind):
            return True
        if self.inner.spells_all:
            return not next_item(behind)
        spellings = self.tokenizer.spellings
        free, bound = self.inner.followers(self.inner.configuration(inner))
        return any(is_other(behind + spellings[one]) for one in free) or any(
            is_other(behind + spellings[one]) and self.inner.may_follow(inner, one) for one in bound
        )

    def _bound(self, state: TextState[State], token: int) -> int:
        """The state of the automaton behind an id."""
        at, data = self.dfa_state(state), self.tokenizer.spellings[token]
        return self.dfa.follow(at, state.position, data)

    @spent
    def step(self, state: TextState[State], token: int) -> TextState[State]:
        inner, data = self.inner.step(state.inner, token), self.tokenizer.spellings[token]
        if state.position.ends(data):
            inner = self.inner.moved(inner, self._bound(state, token))
        return TextState(inner, state.position.after(data))

    def steps(self, state: TextState[State], tokens: np.ndarray) -> list[TextState[State]]:
        return [self.step(state, token) for token in tokens.tolist()]


def _is_none_or_other(begun: bytes, kind: str) -> bool:
    """Does no item follow, or one of another type?"""
    return begun.startswith(b"]") or kind_of(begun) != kind


def around(engine: Any) -> Any:
    """The engine that follows texts where that is needed, else the engine itself."""
    return Comparing(engine, engine.dfa) if isinstance(engine.dfa, ComparingDFA) else engine


# The ids in which an item may end, by the mode in which they are read.


def _ending(tokenizer: Tokenizer, mode: int) -> np.ndarray:
    """The ids in which an item may end, read in a mode, packed."""
    found: np.ndarray = tokenizer.derived(f"ids that end items {mode}", _FIND[mode])
    return found


def _found(mode: int) -> Callable[[Tokenizer], np.ndarray]:
    def find(tokenizer: Tokenizer) -> np.ndarray:
        spellings = tokenizer.spellings
        some = _perhaps(mode, spellings)
        if mode != SCALAR:  # which ends before any such byte
            some = [token for token in some if may_end_an_item(mode, spellings[token])]
        return packed(some, tokenizer.n_ids)

    return find


def _perhaps(mode: int, spellings: Sequence[bytes]) -> list[int]:
    """The ids in which an item may end, and a few others: few of a vocabulary are looked at."""
    owner = np.repeat(np.arange(len(spellings)), [len(text) for text in spellings])
    data = np.frombuffer(b"".join(spellings), dtype=np.uint8)
    if mode == BETWEEN:
        # A bracket or a quote; or what is around scalars, behind a byte that is not.
        found = np.isin(data, list(b'"]}'))
        behind = _IS_AROUND[data[1:]] & ~_IS_AROUND[data[:-1]]
        found[1:] |= behind & (owner[1:] == owner[:-1])
    else:
        found = (_IS_AROUND if mode == SCALAR else _ENDS_STRING)[data]
    some: list[int] = np.flatnonzero(np.bincount(owner[found])).tolist()
    return some


_ENDS_STRING, _IS_AROUND = np.zeros((2, 256), np.bool_)
_ENDS_STRING[ord('"')] = True
_IS_AROUND[list(SPACE + b'",:[]{}')] = True
_FIND = {mode: _found(mode) for mode in (BETWEEN, STRING, ESCAPE, SCALAR)}
