"""What is known of a text while it is written: its whole characters, and its finished parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from bpe_automata._arguments import at_least
from bpe_automata._budget import spending
from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.composition.readings import FinishedPart, Parser
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.matcher import Matcher


@dataclass(frozen=True)
class Streamed:
    """text: the whole characters so far; certain: how many of them cannot be taken back any more;
    parts: the named parts that are finished and certain, in their order."""

    text: str
    certain: int
    parts: tuple[FinishedPart, ...]


class Stream:
    """Follows a text while it is written: `matcher` reads its ids, and `read` tells what is known.

    constraint: of parts that `part` named, or any other, which has no parts. prefix: the ids of the
    prompt. hold: how many of the last ids the caller may yet take back. Raises what
    `Constraint.matcher` raises, and ArgumentError.

        stream = Stream(constrain(tokenizer, join(part("thought", text_until("</think>")), schema)))
        stream.matcher.advance(token)
        print(stream.read().text)
    """

    matcher: Matcher

    def __init__(self, constraint: Constraint, prefix: Sequence[int] = (), hold: int = 0) -> None:
        self._constraint, self._prefix = constraint, tuple(prefix)
        self._hold = at_least(0, hold, "hold")
        self.matcher = constraint.matcher(prefix)
        self._parser = _parser_of(constraint.dfa) if constraint.dfa.tree is not None else None
        self._ids, self._data = list[int](), bytearray()
        # Behind each id: the bytes so far, and the readings of them.
        self._states: list[tuple[int, Any]] = [(0, self._parser and self._parser.begin())]

    def read(self) -> Streamed:
        """What is known now. Raises BudgetExceededError where a text can be cut into parts in more
        than 1,000 ways."""
        ids = [token for token in self.matcher.ids if token not in self._constraint.eos_ids]
        same = 0
        while same < min(len(ids), len(self._ids)) and ids[same] == self._ids[same]:
            same += 1
        del self._states[same + 1 :], self._ids[same:], self._data[self._states[same][0] :]
        with spending(self._constraint.budget):
            for token in ids[same:]:
                self._read_one(token)
        length, readings = kept = self._states[max(len(ids) - self._hold, 0)]
        if self._parser is None:
            parts: tuple[FinishedPart, ...] = ()
        else:
            has_ended = self.matcher.is_finished and kept is self._states[-1]
            parts = self._parser.finished(readings, bytes(self._data[:length]), has_ended)
        return Streamed(_whole(self._data), len(_whole(self._data[:length])), parts)

    def _read_one(self, token: int) -> None:
        length, readings = self._states[-1]
        before = (self._ids or self._prefix)[-1:]
        new = self._constraint.tokenizer.text_bytes([token], before)
        if self._parser is not None:
            readings = self._parser.after(readings, length, new)
        self._states.append((length + len(new), readings))
        self._ids.append(token)
        self._data += new


_PARSERS: WeakKeyDictionary[ByteAutomaton, Parser] = WeakKeyDictionary()
"""Those of languages that are followed, as their automata take long to make."""


def _parser_of(dfa: ByteAutomaton) -> Parser:
    found = _PARSERS.get(dfa)
    return found or _PARSERS.setdefault(dfa, Parser(dfa.tree))


def _whole(data: bytearray) -> str:
    """The text without the bytes of a character that is not finished."""
    for end in range(len(data), max(len(data) - 4, -1), -1):
        try:
            return data[:end].decode()
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "replace")
