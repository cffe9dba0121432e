"""What each method of the study allows after a prompt, as automata over ids.

- *lift*: every tokenization of an answer;
- *canonical*: the tokenizer's own;
- *outlines*: what the index of outlines-core holds (ordinary tokens alone, and not every text of
  every regex); absent where the package is not installed;
- *chop*: the lift, but wherever the published heuristic turns forced text into ids, these are
  appended instead of sampled (see `bpe_automata.decoding.chopping`). An id that is appended is the
  only way on, so it has probability 1 at its step.

Where an answer cannot follow the prompt canonically, the last ids of the prompt are given back
first (`heal`), for all methods alike: then every answer begins with their text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bpe_automata import Tokenizer, constrain
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.constructions import TextEngine
from bpe_automata.decoding.chopping import chop
from bpe_automata.decoding.constraint import Constraint, Method
from bpe_automata.decoding.healing import heal
from bpe_automata.decoding.matcher import Healing
from bpe_automata.kernels.bits import members
from experiments.engines.interface import PeerError, one_eos, refusals
from experiments.engines.peers import OutlinesCore, outlines_vocabulary
from experiments.study.token_trie import Automaton, Walker

METHODS = ("lift", "canonical", "outlines", "chop")
MOST_GIVEN_BACK = 8
"""Ids at the end of a prompt."""
CHOP_TOKENS = 4
"""How many of the last ids chop looks at: llguidance's own number."""
_SPECIAL = frozenset("\\.+*?()|[]{}^$")


@dataclass(frozen=True)
class Posed:
    """A question as ids and automata.

    prompt_ids: what the model reads; answers: the bytes of each, with the text that was given back;
    healing: None if none was; walkers: by method; absent: why a method is not there; unsure: the
    methods that may run into a dead end.
    """

    prompt_ids: list[int]
    answers: tuple[bytes, ...]
    healing: Healing | None
    walkers: dict[str, Walker]
    absent: dict[str, str]
    unsure: frozenset[str] = frozenset()


class Poser:
    """Makes automata over one tokenizer; what takes long is made once."""

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        self.tokenizer, self.eos_ids = tokenizer, eos_ids

    def posed(self, prompt_ids: Sequence[int], answers: Sequence[str]) -> Posed:
        """All methods, after ids of the prompt were given back where answers ask for it. Raises
        PromptError where that does not help, and what `constrain` raises."""
        canonical = self._constraint(from_strings(answers), "canonical")
        healed = heal(canonical, prompt_ids, MOST_GIVEN_BACK)
        before = healed.healing.text if healed.healing else b""
        full = tuple(before + answer.encode() for answer in answers)
        return self._posed(list(healed.prefix), full, healed.constraint, healed.healing)

    def unhealed(self, prompt_ids: Sequence[int], answers: Sequence[str]) -> Posed:
        """The lift alone, after the prompt as it is."""
        lift = self._constraint(from_strings(answers), "lift")
        walkers: dict[str, Walker] = {"lift": Followed(lift.engine, prompt_ids)}
        full = tuple(answer.encode() for answer in answers)
        return Posed(list(prompt_ids), full, None, walkers, {})

    def _posed(
        self,
        prompt_ids: list[int],
        answers: tuple[bytes, ...],
        canonical: Constraint,
        healing: Healing | None,
    ) -> Posed:
        lift = self._constraint(canonical.dfa, "lift")
        walkers: dict[str, Walker] = {
            "lift": Followed(lift.engine, prompt_ids),
            "canonical": Followed(canonical.engine, prompt_ids),
        }
        absent: dict[str, str] = {}
        unsure: frozenset[str] = frozenset()
        try:
            walkers["outlines"], has_dead_ends = self._outlines.automaton(answers)
            unsure = frozenset(["outlines"] if has_dead_ends else [])
        except (PeerError, UnicodeDecodeError) as error:
            absent["outlines"] = str(error)
        walkers["chop"] = Chopped(lift.engine, prompt_ids)
        return Posed(prompt_ids, answers, healing, walkers, absent, unsure)

    def _constraint(self, dfa: ByteDFA, method: Method) -> Constraint:
        return constrain(self.tokenizer, dfa, method, eos_ids=self.eos_ids)

    @cached_property
    def _outlines(self) -> OutlinesIndex:
        return OutlinesIndex(self.tokenizer, self.eos_ids)


class OutlinesIndex:
    """The index of outlines-core, as an automaton over ids. Raises PeerError where it is missing or
    refuses something."""

    def __init__(self, tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> None:
        self._module = OutlinesCore.module()
        self._eos_id = one_eos(eos_ids)
        with refusals():
            self._vocabulary = outlines_vocabulary(self._module, tokenizer, eos_ids)

    def automaton(self, answers: Sequence[bytes]) -> tuple[Automaton, bool]:
        """Of the regex that lists the answers, and whether it has dead ends: states where nothing
        can follow, and no answer is complete. Raises PeerError, and UnicodeDecodeError where an
        answer is no text."""
        regex = "|".join(_escaped(answer.decode()) for answer in answers)
        with refusals():
            index = self._module.Index(regex, self._vocabulary)
            edges, start = index.get_transitions(), index.get_initial_state()
            finals = set(index.get_final_states())
        number = {start: 0}
        for state in (*edges, *(target for out in edges.values() for target in out.values())):
            number.setdefault(state, len(number))
        found: list[dict[int, int]] = [{} for _ in number]
        for state, out in edges.items():
            found[number[state]] = {
                token: number[to] for token, to in out.items() if token != self._eos_id
            }
        has_dead_ends = any(not found[k] and state not in finals for state, k in number.items())
        return Automaton(0, tuple(found)), has_dead_ends


def _escaped(text: str) -> str:
    """For a regex of Rust, which knows no escape of a letter or of white space."""
    return "".join("\\" + c if c in _SPECIAL else c for c in text)


class Followed:
    """An engine after a prompt; its states are numbered as they are met. Raises PromptError."""

    def __init__(self, engine: TextEngine[Any], prompt_ids: Sequence[int]) -> None:
        self.engine, self.start = engine, 0
        self._states: list[Any] = [engine.initial(prompt_ids)]
        self._numbers = {self._states[0]: 0}
        self._out: dict[int, Mapping[int, int]] = {}

    def out(self, state: int) -> Mapping[int, int]:
        if state not in self._out:
            here = self._states[state]
            tokens = ordinary(self.engine, here)
            after = self.engine.steps(here, np.array(tokens, dtype=np.int64)) if tokens else []
            self._out[state] = dict(zip(tokens, map(self._number, after), strict=True))
        return self._out[state]

    def _number(self, state: Any) -> int:
        if state not in self._numbers:
            self._numbers[state] = len(self._states)
            self._states.append(state)
        return self._numbers[state]


def ordinary(engine: TextEngine[Any], state: Any) -> list[int]:
    """The ids of a mask but end-of-sequence, ascending."""
    return [i for i in members(engine.mask(state)).tolist() if i not in engine.eos_ids]


@dataclass(frozen=True)
class _Place:
    """lift: the engine's state; ids: what was read after the prompt; appended: ids that are still
    to be appended."""

    lift: Any
    ids: tuple[int, ...]
    appended: tuple[int, ...] = ()


@dataclass
class Chopped:
    """The lift with the ids of `chop`; a state is a sequence of ids, numbered when it is met."""

    engine: TextEngine[Any]
    prompt_ids: Sequence[int]
    start: int = 0
    _places: list[_Place] = field(default_factory=list)
    _out: dict[int, Mapping[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places.append(_Place(self.engine.initial(self.prompt_ids), ()))

    def out(self, state: int) -> Mapping[int, int]:
        if state not in self._out:
            self._out[state] = self._read(self._places[state])
        return self._out[state]

    def _read(self, place: _Place) -> Mapping[int, int]:
        allowed = ordinary(self.engine, place.lift)
        run = place.appended
        if allowed and not run:
            run = chop(self.engine, place.lift, (*self.prompt_ids, *place.ids), CHOP_TOKENS)
        if run and run[0] in allowed:
            return {run[0]: self._after(place, run[0], run[1:])}
        return {token: self._after(place, token) for token in allowed}

    def _after(self, place: _Place, token: int, appended: tuple[int, ...] = ()) -> int:
        lift = self.engine.step(place.lift, token)
        self._places.append(_Place(lift, (*place.ids, token), appended))
        return len(self._places) - 1
