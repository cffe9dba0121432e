"""Small tokenizers, and the jobs of a thread that shares things with others: functions of what is
shared that give all that they saw.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import tokenizers
from hypothesis import HealthCheck, Phase, given, settings
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers

from bpe_automata import Tokenizer, constrain, explain, heal, link_regex, verify
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._core.canonical import canonical_automaton
from bpe_automata._decoding.batches import batch_masks
from bpe_automata._decoding.constraint import Constraint
from bpe_automata._decoding.matcher import Matcher
from bpe_automata._decoding.token_table import Listed
from bpe_automata._kernels.bits import members
from bpe_automata._token_automata.automaton import TokenAutomaton
from bpe_automata.banning import Ban
from bpe_automata.banning._spellings import Spellings
from bpe_automata.banning._words import AppliedBan
from bpe_automata.errors import BpeAutomataError
from bpe_automata.integrations._requests import Constraints, Options
from bpe_automata.schemas import json_schema
from bpe_automata.testing import tokenizer_files
from bpe_automata.testing._trained import accepted as is_accepted

_TEXT = """the cat sat on the mat. the dog barks, and the cats sleep: "a" is 1, "b" is null.
{"a": "abab", "b": 1} {"a": "", "b": null} boolean: true, false or maybe; 12 aab ba é A
café latte, café noir; 日本 日本語; 2012-12-21, it's the cat's  \n\n the end
""".splitlines()
_BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
_DIGITS = pre_tokenizers.Sequence(
    [
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ]
)
_PIPELINES = (
    (None, pre_tokenizers.ByteLevel(add_prefix_space=False)),
    (None, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)),
    (None, pre_tokenizers.ByteLevel(add_prefix_space=True)),
    (normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=False)),
    (normalizers.Lowercase(), _DIGITS),
)
_FEWEST = 40  # ids of a random one: what is smaller spells next to nothing


def trained() -> list[dict[str, Any]]:
    """Of some 500 ids, one for each kind of pipeline."""
    return [_trained(*pipeline, 300 + 60 * k) for k, pipeline in enumerate(_PIPELINES)]


def _trained(normalizer: Any, pretokenizer: Any, size: int) -> dict[str, Any]:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pretokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, show_progress=False, initial_alphabet=_BYTES, min_frequency=1
    )
    tokenizer.train_from_iterator(_TEXT, trainer)
    tokenizer.add_tokens([AddedToken("<|end|>", special=True), AddedToken("the cat")])
    data: dict[str, Any] = json.loads(tokenizer.to_str())
    return data


def random_file(n: int) -> list[dict[str, Any]]:
    """What `testing.tokenizer_files` draws first, and is accepted and not too small."""
    found: list[dict[str, Any]] = []

    @settings(
        max_examples=n,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(tokenizer_files())
    def collect(data: dict[str, Any]) -> None:
        if len(data["model"]["vocab"]) >= _FEWEST and is_accepted(data):
            found.append(data)

    collect()
    return found


# A job is a function of what is shared and gives a trace: plain values that are the same in any
# thread, at any time, whatever the others do. An error is part of the trace, by its name.

Trace = list[object]
LONGEST = 6
MOST_EDGES = 3_000


@dataclass(frozen=True)
class Language:
    """regex: its texts; finite: one whose texts are few; text: any; ban: words."""

    regex: str
    finite: str
    text: str
    banned: tuple[str, ...]


WORDS = Language(
    r"((the|cat|ab+|ba|1?2|é)[ \n]?)+(A|\.)?", r"(the |cat|aab|ab|ba){1,2}", "the cat ab", ("ab",)
)
SENTENCE = Language(r"( [a-z]+)+\.", r"boolean: (true|false|maybe)", "the cat", ("cat", "the"))
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"enum": [1, "a", None]}},
    "required": ["a"],
    "additionalProperties": False,
}


class Shared:
    """What all threads of one trial have in common. Whatever is made lazily is not made yet."""

    def __init__(self, tokenizer: Tokenizer, language: Language, schema: ByteDFA) -> None:
        self.tokenizer, self.language, self.schema = tokenizer, language, schema
        self.ban = Ban(language.banned)
        self.requests = Constraints(tokenizer, [tokenizer.n_ids - 1])
        self._made: dict[str, Constraint | BpeAutomataError] = {}
        self.constraints = {
            "canonical": self._constrain(language.regex),
            "lift": self._constrain(language.regex, method="lift"),
            "finite": self._constrain(language.finite),
            "schema": self._constrain(schema),
        }
        self.applied = self._applied()
        self.linked = link_regex("((a|aa){0,300},?){200,}")
        self.automaton = self._automaton()
        self.listed = self._listed()

    def constraint(self, name: str) -> Constraint:
        found = self.constraints[name]
        if isinstance(found, BpeAutomataError):
            raise found
        return found

    def _constrain(self, language: str | ByteDFA, **options: object) -> object:
        try:
            return constrain(self.tokenizer, language, eos_ids=(), **options)  # type: ignore[arg-type]
        except BpeAutomataError as error:
            return error

    def _applied(self) -> AppliedBan | None:
        found = self.constraints["canonical"]
        return AppliedBan(self.ban, found) if isinstance(found, Constraint) else None

    def _automaton(self) -> TokenAutomaton:
        """(ab | ba){2 .. 5} over ids, with many ways: nothing of the tokenizer's."""
        listed = [(k, i, k + 1) for k in range(8) for i in range(1 + k % 3)]
        return TokenAutomaton.from_transitions(listed, 0, [4, 6, 8])

    def _listed(self) -> Listed:
        return Listed(self.automaton, [5], 6)


def walked(matcher: Matcher, rng: random.Random, tokenizer: Tokenizer | None) -> Trace:
    """Masks along a random walk, with all that a matcher can be asked on the way."""
    found: Trace = []
    for _ in range(LONGEST):
        ids = matcher.allowed_ids().tolist()
        found.append((hash(tuple(ids)), len(ids), matcher.is_accepting))
        if not ids or matcher.is_finished:
            break
        asked = rng.randrange(5)
        if asked == 0:
            found.append(matcher.min_tokens_to_accept())
        elif asked == 1:
            found.append(matcher.forced_tokens(4))
            found.append(matcher.forced_bytes() if tokenizer else None)
        elif asked == 2 and matcher.ids:
            back = matcher.copy()
            back.rollback()
            found.append(hash(tuple(back.allowed_ids().tolist())))
        matcher.advance(ids[rng.randrange(len(ids))])
    return [*found, matcher.ids]


def _walk(name: str) -> Callable[[Shared], Trace]:
    def job(shared: Shared) -> Trace:
        matcher = shared.constraint(name).matcher()
        return walked(matcher, random.Random(name), shared.tokenizer)

    return job


def own(shared: Shared) -> Trace:
    """A constraint of its own over the shared tokenizer."""
    tokenizer, found = shared.tokenizer, []
    for k, regex in enumerate((shared.language.regex, shared.language.finite)):
        matcher = constrain(tokenizer, regex, eos_ids=()).matcher()
        found += walked(matcher, random.Random(k), tokenizer)
    return found


def after_prompt(shared: Shared) -> Trace:
    prompt = shared.tokenizer.encode(shared.language.text)
    matcher = shared.constraint("canonical").matcher(prompt)
    return walked(matcher, random.Random(7), shared.tokenizer)


def within(shared: Shared) -> Trace:
    found: Trace = []
    for n in (3, 5):
        for name in ("canonical", "lift", "finite"):
            matcher = shared.constraint(name).within(n).matcher()
            found += walked(matcher, random.Random(n), shared.tokenizer)
    return found


def nearest(shared: Shared) -> Trace:
    return [
        shared.constraint(name).matcher().min_tokens_to_accept()
        for name in ("canonical", "finite", "lift", "schema")
    ]


def banned(shared: Shared) -> Trace:
    ban, tokenizer = shared.ban, shared.tokenizer
    found: Trace = [list(ban.found_in("aab the cat")), ban.allowed.n_states]
    if shared.applied is not None:
        for before in ("", "a", "ca"):
            constraint = shared.applied.after(before)
            found += walked(constraint.matcher(), random.Random(before), tokenizer)
    found.append(Spellings(tokenizer, ban).automaton(max_edges=MOST_EDGES).n_states)
    return found


def explicit(shared: Shared) -> Trace:
    automaton = shared.constraint("finite").automaton(max_edges=MOST_EDGES)
    minimal = automaton.minimised()
    sampled = automaton.sample_uniform(random.Random(1)) if automaton.total() else None
    return [automaton.n_states, automaton.total(), minimal.n_states, sampled]


def counted(shared: Shared) -> Trace:
    automaton = shared.automaton
    drawn = [automaton.sample_uniform(random.Random(n)) for n in (8, 4, 6)]
    return [automaton.total(), drawn, list(islice(automaton.enumerate(), 5))]


def linked(shared: Shared) -> Trace:
    """States are entered as texts come."""
    return [shared.linked.accepts(b"aa," * n) for n in range(180, 300, 7)]


def listed(shared: Shared) -> Trace:
    return walked(Matcher(shared.listed), random.Random(2), None)


def accepted(shared: Shared) -> Trace:
    automaton, tokenizer = canonical_automaton(shared.tokenizer), shared.tokenizer
    rng, found = random.Random(11), []
    ids = tokenizer.encode(shared.language.text)
    for _ in range(8):
        found.append(automaton.accepts(ids))
        ids = [rng.randrange(tokenizer.n_ids) for _ in range(3)]
    return found


def explained(shared: Shared) -> Trace:
    rng, tokenizer = random.Random(5), shared.tokenizer
    drawn = [[rng.randrange(tokenizer.n_ids) for _ in range(3)] for _ in range(3)]
    return [str(explain(tokenizer, ids)) for ids in drawn]


def healed(shared: Shared) -> Trace:
    prompt = shared.tokenizer.encode(shared.language.text + " ")
    found = heal(shared.constraint("canonical"), prompt, n=2)
    return [found.prefix, str(found.healing), hash(tuple(_first(found.constraint, found.prefix)))]


def _first(constraint: Constraint, prefix: tuple[int, ...]) -> list[int]:
    return constraint.matcher(prefix).allowed_ids().tolist()


def verified(shared: Shared) -> Trace:
    found = [verify(shared.tokenizer, shared.constraint(n), n=6) for n in ("canonical", "lift")]
    return [(v.ok, v.walks, v.strings, v.skipped) for v in found]


def schema(shared: Shared) -> Trace:
    """Compiled by each thread: what schemas remember of one another is shared by all."""
    dfa = json_schema(SCHEMA).to_dfa(depth=3)
    matcher = constrain(shared.tokenizer, dfa, eos_ids=()).matcher()
    return [dfa.n_states, *walked(matcher, random.Random(4), shared.tokenizer)]


def served(shared: Shared) -> Trace:
    """The constraints that a server keeps between requests."""
    found: Trace = []
    for regex in (shared.language.regex, shared.language.finite):
        matcher = shared.requests.of(Options(regex, method="lift")).matcher()
        found += walked(matcher, random.Random(regex), shared.tokenizer)
    return found


def removed(shared: Shared) -> Trace:
    found = shared.constraint("canonical").removed
    return [str(found), shared.tokenizer.added_ids, hash(shared.tokenizer.spellings)]


def batch(shared: Shared) -> Trace:
    """Masks of all constraints in one call, some steps on."""
    constraints = [found for found in shared.constraints.values() if isinstance(found, Constraint)]
    rng, found = random.Random(8), list[object]()
    matchers = [found.matcher() for found in constraints]
    for _ in range(LONGEST):
        masks = batch_masks(matchers, threads=3)
        found.append([hash(mask.tobytes()) for mask in masks])
        for matcher, mask in zip(matchers, masks, strict=True):
            if len(ids := members(mask)):
                matcher.advance(int(ids[rng.randrange(len(ids))]))
    return found


JOBS: dict[str, Callable[[Shared], Trace]] = {
    "canonical": _walk("canonical"),
    "lift": _walk("lift"),
    "finite": _walk("finite"),
    "shared schema": _walk("schema"),
    "own": own,
    "batch": batch,
    "after a prompt": after_prompt,
    "within": within,
    "nearest": nearest,
    "banned": banned,
    "explicit": explicit,
    "counted": counted,
    "linked": linked,
    "listed": listed,
    "accepted": accepted,
    "explained": explained,
    "healed": healed,
    "verified": verified,
    "schema": schema,
    "served": served,
    "removed": removed,
}


def traced(job: Callable[[Shared], Trace], shared: Shared) -> Trace:
    """What the job saw; an error of this package, or any other, by its name."""
    try:
        return job(shared)
    except Exception as error:
        return [type(error).__name__, str(error)]
