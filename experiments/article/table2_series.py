"""The schemas of Table 2, as automata with texts to decode along, and what is measured of each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.lift import Lift
from bpe_automata._core.canonical import CanonicalAutomaton
from bpe_automata._kernels.bits import has, members
from bpe_automata.errors import BpeAutomataError, MissingFileError
from bpe_automata.reference import CartesianProduct, lift, product_mask
from bpe_automata.schemas import json_schema
from experiments.article.configurations import all_configurations, make_rows
from experiments.article.forks import DONE, failed, forked, limits
from experiments.article.mistral import Reference, mistral_table
from experiments.run.executors import Row
from experiments.run.files import lines_of, require
from experiments.schemas.inputs import SCHEMAS
from experiments.serving.speed import from_cache
from experiments.shared.resources import repeated, timed

# The engines step by step. The eager one takes the lift and relevance one by one; then, in one
# pass, it makes the rows of all nodes, which is all that decoding needs. The lazy one does what the
# masks that are asked for need. The published algorithms are in plain Python, within limits of time
# and memory. They know base symbols and merges only, so their tokenizer is the merge table alone;
# the eager engine is measured on the same table, and the first masks are compared.

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
    """Seconds of each step; `rows`: of steps 2 and 3 in one pass; `nodes`: how many configurations
    there are."""
    engine = task.engine()
    rows, nodes = timed(lambda: all_configurations(engine, engine.initial()))
    masks = along(engine, task.ids)
    lifting, _ = timed(lambda: _lifted(task))
    fresh = task.engine()
    relevance, _ = timed(lambda: make_rows(fresh, nodes))
    steps = {"lift": lifting, "relevance": relevance, "rows": rows, "masks": masks}
    return steps | {"nodes": len(nodes)}


def _lifted(task: Task) -> None:
    lift = Lift(task.tokenizer, task.dfa, task.tokenizer.eos_ids)
    for state in range(1, lift.dfa.n_states):
        lift.mask(state)


def lazy(task: Task) -> Row:
    """`rows`: to an engine and its first mask; `masks`: all of them, the first included."""
    making, engine = timed(task.engine)
    masks = along(engine, task.ids)
    return {"rows": making + masks[0], "masks": masks}


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


def measured(reference: Reference, dfa: ByteDFA, text: str, seconds: float, mb: float) -> Row:
    """Seconds of steps 2 to 4 in a process of its own, and `first`: are the first masks equal?
    `status`: "done", or what was over its limit (`seconds`, or `mb` 10^6 bytes more)."""

    def work() -> Row:
        with limits(seconds, mb):
            return steps(reference, dfa, text)

    return forked(work)


def steps(reference: Reference, dfa: ByteDFA, text: str) -> Row:
    """The same in this process, without limits."""
    symbols = reference.symbols(dfa)
    lifting, lifted = timed(lambda: lift(symbols, reference.spelled))
    product = CartesianProduct(lifted, reference.texts)
    relevance, relevant = timed(lambda: product.relevant)
    masks, pair, first = [], product.start, None
    for token in reference.tokenizer.encode(text)[:MOST_MASKS]:
        spent, mask = timed(lambda here=pair: product_mask(product, here))  # type: ignore[misc]
        first = mask if first is None else first
        masks.append(spent)
        pair = product.step(pair, token)
    engine = CartesianMerge(reference.tokenizer, dfa)
    ours = {*members(engine.mask(engine.initial())).tolist()}
    times = {"lift": lifting, "relevance": relevance, "masks": masks}
    return times | {"nodes": len(relevant), "first": first is None or first == ours}


# The schemas.

GROUP = "Glaiveai2K"
"""The file of `SCHEMAS` that is taken: function calls, as in the article."""

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
        seconds, dfa = timed(lambda: _written_out(source.schema))
    except BpeAutomataError as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return Item(source, None, "", 0.0, reason)
    texts = (write(instance) for instance in source.instances)
    fitting = (text for text in texts if dfa.accepts(text.encode("utf-8", "replace")))
    shortest = dfa.shortest() or b""
    return Item(source, dfa, next(fitting, shortest.decode()), seconds)


def _written_out(schema: Any) -> ByteDFA:
    """Of a function call: members in order, no others, values nested three levels."""
    return json_schema(schema, closed=True, order="schema").to_dfa(depth=3)


REPEATS = 3
"""How often the automaton of the tokenizer is made."""


@dataclass(frozen=True)
class Limits:
    """merges: of the plain algorithms' table, None for all; reference_total: seconds of the plain
    algorithms for all schemas together; reference_mb: 10^6 bytes."""

    merges: int | None
    reference_total: float
    reference_mb: float


class Series:
    """Measures schema after schema. plain: seconds for the plain algorithms on one schema, 0 to
    leave them out."""

    def __init__(self, tokenizer: Tokenizer, plain: float, limits: Limits) -> None:
        self.tokenizer, self.plain, self.limits = tokenizer, plain, limits
        self.spent = 0.0
        self._reference: Reference | None = None
        self.all_texts_seconds = 0.0

    @property
    def reference(self) -> Reference | None:
        """The plain algorithms with what they make once, as long as they have time left."""
        if not self.plain or self.spent >= self.limits.reference_total:
            return None
        if self._reference is None:
            made = self._reference = Reference(mistral_table(self.limits.merges))
            self.all_texts_seconds, _ = timed(lambda: made.texts)
            made.spelled  # noqa: B018  # cached; no step of a schema
        return self._reference

    def warm(self, source: Source) -> None:
        """Load the kernels, and what an engine makes once for a tokenizer."""
        item = item_of(source)
        if item.dfa is not None:
            self._package(item, item.dfa)

    def go_on_after(self, rows: Iterable[Row]) -> None:
        """As if these had just been measured: their time is spent."""
        self.spent = sum(row.get("reference_wall", 0.0) for row in rows)

    def tokenizer_row(self) -> Row:
        """Step 1."""
        whole = repeated(lambda: CanonicalAutomaton(self.tokenizer), REPEATS)
        from_cache(self.tokenizer)
        stored = repeated(lambda: from_cache(self.tokenizer), REPEATS)
        plain = [self.all_texts_seconds] if self.reference else []
        return {"kind": "tokenizer", "eager": whole, "stored": stored, "reference": plain}

    def row(self, source: Source) -> Row:
        """The engines that have time left on one schema; `failure`: why there is no automaton."""
        item = item_of(source)
        row: Row = {"kind": "schema", "id": source.id, "failure": item.failure, "methods": {}}
        if item.dfa is None:
            return row
        before = self.spent
        row |= {"states": item.dfa.n_states, "compile": item.seconds}
        row["methods"] = self._package(item, item.dfa)
        if reference := self.reference:
            row["methods"] |= self._table_alone(reference, item, item.dfa)
        row["reference_wall"] = self.spent - before
        return row

    def _task(self, item: Item, dfa: ByteDFA) -> Task:
        return Task(self.tokenizer, dfa, self.tokenizer.encode(item.text))

    def _package(self, item: Item, dfa: ByteDFA) -> dict[str, Row]:
        task = self._task(item, dfa)
        return {"eager": _tried(partial(eager, task)), "lazy": _tried(partial(lazy, task))}

    def _table_alone(self, reference: Reference, item: Item, dfa: ByteDFA) -> dict[str, Row]:
        task = Task(reference.tokenizer, dfa, reference.tokenizer.encode(item.text))
        seconds = min(self.plain, self.limits.reference_total - self.spent)
        work = partial(measured, reference, dfa, item.text, seconds, self.limits.reference_mb)
        spent, row = timed(work)
        self.spent += spent
        return {"eager, table alone": _tried(partial(eager, task)), "reference": row}


def _tried(method: Callable[[], Row]) -> Row:
    """Its row, or why it failed."""
    try:
        return {"status": DONE} | method()
    except BpeAutomataError as error:
        return failed(f"{type(error).__name__}: {error}")
