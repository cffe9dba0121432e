"""The matcher, the one mutable object: it follows one sequence of ids along an engine, and writes
masks into arrays that the caller owns. `Generation` records what a decoding loop wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bpe_automata._arguments import integer, sequence_of_ids, short
from bpe_automata._budget import spending
from bpe_automata._kernels.bits import has, members
from bpe_automata.constructions.engine import Engine
from bpe_automata.errors import (
    BufferShapeError,
    DecodingError,
    TokenNotAllowedError,
    TokenOutOfRangeError,
)

if TYPE_CHECKING:
    from bpe_automata.token_automata.automaton import TokenAutomaton


class Matcher:
    """Follows one sequence of ids. Make one with `Constraint.matcher`.

    A failed call changes nothing, not even if it is interrupted or goes over the budget of the
    constraint: any call may raise BudgetExceededError. Use a matcher in one thread at a time; make
    branches with `copy`, which may run in threads of their own.
    """

    def __init__(self, engine: Engine[Any], prefix: Sequence[int] = ()) -> None:
        self._engine, self._prefix = engine, sequence_of_ids(prefix)
        self._states = [engine.initial(self._prefix)]  # and at least one for each id read
        self._ids: list[int] = []

    @property
    def _state(self) -> Any:
        return self._states[len(self._ids)]

    @property
    def _finished(self) -> bool:
        """Was end-of-sequence read? It is never text."""
        return bool(self._ids) and self._ids[-1] in self._engine.eos_ids

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids that were read, with end-of-sequence and without the prompt."""
        return tuple(self._ids)

    @property
    def is_accepting(self) -> bool:
        """Is the text complete (and, for method "canonical", canonical) as it stands?"""
        return self._engine.accepting(self._state)

    @property
    def is_finished(self) -> bool:
        """Was end-of-sequence read, or can no id follow?"""
        return self._finished or not np.count_nonzero(self._engine.mask(self._state))

    def asked(self) -> tuple[Engine[Any], Any] | np.ndarray:
        """What `batches` needs for the mask: the engine and its state; or, once end-of-sequence
        was read, the empty mask, packed."""
        if self._finished:
            return np.zeros((self._engine.n_ids + 31) // 32, dtype=np.int32)
        return self._engine, self._state

    def mask(self, out: np.ndarray | None = None, row: int = 0) -> np.ndarray:
        """Which ids are allowed next; none once end-of-sequence was read.

        out: where to write, owned by the caller: packed int32 (ceil(V / 32),) or
        (batch, ceil(V / 32)) as inference engines use it (bit i % 32 of word i // 32 for id i); or
        bool (V,) or (batch, V). V may exceed the tokenizer's ids; ids beyond them are not allowed.
        Only row `row` is written. By default `out` is a new bool array (n_ids,). Returns the array.
        Raises BufferShapeError.
        """
        bits = self._engine.mask(self._state)
        if self._finished:
            bits = np.zeros_like(bits)
        if out is None:
            out = np.empty(self._engine.n_ids, dtype=bool)
        write_mask(bits, self._engine.n_ids, out, row)
        return out

    def allowed_ids(self) -> np.ndarray:
        """The ids of the mask, ascending, int64."""
        if self._finished:
            return np.empty(0, dtype=np.int64)
        return members(self._engine.mask(self._state))

    def allows(self, token: int) -> bool:
        """Is this id in the mask? Some engines (the lift and the naive engine) decide a single id
        without computing the mask. Raises ArgumentError if `token` is no integer."""
        if type(token) is not int:
            token = integer(token, "the id")
        if self._finished or not 0 <= token < self._engine.n_ids:
            return False
        alone = getattr(self._engine, "allows", None)
        state = self._state
        return alone(state, token) if alone else has(self._engine.mask(state), token)

    def min_tokens_to_accept(self) -> int:
        """The least number of ids that complete the text, end-of-sequence not counted; 0 where it
        is complete, and once end-of-sequence was read. Raises BudgetExceededError if the search for
        it is too long."""
        from bpe_automata.constructions.within import min_tokens

        with spending(getattr(self._engine, "budget", None)):
            return min_tokens(self._engine, self._state)

    def forced_tokens(self, limit: int | None = None) -> tuple[int, ...]:
        """The ids that come next whatever the model says, at most `limit` of them. They end where
        several ids are possible or the text is complete. The matcher does not move. Raises
        ArgumentError."""
        from bpe_automata.decoding.forced import forced_tokens

        with spending(getattr(self._engine, "budget", None)):
            return forced_tokens(self._engine, self._state, limit).ids

    def forced_bytes(self) -> bytes:
        """The bytes that come next in every text of the language, up to where it may be complete.
        This is weaker than `forced_tokens`, as it looks at the language alone and not at how its
        texts are tokenized. Raises UnsupportedFeatureError where the engine does not say what its
        ids spell."""
        from bpe_automata.decoding.forced import forced_bytes

        return forced_bytes(self._engine, self._state)

    def advance(self, token: int) -> None:
        """Read one id. Raises TokenOutOfRangeError, TokenNotAllowedError, and ArgumentError if
        `token` is no integer; then nothing has changed."""
        token = integer(token, "the id")
        state = self._state
        if not 0 <= token < self._engine.n_ids:
            raise TokenOutOfRangeError(f"id {token} is not in 0 .. {self._engine.n_ids - 1}")
        if self._finished:
            raise TokenNotAllowedError(token, len(self._ids), "the sequence has ended")
        if not self.allows(token):
            reason = "it is not in the mask"
            if token in self._engine.eos_ids:
                reason = "the text is not complete here"
            raise TokenNotAllowedError(token, len(self._ids), reason)
        ends = token in self._engine.eos_ids
        after = state if ends else self._engine.step(state, token)
        self._states[len(self._ids) + 1 :] = [after]
        self._ids.append(token)  # an interrupt before this line changes nothing

    def rollback(self, n: int = 1) -> None:
        """Take back the last n ids. Raises DecodingError if there are fewer, ArgumentError."""
        n = integer(n, "the number of ids")
        if not 0 <= n <= len(self._ids):
            raise DecodingError(f"cannot take back {n} of {len(self._ids)} ids")
        if n:
            del self._ids[-n:]

    def copy(self) -> Matcher:
        """An independent matcher at the same position."""
        twin = object.__new__(Matcher)
        twin._engine, twin._prefix = self._engine, self._prefix
        twin._states, twin._ids = list(self._states), list(self._ids)
        return twin

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> Matcher:
        return self.copy()

    def __reduce__(self) -> tuple[object, ...]:
        """The states' numbers mean nothing in another process, so it reads the ids again."""
        return _read_again, (self._engine, self._prefix, self.ids)


def _read_again(engine: Engine[Any], prefix: tuple[int, ...], ids: tuple[int, ...]) -> Matcher:
    matcher = Matcher(engine, prefix)
    for token in ids:
        matcher.advance(token)
    return matcher


def matcher_of(automaton: TokenAutomaton, eos_ids: Iterable[int], n_ids: int) -> Matcher:
    """A matcher along a token automaton: one written by hand, loaded from a file, or made of others
    by `union`, `intersection`, `difference`.

    eos_ids: allowed exactly where the automaton accepts; give none if the automaton has its own
    transitions for the end. n_ids: one more than the largest id of the model, which the automaton
    need not have. For many matchers of one automaton, keep `engine = Listed(automaton, eos_ids,
    n_ids)` and make each with `Matcher(engine)`: they share its masks. Raises what `Listed` raises.
    """
    from bpe_automata.decoding.token_table import Listed

    return Matcher(Listed(automaton, eos_ids, n_ids))


def write_mask(bits: np.ndarray, n_ids: int, out: np.ndarray, row: int) -> None:
    """Write the packed int32 `bits` to `out`, int32 or bool (see `Matcher.mask`). Raises
    BufferShapeError; then nothing was written."""
    target, values = _row_of(out, row), bits
    if out.dtype == np.bool_:
        values = np.unpackbits(bits.view(np.uint8), count=n_ids, bitorder="little").view(bool)
    elif out.dtype != np.int32:
        raise BufferShapeError(f"a mask is written as int32 or bool, not {out.dtype}")
    if len(target) < len(values):
        needed = f"a mask as {out.dtype} needs rows of {len(values)}"
        raise BufferShapeError(f"{needed}, not a buffer of shape {out.shape}")
    target[: len(values)] = values
    target[len(values) :] = 0


def _row_of(out: np.ndarray, row: int) -> np.ndarray:
    if not isinstance(out, np.ndarray):
        raise BufferShapeError(f"out is {short(out)}: give a numpy array, or nothing for a new one")
    if out.ndim == 1 and row == 0:
        return out
    if out.ndim != 2 or not 0 <= row < out.shape[0]:
        raise BufferShapeError(f"there is no row {row} in a buffer of shape {out.shape}")
    return out[row]


# What a loop that follows a matcher returns.


@dataclass(frozen=True)
class Healing:
    """given_back: the prompt's last ids, which are generated again; text: what they spell; reason:
    why, see `healing`; answer: for "distribution", an answer that the whole prompt would have made
    impossible; settled: after the healing, was no such answer found? (The search tries the
    shortest answer with each first byte, and samples.)"""

    given_back: tuple[int, ...]
    text: bytes
    reason: Literal["constraint", "distribution"]
    answer: str | None
    settled: bool

    def __str__(self) -> str:
        from bpe_automata.decoding.visible import visible  # imports all of `viz`

        told = f"{len(self.given_back)} token(s) of the prompt, {visible(self.text)}, given back"
        if self.reason == "constraint":
            return f"{told}: after them no answer is canonical"
        answer = visible((self.answer or "").encode())
        return f"{told}: the answer {answer} merges with them"


Reason = Literal["complete", "truncated"]


@dataclass(frozen=True)
class Generation:
    """What a model wrote under a constraint.

    `text`: the completion, without the prompt; `ids`: its ids, without end of sequence.
    `complete`: the text matches the whole regex (and `ids` are canonical, with that method).
    `finish_reason`: "complete" if the model ended the text or nothing could follow, "truncated" if
    it ran out of new tokens. A truncated text may happen to be complete.
    `healing`: the prompt's last ids that were given back, and why; `ids` then begin with those
    written in place of them, and `text` is still only the completion.
    `log_weight`: natural log of the importance weight: the sum, over the steps, of the log of the
    probability mass inside the mask; None where the loop does not see the mass.
    `passes`: how often the model was called. `forced`: how many ids were not drawn, because no
    other was possible. Both are None where the loop does not count them.
    """

    text: str
    ids: tuple[int, ...]
    complete: bool
    finish_reason: Reason
    healing: Healing | None = None
    log_weight: float | None = None
    passes: int | None = None
    forced: int | None = None
