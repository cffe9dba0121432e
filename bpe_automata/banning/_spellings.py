"""The token automaton of all spellings of the banned texts over a vocabulary.

    { t1 ... tk : a banned text begins in t1, and tk is the first id that completes such a text }

The first id may begin before the banned text, and the last one may go on after it. For whole words
the last id is the one that proves the word to have ended: it spells a character after the word that
is no word character, or it is an end-of-sequence id. All tokenizations are in the automaton, not
only the tokenizer's own. It is lazy: a state is a set of threads (see `_kernels.words`). For a
finite list of words each id brings the threads nearer to their ends, so there is no cycle.
`automaton` makes it explicit. A banned text that begins after the first id is not noticed, so
`Watch` begins a new run at each id.

This is the token FSM of the rollback scheme that Clay published ("Using Finite State Machine (FSM)
and Rollback Mechanism to Restrict LLM from Generating Banned Words", 2024). There it lists the
token paths that spell a word from the beginning of a token to the end of one. Ours is made from the
DFA of the words, and words may begin and end inside tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bpe_automata._budget import Budget, check, spent
from bpe_automata._kernels.words import COMPLETE, DEAD, Search
from bpe_automata._limits import NUMBERS, check_fits
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.banning._patterns import not_of_word, word_may_begin
from bpe_automata.banning._words import Ban
from bpe_automata.errors import BudgetExceededError, DecodingError
from bpe_automata.token_automata.automaton import TokenAutomaton
from bpe_automata.tokenizer.tokenizer import AddedTokens, Tokenizer

Threads = tuple[int, ...]
"""The threads of one state, ascending: only COMPLETE for a match, none if all have failed."""
MATCH: Threads = (COMPLETE,)
_ADVICE = "the spellings are too many to list; raise max_edges, or follow them with Watch"
_Row = tuple[np.ndarray, list[Threads]]
_NO_CLASSES = np.zeros(256, np.uint8)
_NOTHING = ByteDFA(np.zeros((1, 1), np.int32), _NO_CLASSES, np.array([False]), 0)
_ANYWHERE = ByteDFA(np.array([[0], [1]], np.int32), _NO_CLASSES, np.array([False, True]), 1)


class Spellings:
    """The lazy automaton of all spellings of banned texts, over a tokenizer's ids. Immutable."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        ban: Ban,
        eos_ids: Iterable[int] | None = None,
        added_tokens: AddedTokens = False,
    ) -> None:
        """eos_ids: by default the tokenizer's. added_tokens: which added tokens are read as the
        text they spell. Raises BudgetExceededError."""
        self.tokenizer, self.ban = tokenizer, ban
        self.eos_ids = tokenizer.eos_ids if eos_ids is None else tuple(eos_ids)
        silent = {*self.eos_ids, *tokenizer.added_ids - tokenizer.added_as_text(added_tokens)}
        ids = [i for i, s in enumerate(tokenizer.spellings) if s and i not in silent]
        self._ids = np.array(ids, dtype=np.int64)
        self._bytes = tokenizer.derived("bytes of ids", _bytes_of_ids)
        self._before = word_may_begin() if ban.whole_word else _ANYWHERE
        self._follows = not_of_word() if ban.whole_word else _NOTHING
        self._search = Search(ban.occurrence, self._follows, self._before, ban.whole_word)
        threads = ban.occurrence.n_states * self._follows.n_states
        check_fits("threads", threads, NUMBERS, "ban fewer or shorter words at once")

    # ------------------------------------------------------------ step by step

    def context(self, text: bytes, context: int | None = None) -> int:
        """A number for a text, by which it is decided whether a banned word may begin after it.
        `context`: that of the text before `text`; None if there is none."""
        return self._before.walk(text, context)

    def begun(self, context: int, data: bytes) -> Threads:
        """The state after a first id that spells `data`."""
        return _state(self._search.begun(context, data).tolist())

    def step(self, threads: Threads, data: bytes) -> Threads:
        """The state after one more id that spells `data`."""
        return _state(self._search.after(thread, data) for thread in threads)

    def ends(self, threads: Threads) -> bool:
        """Is a banned whole word complete if the text ends here?"""
        n, start = self._follows.n_states, self._follows.start
        return self.ban.whole_word and any(thread % n == start for thread in threads)

    def pending(self, before: str) -> Threads:
        """The threads of the banned texts that begin in `before` and may go on after it."""
        data, dfa = before.encode(), self.ban.occurrence
        context, found = self._before.start, list[int]()
        for k in range(len(data)):
            if self._before.accepting[context] and (state := dfa.walk(data[k:])):
                found.append(state * self._follows.n_states)
            context = self.context(data[k : k + 1], context)
        return _state(found)

    # ------------------------------------------------------------ the explicit automaton

    @property
    def budget(self) -> Budget:
        """The budget of the ban."""
        return self.ban.budget

    @spent
    def automaton(self, before: str = "", max_edges: int = 1_000_000) -> TokenAutomaton:
        """The explicit automaton, minimal. before: the text before the first id, which matters for
        whole words only.

        Raises BudgetExceededError over `max_edges` transitions before minimising, and over the
        budget of the ban.
        """
        states: list[Threads | None] = [None]  # the start, then those that it leads to
        number: dict[Threads, int] = {}
        rows: list[np.ndarray] = []  # int64 [3, m] each: sources, symbols, targets
        size = 0
        for source, threads in enumerate(states):  # grows while we go
            check()
            symbols, after = self._first_row(before) if threads is None else self._row(threads)
            for one in after:
                if number.setdefault(one, len(states)) == len(states):
                    states.append(one)
            targets = [number[one] for one in after]
            rows.append(np.array([np.full(len(after), source), symbols, targets], dtype=np.int64))
            size += len(symbols)
            if size > max_edges:
                raise BudgetExceededError("edges", max_edges, _ADVICE)
        accepting = np.array([threads == MATCH for threads in states])
        alphabet = np.union1d(self._ids, np.array(self.eos_ids, dtype=np.int64))
        sources, symbols, ends = np.concatenate(rows, axis=1)
        parts = accepting, sources, symbols, ends, alphabet, self.tokenizer.spellings
        return TokenAutomaton.from_edges(0, *parts).minimised()

    def _first_row(self, before: str) -> _Row:
        context = self.context(before.encode())
        return _by_token(self._search.all_begun(context, *self._bytes, self._ids))

    def _row(self, threads: Threads) -> _Row:
        if threads == MATCH:
            return np.empty(0, np.int64), []
        found = [self._search.all_after(thread, *self._bytes, self._ids) for thread in threads]
        symbols, after = _by_token(np.concatenate(found))
        if not self.ends(threads) or not self.eos_ids:
            return symbols, after
        eos = np.array(self.eos_ids, dtype=np.int64)
        return np.concatenate([symbols, eos]), after + [MATCH] * len(eos)


def _state(threads: Iterable[int]) -> Threads:
    """The state of these threads: a match if one of them is complete."""
    found = set(threads)
    if COMPLETE in found:
        return MATCH
    return tuple(sorted(found - {DEAD}))


def _by_token(rows: np.ndarray) -> _Row:
    """(tokens, ascending; the state of the threads of each) of rows (token, thread)."""
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    tokens, first = np.unique(rows[:, 0], return_index=True)
    ends = np.append(first, len(rows))[1:]
    threads = rows[:, 1].tolist()
    pairs = zip(first.tolist(), ends.tolist(), strict=True)
    return tokens.astype(np.int64), [_state(threads[low:high]) for low, high in pairs]


def _bytes_of_ids(tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """(start int32 [n_ids + 1], data uint8): what each id spells."""
    spellings = tokenizer.spellings
    start = np.zeros(len(spellings) + 1, dtype=np.int32)
    np.cumsum(np.fromiter(map(len, spellings), np.int64, len(spellings)), out=start[1:])
    return start, np.frombuffer(b"".join(spellings), dtype=np.uint8)


# Following a sequence of ids, and noticing what is banned as soon as it is complete.
#
#     push(id)  ->  the positions of the first ids of the banned texts that this id completes
#
# The id that spells the end of a banned text completes it; a whole word is completed by the id that
# proves it to have ended. Of two banned texts, one inside the other, the one that ends first is
# complete first; of several that one id completes, the one that begins first comes first.


class Watch:
    """Follows one sequence along the spellings. It is mutable, like a matcher; `back` is cheap."""

    def __init__(self, spellings: Spellings, prompt: Sequence[int] = (), before: str = "") -> None:
        """prompt: the ids before the first one. before: the text at their end, in which a banned
        text may begin."""
        self._spellings, self._prompt = spellings, tuple(prompt)
        self._before = before.encode()
        self._ids: list[int] = []
        self._data: list[bytes] = []
        self._contexts = [spellings.context(before.encode())]
        begun = spellings.pending(before)
        self._threads: list[list[tuple[int, Threads]]] = [[(0, begun)] if begun else []]

    @property
    def ban(self) -> Ban:
        """The ban whose texts are looked for."""
        return self._spellings.ban

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids that were read."""
        return tuple(self._ids)

    @property
    def pieces(self) -> tuple[bytes, ...]:
        """What each id spells."""
        return tuple(self._data)

    def text(self, first: int = 0) -> bytes:
        """What the ids from position `first` on spell."""
        return b"".join(self._data[first:])

    def push(self, token: int) -> tuple[int, ...]:
        """Read one id of ordinary text. Returns the positions of the first ids of the banned texts
        that it completes, ascending, each once."""
        spellings, here = self._spellings, len(self._ids)
        before = (*self._prompt, *self._ids)[-1:]
        data = spellings.tokenizer.text_bytes((token,), before)
        after = [(first, spellings.step(threads, data)) for first, threads in self._threads[-1]]
        after.append((here, spellings.begun(self._contexts[-1], data)))
        self._ids.append(token)
        self._data.append(data)
        self._contexts.append(spellings.context(data, self._contexts[-1]))
        alive = [(first, threads) for first, threads in after if threads and threads != MATCH]
        self._threads.append(alive)
        return _distinct(first for first, threads in after if threads == MATCH)

    def ended(self) -> tuple[int, ...]:
        """The positions of the first ids of the banned texts that are complete if the text ends
        here, ascending."""
        ends = self._spellings.ends
        return _distinct(first for first, threads in self._threads[-1] if ends(threads))

    def word(self, first: int, ended: bool) -> str:
        """The banned text that begins in the id at position `first`. ended: does the whole text end
        here?"""
        low = len(self._before) + len(self.text()) - len(self.text(first))
        high = low + len(self._data[first])
        data = self._before + self.text()
        for start, end in self._spellings.ban.spans(data, len(self._before), ended):
            if start < high and (start >= low or not first):
                return data[start:end].decode()
        raise DecodingError(f"nothing that begins in the id at position {first} is banned")

    def back(self, n: int) -> None:
        """Take back the last n ids. Raises DecodingError if there are fewer."""
        if not 0 <= n <= len(self._ids):
            raise DecodingError(f"cannot take back {n} of {len(self._ids)} ids")
        if n:
            del self._ids[-n:], self._data[-n:], self._contexts[-n:], self._threads[-n:]


def _distinct(positions: Iterable[int]) -> tuple[int, ...]:
    """Each position once. Position 0 may come twice: as that of banned texts that begin before the
    first id, and of those that begin in it."""
    return tuple(dict.fromkeys(positions))
