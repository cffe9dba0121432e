"""Does an automaton say what the tokenizer does? Random walks and random strings, compared with
`encode` itself.

    every walk that ends:   bytes(ids) in L,  and  encode(prompt + text) = prompt ids + ids
    every string s of L:    encode(prompt + s), or for the lift any ids that spell s, are allowed
                            one by one, and accepted
    along the way:          accepting  <=>  both hold;  no refused id would complete a text

Nothing of the construction under test is used to judge it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bpe_automata._arguments import sequence_of_ids
from bpe_automata._kernels.bits import has, members
from bpe_automata._sharing import BoundedMemo, cached
from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.decoding.visible import visible
from bpe_automata.errors import BudgetExceededError
from bpe_automata.tokenizer.tokenizer import Tokenizer

_BATCH = 50  # walks and strings between two calls of `progress`
_REFUSED = 8  # refused ids tried at the sampled prefix of each walk
_STOP = 1 / 4  # chance that a walk ends in an accepting state that it passes
_LONGEST = 24  # random ids before a walk is completed
_MOST_TRIED = 100_000  # ids that may complete a walk


@dataclass(frozen=True)
class Verification:
    """method: what the ids had to be; walks, strings: how many were compared; skipped: strings
    without ids to compare (they have bytes without a token, spell an id that is never text, or
    merge with the prompt); counterexample: the first one found; seconds: wall time."""

    method: Method
    walks: int
    strings: int
    skipped: int
    counterexample: Counterexample | None
    seconds: float

    @property
    def ok(self) -> bool:
        """Was no counterexample found?"""
        return self.counterexample is None

    def __str__(self) -> str:
        done = (
            f"{self.walks} walks and {self.strings} strings ({self.skipped} skipped) in "
            f"{self.seconds:.1f} s, method {self.method}"
        )
        if self.counterexample is None:
            return f"ok: no counterexample in {done}"
        return f"counterexample found, after {done}\n{self.counterexample}"


def verify(
    tokenizer: Tokenizer,
    constraint: Any,
    n: int = 1000,
    seed: int = 0,
    method: Method | None = None,
    prefix: Sequence[int] = (),
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Verification:
    """Compare `n` random walks and `n` random strings with the tokenizer's own `encode`.

    constraint: a language as `constrain` takes it, which is then constrained by `method`; or a
    `Constraint`, whose ids are then checked against `method`. method: "canonical" (ids must be the
    tokenizer's own) or "lift" (their bytes must match); by default that of a given `Constraint`,
    else "canonical". prefix: ids of a prompt. progress: called with (done, n). Stops at the first
    counterexample. Raises what `constrain` and `Constraint.matcher` raise.
    """
    started = time.perf_counter()
    if isinstance(constraint, Constraint):
        method = method or constraint.method
    else:
        method = method or "canonical"
        constraint = constrain(tokenizer, constraint, method, tokenizer.eos_ids)
    oracle = Oracle(tokenizer, constraint, method, sequence_of_ids(prefix), seed)
    found = None
    for done in range(n):
        if progress and done % _BATCH == 0:
            progress(done, n)
        found = oracle.check_walk() or oracle.check_string()
        if found:
            break
    seconds = time.perf_counter() - started
    return Verification(method, oracle.walks, oracle.strings, oracle.skipped, found, seconds)


@dataclass(frozen=True)
class Counterexample:
    """Where automaton and tokenizer differ.

    claim: what the automaton said that is wrong; prompt_ids, ids: the sequence, without
    end-of-sequence; tokens: the bytes of `ids`; text: what they spell; expected_ids: what `encode`
    makes of prompt and text together.
    """

    claim: str
    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    tokens: tuple[bytes, ...]
    text: str
    expected_ids: tuple[int, ...]

    def __str__(self) -> str:
        lines = [
            self.claim,
            f"  text      {self.text!r}",
            f"  ids       {' '.join(map(str, self.ids))}",
            f"  tokens    {'+'.join(map(visible, self.tokens))}",
            f"  encode    {' '.join(map(str, self.expected_ids))}",
        ]
        if self.prompt_ids:
            lines.insert(1, f"  prompt    {' '.join(map(str, self.prompt_ids))}")
        return "\n".join(lines)


class Oracle:
    """Checks one constraint after one prompt, by the tokenizer itself. walks, strings, skipped: how
    much was compared so far, see `Verification`."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        constraint: Constraint,
        method: Method,
        prefix: tuple[int, ...],
        seed: int,
    ) -> None:
        self.tokenizer, self.constraint, self.method = tokenizer, constraint, method
        # The tokenizer encodes the ids before a control id as a text of their own.
        self.prefix = tokenizer.last_text(prefix)
        self.engine = constraint.engine
        self.begin = self.engine.initial(prefix)
        self.rng = random.Random(seed)
        self.walks = self.strings = self.skipped = 0
        self._distances: BoundedMemo[int, np.ndarray] = BoundedMemo(4 * tokenizer.n_ids)

    # ------------------------------------------------------------ walks

    def check_walk(self) -> Counterexample | None:
        """A counterexample from a new random walk, if it gives one. The walk takes random allowed
        ids, and is then completed. Raises BudgetExceededError where that takes too many ids."""
        self.walks += 1
        state, ids = self.begin, list[int]()
        for _ in range(self.rng.randrange(_LONGEST)):
            allowed = self._allowed(state)
            stops = self.engine.accepting(state) and self.rng.random() < _STOP
            if stops or not len(allowed):
                break
            ids.append(int(allowed[self.rng.randrange(len(allowed))]))
            state = self.engine.step(state, ids[-1])
        if not self._is_completed(state, ids):
            return self._found("nothing can finish this, yet it was allowed", tuple(ids))
        return self._check_prefixes(tuple(ids)) or self._check_refused(tuple(ids))

    def _allowed(self, state: Hashable) -> np.ndarray:
        """The ids of the mask that are text, ascending."""
        ids = members(self.engine.mask(state))
        return ids[~np.isin(ids, self.engine.eos_ids)]

    def _is_completed(self, state: Hashable, ids: list[int]) -> bool:
        """Add ids up to an accepting state, each time one after which a text needs fewest bytes;
        False where they lead to a state in which nothing is allowed."""
        seen, most = {state}, len(ids) + _MOST_TRIED
        while not self.engine.accepting(state):
            allowed = self._allowed(state)
            if not len(allowed):
                return False
            for token in allowed[
                np.argsort(self.distances(state)[allowed], kind="stable")
            ].tolist():
                after = self.engine.step(state, token)
                if after not in seen:
                    break
            ids.append(token)  # the last one, where all states were seen
            state = after
            seen.add(state)
            if len(ids) > most:
                raise BudgetExceededError("ids", _MOST_TRIED, "no way to finish a walk was found")
        return True

    def distances(self, state: Hashable) -> np.ndarray:
        """int32 [n_ids]: how many bytes a shortest text still needs after each id, read from the
        state as ordinary text; -1 where no text is in reach, or the id spells nothing."""
        dfa, begin = self.engine.dfa, self.engine.dfa_state(state)
        found = self._distances.get(begin)
        if found is None:
            spellings = self.tokenizer.spellings
            lengths = np.array(list(map(len, spellings)))
            data, starts = np.frombuffer(b"".join(spellings), np.uint8), np.cumsum(lengths)
            states = np.where(lengths > 0, begin, 0).astype(np.int32)
            for k in range(lengths.max(initial=0)):
                longer = np.flatnonzero((lengths > k) & (states != 0))
                column = dfa.byte_class[data[(starts - lengths)[longer] + k]]
                states[longer] = dfa.after(states[longer], column)
            far = dfa.far
            found = np.where(states == 0, -1, far[states])
            self._distances.put(begin, found)
        return found

    def _check_prefixes(self, ids: tuple[int, ...]) -> Counterexample | None:
        """A prefix at which acceptance, or end-of-sequence in the mask, is not as the text says."""
        prefixes = [ids[:k] for k in range(len(ids) + 1)]
        state = self.begin
        for prefix, true in zip(prefixes, self._complete(prefixes), strict=True):
            if prefix:
                state = self.engine.step(state, prefix[-1])
            accepting = self.engine.accepting(state)
            if accepting != true:
                return self._wrong_end("accepted" if accepting else "not accepted", prefix)
            mask = self.engine.mask(state)
            if any(has(mask, token) != accepting for token in self.engine.eos_ids):
                said = "refused" if accepting else "allowed"
                return self._found(f"end-of-sequence is {said} here, wrongly", prefix)
        return None

    def _check_refused(self, ids: tuple[int, ...]) -> Counterexample | None:
        """A refused id, at a random prefix, that would complete a text of the language."""
        prefix, state = ids[: self.rng.randrange(len(ids) + 1)], self.begin
        for token in prefix:
            state = self.engine.step(state, token)
        refused = self.distances(state) == 0
        refused[self._allowed(state)] = False
        refused[list(self.constraint.unread)] = False
        candidates = np.flatnonzero(refused).tolist()
        chosen = self.rng.sample(candidates, min(_REFUSED, len(candidates)))
        tried = [(*prefix, token) for token in chosen]
        for longer, true in zip(tried, self._complete(tried), strict=True):
            if true:
                return self._found(f"id {longer[-1]} is refused after the others", longer)
        return None

    def _wrong_end(self, said: str, ids: tuple[int, ...]) -> Counterexample:
        if said == "accepted" and not self._matches(ids):
            return self._found("accepted, but the text does not match", ids)
        why = "its own tokenization" if self.method == "canonical" else "a matching text"
        wrong = f"but it is not {why}" if said == "accepted" else f"though it is {why}"
        return self._found(f"{said}, {wrong}", ids)

    # ------------------------------------------------------------ strings

    def check_string(self) -> Counterexample | None:
        """A counterexample from a new random string of the language, if it gives one."""
        string = self.constraint.dfa.sample(self.rng)
        ids = self._ids_of(string) if self.method == "canonical" else self._any_ids(string)
        if ids is None:
            self.skipped += 1
            return None
        self.strings += 1
        state = self.begin
        for position, token in enumerate(ids):
            if not has(self.engine.mask(state), token):
                return self._found(f"id {token} is refused at position {position}", ids)
            state = self.engine.step(state, token)
        return None if self.engine.accepting(state) else self._wrong_end("not accepted", ids)

    def _ids_of(self, string: bytes) -> tuple[int, ...] | None:
        """What `encode` makes of the string after the prompt; None if it has no ids to compare."""
        prompt = self.tokenizer.text_bytes(self.prefix)
        try:
            ids = tuple(self.tokenizer.encode((prompt + string).decode("utf-8")))
        except UnicodeDecodeError:
            return None
        own = ids[len(self.prefix) :]
        if ids[: len(self.prefix)] != self.prefix or self._bytes(own) != string:
            return None
        return None if self.constraint.unread.intersection(own) else own

    def _any_ids(self, string: bytes) -> tuple[int, ...] | None:
        """Random ids that decode to the string; None where none are found."""
        ids, at, text = list[int](), 0, string
        if self.engine.dfa_state(self.begin) != self.constraint.dfa.start:
            string = b" " + string  # where decoding takes one away
        longest = max(map(len, self._spelled), default=0)
        while at < len(string):
            last = min(len(string), at + longest)
            ends = [end for end in range(at + 1, last + 1) if string[at:end] in self._spelled]
            if not ends:
                return None
            end = self.rng.choice(ends)
            ids.append(self._spelled[string[at:end]])
            at = end
        # Decoding may also take a space away after an added token.
        return tuple(ids) if self._bytes(tuple(ids)) == text else None

    @cached
    def _spelled(self) -> dict[bytes, int]:
        """For each spelling an id that has it and may be text."""
        spellings = enumerate(self.tokenizer.spellings)
        unread = self.constraint.unread
        return {spelled: token for token, spelled in spellings if spelled and token not in unread}

    # ------------------------------------------------------------ ground truth

    def _complete(self, sequences: list[tuple[int, ...]]) -> list[bool]:
        """For each sequence: does its text match, and is it what the method allows?"""
        complete = [self._matches(ids) for ids in sequences]
        if self.method == "lift":
            return complete
        readable: list[tuple[int, str]] = []
        for index, ids in enumerate(sequences):
            try:
                whole = self.tokenizer.text_bytes((*self.prefix, *ids))
                readable.append((index, whole.decode("utf-8")))
            except UnicodeDecodeError:
                complete[index] = False
        encoded = self.tokenizer.encode_batch([text for _, text in readable])
        for (index, _), expected in zip(readable, encoded, strict=True):
            complete[index] &= tuple(expected) == (*self.prefix, *sequences[index])
        return complete

    def _matches(self, ids: tuple[int, ...]) -> bool:
        return self.constraint.dfa.accepts(self._bytes(ids))

    def _bytes(self, ids: tuple[int, ...]) -> bytes:
        """What the ids add to the prompt's text."""
        return self.tokenizer.text_bytes(ids, self.prefix)

    def _found(self, claim: str, ids: tuple[int, ...]) -> Counterexample:
        whole = self.tokenizer.decode((*self.prefix, *ids))
        return Counterexample(
            claim=claim,
            prompt_ids=self.prefix,
            ids=ids,
            tokens=tuple(map(self.tokenizer.token_bytes, ids)),
            text=self.tokenizer.decode(ids, self.prefix),
            expected_ids=tuple(self.tokenizer.encode(whole)),
        )
