"""What linked schemas share in a process: the worker of the experiment `segments`, and its rows.

`python -m experiments.schemas.linked_segments TOKENIZER` is three processes, two of them forks of
the first. `none` never learns a schema, `shared` has learnt all those before, `again` also the one
that is measured. Each schema is measured in new forks of all three, in turns: it is linked, with
members in any order, and the masks along an instance are made.

They begin with all kernels loaded (by a different schema, style and object of the tokenizer), and
with all that is made once of a tokenizer (by a regex and a linked number). So what any first
constraint costs does not count as shared. What schemas lead to does: their parts and sets of
strings, the vocabularies collapsed for these, and what was found out about the tokenizer on the way
(hypothesis sets and proofs). The disk cache is off: what one process finds no other one reads.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numba.core.dispatcher import Dispatcher

from bpe_automata import Tokenizer, compile_regex, constrain
from bpe_automata._automata.linked import ByteAutomaton
from bpe_automata._cli.warm import all_kernels
from bpe_automata._constructions.canonical import canonical_automaton
from bpe_automata._constructions.text_quotient import text_for
from bpe_automata.errors import BpeAutomataError
from bpe_automata.schemas import link_json_schema
from experiments.article.forks import DONE, UNLIMITED, forked, settle, twin
from experiments.article.table2_series import Source, write
from experiments.run.executors import FAILURE, Row
from experiments.run.statistics import median
from experiments.schemas.inputs import spelled
from experiments.shared.resources import timed
from experiments.shared.watched import Answer, WatchedProcess, serve

REPEATS = 3
"""Forks of each process, for each schema."""
PARTS = ("link", "constraint", "first", "further")
"""Of the seconds: linking, the constraint, a matcher and its first mask, and all further masks with
the ids between them."""
VARIANTS = ("none", "shared", "again")
WARM = {
    "type": "object",
    "properties": {
        "zz1": {"type": "string"},
        "zz2": {"type": "integer"},
        "zz3": {"type": "number"},
        "zz4": {"enum": ["zz", "zy"]},
        "zz5": {"type": "array", "items": {"type": "string", "minLength": 3, "maxLength": 99}},
        "zz6": {"type": "object"},
        "zz7": {"type": "string", "format": "date"},
        "zz8": {"type": "boolean"},
    },
    "required": ["zz1"],
}
WARM_TEXT = (
    '{"zz8": true, "zz1": "She wrote it down: na\u00efve, \u65e5\u672c and a \\"quote\\"", '
    '"zz7": "1984-05-06", "zz5": ["many words, one by one", "and more of them"], "zz4": "zy", '
    '"zz2": 17, "zz3": -1.5, "zz6": {"other": [null, 1, {"a b": "some text"}]}}'
)
NUMBER = partial(link_json_schema, {"const": 17}, whitespace="spaced")
WARM_REGEX = r'\{"zz":"[a-e ]{0,9}","zy":(true|-?(0|[1-9][0-9]*)(\.[0-9]+)?)\}'
WARM_AUTOMATA: dict[Callable[[], ByteAutomaton], str] = {
    partial(compile_regex, WARM_REGEX): '{"zz":"bad cab","zy":-17.5}',
    NUMBER: "17",
}
"""With a text of each. In none of them is there a set of bytes so large that the vocabulary is
collapsed for it."""
_CACHE = "BPE_AUTOMATA_CACHE"
WRONG = "wrong"
Ask = Callable[[Row], Row]


class SegmentError(BpeAutomataError):
    """What was measured is wrong: the message says how."""


# ---------------------------------------------------------------- in the worker


def along(tokenizer: Tokenizer, link: Callable[[], ByteAutomaton], ids: Sequence[int]) -> Row:
    """Seconds of the `PARTS`; digest: of all masks. Raises SegmentError where an id is masked
    out."""
    words = np.ones(
        (len(ids) + 1, -(-tokenizer.n_ids // 32)), np.int32
    )  # so it is in memory before the clock starts
    before = _kernels_loaded()
    linking, automaton = timed(link)
    making, constraint = timed(lambda: constrain(tokenizer, automaton))
    begun, matcher = timed(constraint.matcher)
    first, _ = timed(partial(matcher.mask, words, 0))
    further = 0.0
    for number, token in enumerate(ids):
        if not words[number, token >> 5] >> (token & 31) & 1:
            raise SegmentError(f"id {token}, number {number} of the text's own, is masked out")
        read, _ = timed(partial(matcher.advance, token))
        asked, _ = timed(partial(matcher.mask, words, number + 1))
        further += read + asked
    spent = {"link": linking, "constraint": making, "first": begun + first, "further": further}
    digest = hashlib.sha256(words.tobytes()).hexdigest()
    return spent | {"digest": digest, "kernels": _kernels_loaded() - before}


@cache
def _kernels() -> list[Dispatcher]:
    return all_kernels()


def _kernels_loaded() -> int:
    return sum(len(kernel.overloads) for kernel in _kernels())


@dataclass(frozen=True)
class Knowing:
    """A process, and what it knows: see above. other: the tokenizer by which kernels are loaded."""

    tokenizer: Tokenizer
    other: Tokenizer

    def begin(self) -> None:
        """What the three have in common. A tokenizer that lacks a character of the warm texts does
        with less."""
        self._load()
        for make, text in WARM_AUTOMATA.items():
            with suppress(BpeAutomataError):
                along(self.tokenizer, make, self.tokenizer.encode(text))
        linked = text_for(canonical_automaton(self.tokenizer), NUMBER())
        linked.vocabularies.often, linked.vocabularies._pairs  # noqa: B018  # cached
        settle()

    def _load(self) -> None:
        link = partial(link_json_schema, WARM, order="any", whitespace="spaced")
        with suppress(BpeAutomataError):
            along(self.other, link, self.other.encode(WARM_TEXT))

    def answer(self, question: Row) -> Row:
        """Learn a schema, or measure it in a fork."""
        link = partial(link_json_schema, question["schema"], order="any")
        work = partial(along, self.tokenizer, link, question["ids"])
        if not question["learn"]:
            return forked(partial(self._measured, work))
        with suppress(BpeAutomataError):
            work()
        settle()
        return {}

    def _measured(self, work: Callable[[], Row]) -> Row:
        self._load()  # so that copying these pages, on the first write, is not timed
        try:
            return work()
        except SegmentError as error:
            return {WRONG: str(error)}
        except BpeAutomataError as error:
            return {"refused": True, FAILURE: f"{type(error).__name__}: {error}"}


def begun(source: str, stack: ExitStack) -> tuple[Row, Answer]:
    """The three processes. stack: ends two of them."""
    other = Tokenizer.load(source)
    canonical_automaton(other)  # puts the tables on the disk, from where the next one has them
    tokenizer = Tokenizer.load(source)
    canonical_automaton(tokenizer)
    os.environ[_CACHE] = "off"
    none = Knowing(tokenizer, other)
    none.begin()
    shared, again = (stack.enter_context(twin(none.answer)) for _ in range(2))
    return {}, partial(asked, dict(zip(VARIANTS, (none.answer, shared, again), strict=True)))


def asked(processes: dict[str, Ask], question: Row) -> Row:
    """For each variant a row of each fork, no rows if the schema is only to be learnt. Each round
    begins with a different variant."""
    learn, names = question | {"learn": True}, list(processes)
    rows: dict[str, list[Row]] = {name: [] for name in names}
    processes["again"](learn)
    for number in range(0 if question["learn"] else REPEATS):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            rows[name].append(processes[name](question))
    processes["shared"](learn)
    return rows


def main(source: str) -> None:
    """Answer until the input ends."""
    with ExitStack() as stack:
        serve(lambda: begun(source, stack))


# ---------------------------------------------------------------- from outside


@contextmanager
def worker(source: str) -> Iterator[WatchedProcess]:
    """With a cache folder of its own, so that it does not matter what is known on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        given = [source], UNLIMITED, {_CACHE: folder}
        with WatchedProcess("experiments.schemas.linked_segments", *given) as process:
            process.begin()
            yield process


def row_of(process: WatchedProcess, tokenizer: Tokenizer, source: Source, learn: bool) -> Row:
    """linked: by variant medians over the forks, seconds in all and of each part; `refused` if this
    package raises an error, or accepts no instance. learn: only leave in the processes what
    measuring leaves there. Raises SegmentError."""
    try:
        ids = ids_of(tokenizer, source)
    except BpeAutomataError as error:
        return {"refused": True, FAILURE: f"{type(error).__name__}: {error}"}
    if ids is None:
        return {"refused": True, FAILURE: "it accepts none of the instances"}
    found = process.answer({"schema": source.schema, "ids": ids, "learn": learn})
    if learn:
        return {}
    every = [one for rows in found.values() for one in rows]
    for one in every:
        if one.get(FAILURE) and one.get("refused"):
            return {"refused": True, FAILURE: one[FAILURE]}
        if why := one.get(WRONG) or one.get(FAILURE) or (one["status"] != DONE and one["status"]):
            raise SegmentError(str(why))
    if len({one["digest"] for one in every}) > 1:
        raise SegmentError("masks differ with what is known")
    counted = {"masks_made": len(ids) + 1}
    return {"linked": {name: _middle(rows) | counted for name, rows in found.items()}}


def ids_of(tokenizer: Tokenizer, source: Source) -> list[int] | None:
    """Of the first instance that its schema accepts, written without white space. Raises what
    linking it raises."""
    automaton = link_json_schema(source.schema, order="any")
    texts = filter(lambda text: automaton.accepts(text.encode()), map(write, source.instances))
    return next((ids for text in texts if (ids := spelled(tokenizer, text))), None)


def _middle(rows: Sequence[Row]) -> Row:
    parts = {part: median([row[part] for row in rows]) for part in PARTS}
    seconds = median([sum(row[part] for part in PARTS) for row in rows])
    return {"seconds": seconds, "kernels": max(row["kernels"] for row in rows)} | parts


if __name__ == "__main__":
    main(sys.argv[1])
