"""What each method of the study allows after a prompt: as automata over ids, which are walked
whole, and as languages, which are sampled text by text.

- *lift*: every tokenization of an answer;
- *canonical*: the tokenizer's own;
- *outlines*: what the index of outlines-core holds (ordinary tokens alone, and not every text of
  every regex); absent where the package is not installed;
- *chop*: the lift, but wherever the published heuristic turns forced text into ids, these are
  appended instead of sampled (see `experiments.chop`). An id that is appended is the only way
  on, so it has probability 1 at its step.

Where an answer cannot follow the prompt canonically, the last ids of the prompt are given back
first (`heal`), for all methods alike: then every answer begins with their text.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bpe_automata import Tokenizer, constrain
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.linked import explicit
from bpe_automata._automata.sources import from_strings
from bpe_automata._constructions.engine import TextEngine
from bpe_automata._decoding.constraint import Constraint, Method
from bpe_automata._decoding.healing import heal
from bpe_automata._decoding.matcher import Healing, Matcher
from bpe_automata._kernels.bits import members, packed
from experiments.answers.targets import Vocabulary
from experiments.chop import chop
from experiments.engines import OutlinesCore, PeerError, one_eos, outlines_vocabulary, refusals
from experiments.trie import Automaton, Walker

OUR_METHODS: tuple[Method, ...] = ("lift", "canonical")
"""Those of this package."""
METHODS = (*OUR_METHODS, "outlines", "chop")
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

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What ids spell behind others."""
        return Vocabulary(self.tokenizer.spellings, self.eos_ids)

    def posed(self, prompt_ids: Sequence[int], answers: Sequence[str]) -> Posed:
        """All methods, after ids of the prompt were given back where answers ask for it. Raises
        PromptError where that does not help, and what `constrain` raises."""
        canonical = self._constraint(from_strings(answers), "canonical")
        healed = heal(canonical, prompt_ids, MOST_GIVEN_BACK)
        before = healed.healing.text if healed.healing else b""
        full = tuple(before + answer.encode() for answer in answers)
        return self._posed(list(healed.prefix), full, healed.constraint, healed.healing)

    def _posed(
        self,
        prompt_ids: list[int],
        answers: tuple[bytes, ...],
        canonical: Constraint,
        healing: Healing | None,
    ) -> Posed:
        lift = self._constraint(explicit(canonical.dfa, "a question"), "lift")
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


class _Numbered:
    """A walker whose states are numbered as they are met."""

    start = 0

    def __init__(self, first: Hashable) -> None:
        self._states, self._numbers = [first], {first: 0}
        self._out: dict[int, dict[int, int]] = {}

    def out(self, state: int) -> Mapping[int, int]:
        if state not in self._out:
            steps = self._steps(self._states[state])
            self._out[state] = {token: self._number(after) for token, after in steps}
        return self._out[state]

    def _steps(self, here: Any) -> Iterable[tuple[int, Hashable]]:
        """(id, the state after it), ascending by id."""
        raise NotImplementedError

    def _number(self, state: Hashable) -> int:
        if state not in self._numbers:
            self._numbers[state] = len(self._states)
            self._states.append(state)
        return self._numbers[state]


class Followed(_Numbered):
    """An engine after a prompt. Raises PromptError."""

    def __init__(self, engine: TextEngine[Any], prompt_ids: Sequence[int]) -> None:
        super().__init__(engine.initial(prompt_ids))
        self.engine = engine

    def _steps(self, here: Any) -> Iterable[tuple[int, Hashable]]:
        tokens = ordinary(self.engine, here)
        after = self.engine.steps(here, np.array(tokens, dtype=np.int64)) if tokens else []
        return zip(tokens, after, strict=True)


def ordinary(engine: TextEngine[Any], state: Any) -> list[int]:
    """The ids of a mask but end-of-sequence, ascending."""
    return [i for i in members(engine.mask(state)).tolist() if i not in engine.eos_ids]


class Chopped(_Numbered):
    """The lift with the ids of `chop`. A state: that of the engine, the ids after the prompt, and
    those that are still to be appended."""

    def __init__(self, engine: TextEngine[Any], prompt_ids: Sequence[int]) -> None:
        super().__init__((engine.initial(prompt_ids), (), ()))
        self.engine, self.prompt_ids = engine, prompt_ids

    def _steps(self, here: Any) -> Iterable[tuple[int, Hashable]]:
        state, ids, run = here
        allowed = ordinary(self.engine, state)
        if allowed and not run:
            run = chop(self.engine, state, (*self.prompt_ids, *ids), CHOP_TOKENS)
        # An id that the lift does not allow is not appended, nor what follows it.
        forced = bool(run) and run[0] in allowed
        for token in run[:1] if forced else allowed:
            after = self.engine.step(state, token)
            yield token, (after, (*ids, token), run[1:] if forced else ())


# The lift through `chop` as a language to sample from, text by text. It has no end-of-sequence ids:
# a text ends where nothing can follow it.


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
    eos_ids: tuple[int, ...] = ()

    @property
    def n_ids(self) -> int:
        return self.lift.n_ids

    def matcher(self, prefix: Sequence[int] = ()) -> ChopMatcher:
        engine, prompt = self.lift.engine, tuple(prefix)
        return ChopMatcher(self.lift.matcher(prompt), engine, engine.initial(prompt), prompt)
