"""A text while it is generated: its whole characters so far, and its finished parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from bpe_automata._arguments import at_least
from bpe_automata._budget import spending
from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.composition.readings import Parser
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.drafts import common_length
from bpe_automata.decoding.matcher import Matcher


class FinishedPart(NamedTuple):
    """A named part of a joined text. text: without what is around it; begin, end: in bytes of the
    whole text."""

    name: str
    text: str
    begin: int
    end: int


@dataclass(frozen=True)
class Streamed:
    """text: the whole characters so far; certain: how many of them cannot be taken back any more;
    parts: the named parts that are finished and certain, in order. Where the text can be cut into
    parts in several ways, they end before the first part on which these differ."""

    text: str
    certain: int
    parts: tuple[FinishedPart, ...]


class Stream:
    """Follows a text while it is generated: advance `matcher` by its ids, then `read` its text.

    constraint: any; its named parts are those that were made with `part`. prefix: the ids of the
    prompt. Raises what `Constraint.matcher` and `read` raise.

        stream = Stream(constrain(tokenizer, join(part("thought", text_until("</think>")), schema)))
        stream.matcher.advance(token)
        print(stream.read().text)
    """

    matcher: Matcher

    def __init__(self, constraint: Constraint, prefix: Sequence[int] = ()) -> None:
        self._constraint, self._prefix = constraint, tuple(prefix)
        self.matcher = constraint.matcher(prefix)
        self._parser: Parser | None = None
        with spending(constraint.budget):
            if constraint.dfa.tree is not None:
                self._parser = _parser_of(constraint.dfa)
            begin = _Behind(0, b"", self._parser.begin() if self._parser else None)
        self._ids, self._data, self._characters = tuple[int, ...](), bytearray(), list[str]()
        self._behind = [begin]
        self._parts: dict[tuple[str, int, int], FinishedPart] = {}

    def read(self, hold: int = 0) -> Streamed:
        """The text so far. hold: how many of the last ids the caller may still take back. Raises
        ArgumentError, and BudgetExceededError for a text that can be cut into parts in more than
        10,000 ways."""
        hold, read = at_least(0, hold, "hold"), self.matcher.ids
        ids = tuple(token for token in read if token not in self._constraint.eos_ids)
        if ids[: len(self._ids)] != self._ids:
            self._take_back(common_length(list(ids), list(self._ids)))
        with spending(self._constraint.budget):
            for token in ids[len(self._ids) :]:
                self._read_one(token)
            sure = min(max(len(read) - hold, 0), len(ids))
            text, certain = "".join(self._characters), len("".join(self._characters[:sure]))
            has_ended = hold == 0 and self.matcher.is_finished
            return Streamed(text, certain, self._finished(sure, has_ended))

    def _finished(self, sure: int, has_ended: bool) -> tuple[FinishedPart, ...]:
        """The parts that are finished after the first `sure` ids."""
        if self._parser is None:
            return ()
        for key in (found := self._parser.finished(self._behind[sure].readings, has_ended)):
            if key not in self._parts:
                name, begin, end = key
                text = self._data[begin:end].decode()
                self._parts[key] = FinishedPart(name, text, begin, end)
        return tuple(self._parts[key] for key in found)

    def _take_back(self, kept: int) -> None:
        """Forget all ids after the first `kept`."""
        del self._behind[kept + 1 :], self._characters[kept:]
        del self._data[self._behind[kept].length :]
        self._ids, self._parts = self._ids[:kept], {}

    def _read_one(self, token: int) -> None:
        length, begun, readings = self._behind[-1]
        before = (self._ids or self._prefix)[-1:]
        new = self._constraint.tokenizer.text_bytes([token], before)
        if self._parser is not None:
            readings = self._parser.after(readings, length, new)
        text, begun = _whole(begun + new)
        self._behind.append(_Behind(length + len(new), begun, readings))
        self._characters.append(text)
        self._data += new
        self._ids += (token,)


class _Behind(NamedTuple):
    """After an id: the number of bytes so far, the bytes of an unfinished character, the readings
    of the parser."""

    length: int
    begun: bytes
    readings: Any


_PARSERS: WeakKeyDictionary[ByteAutomaton, Parser] = WeakKeyDictionary()
"""The parsers of the languages in use, kept because their automata take long to make."""


def _parser_of(dfa: ByteAutomaton) -> Parser:
    found = _PARSERS.get(dfa)
    return found or _PARSERS.setdefault(dfa, Parser(dfa.tree))


def _whole(data: bytes) -> tuple[str, bytes]:
    """(the whole characters, the bytes of an unfinished one after them)."""
    for end in range(len(data), max(len(data) - 4, -1), -1):
        try:
            return data[:end].decode(), data[end:]
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", "replace"), b""
