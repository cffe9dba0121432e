"""The process that does the cases of the stress experiment.

`python -m experiments.laws.stress_worker` answers each case with what `check` found. Numba's bounds
check is on where `NUMBA_BOUNDSCHECK` says so; then nothing is timed.
"""

from __future__ import annotations

import gc
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any, TypeVar

import numba
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from numba.core.event import install_recorder

from bpe_automata import (
    Budget,
    ByteDFA,
    Constraint,
    Segments,
    TokenAutomaton,
    Tokenizer,
    compile_regex,
    constrain,
    heal,
)
from bpe_automata._budget import spending
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata._decoding.matcher import Matcher, matcher_of
from bpe_automata.banning import Ban
from bpe_automata.errors import (
    BudgetExceededError,
    BudgetTooSmallError,
    EmptyLanguageError,
    MissingDependencyError,
    PromptError,
)
from bpe_automata.testing import bpe_tokenizers, trained_tokenizers
from experiments.laws.stress_cases import MADE, Case, Node
from experiments.run.executors import Row
from experiments.shared.resources import called_after, forget_peak, resident, timed
from experiments.shared.walks import CannotFinishError, finish
from experiments.shared.watched import Answer, serve

T = TypeVar("T")

LONGEST_WAY = 20_000  # bytes: on 100,000 ids of one character each, minutes go by
STEPS = 12
"""Ids of a random walk."""
STRINGS = 5
EDGES = 20_000
"""Transitions of an explicit automaton that is compared with the lazy one."""
OVER = 0.2, 0.5
"""By how much a budget may be exceeded: a share of it, or seconds."""
PATIENCE = 2.0
"""Seconds for what `re` says of one text."""


class WrongError(Exception):
    """What must not be; kind, for counting, and message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class RefusedError(Exception):
    """The budget ended the case; holds what was being done."""


class Clock:
    """Seconds of this thread, by what they were spent on: the worst of each sort."""

    def __init__(self, budget: Budget) -> None:
        self.budget, self.worst, self.refused = budget, dict[str, float](), list[str]()

    def of(self, what: str, work: Callable[[], T]) -> T:
        """What `work` gives. Raises RefusedError where it went over its budget in time, and
        WrongError where it was over by more than `OVER`."""
        with install_recorder("numba:compile") as compiled:
            began = time.thread_time()
            try:
                return work()
            except BudgetExceededError as error:
                self.refused.append(f"{what}: {error.resource}")
                raise RefusedError(what) from None
            finally:
                spent = time.thread_time() - began
                if not compiled.buffer and not numba.config.BOUNDSCHECK:
                    self.worst[what] = max(spent, self.worst.get(what, 0.0))
                    self._check(what, spent)

    def _check(self, what: str, spent: float) -> None:
        limit = self.budget.max_seconds
        if spent > limit + max(OVER[0] * limit, OVER[1]):
            raise WrongError("overrun", f"{what} took {spent:.2f} s under a budget of {limit} s")


def check(case: Case) -> Row:
    """worst: seconds by what was done; refused: what went over its budget; wrong: [kind, message]
    of what must not be; done: the parts that came to their end."""
    rng, budget = random.Random(case.seed), Budget(max_seconds=case.seconds)
    clock, done, wrong = Clock(budget), list[str](), list[list[str]]()
    row: Row = {"worst": clock.worst, "refused": clock.refused, "wrong": wrong, "done": done}
    try:
        tokenizer = tokenizer_of(case.tokenizer)
        parts = Parts(case, tokenizer, clock, rng)
    except (MissingDependencyError, EmptyLanguageError) as error:
        return row | {"left_out": f"{type(error).__name__}: {error}"[:200]}
    except RefusedError:
        return row
    except Exception as error:  # whatever it is, it is a finding
        wrong.append(_finding(error))
        return row
    for part in PARTS:
        try:
            part(parts)
            done.append(part.__name__)
        except RefusedError:
            pass
        except BudgetExceededError as error:
            clock.refused.append(f"{part.__name__}: {error.resource}")
        except EmptyLanguageError as error:  # no text that the tokenizer can write: `texts` tries
            if part is texts:
                wrong.append(["wrongly empty", str(error)[:500]])
        except Exception as error:  # the same
            wrong.append([f"{part.__name__}: {_finding(error)[0]}", _finding(error)[1]])
    return row


def _finding(error: Exception) -> list[str]:
    kind = error.kind if isinstance(error, WrongError) else type(error).__name__
    return [kind, str(error)[:500]]


class Parts:
    """What the checks of one case share. Raises RefusedError, EmptyLanguageError."""

    def __init__(self, case: Case, tokenizer: Tokenizer, clock: Clock, rng: random.Random) -> None:
        self.case, self.tokenizer, self.clock, self.rng = case, tokenizer, clock, rng
        self.dfa: ByteDFA = clock.of("compile", lambda: compile_regex(case.pattern, clock.budget))
        self.constraint = clock.of("constrain", self.made)
        self.lift = clock.of("lift", lambda: self.made(method="lift"))

    def made(self, **options: Any) -> Constraint:
        """The case's constraint, anew."""
        return constrain(self.tokenizer, self.dfa, budget=self.clock.budget, **options)

    def mask(self, matcher: Matcher, what: str = "mask") -> np.ndarray:
        """Ids that may follow, timed."""
        return self.clock.of(what, matcher.allowed_ids)

    def text_ids(self, matcher: Matcher, what: str = "mask") -> np.ndarray:
        """The same without end-of-sequence."""
        allowed = self.mask(matcher, what)
        return allowed[~np.isin(allowed, self.constraint.eos_ids)]

    def walk(self, matcher: Matcher, what: str = "mask") -> Iterator[np.ndarray]:
        """The masks along random ids."""
        for _ in range(self.rng.randrange(1, STEPS + 1)):
            allowed = self.mask(matcher, what)
            yield allowed
            left = allowed[~np.isin(allowed, self.constraint.eos_ids)]
            if not len(left):
                return
            token = int(left[self.rng.randrange(len(left))])
            self.clock.of("advance", lambda: matcher.advance(token))  # noqa: B023 - called at once


# ---------------------------------------------------------------- the checks


def walks(parts: Parts) -> None:
    """Canonical masks lie in the lift's; each walk can finish; its text matches, and its ids are
    those of `encode`; rolled back, the masks are what they were."""
    matcher, loose = parts.constraint.matcher(), parts.lift.matcher()
    masks: list[np.ndarray] = []
    for allowed in parts.walk(matcher):
        for token in matcher.ids[len(loose.ids) :]:
            loose.advance(token)
        outside = np.setdiff1d(allowed, parts.mask(loose, "mask of the lift"))
        if len(outside):
            raise WrongError("outside the lift", f"{outside[:5]} after {matcher.ids}")
        if not len(allowed) and not matcher.is_accepting:
            raise WrongError("dead end", f"nothing may follow {matcher.ids}")
        masks.append(allowed)
    finished(parts, parts.constraint, matcher)
    back = parts.rng.randrange(len(matcher.ids) + 1)
    twin = matcher.copy()
    twin.rollback(back)
    if len(twin.ids) < len(masks) and not np.array_equal(twin.allowed_ids(), masks[len(twin.ids)]):
        raise WrongError("rollback", f"another mask after going back {back} of {matcher.ids}")


def lifted(parts: Parts) -> None:
    """The lift's walks can finish, and their texts match."""
    matcher = parts.lift.matcher()
    for allowed in parts.walk(matcher, "mask of the lift"):
        if not len(allowed) and not matcher.is_accepting:
            raise WrongError("dead end", f"nothing may follow {matcher.ids}")
    finished(parts, parts.lift, matcher)


def _shortest(parts: Parts, constraint: Constraint, matcher: Matcher) -> list[int]:
    """The ids of a matcher, and as few more as complete the text."""
    least = parts.clock.of("min_tokens", matcher.min_tokens_to_accept)
    most = len(matcher.ids) + least
    way = parts.clock.of("within", lambda: constraint.within(most).matcher())
    for token in matcher.ids:
        way.advance(token)
    while not way.is_accepting:
        left = parts.text_ids(way, "mask within")
        if not len(left):
            raise WrongError("cannot finish", f"after {matcher.ids}: {least} more, tried {way.ids}")
        way.advance(int(left[0]))
    return list(way.ids)


def finished(parts: Parts, constraint: Constraint, matcher: Matcher) -> None:
    """The walk, taken to its end, is right."""
    tokenizer, state = parts.tokenizer, matcher._states[-1]
    here = parts.dfa.walk(tokenizer.text_bytes(matcher.ids))
    if parts.dfa.far[here] > LONGEST_WAY:
        return
    try:
        ids = parts.clock.of(
            "way home", lambda: finish(constraint, list(matcher.ids), state, parts.rng)
        )
    except CannotFinishError:  # what is nearest may lead round in circles
        ids = _shortest(parts, constraint, matcher)
    except WrongError:  # many masks; each is timed elsewhere
        return
    spelled = tokenizer.text_bytes(ids)
    if not parts.dfa.accepts(spelled):
        raise WrongError("no match", f"{ids} spell {spelled!r}")
    text = spelled.decode("utf-8")
    if constraint.method == "canonical" and tokenizer.encode(text) != ids:
        raise WrongError(
            "not canonical", f"{ids} spell {text!r}, which is {tokenizer.encode(text)}"
        )
    if (said := _by_re(parts.case.pattern, text)) is False:
        raise WrongError("re", f"{text!r} does not match; re says {said}")


def texts(parts: Parts) -> None:
    """The ids of texts of the language that are no longer than that are allowed, and accepted."""
    for data in (parts.dfa.shortest(), *(parts.dfa.sample(parts.rng) for _ in range(STRINGS))):
        _reads(parts, data or b"")


def _reads(parts: Parts, data: bytes) -> None:
    if len(data) > LONGEST_WAY:
        return
    tokenizer, text = parts.tokenizer, data.decode("utf-8")
    ids = tokenizer.encode(text)
    if tokenizer.text_bytes(ids) != data or {*ids} & parts.constraint.unread:
        return  # the tokenizer cannot write it
    for constraint, what in ((parts.constraint, "mask"), (parts.lift, "mask of the lift")):
        matcher = constraint.matcher()
        for k, token in enumerate(ids):
            if token not in parts.mask(matcher, what):
                raise WrongError("blocked", f"{constraint.method}: id {k} of {ids}, {text!r}")
            matcher.advance(token)
        if not matcher.is_accepting:
            raise WrongError("blocked", f"{constraint.method}: no end after {ids}, {text!r}")


def within(parts: Parts) -> None:
    """Under a budget of ids each mask is a part of the plain one, and the text is complete in
    time."""
    plain = parts.constraint.matcher()
    least = parts.clock.of("min_tokens", plain.min_tokens_to_accept)
    most = least + parts.rng.randrange(6)
    if least:
        with suppress(BudgetTooSmallError):
            parts.clock.of("within", lambda: parts.constraint.within(least - 1).matcher())
            raise WrongError("least", f"{least} ids are needed, {least - 1} are taken")
    matcher = parts.clock.of("within", lambda: parts.constraint.within(most).matcher())
    for _ in range(min(most, 3 * STEPS)):
        left = parts.text_ids(matcher, "mask within")
        if not len(left):
            break
        if len(outside := np.setdiff1d(left, parts.mask(plain))):
            raise WrongError("within", f"{outside[:5]} is in no plain mask after {matcher.ids}")
        token = int(left[parts.rng.randrange(len(left))])
        matcher.advance(token)
        plain.advance(token)
    else:
        if len(matcher.ids) < most:
            return
    if not matcher.is_accepting:
        raise WrongError("within", f"not complete with {len(matcher.ids)} of {most}: {matcher.ids}")


def forced(parts: Parts) -> None:
    """Forced ids are those to which the masks leave no choice."""
    matcher = parts.constraint.matcher()
    for _ in parts.walk(matcher):
        pass
    run = parts.clock.of("forced", lambda: matcher.forced_tokens(2 * STEPS))
    for token in run:
        if matcher.is_accepting or parts.mask(matcher).tolist() != [token]:
            raise WrongError("forced", f"{token} is not the only one after {matcher.ids}")
        matcher.advance(token)


def explicit(parts: Parts) -> None:
    """The automaton, written out, has the same masks; and so it has put together of segments, new
    ones and known ones."""
    own, segments = parts.constraint, Segments(parts.tokenizer, parts.constraint.eos_ids)

    def put_together() -> TokenAutomaton:
        with spending(parts.clock.budget):
            return segments.automaton(parts.dfa, EDGES)

    ways: list[tuple[Constraint, str, Callable[[], TokenAutomaton]]] = [
        (own, "automaton", partial(own.automaton, (), EDGES)),
        *[(own, "automaton with segments", put_together)] * 2,
        (parts.lift, "automaton", partial(parts.lift.automaton, (), EDGES)),
    ]
    for constraint, what, write in ways:
        try:
            automaton = parts.clock.of(what, write)
        except RefusedError:
            continue
        listed = matcher_of(automaton, parts.constraint.eos_ids, n_ids=parts.tokenizer.n_ids)
        matcher = constraint.matcher()
        for allowed in parts.walk(matcher):
            for token in matcher.ids[len(listed.ids) :]:
                listed.advance(token)
            if not np.array_equal(listed.allowed_ids(), allowed):
                raise WrongError("explicit", f"another mask after {matcher.ids}")


def banned(parts: Parts) -> None:
    """No banned word is written."""
    text = parts.dfa.sample(parts.rng).decode("utf-8")
    if not text:
        return
    at = parts.rng.randrange(len(text))
    word = text[at : at + parts.rng.randrange(1, 4)]
    ban = parts.clock.of("ban", lambda: Ban([word], budget=parts.clock.budget))
    try:
        language = parts.clock.of("ban", lambda: ban.allowed_in(parts.dfa))
        constraint = parts.clock.of(
            "constrain", lambda: constrain(parts.tokenizer, language, budget=parts.clock.budget)
        )
    except EmptyLanguageError:
        return
    matcher = constraint.matcher()
    for _ in parts.walk(matcher, "mask of a ban"):
        pass
    if word in parts.tokenizer.decode(matcher.ids):
        raise WrongError("ban", f"{word!r} is written by {matcher.ids}")


def prompted(parts: Parts) -> None:
    """After a prompt: prompt and answer together are the tokenizer's own ids."""
    prompt = parts.tokenizer.encode(
        parts.rng.choice(("The answer is", "x = ", "a", "\n", "1", "日本", "it'", "éa "))
    )
    try:
        matcher = parts.clock.of("initial", lambda: parts.constraint.matcher(prompt))
    except (PromptError, EmptyLanguageError):
        with suppress(PromptError, EmptyLanguageError):
            parts.clock.of("heal", lambda: heal(parts.constraint, prompt, n=2))
        return
    for allowed in parts.walk(matcher):
        if not len(allowed) and not matcher.is_accepting:
            raise WrongError("dead end", f"nothing may follow {matcher.ids} after {prompt}")
    ids = [*prompt, *matcher.ids]
    if matcher.is_accepting and not {*ids} & {*parts.constraint.eos_ids}:
        text = parts.tokenizer.decode(ids)
        if "\ufffd" not in text and parts.tokenizer.encode(text) != ids:
            raise WrongError("prompt", f"{ids} spell {text!r}")


PARTS = (walks, texts, lifted, within, forced, explicit, banned, prompted)


# ---------------------------------------------------------------- what they need


@cache
def tokenizer_of(name: str) -> Tokenizer:
    """One with a name, or one that follows from a seed. Raises MissingDependencyError."""
    if not name.startswith(MADE):
        tokenizer = Tokenizer.load(name)
        canonical_automaton(tokenizer)  # made once for all constraints, so no part of any
        return tokenizer
    drawn: list[Tokenizer] = []
    number = int(name.split()[1])
    strategy = trained_tokenizers() if number % 2 else bpe_tokenizers()

    @seeded(number)
    @settings(
        max_examples=8,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(strategy)
    def draw(tokenizer: Tokenizer) -> None:
        drawn.append(tokenizer)

    draw()
    return drawn[-1]


def _by_re(pattern: str, text: str) -> bool | None:
    """Does `re` find that the text matches? None where it has no such syntax, or no end."""
    if r"\p{" in pattern or r"\P{" in pattern or len(pattern) > 20_000:
        return None
    no_answer = suppress(re.error, TimeoutError, RecursionError, OverflowError)
    with no_answer, called_after(PATIENCE, _give_up):
        return re.fullmatch(pattern, text) is not None
    return None


def _give_up(*_: object) -> None:
    raise TimeoutError


WARMING: tuple[Node, ...] = (
    ["text", "é"],
    ["repeat", ["class", r"\w"], 2, 30],
    ["any", ["text", "ab"], ["text", "ac"]],
)


def opened() -> tuple[Row, Answer]:
    """What `serve` needs."""
    for name in ("smollm2", f"{MADE} 1", f"{MADE} 2"):
        for k, tree in enumerate(WARMING):
            check(Case(k, tree, name, 1000.0, k))
    return {"ready": True}, answer


def answer(case: Row) -> Row:
    """What `check` finds, with the peak of the memory and the seconds that it took."""
    gc.collect()
    forget_peak()
    seconds, row = timed(lambda: check(Case(**case)))
    return row | {"peak_mb": resident("VmHWM"), "seconds": round(seconds, 3)}


if __name__ == "__main__":
    serve(opened)
