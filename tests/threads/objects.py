"""What threads share and what goes to other processes: how each kind of object is made over a
tokenizer, and what is asked of it. An answer is a trace: plain values that are the same in any
thread and process, at any time, whatever others do.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from typing import Any

from support.making import SPACE, make
from support.steps import metaspace

from bpe_automata import (
    Constraint,
    Matcher,
    TokenAutomaton,
    Tokenizer,
    compile_grammar,
    compile_regex,
    constrain,
    explain,
    heal,
    link_regex,
    verify,
)
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata._decoding.batches import batch_masks
from bpe_automata._decoding.token_table import Listed, TokenTable
from bpe_automata._kernels.bits import members
from bpe_automata.banning import Ban, Spellings
from bpe_automata.banning._words import AppliedBan
from bpe_automata.integrations._requests import Constraints, Options
from bpe_automata.schemas import json_schema
from bpe_automata.testing import added_token, byte_level, sequence

_PIECES = (
    *("the ", " cat", "the cat", "ab", "a", "b", "ba", "aab", "é", " A", ".", "1", "2", "12", "\n"),
    *('{"a":', ',"b":', '"', "null", "}", "日本", "<|end|>"),
)
_LOWER, _DIGITS = {"type": "Lowercase"}, {"type": "Digits", "individual_digits": True}
_PIPELINES = (
    {"space": SPACE, "pretokenizer": metaspace("always", False)},
    {"byte_level": True, "pretokenizer": byte_level(True), "normalizer": {"type": "NFC"}},
    {"byte_level": True, "pretokenizer": sequence(_DIGITS, byte_level(True)), "normalizer": _LOWER},
)


def trained() -> list[dict[str, Any]]:
    """Tokenizers, one for each kind of pipeline."""
    added = [added_token("<|end|>", special=True), "the cat"]
    return [make(_PIECES, added=added, **pipeline) for pipeline in _PIPELINES]


# ---------------------------------------------------------------- what is asked

Trace = list[object]
REGEX = r" ?((the|cat|ab+|ba|1?2|é)[ \n]?)+(A|\.)?"
FINITE = r" ?(the |cat|aab|ab|ba){1,2}"
TEXT = "the cat ab"
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"enum": [1, "a", None]}},
    "required": ["a"],
    "additionalProperties": False,
}
WRITTEN_OUT = json_schema(SCHEMA).to_dfa(depth=3)
"""Once: of linked automata that eight threads make at once there is not room for all addresses that
tests may take (see `limit_memory`)."""


def along(matcher: Matcher, seed: int = 0, forced: bool = True) -> Trace:
    """Masks along a random walk, with all that a matcher can be asked on the way."""
    found, rng, matcher = list[object](), random.Random(seed), matcher.copy()
    for _ in range(6):
        ids = matcher.allowed_ids().tolist()
        found.append((hash(tuple(ids)), len(ids), matcher.is_accepting))
        if not ids or matcher.is_finished:
            break
        asked = rng.randrange(5)
        if asked == 0:
            found.append(matcher.min_tokens_to_accept())
        elif asked == 1:
            found.append(matcher.forced_tokens(4))
            found.append(matcher.forced_bytes() if forced else None)
        elif asked == 2 and matcher.ids:
            back = matcher.copy()
            back.rollback()
            found.append(hash(tuple(back.allowed_ids().tolist())))
        matcher.advance(rng.choice(ids))
    return [*found, matcher.ids]


def walked(constraint: Constraint) -> Trace:
    """From the start and after a prompt."""
    prompt = constraint.tokenizer.encode(TEXT)
    found = along(constraint.matcher())
    return [*found, constraint.eos_ids, *along(constraint.matcher(prompt), 7)]


def healed(constraint: Constraint) -> Trace:
    found = heal(constraint, constraint.tokenizer.encode(TEXT + " "), n=2)
    return [found.prefix, str(found.healing), *along(found.constraint.matcher(found.prefix))]


def verified(constraint: Constraint) -> Trace:
    found = verify(constraint.tokenizer, constraint, n=6)
    return [found.ok, found.walks, found.strings, found.skipped, str(constraint.removed)]


def encoded(tokenizer: Tokenizer) -> Trace:
    automaton, rng = canonical_automaton(tokenizer), random.Random(11)
    drawn = [[rng.randrange(tokenizer.n_ids) for _ in range(3)] for _ in range(4)]
    accepted = [automaton.accepts(ids) for ids in (tokenizer.encode(TEXT), *drawn)]
    return [*accepted, *(str(explain(tokenizer, ids)) for ids in drawn), tokenizer.spellings[:99]]


def batched(tokenizer: Tokenizer) -> Trace:
    """Masks of several constraints in one call, some steps on. Each thread makes them anew, and all
    share what is known of the tokenizer."""
    languages = REGEX, FINITE, WRITTEN_OUT
    made = [constrain(tokenizer, language, eos_ids=()) for language in languages]
    matchers, rng, found = [one.matcher() for one in made], random.Random(8), list[object]()
    for _ in range(4):
        masks = batch_masks(matchers, threads=3)
        found.append([hash(tuple(mask.tolist())) for mask in masks])
        for matcher, mask in zip(matchers, masks, strict=True):
            if len(ids := members(mask)):
                matcher.advance(int(rng.choice(ids)))
    return found


def banned(ban: Ban) -> Trace:
    return [ban.found_in("aab the Cat"), ban.allowed.n_states, ban.allowed.accepts(b"a cat")]


def counted(automaton: TokenAutomaton) -> Trace:
    drawn, few = automaton.sample_uniform(random.Random(8)), islice(automaton.enumerate(), 5)
    return [automaton.total(), drawn, automaton.minimised().n_states, *few]


def tabled(table: TokenTable) -> Trace:
    return [table.names, table.step(table.begin(2), [0, 1]).tolist(), table.allowed([1]).tolist()]


def read(automaton: Any) -> Trace:
    """Of a byte automaton, whose states may be entered as texts come."""
    texts = (b"x" + b"ab" * n for n in (0, 90, 300, 301))
    return [*map(automaton.accepts, texts), automaton.shortest()]


def requested(constraints: Constraints) -> Trace:
    """The constraints that a server keeps between requests."""
    made = [constraints.of(Options(regex, method="lift")) for regex in (REGEX, FINITE)]
    return [along(constraint.matcher()) for constraint in made]


# ---------------------------------------------------------------- of which objects


@dataclass(frozen=True)
class Kind:
    """An object that is made of a tokenizer, and what is asked of it. `travels`: it is pickled."""

    make: Callable[[Tokenizer], Any]
    ask: Callable[[Any], Trace]
    travels: bool = True


def _constraint(language: Any = REGEX, **options: Any) -> Callable[[Tokenizer], Constraint]:
    return lambda tokenizer: constrain(tokenizer, language, eos_ids=(), **options)


def _automaton(_: object = None) -> TokenAutomaton:
    """Of many ways: of nothing of a tokenizer's."""
    listed = [(k, i, k + 1) for k in range(8) for i in range(1 + k % 3)]
    return TokenAutomaton.from_transitions(listed, 0, [4, 6, 8])


def _begun(tokenizer: Tokenizer) -> Matcher:
    matcher = _constraint()(tokenizer).matcher()
    for _ in range(2):
        matcher.advance(int(matcher.allowed_ids()[-1]))
    return matcher


COUNTS = "x(ab){0,300}"
BAN = Ban(["ab", "cat"], ignore_case=True)
KINDS = {
    "canonical": Kind(_constraint(), walked),
    "lift": Kind(_constraint(method="lift"), walked),
    "without added tokens": Kind(_constraint(added_tokens=False), walked),
    "schema": Kind(lambda t: _constraint(json_schema(SCHEMA).to_dfa(depth=3))(t), walked),
    "linked": Kind(lambda t: _constraint(link_regex("((a|aa){0,300},?){200,}"))(t), walked),
    "within": Kind(lambda t: _constraint()(t).within(3), walked),
    "healed": Kind(_constraint(), healed),
    "verified": Kind(_constraint(FINITE), verified),
    "written out": Kind(lambda t: _constraint(FINITE)(t).automaton(max_edges=3000), counted),
    "banned": Kind(lambda t: BAN.constrain(t, REGEX, eos_ids=()), walked),
    "applied ban": Kind(
        lambda t: AppliedBan(BAN, _constraint()(t)), lambda ban: along(ban.after("ca").matcher())
    ),
    "ban": Kind(lambda _: Ban(["ab", "cat"], ignore_case=True), banned),
    "spellings": Kind(
        lambda t: Spellings(t, BAN), lambda s: [s.automaton(max_edges=10**6).n_states], False
    ),
    "matcher": Kind(_begun, along),
    "token automaton": Kind(_automaton, counted),
    "table": Kind(lambda _: TokenTable.of(_automaton(), [5], 6), tabled),
    "listed": Kind(
        lambda _: Matcher(Listed(_automaton(), [5], 6)), lambda m: along(m, forced=False)
    ),
    "byte automaton": Kind(lambda _: compile_regex(COUNTS), read),
    "linked automaton": Kind(lambda _: link_regex(COUNTS), read),
    "begun automaton": Kind(lambda _: link_regex(COUNTS).begun_with(b"xab"), read),
    "tokenizer": Kind(lambda t: t, encoded),
    "batch": Kind(lambda t: t, batched),
    "server": Kind(lambda t: Constraints(t, [t.n_ids - 1]), requested, travels=False),
}

if find_spec("lark") is not None:
    GRAMMAR = 'start: "x" ("ab" start2)?\nstart2: "ab"*'
    KINDS["grammar"] = Kind(lambda _: compile_grammar(GRAMMAR), read)


def made(tokenizer: Tokenizer) -> dict[str, Any]:
    """One object of each kind, of which nothing is known yet."""
    return {name: kind.make(tokenizer) for name, kind in KINDS.items()}


def all_asked(objects: dict[str, Any]) -> dict[str, Trace]:
    """What each of them says."""
    return {name: KINDS[name].ask(found) for name, found in objects.items()}


def all_unpickled(sent: dict[str, bytes]) -> dict[str, Trace]:
    return all_asked({name: pickle.loads(found) for name, found in sent.items()})
