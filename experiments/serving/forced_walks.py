"""How much of a text each method knows beforehand, and whether it is right.

A text is walked along its own canonical ids. Wherever a method knows a run of ids, the run is
compared with the ids that come. If it agrees, its ids are not asked of a model, and the walk goes
on after it. If not, the ids up to where it departs are counted as known, the next id is taken from
the text, and the walk goes on after that; and the run is looked at: no text of the language, or no
text at all, may be tokenized so.

One of the methods is the published heuristic, `chop`: tokenize the forced bytes, give the last ids
back.

    chop(w) = encode(w) without the ids from the first byte on at which some token begins that goes
              beyond w, where the grammar allows what it goes on with

Only the last `max_tokens` ids are looked at, and given back. The source is llguidance:
docs/fast_forward.md ("Safely converting FF-strings to FF-tokens", `max_tokens` 4) and, with the
text around it, `TokTrie::chop_tokens` and `TokenParser::ff_tokens`. The ids may be ones that
`encode` gives for no text, and ids that are certain are given back. `forced_tokens` is exact.
"""

from __future__ import annotations

import codecs
import json
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from bpe_automata import Tokenizer, constrain
from bpe_automata._arguments import at_least
from bpe_automata._automata.compile import Budget, compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.linked import ByteAutomaton
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.engine import Engine, TextEngine
from bpe_automata._core.canonical import CanonicalState
from bpe_automata._decoding.forced import bytes_from, forced_tokens, text_state
from bpe_automata._kernels.bits import has
from bpe_automata._tokenizer.description import Prefix
from bpe_automata.errors import BpeAutomataError
from experiments.engines.interface import INSTALL
from experiments.run.executors import Row
from experiments.run.files import require
from experiments.schemas.inputs import Case

CHOPS = (0, 1, 2, 4)
METHODS = ("canonical", "lift", *(f"chop {k}" for k in CHOPS))
Runs = Callable[[int], tuple[int, ...]]
"""The run that a method knows after so many ids."""


COUNTS = ("ids", "known", "runs", "departing", "no_match", "no_text")
"""ids: of all texts; known: those that a method had right; departing: runs that are not what the
text goes on with; no_match: runs that no text of the language has there, as tokenized by `encode`;
no_text: that no text has."""


@dataclass(frozen=True)
class Walk:
    """One text's ids, and where the automata are before each of them and after all."""

    ids: tuple[int, ...]
    canonical: list[Any]
    lift: list[Any]
    any_text: list[CanonicalState]


def walked(tokenizer: Tokenizer, dfa: ByteDFA, texts: Sequence[str]) -> Row:
    """Counts of each method over all texts. `not_canonical`: how many texts have no canonical ids
    (a normalizer changes them); they are left out. Raises what `constrain` raises."""
    canonical: Any = constrain(tokenizer, dfa).engine
    lift = constrain(tokenizer, dfa, "lift").engine
    totals = {method: Counter[str]() for method in METHODS}
    left_out = 0
    for text in texts:
        walk = _walk(tokenizer, canonical, lift, text)
        if walk is None:
            left_out += 1
            continue
        for method, runs in _methods(walk, canonical, lift).items():
            totals[method].update(counted(walk, runs, canonical))
    found = {method: {name: of[name] for name in COUNTS} for method, of in totals.items()}
    return {"texts": len(texts) - left_out, "not_canonical": left_out, "methods": found}


def _walk(tokenizer: Tokenizer, canonical: Any, lift: Any, text: str) -> Walk | None:
    """None where some id is not allowed or the text could not end."""
    ids = tuple(tokenizer.encode(text))
    found = Walk(ids, [canonical.initial()], [lift.initial()], [canonical.canonical.start])
    for token in ids:
        state = found.canonical[-1]
        after = canonical.canonical.step(found.any_text[-1], token)
        if after is None or not has(canonical.mask(state), token):
            return None
        found.canonical.append(canonical.step(state, token))
        found.lift.append(lift.step(found.lift[-1], token))
        found.any_text.append(after)
    return found if canonical.accepting(found.canonical[-1]) else None


def _methods(walk: Walk, canonical: Any, lift: Any) -> dict[str, Runs]:
    """Each method's runs. Those of `chop` for several counts share its first half."""
    forced_text = _memo(lambda k: encoded(canonical, walk.canonical[k], walk.ids[:k]))

    def chops(most: int) -> Runs:
        def run(k: int) -> tuple[int, ...]:
            state, ids = forced_text(k)
            return chopped(canonical.tokenizer, canonical.dfa, state, ids, most)

        return run

    return {
        "canonical": lambda k: forced_tokens(canonical, walk.canonical[k]).ids,
        "lift": lambda k: forced_tokens(lift, walk.lift[k]).ids,
        **{f"chop {most}": chops(most) for most in CHOPS},
    }


def _memo(function: Callable[[int], Any]) -> Callable[[int], Any]:
    known: dict[int, Any] = {}

    def remembered(k: int) -> Any:
        if k not in known:
            known[k] = function(k)
        return known[k]

    return remembered


def counted(walk: Walk, runs: Runs, canonical: CartesianMerge) -> Counter[str]:
    """One method along one text."""
    counts, k = Counter(ids=len(walk.ids)), 0
    while k < len(walk.ids):
        run = runs(k)
        agreed = _agreed(run, walk.ids[k:])
        counts.update(runs=bool(run), known=agreed)
        if agreed < len(run):
            counts["departing"] += 1
            counts["no_match"] += not follows(canonical, walk.canonical[k], run)
            counts["no_text"] += not _of_some_text(canonical, walk.any_text[k], run)
        k += agreed + (agreed < len(run) or not run)
    return counts


def _agreed(run: Sequence[int], ids: Sequence[int]) -> int:
    """How many ids the run has in common with what comes."""
    differ = (n for n, pair in enumerate(zip(run, ids, strict=False)) if pair[0] != pair[1])
    return next(differ, min(len(run), len(ids)))


def follows(engine: Engine[Any], state: Any, run: Sequence[int]) -> bool:
    """Can these ids come next?"""
    for token in run:
        if not has(engine.mask(state), token):
            return False
        state = engine.step(state, token)
    return True


def _of_some_text(engine: CartesianMerge, state: CanonicalState, run: Sequence[int]) -> bool:
    """Does `encode` of some text, matching or not, go on so?"""
    after: CanonicalState | None = state
    for token in run:
        after = engine.canonical.step(after, token) if after is not None else None
    return after is not None


# The published heuristic.

_SENTINEL = "\x02"
"""Put before a text that is not to be taken for the beginning of one, as llguidance does."""


def chop(
    engine: TextEngine[Any], state: Hashable, before: Sequence[int] = (), max_tokens: int = 4
) -> tuple[int, ...]:
    """The ids that the heuristic would append in a state of the engine.

    before: the ids that led there, prompt first. max_tokens: how many of the last ids may be given
    back; 0 keeps all. Empty where nothing is forced, and where encode does not give the forced text
    back (a normalizer, a character that is under way). Raises ArgumentError.
    """
    at_least(0, max_tokens, "max_tokens")
    after, ids = encoded(engine, state, before)
    return chopped(engine.tokenizer, engine.dfa, after, ids, max_tokens)


def encoded(
    engine: TextEngine[Any], state: Hashable, before: Sequence[int] = ()
) -> tuple[int, tuple[int, ...]]:
    """What `chop` has before it gives anything back: (the state of `engine.dfa` after the forced
    text that is tokenized, its ids). Takes what `chop` takes."""
    start = text_state(engine, state)
    text, ids = in_context(engine.tokenizer, before, bytes_from(engine.dfa, start))
    return engine.dfa.walk(text, start), ids


def chopped(
    tokenizer: Tokenizer, dfa: ByteAutomaton, state: int, ids: Sequence[int], max_tokens: int
) -> tuple[int, ...]:
    """Ids without the last ones that a longer token might replace. state: of `dfa`, after them."""
    kept = list(ids)
    lengths = [len(tokenizer.token_bytes(token)) for token in kept]
    spelled = b"".join(map(tokenizer.token_bytes, kept))
    looked_at = sum(lengths[max(0, len(kept) - max_tokens) :])
    first = len(spelled) - looked_at
    edge = next(
        (at for at in range(first, len(spelled)) if spans(tokenizer, spelled[at:], dfa, state)),
        len(spelled),
    )
    while kept and sum(lengths[: len(kept)]) > edge:
        kept.pop()
    return tuple(kept)


def spans(tokenizer: Tokenizer, suffix: bytes, dfa: ByteAutomaton, state: int) -> bool:
    """Is there a token that begins with `suffix` and goes on with one or more bytes that `dfa`
    allows from `state`? Added tokens are none: they are not made of text."""
    spelled = tokenizer.derived("sorted spellings", _sorted)
    at = bisect_left(spelled, suffix)
    if at == len(spelled) or not spelled[at].startswith(suffix):
        return False
    for byte in dfa.live_bytes(state).tolist():
        longer = suffix + bytes((byte,))
        at = bisect_left(spelled, longer)
        if at < len(spelled) and spelled[at] == longer:
            return True
        if spans(tokenizer, longer, dfa, dfa.step(state, byte)):
            return True
    return False


def _sorted(tokenizer: Tokenizer) -> list[bytes]:
    """What ordinary tokens spell, each once."""
    return sorted({token for token in tokenizer.description.tokens if token})


# What `encode` gives inside a text.


def in_context(
    tokenizer: Tokenizer, before: Sequence[int], forced: bytes
) -> tuple[bytes, tuple[int, ...]]:
    """(what is tokenized, its ids): the whole characters that forced bytes begin with.

    At the beginning of a text they are encoded as one. After other ids they are encoded together
    with what the last id spells, and its id is taken off the front; where encode begins with
    another id, alone. (b"", ()) where encode changes the text or forced bytes begin in the middle
    of a character.
    """
    past = tokenizer.last_text(before)
    head = tokenizer.token_bytes(past[-1]) if past else b""
    for given in dict.fromkeys((head, b"")):
        text = _characters(given + forced)
        ids = _tokenized(tokenizer, text, bool(past))
        if ids is None or (given and ids[:1] != past[-1:]):
            continue
        return text.encode()[len(given) :], ids[1 if given else 0 :]
    return b"", ()


def _characters(data: bytes) -> str:
    """The whole characters that the bytes begin with; none where they are no UTF-8."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return ""


def _tokenized(tokenizer: Tokenizer, text: str, inside: bool) -> tuple[int, ...] | None:
    """The ids of a text, at the beginning of one or inside; None where they spell another."""
    if not (inside and tokenizer.description.prefix is not Prefix.NONE):
        ids = tuple(tokenizer.encode(text))
    else:
        front = tokenizer.encode(_SENTINEL)
        ids = tuple(tokenizer.encode(_SENTINEL + text))
        if list(ids[: len(front)]) != front:
            return None
        ids = ids[len(front) :]
    spelled = b"".join(map(tokenizer.token_bytes, ids)) if inside else tokenizer.text_bytes(ids)
    return ids if spelled == text.encode() else None


# Schemas with valid instances, as regexes with texts.
#
# A schema becomes the regexes that outlines-core makes of it, one without white space, one with the
# optional spaces of its own default; an instance becomes `json.dumps` of it, without spaces for the
# one and with for the other, and counts if the regex matches that. What cannot be had (a schema
# that outlines-core refuses, a regex that is too long or too large) says why.

LONGEST = 20_000
"""Characters of a regex. outlines-core makes up to 27 million of one schema of MaskBench."""
BUDGET = Budget(max_states=5_000, max_seconds=20)
"""For one regex; 1 in 100 of MaskBench's is larger."""
STYLES = {"compact": "", "spaced": None}
"""By style of the texts: what outlines-core puts where white space may be (None: its default,
`[ ]?`)."""
GIVEN = "as given"
"""The style of regexes that come with their texts."""


@dataclass(frozen=True)
class Item:
    """dfa: of the regex, None where there is none, for the reason `refused`; texts: the valid ones
    of the case that it accepts; other: how many it does not."""

    case: Case
    regex: str = ""
    dfa: ByteDFA | None = None
    texts: tuple[str, ...] = ()
    other: int = 0
    refused: str | None = None


def sampled(cases: Sequence[Case], count: int, seed: int) -> list[Case]:
    """A random `count` of them (0: all), in their order."""
    if not 0 < count < len(cases):
        return list(cases)
    chosen = random.Random(seed).sample(range(len(cases)), count)
    return [cases[i] for i in sorted(chosen)]


def item_of(case: Case, style: str) -> Item:
    """With its regex compiled, and the texts that match. Raises MissingDependencyError."""
    try:
        regex = _regex_of(case, style)
    except (ValueError, RecursionError) as error:
        return Item(case, refused=f"outlines-core: {_short(error)}")
    if len(regex) > LONGEST:
        return Item(case, refused=f"a regex of more than {LONGEST:,} characters")
    try:
        dfa = compile_regex(regex, BUDGET)
    except BpeAutomataError as error:
        return Item(case, regex, refused=f"{type(error).__name__}: {_short(error)}")
    # What `re.fullmatch` says too; but that takes exponential time on some of these regexes.
    fit = tuple(text for text in case.valid if dfa.accepts(text.encode("utf-8", "replace")))
    return Item(case, regex, dfa, fit, len(case.valid) - len(fit))


def _regex_of(case: Case, style: str) -> str:
    """Raises MissingDependencyError, and ValueError for what outlines-core refuses."""
    if "regex" in case.source:
        return str(case.source["regex"])
    build = require("outlines_core.json_schema", INSTALL).build_regex_from_schema
    return str(build(json.dumps(case.source["schema"]), STYLES[style]))


def _short(error: Exception) -> str:
    """The beginning of a message: some hold the whole schema."""
    return str(error).split("\n")[0][:60]
