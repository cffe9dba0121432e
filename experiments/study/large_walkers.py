"""Engines beside the library's, as languages that `shared.batched` can sample from.

The methods are those of `study_methods`; there whole automata are walked, here single texts. None
has end-of-sequence ids: a text ends where nothing can follow it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bpe_automata.constructions import TextEngine
from bpe_automata.decoding.chopping import chop
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.kernels.bits import clear_bits, has, packed
from experiments.engines.peers import OutlinesCore
from experiments.study.study_methods import CHOP_TOKENS


@dataclass
class ChopMatcher:
    """The lift's matcher, but what `chop` says is appended comes next whatever the model says."""

    lift: Matcher
    engine: TextEngine[Any]
    state: Any
    prompt: tuple[int, ...]
    appended: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self._look()

    @property
    def ids(self) -> tuple[int, ...]:
        return self.lift.ids

    @property
    def is_accepting(self) -> bool:
        return self.lift.is_accepting

    def mask(self, out: np.ndarray, row: int = 0) -> None:
        """Packed int32, as `Matcher.mask` writes it."""
        if not self.appended:
            self.lift.mask(out, row)
            return
        out[row] = packed(self.appended[:1], self.engine.n_ids)

    def advance(self, token: int) -> None:
        self.lift.advance(token)
        self.state = self.engine.step(self.state, token)
        self.appended = self.appended[1:]
        self._look()

    def copy(self) -> ChopMatcher:
        return replace(self, lift=self.lift.copy())

    def _look(self) -> None:
        """At a place where nothing is to be appended any more: what is, from here? An id that the
        lift does not allow is not appended, nor what follows it."""
        if not self.appended and not self.lift.is_finished:
            before = (*self.prompt, *self.ids)
            self.appended = chop(self.engine, self.state, before, CHOP_TOKENS)
        if self.appended and not self.lift.allows(self.appended[0]):
            self.appended = ()


@dataclass(frozen=True)
class ChopLanguage:
    """The lift through `chop`."""

    lift: Constraint

    @property
    def n_ids(self) -> int:
        return self.lift.n_ids

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return ()

    def matcher(self, prefix: Sequence[int] = ()) -> ChopMatcher:
        engine, prompt = self.lift.engine, tuple(prefix)
        return ChopMatcher(self.lift.matcher(prompt), engine, engine.initial(prompt), prompt)


@dataclass
class OutlinesMatcher:
    """A guide of outlines-core; `begin` makes a new one."""

    begin: Any
    n_ids: int
    eos_id: int
    ids: tuple[int, ...] = ()
    is_accepting: bool = False
    _session: Any = None
    _bits: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    def __post_init__(self) -> None:
        self._session = self.begin()
        for token in self.ids:
            self._session.advance(token)
        self._read()

    def mask(self, out: np.ndarray, row: int = 0) -> None:
        """Packed int32; end-of-sequence is left out."""
        out[row] = self._bits

    def advance(self, token: int) -> None:
        self._session.advance(token)
        self.ids = (*self.ids, token)
        self._read()

    def copy(self) -> OutlinesMatcher:
        return OutlinesMatcher(self.begin, self.n_ids, self.eos_id, self.ids)

    def _read(self) -> None:
        bits = np.zeros((self.n_ids + 31) // 32, dtype=np.int32)
        self._session.mask(bits)
        self.is_accepting = has(bits, self.eos_id)
        clear_bits(bits, np.array([self.eos_id]))
        self._bits = bits


@dataclass(frozen=True)
class OutlinesLanguage:
    """A regex in the index of outlines-core."""

    begin: Any
    n_ids: int
    eos_id: int

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return ()

    def matcher(self, prefix: Sequence[int] = ()) -> OutlinesMatcher:
        """outlines-core knows no prompt."""
        del prefix
        return OutlinesMatcher(self.begin, self.n_ids, self.eos_id)


def outlines_language(
    peer: OutlinesCore, lift: Constraint, before: bytes, pattern: str, eos_id: int
) -> OutlinesLanguage:
    """before: text that the pattern follows. Raises PeerError where outlines-core refuses the
    regex, UnicodeDecodeError where `before` is no text."""
    escaped = re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", before.decode())
    begin = peer.prepare(f"{escaped}({pattern})" if escaped else pattern)
    return OutlinesLanguage(begin, lift.n_ids, eos_id)
