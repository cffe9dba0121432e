"""Following a sequence of ids, and noticing what is banned as soon as it is complete.

    push(id)  ->  the places of the first ids of the banned texts that this id completes

A banned text is complete with the id that holds its end, whole words with the id that shows that
the word has ended. So of two banned texts, one inside the other, the one that ends first is
complete first; of several that one id completes, the one that begins first comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bpe_automata.banning.spellings import MATCH, Spellings, Threads
from bpe_automata.banning.words import Ban
from bpe_automata.errors import DecodingError


class Watch:
    """Where one sequence is among the spellings. Mutable, like a matcher; `back` is cheap."""

    def __init__(self, spellings: Spellings, prompt: Sequence[int] = (), before: str = "") -> None:
        """prompt: the ids before the first one. before: the text that they end in, in which words
        may have begun."""
        self._spellings, self._prompt = spellings, tuple(prompt)
        self._before = before.encode()
        self._ids: list[int] = []
        self._data: list[bytes] = []
        self._contexts = [spellings.context(before.encode())]
        begun = spellings.pending(before)
        self._threads: list[list[tuple[int, Threads]]] = [[(0, begun)] if begun else []]

    @property
    def ban(self) -> Ban:
        """What is looked for."""
        return self._spellings.ban

    @property
    def ids(self) -> tuple[int, ...]:
        """What has been read."""
        return tuple(self._ids)

    @property
    def pieces(self) -> tuple[bytes, ...]:
        """What each id spells."""
        return tuple(self._data)

    def text(self, first: int = 0) -> bytes:
        """What the ids from place `first` on spell."""
        return b"".join(self._data[first:])

    def push(self, token: int) -> tuple[int, ...]:
        """Read one id, of ordinary text; the places of the first ids of the banned texts that it
        completes, ascending, each once."""
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
        """The places of the first ids of what is complete if the text ends here, ascending."""
        ends = self._spellings.ends
        return _distinct(first for first, threads in self._threads[-1] if ends(threads))

    def word(self, first: int, ended: bool) -> str:
        """What is banned of the text and begins in the id at place `first`. ended: does the text
        end here?"""
        low = len(self._before) + len(self.text()) - len(self.text(first))
        high = low + len(self._data[first])
        data = self._before + self.text()
        for start, end in self._spellings.ban.spans(data, len(self._before), ended):
            if start < high and (start >= low or not first):
                return data[start:end].decode()
        raise DecodingError(f"nothing that begins in the id at place {first} is banned")

    def back(self, n: int) -> None:
        """Take back the last n ids. Raises DecodingError if there are fewer."""
        if not 0 <= n <= len(self._ids):
            raise DecodingError(f"cannot take back {n} of {len(self._ids)} ids")
        if n:
            del self._ids[-n:], self._data[-n:], self._contexts[-n:], self._threads[-n:]


def _distinct(places: Iterable[int]) -> tuple[int, ...]:
    """Each place once: what begins before the first id is told apart from what begins in it, and
    has the same place."""
    return tuple(dict.fromkeys(places))
