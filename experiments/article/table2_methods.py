"""What the package does of Table 2, step by step, for one automaton.

Step 2 is the lift, the masks of all its states. Step 3 finds the relevant states, which is what
relevance adds to the lift: what is dead at each node of the product. Step 4 is a mask. The eager
engine takes them one by one; then, in one pass, it makes the rows of all nodes, which is all that
decoding needs. The lazy one does what the masks that are asked for need.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions import CartesianMerge, Lift, SegmentCache
from bpe_automata.constructions.segments_eager import all_nodes, prepared, settle
from bpe_automata.errors import BpeAutomataError, MissingFileError
from bpe_automata.kernels.bits import has
from bpe_automata.schemas import compile_json_schema
from experiments.run.executors import Row
from experiments.run.files import ROOT, lines_of, require
from experiments.shared.timing import timed

MOST_MASKS = 60
"""Masks of one text that are looked at."""


class Table2Error(BpeAutomataError):
    """What was measured is wrong: the message says where."""


@dataclass(frozen=True)
class Task:
    """A tokenizer, an automaton, and the ids of a text that it accepts."""

    tokenizer: Tokenizer
    dfa: ByteDFA
    ids: Sequence[int]

    def engine(self) -> CartesianMerge:
        """A new one, which knows nothing yet."""
        return CartesianMerge(self.tokenizer, self.dfa, self.tokenizer.eos_ids)


def eager(task: Task) -> Row:
    """Seconds of each step; `rows`: of steps 2 and 3 in one pass; `nodes`, `dead`: how many nodes
    there are, and at how many some id is dead."""
    engine = task.engine()
    rows, nodes = timed(lambda: all_nodes(engine, engine.initial()))
    masks = along(engine, task.ids)
    lifting, _ = timed(lambda: _lifted(task))
    fresh = task.engine()
    relevance, dead = timed(lambda: settle(fresh, nodes))
    steps = {"lift": lifting, "relevance": relevance, "rows": rows, "masks": masks}
    return steps | {"nodes": len(nodes), "dead": dead}


def _lifted(task: Task) -> None:
    lift = Lift(task.tokenizer, task.dfa, task.tokenizer.eos_ids)
    for state in range(1, lift.dfa.n_states):
        lift.mask(state)


def lazy(task: Task) -> Row:
    """`rows`: to an engine and its first mask; `masks`: all of them, the first included."""
    return _until_first(task.engine, task.ids)


def _until_first(make: Callable[[], CartesianMerge], ids: Sequence[int]) -> Row:
    making, engine = timed(make)
    masks = along(engine, ids)
    return {"rows": making + masks[0], "masks": masks}


def segmented(task: Task, cache: SegmentCache) -> Row:
    """Eager, with what the cache knows: only `made` rows of the nodes are made. Masks are as those
    of `eager`."""
    engine = task.engine()
    before = cache.counts.made + cache.counts.apart
    rows, nodes = timed(lambda: prepared(engine, engine.initial(), cache))
    return {"rows": rows, "nodes": nodes, "made": cache.counts.made + cache.counts.apart - before}


def along(engine: CartesianMerge, ids: Sequence[int]) -> list[float]:
    """Seconds of each mask before an id. Raises Table2Error where the id is not in it."""
    before, state = timed(engine.initial)  # which asks for the first mask too
    seconds: list[float] = []
    for number, token in enumerate(ids[:MOST_MASKS]):
        spent, mask = timed(partial(engine.mask, state))
        seconds.append(before + spent if number == 0 else spent)
        if not has(mask, token):
            raise Table2Error(f"id {token}, number {number} of the text's own, is masked out")
        state = engine.step(state, token)
    return seconds


# The schemas of Table 2, as automata with texts to decode along.

SCHEMAS = ROOT.parent / "shared" / "data" / "maskbench"
"""MaskBench, where it lies: its licence is not known, so it is no part of the repository."""
GROUP = "Glaiveai2K"
"""The file of it that is taken: function calls, as in the article."""

_INSTALL = "pip install datasets"
_ID_KEYS = ("id", "unique_id", "name")
_SCHEMA_KEYS = ("schema", "json_schema", "parameters")

write: Callable[[Any], str] = partial(json.dumps, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Source:
    """id, schema; instances: those that the data says are valid."""

    id: str
    schema: Any
    instances: tuple[Any, ...]


@dataclass(frozen=True)
class Item:
    """dfa: of the compact texts, with only the properties that the schema names; text: one of them,
    an instance's if there is one; seconds: to compile; failure: why there is no automaton."""

    source: Source
    dfa: ByteDFA | None
    text: str
    seconds: float
    failure: str | None = None


def sources_of(schemas: Path, n: int | None, seed: int) -> list[Source]:
    """The function calls of `SCHEMAS`, or everything in another folder, in a file or in a hub data
    set; `n` of them drawn by lot. Raises MissingFileError, MissingDependencyError."""
    if schemas.is_dir():
        rows = _from_folder(schemas)
    else:
        rows = [*lines_of(schemas)] if schemas.is_file() else _from_hub(str(schemas))
    found = [_source(number, row) for number, row in enumerate(rows)]
    random.Random(seed).shuffle(found)
    return found[:n]


def _from_folder(folder: Path) -> list[Mapping[str, Any]]:
    pattern = f"{GROUP}*.jsonl*" if folder == SCHEMAS else "*.jsonl*"
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise MissingFileError(f"{folder} has no files {pattern}; give --schemas")
    return [row for path in paths for row in lines_of(path)]


def _from_hub(name: str) -> list[Mapping[str, Any]]:
    """All rows of a data set, its training split if it has several."""
    if name.count("/") != 1 or name.startswith((".", "/")):
        message = f"{name} is neither a folder or file of JSON lines nor the hub id of a data set"
        raise MissingFileError(f"{message} (owner/name); give --schemas")
    load = require("datasets", _INSTALL).load_dataset
    try:
        rows: Iterable[Mapping[str, Any]] = load(name, split="train")
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise MissingFileError(f"cannot load the data set {name!r}: {reason}") from error
    return list(rows)


def _source(number: int, row: Mapping[str, Any]) -> Source:
    schema = next((row[key] for key in _SCHEMA_KEYS if row.get(key) is not None), None)
    if schema is None:
        keys = ", ".join(_SCHEMA_KEYS)
        raise MissingFileError(f"row {number} of the data has no schema: it needs one of {keys}")
    schema = json.loads(schema) if isinstance(schema, str) else schema
    valid = tuple(test["data"] for test in row.get("tests", ()) if test["valid"])
    name = next((row[key] for key in _ID_KEYS if key in row), number)
    return Source(str(name), schema, valid)


def item_of(source: Source) -> Item:
    """Compiled; what is refused says why."""
    try:
        seconds, dfa = timed(lambda: compile_json_schema(source.schema, closed=True))
    except BpeAutomataError as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return Item(source, None, "", 0.0, reason)
    texts = (write(instance) for instance in source.instances)
    fitting = (text for text in texts if dfa.accepts(text.encode("utf-8", "replace")))
    shortest = dfa.shortest() or b""
    return Item(source, dfa, next(fitting, shortest.decode()), seconds)
