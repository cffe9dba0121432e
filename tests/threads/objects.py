"""What threads share and what goes to other processes: how each kind of object is made over a
tokenizer, and what is asked of it. An answer is a trace: plain values that are the same in any
thread and process, at any time, whatever others do.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import islice
from typing import Any

from support.making import SPACE, make
from support.steps import metaspace

from bpe_automata import (
    ByteDFA,
    Constraint,
    LinkedDFA,
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
from bpe_automata._kernels.bits import members
from bpe_automata.banning import AppliedBan, Ban, Spellings
from bpe_automata.canonical.canonical import canonical_automaton
from bpe_automata.decoding.batches import batch_masks
from bpe_automata.decoding.token_table import Listed, TokenTable
from bpe_automata.integrations._requests import Constraints, Options, text_of
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


def counted(automaton: TokenAutomaton) -> Trace:
    drawn, few = automaton.sample_uniform(random.Random(8)), islice(automaton.enumerate(), 5)
    return [automaton.total(), drawn, automaton.minimised().n_states, *few]


def read(automaton: Any) -> Trace:
    """Of a byte automaton, whose states may be entered as texts come."""
    texts = (b"x" + b"ab" * n for n in (0, 90, 300, 301))
    return [*map(automaton.accepts, texts), automaton.shortest()]


def requested(constraints: Constraints) -> Trace:
    """The constraints that a server keeps between requests."""
    made = [
        constraints.of(Options(text_of({"regex": regex}), method="lift"))
        for regex in (REGEX, FINITE)
    ]
    return [along(constraint.matcher()) for constraint in made]


# ---------------------------------------------------------------- of which objects

COUNTS = "x(ab){0,300}"
WORDS = ["ab", "cat"]
BAN = Ban(WORDS, ignore_case=True)
GRAMMAR = 'start: "x" ("ab" start2)?\nstart2: "ab"*'


def made(tokenizer: Tokenizer) -> dict[str, Any]:
    """One object of each kind, of which nothing is known yet."""
    constraint, finite = (
        partial(constrain, tokenizer, language, eos_ids=()) for language in (REGEX, FINITE)
    )
    begun = constraint().matcher()
    for _ in range(2):
        begun.advance(int(begun.allowed_ids()[-1]))
    counts = link_regex("((a|aa){0,300},?){200,}")
    listed = [(k, i, k + 1) for k in range(8) for i in range(1 + k % 3)]
    automata = [TokenAutomaton.from_transitions(listed, 0, [4, 6, 8]) for _ in range(3)]
    grammar = {"grammar": compile_grammar(GRAMMAR)} if find_spec("lark") is not None else {}
    return {
        "canonical": constraint(),
        "lift": constraint("lift"),
        "without added tokens": constraint(added_tokens=False),
        "schema": constrain(tokenizer, json_schema(SCHEMA).to_dfa(depth=3), eos_ids=()),
        "linked": constrain(tokenizer, counts, eos_ids=()),
        "within": constraint().within(3),
        "healed": constraint(),
        "verified": finite(),
        "written out": finite().automaton(max_edges=3000),
        "banned": BAN.constrain(tokenizer, REGEX, eos_ids=()),
        "applied ban": AppliedBan(BAN, constraint()),
        "ban": Ban(WORDS, ignore_case=True),
        "spellings": Spellings(tokenizer, BAN),
        "matcher": begun,
        "token automaton": automata[0],
        "table": TokenTable.of(automata[1], [5], 6),
        "listed": Matcher(Listed(automata[2], [5], 6)),
        "byte automaton": compile_regex(COUNTS),
        "linked automaton": link_regex(COUNTS),
        "begun automaton": link_regex(COUNTS).begun_with(b"xab"),
        "tokenizer": tokenizer,
        "batch": tokenizer,
        "server": Constraints(tokenizer, [tokenizer.n_ids - 1]),
        **grammar,
    }


STAY = {"spellings", "server"}
"""What is not pickled."""

ASKED: dict[object, Callable[[Any], Trace]] = {
    "healed": healed,
    "verified": verified,
    "listed": partial(along, forced=False),
    "batch": batched,
    Constraint: walked,
    TokenAutomaton: counted,
    AppliedBan: lambda ban: [
        *(*along(ban.after("ca").matcher()), ban.spellings.automaton(max_edges=10**6).n_states)
    ],
    Ban: lambda ban: [ban.found_in("aab the Cat"), ban.allowed.n_states, *read(ban.allowed)],
    Spellings: lambda spellings: [spellings.automaton(max_edges=10**6).n_states],
    Matcher: along,
    TokenTable: lambda table: [
        *(table.names, table.step(table.begin(2), [0, 1]).tolist(), table.allowed([1]).tolist())
    ],
    ByteDFA: read,
    LinkedDFA: read,
    Tokenizer: encoded,
    Constraints: requested,
}
"""By the name of an object, or its class."""


def all_asked(objects: dict[str, Any]) -> dict[str, Trace]:
    """What each of them says."""
    return {name: (ASKED.get(name) or ASKED[type(found)])(found) for name, found in objects.items()}


def all_unpickled(sent: dict[str, bytes]) -> dict[str, Trace]:
    return all_asked({name: pickle.loads(found) for name, found in sent.items()})
